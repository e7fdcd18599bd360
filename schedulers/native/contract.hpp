// The contract between schedulers and their agents, for native code: what becomes of tasks, which
// units can never be placed, what plans are checked against, and how long a decision takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace agora {

// What became of a task (schedulers.interface.ChangeKind).
enum class ChangeKind : int64_t {
  Adopted = 0,
  Committed = 1,
  Rejected = 2,
  Finished = 3,
  Evicted = 4,
  Lost = 5
};

// Which units can never be placed, over all n tasks of a run (schedulers/unplaceable.py). A unit is
// a task, or a gang, which is placed together or not at all.
struct UnplaceableUnits {
  std::span<const int64_t> task_us;  // when each task alone becomes unplaceable; INT64_MAX: never
  std::span<const int64_t> gang_us;  // when its gang as a whole does
  std::span<const int64_t> gang;     // negative: none
  std::span<const int64_t> gang_size;

  // Whether some of these tasks can never be placed from now on, and which: 1 in `never` [k], which
  // is left empty if there are none. A gang counts as a whole only if all its tasks are among
  // these; where one of its tasks can never be placed, none of those among these can. Throws
  // std::invalid_argument for a task that does not exist.
  bool among(std::span<const int64_t> task, int64_t now_us, std::vector<uint8_t>& never) const;
};

// Throws std::invalid_argument unless the columns are of one length.
void check_lengths(const UnplaceableUnits& units);

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

// --- how long a decision takes, in integers: durations round up to whole microseconds
// (schedulers/decision_clock.py says what the clocks stand for) ---

// What one decision round came to.
struct DecisionWork {
  int64_t tasks;          // decided on, placed or not
  int64_t service_tasks;  // those of them that are of services
  int64_t partitions_scanned;
  int64_t operations;
  int64_t elapsed_ns;  // wall time in which the plan was computed
  int64_t priced_machines;
};

// A time per round, per task, per partition looked at, and per machine whose price is made anew.
struct ModelledTime {
  int64_t job_us;
  int64_t task_ns;
  int64_t partition_ns;
  int64_t price_machine_ns;

  int64_t duration_us(int64_t tasks, int64_t partitions_scanned, int64_t priced_machines) const;
  // How many tasks' decisions begin within window_us: at least 1. None if they take no time.
  std::optional<int64_t> tasks_within(int64_t window_us, int64_t partitions_per_task) const;
};

// Times that depend on the class of the tasks. What a round scanned is divided between the classes
// in proportion; prices count once.
struct ModelledTimeByClass {
  ModelledTime batch;
  ModelledTime service;

  int64_t duration_us(int64_t batch_tasks, int64_t service_tasks, int64_t partitions_scanned,
                      int64_t priced_machines) const;
};

struct CountedTime {
  int64_t ns_per_operation;

  int64_t duration_us(int64_t operations) const;
};

struct MeasuredTime {
  static int64_t duration_us(int64_t elapsed_ns);
};

using DecisionClock = std::variant<ModelledTime, ModelledTimeByClass, CountedTime, MeasuredTime>;

// Throws std::overflow_error, as all durations do, for times of 2^63 us or more.
int64_t duration_us(const DecisionClock& clock, const DecisionWork& work);
// None as well if it is not known before deciding.
std::optional<int64_t> tasks_within(const DecisionClock& clock, int64_t window_us,
                                    int64_t partitions_per_task);

}  // namespace agora
