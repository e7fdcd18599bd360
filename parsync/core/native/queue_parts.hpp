// What the queues of agents are made of: queued tasks, what a quota leaves, units that found no
// room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace agora {

// As shared_state.tasks.NO_GANG.
inline constexpr int64_t kNoGang = -1;

// The row of a task in the columns of all tasks. Throws std::out_of_range for an unknown id.
inline size_t row_of(int64_t task, size_t tasks) {
  if (task < 0 || static_cast<uint64_t>(task) >= tasks)
    throw std::out_of_range("task " + std::to_string(task) + ": expected an id below " +
                            std::to_string(tasks));
  return static_cast<size_t>(task);
}

// Tasks that wait with an agent, in order: what its queues hold and its rounds take.
//
// Definitions. Row i is a task that was submitted, or has to run again, and is not placed: its id,
// the claims made for it so far (attempts), and whether its next commit is its first (first = 1; 0:
// it ran before). Tasks that are requeued together also carry the rounds that left them without a
// place (rounds) and whether any round placed tasks that were submitted with them (some_placed).
//
// QueuedTasks owns its columns. Its memory is kept when it is cleared, so that an agent which
// keeps deciding on small batches allocates nothing. QueuedTasksView borrows columns. Functions
// take views, which must not share memory with what the function writes.
//
// Invariant. The columns have one length. Only batches that stay in one piece keep their rounds:
// joined with others, tasks begin to count anew.
struct QueuedTasksView {
  std::span<const int64_t> task;
  std::span<const int32_t> attempts;
  std::span<const int8_t> first;
  int64_t rounds = 0;
  bool some_placed = false;

  size_t size() const { return task.size(); }
  bool empty() const { return task.empty(); }

  // The first `count` tasks; there must be as many.
  QueuedTasksView head(size_t count) const {
    return {task.first(count), attempts.first(count), first.first(count), rounds, some_placed};
  }
  // The tasks after the first `count`.
  QueuedTasksView tail(size_t count) const {
    return {task.subspan(count), attempts.subspan(count), first.subspan(count), rounds,
            some_placed};
  }
};

struct QueuedTasks {
  std::vector<int64_t> task;
  std::vector<int32_t> attempts;
  std::vector<int8_t> first;
  int64_t rounds = 0;
  bool some_placed = false;

  size_t size() const { return task.size(); }
  bool empty() const { return task.empty(); }
  QueuedTasksView view() const { return {task, attempts, first, rounds, some_placed}; }
  operator QueuedTasksView() const { return view(); }  // NOLINT: functions take views

  void clear() {
    task.clear();
    attempts.clear();
    first.clear();
    rounds = 0;
    some_placed = false;
  }

  void assign(const QueuedTasksView& tasks) {
    clear();
    append(tasks);
  }

  void append(const QueuedTasksView& tasks) { insert(size(), tasks); }
  void prepend(const QueuedTasksView& tasks) { insert(0, tasks); }

  // Appends one task of another batch. `rounds` and `some_placed` stay as they are.
  void append_row(const QueuedTasksView& tasks, size_t row) {
    task.push_back(tasks.task[row]);
    attempts.push_back(tasks.attempts[row]);
    first.push_back(tasks.first[row]);
  }

  // Leaves the first `count` tasks, or what follows them.
  void truncate(size_t count) {
    task.resize(count);
    attempts.resize(count);
    first.resize(count);
  }
  void erase_head(size_t count) {
    const auto end = static_cast<std::ptrdiff_t>(count);
    task.erase(task.begin(), task.begin() + end);
    attempts.erase(attempts.begin(), attempts.begin() + end);
    first.erase(first.begin(), first.begin() + end);
  }

 private:
  void insert(size_t place, const QueuedTasksView& tasks) {
    if (tasks.empty()) return;
    const bool alone = empty();
    rounds = alone ? tasks.rounds : 0;
    some_placed = alone && tasks.some_placed;
    const auto at = static_cast<std::ptrdiff_t>(place);
    task.insert(task.begin() + at, tasks.task.begin(), tasks.task.end());
    attempts.insert(attempts.begin() + at, tasks.attempts.begin(), tasks.attempts.end());
    first.insert(first.begin() + at, tasks.first.begin(), tasks.first.end());
  }
};

// How many of these tasks a round takes if it has time for `limit` (unset: for all). These are
// fewer where the limit would part a gang, and more if the first gang is larger. `gang` is the gang
// of each task id; empty if no task has one.
inline size_t batch_within(std::span<const int64_t> task, std::optional<int64_t> limit,
                           std::span<const int64_t> gang) {
  if (!limit) return task.size();
  if (*limit < 0) throw std::invalid_argument("limit: expected 0 or more tasks");
  const auto most = static_cast<size_t>(*limit);
  if (most >= task.size()) return task.size();
  if (gang.empty()) return most;
  size_t last = 0;  // after so many tasks a gang ends, or a task without one
  for (size_t i = 1; i < task.size() && (i <= most || last == 0); ++i) {
    const int64_t mine = gang[row_of(task[i], gang.size())];
    if (mine == kNoGang || mine != gang[row_of(task[i - 1], gang.size())]) last = i;
  }
  return last ? last : task.size();
}

// An agent's account of its quota: what its tasks hold and wait for, and what they may hold, by
// quota group and resource.
//
// The states of a task, and what moves it:
//
//            submit()           offer()
//   (none) -----------> waiting -------> held ---end()---> ended --look()--> (none)
//      |       drop() <----+  ^-----------+ ^
//      |                       withdraw()   |
//      +----------------- adopt() ----------+
//
// A task waits from its submission on. It holds its request from when the agent begins to decide on
// it, so that what is being decided on or committed counts, until it ends or its claim fails.
// Nothing may be held before the first grant.
//
// The room that ended tasks leave may be used after the next look(), which the agent calls when it
// synchronises or gets a grant. If it were used at once, nearly every task that ends would start a
// decision round.
//
// Amounts are int64[G, R]. The columns of all tasks are borrowed. Throws std::out_of_range for ids
// beyond them and std::overflow_error for sums beyond int64.
class QuotaAccount {
 public:
  // of_task: the quota group of each task; request: `resources` amounts of each; gang: of each,
  // kNoGang where it has none.
  QuotaAccount(std::span<const int32_t> of_task, size_t groups, std::span<const int64_t> request,
               size_t resources, std::span<const int64_t> gang);

  size_t groups() const { return groups_; }
  size_t resources() const { return resources_; }
  size_t group_of(int64_t task) const {
    return static_cast<size_t>(of_task_[row_of(task, of_task_.size())]);
  }

  // [G, R] each. What may be held is set by whoever gets the grants.
  std::vector<int64_t> held, waiting, granted;

  void submit(std::span<const int64_t> task) { move(task, nullptr, &waiting); }
  // Waiting tasks are decided on.
  void offer(std::span<const int64_t> task) { move(task, &waiting, &held); }
  // Tasks that were decided on wait again: they found no place, or lost it to a rival.
  void withdraw(std::span<const int64_t> task) { move(task, &held, &waiting); }
  // Waiting tasks are given up.
  void drop(std::span<const int64_t> task) { move(task, &waiting, nullptr); }
  // Tasks run already.
  void adopt(std::span<const int64_t> task) { move(task, nullptr, &held); }
  // Tasks run no more.
  void end(std::span<const int64_t> task) { move(task, &held, &ended_); }
  // What tasks that ended held may be used from now on.
  void look();

  // Which of these waiting tasks may be decided on now: of each group the first ones, as many as
  // its grant has room for. A task that does not fit stops those of its group that come after it,
  // so that small tasks do not keep a large one waiting for ever; and no gang is parted. The answer
  // is valid until the next call.
  std::span<const uint8_t> within(std::span<const int64_t> task);
  bool any_within(std::span<const int64_t> task);

  // Whether the first of these tasks, which are of one group, or its whole gang, may be decided on
  // now, together with other tasks that come before it. `task` holds at least one.
  bool has_room(std::span<const int64_t> task, std::span<const int64_t> before) const;

 private:
  const int64_t* request_of(int64_t task) const {
    return request_.data() + row_of(task, of_task_.size()) * resources_;
  }
  int64_t gang_of(int64_t task) const {
    return gang_.empty() ? kNoGang : gang_[row_of(task, gang_.size())];
  }
  // How much more a group may hold; negative where its grant has become smaller.
  int64_t room(size_t group, size_t resource) const;
  // Moves the requests of tasks from one amount to another; null: no amount.
  void move(std::span<const int64_t> task, std::vector<int64_t>* from, std::vector<int64_t>* to);

  std::span<const int32_t> of_task_;
  size_t groups_;
  std::span<const int64_t> request_;
  size_t resources_;
  std::span<const int64_t> gang_;  // empty if no task has one
  std::vector<int64_t> ended_;     // [G, R], since the last look

  // of within()
  std::vector<uint8_t> fits_;
  std::vector<int64_t> taken_;    // [G, R]
  std::vector<uint8_t> stopped_;  // [G]
  std::vector<int64_t> torn_;     // gangs of tasks that do not fit
};

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

// The units of one agent for which there was no room, and what happens behind them.
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
