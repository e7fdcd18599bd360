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
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
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

}  // namespace agora
