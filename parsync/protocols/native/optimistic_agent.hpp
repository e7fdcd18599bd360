// The optimistic scheduler agent: queue, view, decision rounds, commits and retries around one
// scheduler (Schwarzkopf et al., "Omega", EuroSys 2013, section 3.4; Feng et al., "Scaling
// Large Production Clusters with Partitioned Synchronization", ATC 2021, sections 4.3 and 5).
//
//   IDLE: nothing to decide              BLOCKED_ON_CAPACITY: nothing in the view fits
//     |                                    |
//     | tasks come, or come back;          | the view changes, tasks come, RetryDue
//     | a larger grant of quota            |
//     v                                    v
//   next() --- nothing to decide --> IDLE, or BLOCKED_ON_CAPACITY if tasks wait
//     |
//     v
//   STARTING -- RoundDue --> [SYNCING -- SyncReply -->] open_round()     (at every attempt)
//                                                           |
//                                                           v
//                  COMMITTING <-- without pipelining --- DECIDING <-- decide() plans the round, and
//                      |                                    |         its claims leave the view
//                      | CommitReply                        | DecisionDone: CommitRequest
//                      v                                    v
//                    next()                               next()
//
// One decision round: offer tasks to the scheduler (as many as it can decide before the agent's
// next sync, if rounds are cut there), reserve its placements in the local view, wait for the
// decision time, commit, and handle the rejections. With commit pipelining the next round starts
// before the answer to the commit arrives. Under BLOCK rejected tasks are decided again before
// anything else (ParSync section 4.3); under REQUEUE they rejoin the tail of the queue after a
// pause (Omega's simulator).
//
// Invariants. A round is open exactly while the agent is DECIDING. Every transaction is sent once
// and settled once; answers that a restarted master repeats are dropped. queued() counts the tasks
// that were submitted, or have to run again, and are neither committed nor given up.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "agent_view.hpp"
#include "optimistic_events.hpp"
#include "parsync/core/native/participant.hpp"
#include "pending_queue.hpp"
#include "round_planner.hpp"
#include "sync.hpp"

namespace agora {

// What a decision round has planned, with k claims, which have been taken out of the view.
struct RoundPlan {
  SharedColumn<int64_t> task;           // [k]
  SharedColumn<int32_t> machine;        // [k]
  SharedTable<int64_t> request;         // [k, R]
  SharedColumn<int64_t> gang;           // [k]
  SharedColumn<int64_t> synced_us;      // [k], when the partition of each machine was synced
  SharedColumn<int64_t> evict;          // [e] allocations to end first
  SharedColumn<int64_t> pending;        // [p] tasks that it leaves waiting
  SharedColumn<int8_t> pending_reason;  // [p]
  int64_t ticket = -1;                  // of the claims in the view
  bool in_full = false;                 // known to claim all offered tasks in their order
  std::optional<int64_t> retry_at_us;   // when the scheduler wants to be called again
  // Of the machines in the view; none: the transaction needs none.
  std::optional<SharedColumn<uint32_t>> seqnum = std::nullopt;
  // Of a flow scheduler.
  std::optional<std::array<int64_t, kRoundFigures>> figures = std::nullopt;

  PlannedTasks tasks() const {
    return {task.span(), pending.span(), pending_reason.span(), in_full};
  }
};

struct DecisionRound {
  int64_t number = 0;
  int64_t start_us = 0;
  PartitionRanking ranking = PartitionRanking::Optimistic;
  int64_t batch_size = 1;  // of its batch when that was begun: the unit of the delay average
  RoundTasks tasks{};
  RoundPlan plan{};
  int64_t decision_us = 0;

  // The tasks that it is about once it is planned: those that the scheduler was offered, and those
  // that it had kept and claims now. In `joined`, unless they are those offered.
  std::span<const int64_t> about(std::vector<int64_t>& joined) const;
};

// Whoever plans the rounds of an agent: its scheduler.
class AgentScheduler {
 public:
  virtual ~AgentScheduler() = default;

  // How many tasks a round may be about whose last decision has to begin within the window; none:
  // any number, or it is not known before deciding.
  virtual std::optional<int64_t> tasks_within(const RoundWindow& window) = 0;
  // Plans the round on the view as it stands, and takes its claims out of the view.
  virtual void plan(int64_t now_us, DecisionRound& round) = 0;
  // How long the round just planned takes to decide. elapsed_ns: the wall time of plan().
  virtual int64_t decision_us(const DecisionRound& round, int64_t elapsed_ns) = 0;
};

// A built-in greedy placer.
class GreedyAgentScheduler final : public AgentScheduler {
 public:
  GreedyAgentScheduler(RoundPlanner& planner, ClusterView& cell, const AgentView& view)
      : planner_(planner), cell_(cell), view_(view) {}

  std::optional<int64_t> tasks_within(const RoundWindow& window) override {
    return planner_.most_tasks(window);
  }
  void plan(int64_t now_us, DecisionRound& round) override;
  int64_t decision_us(const DecisionRound&, int64_t elapsed_ns) override {
    return planner_.decision_us(elapsed_ns);
  }

 private:
  RoundPlanner& planner_;
  ClusterView& cell_;
  const AgentView& view_;
};

// What a scheduler learns of its tasks after planning.
class TaskObserver {
 public:
  virtual ~TaskObserver() = default;
  virtual void on_adopted(int64_t now_us, const EventPtr& adopted) = 0;
  virtual void on_ended(int64_t now_us, const EventPtr& ended) = 0;
  // The cell answered a transaction; `accepted` of its claims were.
  virtual void on_outcome(int64_t now_us, const TransactionPtr& claims,
                          const CommitResultPtr& result, int64_t accepted) = 0;
};

// The quota of an agent, or the limit that its scheduler sets itself.
class AgentQuota {
 public:
  virtual ~AgentQuota() = default;
  virtual void on_adopted(const EventPtr& adopted) = 0;
  virtual void on_outcome(const TransactionPtr& claims, const CommitResultPtr& result) = 0;
  virtual void on_ended(const EventPtr& ended) = 0;
  virtual void on_synced() = 0;
  // Answers a QuotaRequest.
  virtual void on_request(int64_t round, Effects& effects) = 0;
  // Keeps a QuotaGrant. Returns the transaction of that number which ends running tasks, if some
  // are to be given back.
  virtual TransactionPtr on_grant(const EventPtr& grant, int64_t sequence) = 0;
};

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

class OptimisticAgent final : public Decider {
 public:
  struct Settings {
    int64_t index = 0;
    int64_t sample_us = 0;
    // How long after the start of a round the decision on its last task may begin; none: no limit.
    std::optional<int64_t> longest_us = std::nullopt;
    // Tasks of a round, but for a gang, which is never divided; none: a whole batch.
    std::optional<int64_t> most_tasks = std::nullopt;
    bool cuts_at_sync = false;  // a round ends at the next sync
    bool pipelines = false;     // the next round begins before the answer to a commit
    bool freed_at_once = false;
    bool checks_seqnum = false;
    // Whose claims stand or fall together; none: each stands by itself.
    enum class Unit : int8_t { Claim, Gang, Job } unit = Unit::Claim;
    int64_t requeue_us = 0;
    int64_t min_retry_interval_us = 0;
    int64_t average_permille = 0;
    bool records_holds = false;
    std::span<const int64_t> job = {};  // of every task
  };
  // What every agent has, and, where not null, what some have. All outlive the agent.
  struct Parts {
    ClusterView& cell;  // the view that `view` refreshes
    AgentView& view;
    PendingQueue& queue;
    AgentLog& log;
    SortingOut& sorting_out;
    RoundRankings& rankings;
    SyncPolicy& sync;
    AgentScheduler& scheduler;
    TaskObserver* observer = nullptr;
    AgentQuota* quota = nullptr;
    DemandExchange* demand = nullptr;
    PreemptibleTasks* preemptible = nullptr;
  };

  enum class Activity : int8_t {
    Idle,
    Starting,  // a round begins at the end of this instant
    Syncing,   // waits for the sync that precedes a round
    Deciding,
    Committing,
    BlockedOnCapacity  // waits for the view to change
  };

  OptimisticAgent(const Settings& settings, const Parts& parts);

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;
  void decide(int64_t decision, int64_t now_us) override;
  int64_t decision_us(int64_t elapsed_ns) override;
  // The run ends: adds the last rows to its log.
  void finish(int64_t now_us);

  int64_t queued() const { return queued_; }
  int64_t rounds() const { return rounds_; }
  Activity activity() const { return activity_; }

 private:
  struct InFlight {
    DecisionRound round;
    TransactionPtr transaction;
  };

  void start(int64_t now_us, Effects& effects);
  void ask(const SharedColumn<int32_t>& partition, Effects& effects);
  void ask_for_all(Effects& effects) { ask(visible_, effects); }
  void on_sync_due(int64_t now_us, int64_t k, Effects& effects);
  void on_synced(int64_t now_us, const SyncReply& reply, Effects& effects);

  void submit(int64_t now_us, const SharedColumn<int64_t>& task, bool first, Effects& effects);
  void look_again(int64_t now_us, Effects& effects);

  void next(int64_t now_us, bool may_have_changed, Effects& effects);
  void block_on_capacity(int64_t now_us, Effects& effects);
  void retry_at(int64_t at_us, Effects& effects);
  void start_round(int64_t now_us, Effects& effects);
  void open_round(int64_t now_us, Effects& effects);
  void on_decided(int64_t now_us, int64_t decision, Effects& effects);
  void commit(DecisionRound round, Effects& effects);
  void send(TransactionPtr transaction, Effects& effects);
  TransactionPtr transaction_of(const DecisionRound& round) const;
  void on_committed(int64_t now_us, const CommitReply& reply, Effects& effects);
  void end_round(int64_t now_us, const DecisionRound& round, const QueuedTasksView& losers,
                 Effects& effects);
  void begin_next(int64_t now_us, bool blocked, Effects& effects);
  void record(int64_t now_us, const QueueExits& exits, Effects& effects);

  void on_adopted(int64_t now_us, const EventPtr& event);
  void on_ended(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_granted(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_sample_due(int64_t now_us, int64_t sample, Effects& effects);
  void log_sample(int64_t now_us);

  const Settings settings_;
  const Parts parts_;
  const SharedColumn<int32_t> visible_;  // partitions
  SyncSchedule sync_;
  DelayAverage average_;
  QueueHolds holds_;

  Activity activity_ = Activity::BlockedOnCapacity;
  int64_t queued_ = 0;
  std::optional<DecisionRound> round_;  // being decided
  int64_t rounds_ = 0;
  int64_t begun_us_;          // the last round
  int64_t batch_size_ = 1;    // of the current batch when it was begun
  PartitionRanking ranking_;  // of the last round
  // A round may begin though the view shows no change.
  bool view_may_have_changed_ = false;

  std::map<int64_t, InFlight> in_flight_;  // by transaction: those without an outcome so far
  int64_t claims_in_flight_ = 0;
  int64_t transactions_ = 0;

  // The timer of the next attempt, which counts unless a round begins before it: the round and the
  // time of the last that was set, and when the scheduler wants to be called again.
  std::pair<int64_t, int64_t> retry_timer_{0, 0};
  std::optional<int64_t> retry_wanted_us_;
};

}  // namespace agora
