// What happens behind a unit for which there was no room.
//
// Definitions. A unit is a task, or a gang. An entry is tasks of one round that found no room, with
// the time since which they lack it. The queue is held if the first entry has lacked room for
// head_of_line_us: nothing behind it is tried until it is placed.
//
// Turns. When the view has changed, the entries are tried again: each in turn, and then one batch
// of the tasks behind them, before the next turn begins. So neither entries nor the tasks behind
// them starve where the view changes faster than the agent decides. An entry is left out if each of
// its units is at least as large as one that found no room in the same view.
//
//            on_no_room()                 due(), take()
//   round ----------------> entry `next` --------------> round
//             ^                |   |
//             |                |   +-- release(): it would hold the queue, but its quota has no
//   try_again(): a round of    |                  room; it goes back into line
//   losers keeps the time      +-- on_view_changed(), pass_on(): whose turn it is
//   since when they lack room
//
// Invariant. Entries are in the order in which they began to lack room. The time counts from the
// round that first found no room for the unit, goes on while its claims are rejected, and starts
// again if the agent is restarted.
//
// Complexity. A round costs O(entries * sizes known to lack room in this view).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "queued_tasks.hpp"
#include "quota_account.hpp"

namespace agora {

// `tasks` tasks with one constraint, each of which requests `request`, by dimension.
struct UnitSize {
  static constexpr int64_t kNoConstraint = 0;
  static constexpr int64_t kConstraintsDiffer = -1;

  int64_t tasks;
  int64_t constraint;  // a preference set, or one of the two above
  std::vector<int64_t> request;

  // Whether `other` finds no room where this one found none.
  bool is_within(const UnitSize& other) const;
};

// The sizes of the units of a run, which tell what cannot fit where other units did not. Borrows
// the columns of all tasks.
class UnitSizes {
 public:
  // elsewhere_cost: of each preference set; kNowhereElse makes it a constraint.
  UnitSizes(std::span<const int64_t> request, size_t resources, std::span<const int64_t> gang,
            std::span<const int32_t> preference, std::span<const int64_t> elsewhere_cost);

  // Whether every unit is a task without a constraint that asks for the same: where one finds no
  // room, no other does.
  bool are_alike() const;

  // Adds a size to `sizes` for each unit among these tasks, which found no room: units of at least
  // this size find none either. It has as many tasks as the unit and its constraint, and in every
  // resource the unit's largest request. Left out if `sizes` has one that is within it.
  void add_largest(std::span<const int64_t> task, std::vector<UnitSize>& sizes) const;

  // A size that each unit among these tasks has at least. `task` holds at least one.
  UnitSize smallest(std::span<const int64_t> task) const;

 private:
  std::span<const int64_t> request_of(int64_t task) const {
    return request_.subspan(row_of(task, gang_.size()) * resources_, resources_);
  }
  int64_t gang_of(int64_t task) const { return gang_[row_of(task, gang_.size())]; }
  int64_t constraint_of(int64_t task) const;

  std::span<const int64_t> request_;
  size_t resources_;
  std::span<const int64_t> gang_;
  std::span<const int32_t> preference_;
  std::vector<uint8_t> constrains_;  // by preference set
};

// The units of one agent for which there was no room.
class SkippedUnits {
 public:
  // The time since which tasks lack room, for tasks that have not lacked room so far.
  static constexpr int64_t kNotYet = -1;

  // head_of_line_us: how long the first lets those behind it go ahead; unset: for ever.
  // gang: of each task id; empty if no task has one.
  // account: of the agent's quota, within which tasks may be decided on; null: all may.
  SkippedUnits(const UnitSizes& sizes, std::optional<int64_t> head_of_line_us,
               std::span<const int64_t> gang, QuotaAccount* account)
      : sizes_(sizes), head_of_line_us_(head_of_line_us), gang_(gang), account_(account) {}

  // How many entries wait.
  size_t size() const { return waiting_.size(); }
  // Whether some of them may be decided on.
  bool has_to_offer() const;
  // Whether the first holds the queue: those behind it are not tried.
  bool holds(int64_t now_us) const;
  // The tasks that hold the queue; none if it is not held.
  std::span<const int64_t> holder(int64_t now_us) const;
  // The tasks that lack room.
  void all_tasks(QueuedTasks& tasks) const;
  // Since when the tasks of the round that was taken last lack room, or kNotYet.
  int64_t since_us() const { return offered_since_us_; }

  // Takes out the first entry if it has waited long enough to hold the queue, but may not be
  // decided on. It then holds up only tasks of the same quota group. Returns whether there was one.
  bool release(int64_t now_us, QueuedTasks& tasks);

  // What found no room before may find some now.
  void on_view_changed();

  // The place of those to try next in the view as it stands; unset if there are none, or if it is
  // the turn of those behind. `others`: whether there are any behind.
  std::optional<size_t> due(int64_t now_us, bool others);

  // The tasks at a place.
  QueuedTasksView current(size_t place) const { return waiting_.at(place).tasks; }
  // Takes at most `limit` of the tasks at a place for a round; the rest stays there.
  void take(size_t place, std::optional<int64_t> limit, QueuedTasks& offered);
  // A batch of those behind is tried.
  void pass_on();
  // Tasks whose claims were rejected are tried, which lack room since then, or kNotYet.
  void try_again(int64_t since_us);

  // The round that was taken last left these tasks without room.
  void on_no_room(int64_t now_us, const QueuedTasksView& left);

 private:
  struct Entry {
    QueuedTasks tasks;
    int64_t since_us;
    UnitSize size;  // that each unit among them has at least
    int64_t view;   // the number of the last view known to have no room for them; -1: none is
  };

  bool first_has_waited(int64_t now_us) const;
  bool may_be_offered(std::span<const int64_t> task) const {
    return account_ == nullptr || account_->any_within(task);
  }
  // The first place from `start` on with tasks to try in this view.
  std::optional<size_t> next_due(size_t start);
  void insert(size_t place, const QueuedTasksView& tasks, int64_t since_us, int64_t view);
  void erase(size_t place) { waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(place)); }

  const UnitSizes& sizes_;
  const std::optional<int64_t> head_of_line_us_;
  const std::span<const int64_t> gang_;
  QuotaAccount* const account_;
  std::vector<Entry> waiting_;
  int64_t view_ = 0;
  std::vector<UnitSize> without_room_;                // in this view
  size_t next_ = 0;                                   // whose turn it is
  bool turn_is_old_ = false;                          // the view has changed since the turn began
  bool passed_on_ = true;                             // those behind have had theirs since
  std::unordered_map<int64_t, int64_t> released_us_;  // since when they lack room, by first task
  // of those in the round: their place, if they had one, and since when they lack room
  std::optional<size_t> offered_place_;
  int64_t offered_since_us_ = kNotYet;
};

}  // namespace agora
