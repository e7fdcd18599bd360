// What plans are checked against (schedulers/checked.py): the tasks that wait with a scheduler
// which keeps them, and what claims must ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace agora {

// The tasks that wait with a scheduler that keeps them, as far as its agent can tell. A task waits
// from its offer or the rejection of its claim until it is claimed, or adopted.
//
//              take_round(): offered, not claimed
//   (absent) -------------------------------------> waits
//       ^ ------------------ rejected() -------------> |
//       '--- take_round(): claimed; adopted() ---------'
class PendingTasks {
 public:
  // gang: [tasks], negative where a task has none; empty if no task has one.
  PendingTasks(size_t tasks, std::span<const int64_t> gang);

  // A round: the tasks of the call, and those that its plan claims and says to be pending. Returns
  // whether the plan claims only tasks that wait, names every task offered, no other as pending,
  // and none twice. If so, what it claims waits no more. Throws std::invalid_argument for a task
  // that does not exist, after which the object is of no use.
  bool take_round(std::span<const int64_t> offered, std::span<const int64_t> claimed,
                  std::span<const int64_t> pending);
  // The claims of these tasks were rejected: they wait again.
  void rejected(std::span<const int64_t> task);
  // They run, as their agent learnt after a restart.
  void adopted(std::span<const int64_t> task);

  // All that wait, ascending.
  std::vector<int64_t> all() const;
  size_t count() const { return count_; }
  // How many tasks of each of these gangs wait.
  std::vector<int64_t> in_gang(std::span<const int64_t> gang) const;

 private:
  enum class State : uint8_t { kAbsent, kWaiting, kOffered, kNamed };

  State& state_of(int64_t task);
  bool name_each_once(std::span<const int64_t> offered, std::span<const int64_t> claimed,
                      std::span<const int64_t> pending);
  void set(int64_t task, State state);  // keeps the counts of tasks that wait
  // The place of a gang in gangs_, or -1.
  int64_t place_of(int64_t gang) const;

  std::vector<State> state_;      // of every task; kOffered and kNamed within take_round() only
  std::vector<int64_t> gangs_;    // ascending
  std::vector<int64_t> gang_of_;  // of every task, the place of its gang or -1; or empty
  std::vector<int64_t> in_gang_;  // tasks of each gang that wait
  size_t count_ = 0;
};

// The first claim that does not ask for what its task does, [k, dimensions], or is not of its
// task's gang: its place and whether it is the request; place -1 if there is none. Tasks are rows
// of all_request and all_gang.
struct DifferingClaim {
  int64_t place = -1;
  bool request = false;
};
DifferingClaim first_differing_claim(std::span<const int64_t> task,
                                     std::span<const int64_t> request,
                                     std::span<const int64_t> gang,
                                     std::span<const int64_t> all_request,
                                     std::span<const int64_t> all_gang, size_t dimensions);

}  // namespace agora
