// The cell as its master calls it: every call is reported to the cell's observers, in order. For
// audits, digests, and measurements that need the true state, whatever protocol made the call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cell.hpp"
#include "transaction.hpp"

namespace agora {

// The cell's calls as messages bring them: transactions and shared columns in, new ones out.
// Semantics and errors are those of the methods of the same names (cell.hpp); besides, each throws
// std::invalid_argument naming a column whose length is not that of the others.

CommitResult commit(Cell& cell, const Transaction& transaction, int64_t now_us);

// owner: none: owners are not checked.
Released release(Cell& cell, const SharedColumn<int64_t>& allocation,
                 const std::optional<SharedColumn<int32_t>>& owner);

// The ids of the new allocations.
SharedColumn<int64_t> load(Cell& cell, const SharedColumn<int64_t>& task,
                           const SharedColumn<int32_t>& machine,
                           const SharedTable<int64_t>& request, const SharedColumn<int32_t>& owner);

Released set_machines(Cell& cell, const SharedColumn<int32_t>& machine,
                      const SharedColumn<bool>& up);

// The ids of the holds; -1 where it was refused.
SharedColumn<int64_t> hold(Cell& cell, const SharedColumn<int32_t>& holder,
                           const SharedColumn<int32_t>& machine,
                           const SharedTable<int64_t>& amount);

Holds end_holds(Cell& cell, const SharedColumn<int64_t>& hold);

// Those that the last commit or change of machines ended.
Holds ended_holds(const Cell& cell);

// Those that have not ended, by id.
Holds holds(const Cell& cell);

// owner: negative: of all.
Released allocations(const Cell& cell, int32_t owner);

Released describe(const Cell& cell, const SharedColumn<int64_t>& allocation);

// The rows of a partition that changed after `version`; all of them for 0.
PartitionDelta delta_since(Cell& cell, int64_t partition, int64_t version, int64_t now_us,
                           bool with_seqnum);

// Is notified of the calls to an observed cell. The cell is as it was before the call in methods
// named before_..., as it is after the call in methods named on_.... An observer never changes it.
class CellObserver {
 public:
  CellObserver() = default;
  virtual ~CellObserver() = default;
  CellObserver(const CellObserver&) = delete;
  CellObserver& operator=(const CellObserver&) = delete;

  // Once, with the cell that is observed from now on; it outlives this.
  virtual void attach(const Cell&) {}
  // Before every commit, release, load, hold, end of holds and change of machines (loads are at
  // time 0), and before the more specific method.
  virtual void before_change(int64_t) {}
  virtual void before_commit(const TransactionPtr&, int64_t) {}
  virtual void on_commit(const TransactionPtr&, const CommitResultPtr&, int64_t) {}
  // Allocations whose tasks have run are ended.
  virtual void on_release(const Released&, int64_t) {}
  struct Load {
    const SharedColumn<int64_t>& task;
    const SharedColumn<int32_t>& machine;
    const SharedTable<int64_t>& request;
    const SharedColumn<int32_t>& owner;
    const SharedColumn<int64_t>& allocation;
  };
  // An initial state is placed.
  virtual void on_load(const Load&) {}
  // Room was held; the id is -1 where it was refused.
  virtual void on_hold(const Holds&, int64_t) {}
  // Holds ended, but for those that transactions and lost machines end.
  virtual void on_holds_ended(const Holds&, int64_t) {}
  // Machines went down or came up; `lost` ended with them.
  virtual void on_machines(const SharedColumn<int32_t>&, const SharedColumn<bool>&,
                           const Released& /*lost*/, int64_t) {}
  // The changes of a partition were read, for a synchronisation.
  virtual void on_delta(const PartitionDeltaPtr&, int64_t) {}
};

class ObservedCell {
 public:
  // The cell outlives this.
  explicit ObservedCell(Cell& cell) : cell_(&cell) {}

  Cell& cell() { return *cell_; }
  const Cell& cell() const { return *cell_; }
  // Observers are asked in the order in which they were added.
  void add(std::shared_ptr<CellObserver> observer) { observers_.push_back(std::move(observer)); }

  CommitResultPtr commit(const TransactionPtr& transaction, int64_t now_us) {
    for (const auto& observer : observers_) observer->before_change(now_us);
    for (const auto& observer : observers_) observer->before_commit(transaction, now_us);
    auto result = std::make_shared<const CommitResult>(agora::commit(*cell_, *transaction, now_us));
    for (const auto& observer : observers_) observer->on_commit(transaction, result, now_us);
    return result;
  }

  Released release(const SharedColumn<int64_t>& allocation,
                   const std::optional<SharedColumn<int32_t>>& owner, int64_t now_us) {
    for (const auto& observer : observers_) observer->before_change(now_us);
    Released released = agora::release(*cell_, allocation, owner);
    for (const auto& observer : observers_) observer->on_release(released, now_us);
    return released;
  }

  SharedColumn<int64_t> load(const SharedColumn<int64_t>& task,
                             const SharedColumn<int32_t>& machine,
                             const SharedTable<int64_t>& request,
                             const SharedColumn<int32_t>& owner) {
    for (const auto& observer : observers_) observer->before_change(0);
    SharedColumn<int64_t> allocation = agora::load(*cell_, task, machine, request, owner);
    for (const auto& observer : observers_)
      observer->on_load({task, machine, request, owner, allocation});
    return allocation;
  }

  SharedColumn<int64_t> hold(const SharedColumn<int32_t>& holder,
                             const SharedColumn<int32_t>& machine,
                             const SharedTable<int64_t>& amount, int64_t now_us) {
    for (const auto& observer : observers_) observer->before_change(now_us);
    const Holds made{agora::hold(*cell_, holder, machine, amount), holder, machine, amount};
    for (const auto& observer : observers_) observer->on_hold(made, now_us);
    return made.hold;
  }

  Holds end_holds(const SharedColumn<int64_t>& hold, int64_t now_us) {
    for (const auto& observer : observers_) observer->before_change(now_us);
    Holds ended = agora::end_holds(*cell_, hold);
    for (const auto& observer : observers_) observer->on_holds_ended(ended, now_us);
    return ended;
  }

  Released set_machines(const SharedColumn<int32_t>& machine, const SharedColumn<bool>& up,
                        int64_t now_us) {
    for (const auto& observer : observers_) observer->before_change(now_us);
    Released lost = agora::set_machines(*cell_, machine, up);
    for (const auto& observer : observers_) observer->on_machines(machine, up, lost, now_us);
    return lost;
  }

  PartitionDeltaPtr delta_since(int64_t partition, int64_t version, int64_t now_us,
                                bool with_seqnum) {
    auto delta = std::make_shared<const PartitionDelta>(
        agora::delta_since(*cell_, partition, version, now_us, with_seqnum));
    for (const auto& observer : observers_) observer->on_delta(delta, now_us);
    return delta;
  }

 private:
  Cell* cell_;
  std::vector<std::shared_ptr<CellObserver>> observers_;
};

}  // namespace agora
