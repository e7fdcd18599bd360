// The master: owns the cell, grants claims first come first served, and notifies owners and workers
// of what became of them.
//
//   CommitRequest   -> the cell decides; CommitReply to who asked, TasksStarted to the workers,
//                      TasksCancelled and TasksEnded for victims; ClaimsSettled to the owner of the
//                      tasks if somebody else asked
//   SyncRequest     -> TasksEnded, if ends wait for the agent; SyncReply: one delta per partition
//   TasksFinished   -> the allocations end; TasksEnded to those agents that want ends at once
//   MachinesChanged -> what ran on machines that went down is lost: TasksCancelled, TasksEnded
//   RunningRequest  -> RunningReply
//   HoldRequest     -> the room that fits is held; HoldReply
//   HoldsReleased   -> the holds end
//   SampleDue       -> a row of the cell's time series; all rows are handed out
//
// Holds that a transaction or a lost machine ends: HoldsEnded to participants beside the master
// that watch the cell. Held room that is free again: RoomFreed to the worker pool, where protocols
// have queues at the machines.
//
// Watchers (participants beside the master, and the worker pool where protocols have queues at the
// machines) are notified of every start, end and machine change. The pool is not notified of the
// ends that it reported itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events.hpp"
#include "participant.hpp"
#include "schedulers/native/contract.hpp"
#include "shared_state/native/observed_cell.hpp"

namespace agora {

// What runs at time 0.
struct InitialTasks {
  SharedColumn<int64_t> task;     // [k]
  SharedColumn<int32_t> machine;  // [k]
  SharedColumn<int32_t> owner;    // [k]
};

// When an agent is notified that its tasks have finished. Of tasks that lose their place, all
// agents are notified at once.
enum class EndsNotice : int8_t {
  Never,
  AtOnce,
  BeforeSync,  // all that finished since the last, before the answer to its SyncRequest
};

struct MasterSettings {
  SharedTable<int64_t> request;    // [tasks, R], of every task
  SharedColumn<int32_t> priority;  // [tasks]
  InitialTasks initial;
  std::vector<EndsNotice> ends_notice;  // by agent
  int64_t sample_us = 0;
  std::vector<int64_t> watchers;  // addresses
  int64_t capacity = 0;           // of all machines, in the first resource
  // The quota group of each task, [tasks], and how many groups there are; none: none is recorded.
  std::optional<SharedColumn<int32_t>> quota_of_task;
  int64_t quotas = 0;
  SharedColumn<int64_t> partition_offsets;  // [P + 1], of the machines
};

class Master : public Participant {
 public:
  // records: has the tables of the master, and outlives it.
  Master(ObservedCell cell, MasterSettings settings, Measurements& records);
  // Another cell, or the same one with other observers, from now on.
  void set_cell(ObservedCell cell) { cell_ = std::move(cell); }

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;

  // Allocations that have not ended.
  int64_t running() const { return running_; }
  int64_t epoch() const { return epoch_; }
  // Sets the state that a checkpoint holds.
  void restore(int64_t epoch, int64_t running) {
    epoch_ = epoch;
    running_ = running;
    waiting_ends_.clear();
  }

  // The ends of which agents are still to be notified, in order.
  using WaitingEnds = std::map<int64_t, std::vector<std::shared_ptr<const TasksEnded>>>;
  const WaitingEnds& waiting_ends() const { return waiting_ends_; }
  // Throws std::invalid_argument if there is no such agent, or the columns differ in length.
  void add_waiting_ends(int64_t agent, std::shared_ptr<const TasksEnded> ended);
  // The agent was restarted: the new one never knew the tasks whose ends wait.
  void forget_ends(int64_t agent) { waiting_ends_.erase(agent); }

  // Tasks still running when the run ends, with the time they are due to end, so that job
  // completion times are not cut off at the last commit. Allocations that have ended otherwise, of
  // which the worker pool has not been notified yet, are left out.
  void record_due_ends(const SharedColumn<int64_t>& allocation,
                       const SharedColumn<int64_t>& end_us);

 private:
  void start(int64_t now_us, const Started& event, Effects& effects);
  void commit(int64_t now_us, const CommitRequest& event, Effects& effects);
  void sync(int64_t now_us, const SyncRequest& event, Effects& effects);
  void show_running(const RunningRequest& event, Effects& effects);
  void finish_tasks(int64_t now_us, const TasksFinished& event, Effects& effects);
  void change_machines(int64_t now_us, const EventPtr& event, Effects& effects);
  void sample(int64_t now_us, int64_t sample, Effects& effects);
  void record_shares(int64_t now_us, const QuotaShares& event);
  void record_quota_use(int64_t now_us);

  void hold(int64_t now_us, const HoldRequest& event, Effects& effects);
  SharedTable<int64_t> remainder_of(const Holds& ended, const Transaction& transaction,
                                    const CommitResult& result);
  void notify_holds_ended(HoldEnd cause, const SharedTable<int64_t>& remainder, Effects& effects);
  // Of machines, int32[k], to the queues there.
  void notify_room_freed(SharedColumn<int32_t> machine, Effects& effects);
  void notify_started(EventPtr started, Effects& effects);
  void notify_ended(int64_t now_us, const Released& ended, ChangeKind change, Effects& effects);
  SharedColumn<int32_t> owner_column(int32_t owner, size_t count);

  ObservedCell cell_;
  MasterSettings settings_;
  std::vector<int64_t> beside_;  // the watchers but for the worker pool
  bool has_queues_ = false;      // whether the worker pool is a watcher
  bool any_wants_ends_ = false;
  WaitingEnds waiting_ends_;
  Measurements& records_;
  std::unordered_map<int32_t, SharedColumn<int32_t>> owner_columns_;
  int64_t epoch_ = 0;
  int64_t running_ = 0;
  std::vector<int64_t> claimed_;  // scratch: [M, R], all 0; empty until a hold ends
};

}  // namespace agora
