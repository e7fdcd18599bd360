// The optimistic scheduler agent: queue, view, decision rounds, commits and retries around one
// scheduler (Schwarzkopf et al., "Omega", EuroSys 2013, section 3.4; Feng et al., "Scaling
// Large Production Clusters with Partitioned Synchronization", ATC 2021, sections 4.3 and 5).
//
// The states are those of SchedulerAgent, with
//
//   STARTING -- RoundDue --> [SYNCING -- SyncReply -->] open_round()     (at every attempt)
//   BLOCKED_ON_CAPACITY -- RetryDue --> next()
//
// One decision round: offer tasks to the scheduler (as many as it can decide before the agent's
// next sync, if rounds are cut there), reserve its placements in the local view, wait for the
// decision time, commit, and handle the rejections. With commit pipelining the next round starts
// before the answer to the commit arrives. Under BLOCK rejected tasks are decided again before
// anything else (ParSync section 4.3); under REQUEUE they rejoin the tail of the queue after a
// pause (Omega's simulator).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "optimistic_events.hpp"
#include "scheduler_agent.hpp"
#include "sync.hpp"

namespace agora {

// An agent's part in sharing demand with other schedulers.
class DemandExchange {
 public:
  virtual ~DemandExchange() = default;
  virtual void request(int64_t now_us, Effects& effects) = 0;
  virtual void report(Effects& effects) = 0;
  virtual void on_reply(int64_t now_us, const EventPtr& reply) = 0;
  virtual void hand_out(Effects& effects) = 0;
};

// The running tasks that a scheduler may end to make room.
class PreemptibleTasks {
 public:
  virtual ~PreemptibleTasks() = default;
  // Asks for those of some partitions.
  virtual void request(const SharedColumn<int32_t>& partition, Effects& effects) = 0;
  virtual void on_reply(const EventPtr& reply) = 0;
};

class OptimisticAgent final : public SchedulerAgent {
 public:
  struct Settings : SchedulerAgent::Settings {
    // How long after the start of a round the decision on its last task may begin; none: no limit.
    std::optional<int64_t> longest_us = std::nullopt;
    // Tasks of a round, but for a gang, which is never divided; none: a whole batch.
    std::optional<int64_t> most_tasks = std::nullopt;
    bool cuts_at_sync = false;  // a round ends at the next sync
    bool freed_at_once = false;
    int64_t requeue_us = 0;
    int64_t min_retry_interval_us = 0;
    int64_t average_permille = 0;
  };
  // As SchedulerAgent::Parts.
  struct Parts : SchedulerAgent::Parts {
    RoundRankings& rankings;
    SyncPolicy& sync;
    DemandExchange* demand = nullptr;
    PreemptibleTasks* preemptible = nullptr;
  };

  OptimisticAgent(const Settings& settings, const Parts& parts);

 private:
  void on_started(int64_t now_us, int64_t epoch, Effects& effects) override;
  void on_event(int64_t now_us, const EventPtr& event, Effects& effects) override;
  void on_queued(int64_t now_us, Effects& effects) override;
  void start_round(int64_t now_us, Effects& effects) override;
  Composition compose(int64_t now_us, bool begins) override;
  void on_blocked(int64_t now_us, Effects& effects) override;
  void on_decided(int64_t now_us, DecisionRound& round, Effects& effects) override;
  void on_outcome(int64_t now_us, const DecisionRound& round, const Transaction& claims,
                  const CommitResult& result, const OutcomeSums& sums) override;
  void on_finished(int64_t now_us, const TasksEnded& ended, bool admits, Effects& effects) override;
  void on_paused(int64_t now_us, int64_t key, Effects& effects) override;
  void log_sample(int64_t now_us) override;
  void on_hand_out(Effects& effects) override;
  // looks_anyway: the synchronisation before the round may show a change of the view.
  void next(int64_t now_us, bool looks_anyway, Effects& effects) override;

  void ask(const SharedColumn<int32_t>& partition, Effects& effects);
  void ask_for_all(Effects& effects) { ask(visible_, effects); }
  void on_sync_due(int64_t now_us, int64_t k, Effects& effects);
  void on_synced(int64_t now_us, const SyncReply& reply, Effects& effects);
  void on_round_due(int64_t now_us, Effects& effects);
  void retry_at(int64_t at_us, Effects& effects);

  const Settings settings_;
  const Parts parts_;
  const SharedColumn<int32_t> visible_;  // partitions
  SyncSchedule sync_;
  DelayAverage average_;
  int64_t begun_us_;          // the last round
  PartitionRanking ranking_;  // of the last round

  // The timer of the next attempt, which counts unless a round begins before it: the round and the
  // time of the last that was set.
  std::pair<int64_t, int64_t> retry_timer_{0, 0};
};

}  // namespace agora
