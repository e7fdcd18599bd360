// The base of agents that drive a scheduler with a view of the cell: queue, decision rounds,
// commits and what becomes of their claims.
//
//   IDLE: nothing to decide              BLOCKED_ON_CAPACITY: nothing in the view fits:
//   on_blocked()
//     |                                    |
//     | tasks come, or come back;          | the view changes, tasks come
//     | a larger grant of quota            |
//     v                                    v
//   next() --- nothing to decide --> IDLE, or BLOCKED_ON_CAPACITY if tasks wait
//     |
//     v
//   STARTING: start_round()            the protocol asks for what a round needs, and then calls
//     |                                open_round(), which asks compose() what it is about
//     v
//   COMMITTING <-- without pipelining --- DECIDING <-- decide() plans the round, and its claims
//       |                                    |         leave the view
//       | CommitReply                        | DecisionDone: on_decided(), CommitRequest
//       | on_outcome(), on_round_over()      |
//       v                                    v
//     next()                               next()
//
// A protocol is a subclass, which overrides start_round(), compose(), and those whose names begin
// with on_. (The same in Python: scheduler_agent.py.)
//
// Invariants. A round is open exactly while the agent is DECIDING. Every transaction is sent once
// and settled once; answers that a restarted master repeats are dropped. queued() counts the tasks
// that were submitted, or have to run again, and are neither committed nor given up.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "agent_view.hpp"
#include "parsync/core/native/participant.hpp"
#include "pending_queue.hpp"
#include "round_planner.hpp"

namespace agora {

// The vector as a column, which takes its memory.
template <class T>
SharedColumn<T> column_of(std::vector<T> values) {
  const auto held = std::make_shared<std::vector<T>>(std::move(values));
  return SharedColumn<T>(held->data(), held->size(), held);
}

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
  int64_t operations = 0;               // counted work, and machines whose price was made anew
  int64_t priced_machines = 0;
  std::optional<int64_t> retry_at_us;  // when the scheduler wants to be called again
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
  // [h], the holds of the cell that its claims rest on; none: on no holds.
  std::optional<SharedColumn<int64_t>> holds = std::nullopt;

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
  // task: the tasks that the scheduler is offered, of those of the round.
  virtual void plan(int64_t now_us, std::span<const int64_t> task, DecisionRound& round) = 0;
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
  void plan(int64_t now_us, std::span<const int64_t> task, DecisionRound& round) override;
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

class SchedulerAgent : public Decider {
 public:
  struct Settings {
    int64_t index = 0;
    int64_t sample_us = 0;
    bool pipelines = false;  // the next round begins before the answer to a commit
    bool checks_seqnum = false;
    // Whose claims stand or fall together; none: each stands by itself.
    enum class Unit : int8_t { Claim, Gang, Job } unit = Unit::Claim;
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
    AgentScheduler& scheduler;
    TaskObserver* observer = nullptr;
    AgentQuota* quota = nullptr;
  };

  enum class Activity : int8_t {
    Idle,
    Starting,  // a round begins at the end of this instant
    Syncing,   // waits for the sync that precedes a round
    Deciding,
    Committing,
    BlockedOnCapacity,  // waits for the view to change
    WaitingForGrant     // somebody else says when the next round may begin
  };

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;
  void decide(int64_t decision, int64_t now_us) override;
  int64_t decision_us(int64_t elapsed_ns) override;
  // The run ends: adds the last rows to its log.
  void finish(int64_t now_us);

  int64_t queued() const { return queued_; }
  int64_t rounds() const { return rounds_; }
  Activity activity() const { return activity_; }

 protected:
  SchedulerAgent(const Settings& settings, const Parts& parts, Activity activity);

  // What a protocol decides.

  // The agent begins, or begins again.
  virtual void on_started(int64_t now_us, int64_t epoch, Effects& effects) = 0;
  // A message or a timer of the protocol. Throws WrongEvent if it is none.
  virtual void on_event(int64_t now_us, const EventPtr& event, Effects& effects) = 0;
  // Tasks have joined the queue.
  virtual void on_queued(int64_t now_us, Effects& effects) = 0;
  // There is something to decide: gets what a round needs, and calls open_round().
  virtual void start_round(int64_t now_us, Effects& effects) = 0;
  // How the round that begins ranks partitions, and how many tasks it has at most; none: any
  // number. begins: it is the first about its batch, which queue.current() has.
  struct Composition {
    PartitionRanking ranking;
    std::optional<int64_t> most;
  };
  virtual Composition compose(int64_t now_us, bool begins) = 0;
  // Plans the open round. By itself: all that it is about is offered to the scheduler.
  virtual void plan(int64_t now_us, DecisionRound& round);
  // How long the round just planned takes to decide. By itself: as the scheduler says.
  virtual int64_t time_of(const DecisionRound& round, int64_t elapsed_ns);
  // There is no room for what waits.
  virtual void on_blocked(int64_t, Effects&) {}
  // A round is decided, and not committed yet.
  virtual void on_decided(int64_t now_us, DecisionRound& round, Effects& effects) = 0;
  // The cell has answered the claims of a round, with these sums.
  virtual void on_outcome(int64_t now_us, const DecisionRound& round, const Transaction& claims,
                          const CommitResult& result, const OutcomeSums& sums) = 0;
  // A round is over. By itself: begins the next one, unless that has begun already.
  virtual void on_round_over(int64_t now_us, const DecisionRound& round, Effects& effects);
  // Tasks ran to their end. admits: so there is more to decide.
  virtual void on_finished(int64_t now_us, const TasksEnded& ended, bool admits, Effects& effects);
  // Tasks pause until queue.on_requeue_due(key). Only queues that requeue losers do that.
  virtual void on_paused(int64_t now_us, int64_t key, Effects& effects);
  // A point of the time series, and what is handed out with it beside the log.
  virtual void log_sample(int64_t now_us) = 0;
  virtual void on_hand_out(Effects&) {}
  // Begins a round, if there is anything to decide. looks_anyway: tasks without room are tried
  // though the view has not changed.
  virtual void next(int64_t now_us, bool looks_anyway, Effects& effects);

  // What a protocol calls.

  // Composes the round and asks for the decision.
  void open_round(int64_t now_us, Effects& effects);
  // After a round: where the view had no room left (`blocked`), only a change of it helps.
  void begin_next(int64_t now_us, bool blocked, Effects& effects);
  std::optional<int64_t> retry_wanted_us() const { return retry_wanted_us_; }
  // The first sample after number `sample` and after now.
  void set_sample_timer(int64_t now_us, int64_t sample, Effects& effects) const;

  Activity activity_;

 private:
  struct InFlight {
    DecisionRound round;
    TransactionPtr transaction;
  };

  void submit(int64_t now_us, const SharedColumn<int64_t>& task, bool first, Effects& effects);
  void on_adopted(int64_t now_us, const EventPtr& event);
  void on_ended(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_granted(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_decision_done(int64_t now_us, int64_t decision, Effects& effects);
  void commit(DecisionRound round, Effects& effects);
  void send(TransactionPtr transaction, Effects& effects);
  TransactionPtr transaction_of(const DecisionRound& round) const;
  void on_commit_reply(int64_t now_us, const CommitReply& reply, Effects& effects);
  void end_round(int64_t now_us, const DecisionRound& round, const QueuedTasksView& losers,
                 Effects& effects);
  void record(int64_t now_us, const QueueExits& exits, Effects& effects);

  const Settings settings_;
  const Parts parts_;
  QueueHolds holds_;

  int64_t queued_ = 0;
  std::optional<DecisionRound> round_;  // being decided
  int64_t rounds_ = 0;
  int64_t batch_size_ = 1;  // of the current batch when it was begun
  // A round may begin though the view shows no change.
  bool looks_anyway_ = false;

  std::map<int64_t, InFlight> in_flight_;  // by transaction: those without an outcome so far
  int64_t claims_in_flight_ = 0;
  int64_t transactions_ = 0;
  std::optional<int64_t> retry_wanted_us_;  // when the scheduler wants to be called again
};

}  // namespace agora
