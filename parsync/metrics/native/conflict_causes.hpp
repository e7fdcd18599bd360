// Why claims conflict, counted as the cell decides them (parsync/metrics/kinds/conflicts.py says
// what the causes are).
//
// Of every machine the last claim is kept, and the last one before it that another scheduler made:
//
//   claim of scheduler s:  last.scheduler != s  ->  before = last;  last = the claim
//
// so the claim of a conflict's rival, the other scheduler that last claimed the machine, is one of
// the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedulers/native/objective.hpp"
#include "shared_state/native/observed_cell.hpp"

namespace agora {

class ConflictCauses final : public CellObserver {
 public:
  // preference: the set of each task. [from_us, to_us): when conflicts count, ascending and apart.
  // The catalog's columns outlive this. Throws std::invalid_argument if the times differ in number.
  ConflictCauses(size_t machines, SharedColumn<int32_t> preference,
                 const PreferenceColumns& catalog, std::vector<int64_t> from_us,
                 std::vector<int64_t> to_us);

  // An initial state, placed long ago. Throws std::invalid_argument for a machine or task that does
  // not exist, as on_commit() does.
  void on_load(const Load& load) override;
  void on_commit(const TransactionPtr& transaction, const CommitResultPtr& result,
                 int64_t now_us) override;

  // Conflicts so far, by cause.
  int64_t same_tick() const { return same_tick_; }
  int64_t quality() const { return quality_; }
  int64_t stale() const { return stale_; }

 private:
  static constexpr int32_t kNobody = -1;
  struct Claim {
    int32_t scheduler = kNobody;
    int64_t task = -1;
    int64_t at_us = 0;
  };

  size_t row_of(int32_t machine, int64_t task) const;
  bool counts(int64_t now_us) const;
  void count(const Transaction& transaction, const CommitResult& result, int64_t now_us);
  bool prefers(int64_t task, int32_t machine) const;

  std::vector<Claim> last_, before_;  // by machine
  SharedColumn<int32_t> preference_;
  PreferenceColumns catalog_;
  std::vector<int64_t> from_us_, to_us_;
  int64_t same_tick_ = 0, quality_ = 0, stale_ = 0;
};

}  // namespace agora
