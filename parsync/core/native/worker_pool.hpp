// The worker pool: runs tasks by waiting for their ends, and reports those once per heartbeat.
//
//   TasksStarted   -> the tasks' ends go into the timer wheel; a timer at the earliest heartbeat
//   HeartbeatDue   -> TasksFinished of all ends that are due; a timer at the next one with ends
//   TasksCancelled -> these ends no longer count
//
// A task takes t, or preferred_permille/1000 of t on a preferred machine (ParSync section 6.4). The
// pool is the only holder of true durations. Queues at the machines that protocols have (node
// sides) are part of it: see parsync/core/participant.py for what they are notified of.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "events.hpp"
#include "participant.hpp"
#include "running_tasks.hpp"

namespace agora {

class WorkerPool : public Participant {
 public:
  // protocol_of: of each agent. Node sides are asked in the order given. Throws as RunningTasks.
  struct NodeSide {
    std::string protocol;
    std::unique_ptr<Participant> queues;
  };
  WorkerPool(int64_t heartbeat_us, std::span<const int64_t> duration_us,
             std::span<const int32_t> preference, const PreferenceColumns& catalog,
             int64_t preferred_permille, std::vector<NodeSide> node_sides,
             std::vector<std::string> protocol_of);

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;

  // Starts or cancels tasks without notifying the queues at the machines.
  void start(const TasksStarted& started);
  void cancel(const TasksCancelled& cancelled);

  // Tasks whose end is still to come.
  int64_t pending_ends() const { return tasks_.wheel.size(); }
  // Empties the pool at the end of a run: what still runs, as it would have ended.
  std::vector<TimerWheel::Entry> due_ends();

 private:
  void notify(int64_t now_us, const EventPtr& event, Effects& effects);
  void notify_ended(int64_t now_us, const AllocationsEnded& ended, Effects& effects);
  void heartbeat(int64_t now_us, Effects& effects);
  void arm(int64_t now_us, Effects& effects);
  Participant* queues_of(std::string_view protocol);

  RunningTasks tasks_;
  std::vector<NodeSide> node_sides_;
  std::vector<std::string> protocol_of_;
  std::set<int64_t> armed_us_;  // when heartbeat timers that are set will fire
};

}  // namespace agora
