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
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "queued_tasks.hpp"

namespace agora {

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

}  // namespace agora
