// Many schedulers that share the slots of a cell, as in ParSync's simulations (sections 4.3, 5.2).
//
// Definitions. A task needs one slot for a fixed time. Tasks arrive in batches, each at one
// scheduler. A scheduler believes what it saw at its last synchronisation of each partition, less
// what it has picked since. It decides tasks one after the other: each pick is a slot of its view,
// drawn by weight within the partition that its strategy prefers, and leaves the view. Some tasks
// decided together are a round; the round is committed as one transaction. The master grants the
// slots that are idle; claims for other slots are conflicts, and their tasks have to be decided
// again.
//
// Events, in this order at equal times:
//   Free     A run of slots has ended: they are idle at the master. With freed_at_once their owner
//            sees them too; all others, and the owner otherwise, at their next synchronisation.
//   Sync     Views are refreshed. What a scheduler has claimed in transactions that have not
//            reached the master stays out of its view.
//   Commit   A transaction reaches the master, which grants or rejects each claim. Winners run from
//            the answer on.
//   Answer   The scheduler learns the outcome (without latency and service time: within Commit).
//            Block: losers are decided next, before any other batch. Requeue: they rejoin the tail
//            of the scheduler's queue after a pause.
//   Decide   A scheduler that is ready takes up the next batch if it has no tasks in hand, and
//            begins a round: as many tasks as it can begin to decide before its next
//            synchronisation (at least one; all, unless cut_at_sync). The picks are made now and
//            the transaction leaves when the last is decided. Without commit_pipelining the
//            scheduler then waits for the answer. With an empty view it waits for a slot (Block),
//            or the tasks pause (Requeue). Finding the view empty takes no time.
//
// Time is integer nanoseconds. Everything random comes from streams keyed by the seed, so a run is
// the same on any machine. A run ends when every task is committed, at the horizon, or, if asked
// for, once its backlog grows beyond hope; so it always ends.
//
// Departures from the paper, which leaves much open: batches arrive at random offsets; the score is
// constant; decisions cost the same whatever the view looks like.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "cell_master.hpp"
#include "measurements.hpp"
#include "scheduler.hpp"
#include "slot_draws.hpp"

namespace agora::slots {

// By priority.
enum class EventKind : uint8_t { Free = 0, Sync = 1, Commit = 2, Answer = 3, Decide = 4 };

// A time and a priority as one number.
constexpr int64_t event_key(int64_t time_ns, EventKind kind) {
  return time_ns << 3 | static_cast<int64_t>(kind);
}
constexpr int64_t time_of(int64_t key) { return key >> 3; }
constexpr EventKind kind_of(int64_t key) { return static_cast<EventKind>(key & 7); }

// A pending event of a scheduler. (Runs of slots and synchronisations have times of their own.)
struct Event {
  int64_t key;
  uint64_t order;   // of insertion
  uint64_t number;  // Commit, Answer: the round; Decide: the scheduler's wake number
  uint32_t scheduler;

  bool operator>(const Event& other) const {
    return key != other.key ? key > other.key : order > other.order;
  }
};

enum class Ending : int {
  Running = 0,  // not over
  Committed = 1,
  Horizon = 2,
  GrowingBacklog = 3
};
inline constexpr std::array kEndingNames{"RUNNING", "COMMITTED", "HORIZON", "GROWING_BACKLOG"};

class SlotSimulator {
 public:
  // Requires: check(settings) has refused nothing.
  explicit SlotSimulator(const SlotSettings& settings);
  SlotSimulator(const SlotSimulator&) = delete;
  SlotSimulator& operator=(const SlotSimulator&) = delete;

  // Goes on for about this many decisions and events, or to the end.
  Ending run(int64_t steps);

  Ending ending() const { return ending_; }
  const Measurements& measurements() const { return measurements_; }
  const SlotTable& table() const { return table_; }
  int64_t decisions() const { return decisions_; }
  int64_t events() const { return events_; }
  int64_t last_commit_ns() const { return last_commit_ns_; }
  int64_t busy() const { return running_.count(); }
  int64_t idle() const { return master_.idle().count(); }

 private:
  int64_t next_key() const;
  void push(int64_t at_ns, EventKind kind, const Scheduler& scheduler, uint64_t number);
  void handle_next(int64_t key);
  void on_free(int64_t now_ns);
  void on_sync(int64_t now_ns);
  void on_commit(int64_t now_ns, Scheduler& scheduler, uint32_t number);
  void on_answer(int64_t now_ns, Scheduler& scheduler, uint32_t number);
  void on_decide(int64_t now_ns, Scheduler& scheduler);

  void synchronise(int64_t now_ns, int64_t event, Scheduler& scheduler);
  void keep_claims_out(Scheduler& scheduler, SyncTimes::Range partitions);
  void decide_round(int64_t now_ns, Scheduler& scheduler);
  void pick(Scheduler& scheduler, int64_t tasks, std::vector<Pick>& picks);
  void pick_from_best(Scheduler& scheduler, int64_t tasks, std::vector<Pick>& picks);
  void pick_from_freshest(Scheduler& scheduler, int64_t tasks, std::vector<Pick>& picks);
  void pause(int64_t now_ns, Scheduler& scheduler, const BatchPart& part);
  void wake(int64_t at_ns, Scheduler& scheduler);
  size_t slice(int64_t now_ns, const Scheduler& scheduler) const;
  uint32_t new_round();
  void measure_use(int64_t now_ns);
  void close_bin(int64_t end_ns);
  bool backlog_is_hopeless() const;
  void end(int64_t now_ns, Ending ending);

  SlotSettings settings_;
  SlotTable table_;
  CellMaster master_;
  SyncTimes sync_;
  std::vector<Scheduler> schedulers_;
  RunningSlots running_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> pending_;
  uint64_t pushed_ = 0;
  BestScores best_scores_;
  Measurements measurements_;
  SlotDraws draws_;
  BestPartition best_partition_;
  std::vector<Round> rounds_;
  std::vector<uint32_t> unused_rounds_;
  std::vector<std::pair<Pick, uint32_t>> in_the_view_;  // claims to keep out, with their places
  int64_t next_sync_;                                   // the event
  int64_t tasks_expected_ = 0;
  int64_t tasks_committed_ = 0;
  int64_t decisions_ = 0;
  int64_t events_ = 0;
  int64_t last_commit_ns_ = 0;
  Ending ending_ = Ending::Running;
};

}  // namespace agora::slots
