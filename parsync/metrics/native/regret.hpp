// Regret of sampled transactions and instants, as the cell decides
// (parsync/metrics/kinds/regret.py says what regret is).
//
// What is looked at is known beforehand: moments open and close the settled part of each phase, and
// name the instants at which the whole cell is looked at. They take effect before the first change
// at or after their time. While a phase is open, its transactions pass a reservoir:
//
//   before_change -> moments that are due: OPEN, CLOSE, LOOK
//   before_commit -> a place in the reservoir? note what its evictions would end
//   on_commit     -> its regret takes the place
//   CLOSE         -> what is in the reservoir is kept
//
// The room before a commit is worked out from the cell after it: a copy of the cell for each sample
// would take longer than all the rest.
//
// Of anything else it notes only which tasks run or have run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedulers/native/objective.hpp"
#include "shared_state/native/observed_cell.hpp"
#include "shared_state/native/random.hpp"

namespace agora {

class RegretWatch final : public CellObserver {
 public:
  // The columns of a workload.
  struct Tasks {
    SharedColumn<int32_t> preference;  // [N]
    SharedTable<int64_t> request;      // [N, R]
    SharedColumn<int64_t> arrival_us, arrival_offsets, arrival_rows;
    SharedColumn<int64_t> initial;  // that run at time 0
    bool has_gangs = false;
  };
  struct Phase {
    int64_t from_us, to_us;  // its settled part
  };
  struct Sampling {
    std::vector<Phase> phases;
    int64_t batches_per_phase = 0;   // transactions
    int64_t instants_per_phase = 1;  // at least 1
    uint64_t seed = 0;
  };
  // As the classes of the same names in regret.py.
  struct Decision {
    int64_t at_us, agent, sequence, tasks, losers, regret;
    bool exact;
  };
  struct System {
    int64_t at_us, running, waiting, cost, without_migration, with_migration;
    bool exact;
  };

  // `best` and the cell outlive this. Throws std::invalid_argument for columns that do not go
  // together, and calls for tasks that do not exist.
  RegretWatch(BestPlacement& best, Tasks tasks, Sampling sampling);

  void attach(const Cell& cell) override;
  void before_change(int64_t now_us) override;
  void before_commit(const TransactionPtr& transaction, int64_t now_us) override;
  void on_commit(const TransactionPtr& transaction, const CommitResultPtr& result,
                 int64_t now_us) override;
  void on_load(const Load& load) override;
  void on_machines(const SharedColumn<int32_t>& machine, const SharedColumn<bool>& up,
                   const Released& lost, int64_t now_us) override;

  // The end of the run: handles the moments up to then.
  void end(int64_t ended_us);
  const std::vector<Decision>& decisions() const { return decisions_; }
  const std::vector<System>& systems() const { return systems_; }

 private:
  // At equal times in this order.
  enum class What : uint8_t { kClose, kOpen, kLook };
  struct Moment {
    int64_t at_us;
    What what;
    size_t phase;
    auto operator<=>(const Moment&) const = default;
  };
  // What the evictions of a transaction would end.
  struct Victims {
    std::vector<int64_t> task, allocation;
    std::vector<int32_t> machine;
  };
  // The transaction that is being decided, if it has a place in the reservoir.
  struct Pending {
    size_t place;
    Victims victims;
  };
  // Tasks, where they are (or kUnplaced), and what they ask for.
  struct Placed {
    std::vector<int32_t> preference, machine;
    std::vector<int64_t> request;

    void reserve(size_t tasks, size_t dimensions) {
      preference.reserve(tasks);
      machine.reserve(tasks);
      request.reserve(tasks * dimensions);
    }
  };
  static constexpr int32_t kUnplaced = -1;

  void begin(const Moment& moment);
  void look(int64_t at_us);
  void close();
  std::optional<Decision> decide(const Transaction& claims, const CommitResult& result,
                                 const Victims& victims, int64_t at_us);
  std::optional<size_t> place_in_reservoir();

  const Cell& cell() const;
  Victims victims_of(const Transaction& transaction) const;
  std::vector<int64_t> waiting(int64_t at_us) const;
  const int64_t* request_of(int64_t task) const;
  void add(Placed& to, int64_t task, int32_t machine, const int64_t* request) const;
  int64_t cost_of(const Placed& placed) const;
  Optimum optimum(const MachineRoom& room, const Placed& placed) {
    return best_.cost(room, dimensions(), placed.preference, placed.request);
  }
  void set_placed(std::span<const int64_t> tasks, bool placed);
  size_t row_of(int64_t task) const;
  size_t dimensions() const { return tasks_.request.width(); }

  BestPlacement& best_;
  Tasks tasks_;
  Sampling sampling_;
  const Cell* cell_ = nullptr;
  std::vector<Moment> moments_;
  size_t next_ = 0;              // of the moments
  std::vector<uint8_t> placed_;  // by task: runs, or has run

  bool open_ = false;
  uint64_t seen_ = 0;  // transactions of this phase
  Stream stream_{0};
  std::vector<std::optional<Decision>> samples_;  // the reservoir
  std::optional<Pending> pending_;

  std::vector<Decision> decisions_;
  std::vector<System> systems_;
};

}  // namespace agora
