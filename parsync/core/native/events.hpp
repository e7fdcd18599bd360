// The events that every protocol shares: messages of the cell's side, and its timers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "event.hpp"
#include "shared_state/native/fields.hpp"
#include "shared_state/native/transaction.hpp"

namespace agora {

inline constexpr std::string_view kCoreKind = "core";

struct Started final : EventOf<Started> {
  static constexpr EventType kType{kCoreKind, 1, Priority::Free};
  static constexpr const char* kName = "Started";
  static constexpr const char* kDoc =
      R"(First event of every participant.

Attributes:
    epoch: Of participants beside the cell: how often they were restarted before. Of an agent: a
        number that is greater in every later process of its scheduler host, 0 in virtual time.
        A request that may be answered later than in the step that brings it carries this
        number, and so does the answer: see Send. 0 for the others, which are never restarted.)";

  int64_t epoch = 0;

  static constexpr auto fields() { return std::tuple{Field{"epoch", &Started::epoch}}; }
};

struct TasksSubmitted final : EventOf<TasksSubmitted> {
  static constexpr EventType kType{kCoreKind, 2, Priority::Decide};
  static constexpr const char* kName = "TasksSubmitted";
  static constexpr const char* kDoc =
      R"(Arrivals -> agent: task int64[n], rows of the task table every participant holds.)";

  SharedColumn<int64_t> task;  // [n]

  static constexpr auto fields() { return std::tuple{Field{"task", &TasksSubmitted::task}}; }
};

struct SyncRequest final : EventOf<SyncRequest> {
  static constexpr EventType kType{kCoreKind, 3, Priority::Sync};
  static constexpr const char* kName = "SyncRequest";
  static constexpr const char* kDoc =
      R"(Agent -> master: bring these partitions up to date. version: int64[k], what the view holds (0
= nothing).)";

  int64_t agent = 0;
  SharedColumn<int32_t> partition;  // [k]
  SharedColumn<int64_t> version;    // [k], what the view holds
  bool with_seqnum = false;

  static constexpr auto fields() {
    return std::tuple{
        Field{"agent", &SyncRequest::agent}, Field{"partition", &SyncRequest::partition},
        Field{"version", &SyncRequest::version}, Field{"with_seqnum", &SyncRequest::with_seqnum}};
  }
};

struct SyncReply final : EventOf<SyncReply> {
  static constexpr EventType kType{kCoreKind, 4, Priority::Sync};
  static constexpr const char* kName = "SyncReply";
  static constexpr const char* kDoc =
      R"(Master -> agent: one delta per partition asked for, in that order. epoch: the master's
(a change means: resync from 0).)";

  int64_t epoch = 0;
  std::vector<PartitionDeltaPtr> deltas;

  static constexpr auto fields() {
    return std::tuple{Field{"epoch", &SyncReply::epoch}, Field{"deltas", &SyncReply::deltas}};
  }

  // A replayed master makes the rows anew: the log holds (partition, from, to) of each delta.
  void encode_for_log(EventEncoder&, std::string& out) const override;
};

struct CommitRequest final : EventOf<CommitRequest> {
  static constexpr EventType kType{kCoreKind, 5, Priority::Commit};
  static constexpr const char* kName = "CommitRequest";
  static constexpr const char* kDoc =
      R"(Anyone -> master: claims for the tasks of the agent `transaction.scheduler`.

Args:
    reply_to: The address that gets the answer: the agent, or the worker pool for the queues at
        the machines. If it is not the agent, the agent gets ClaimsSettled besides.)";

  int64_t reply_to = 0;
  TransactionPtr transaction;

  static constexpr auto fields() {
    return std::tuple{Field{"reply_to", &CommitRequest::reply_to},
                      Field{"transaction", &CommitRequest::transaction}};
  }
};

struct CommitReply final : EventOf<CommitReply> {
  static constexpr EventType kType{kCoreKind, 6, Priority::Commit};
  static constexpr const char* kName = "CommitReply";
  static constexpr const char* kDoc =
      R"(Master -> the address CommitRequest.reply_to. scheduler: the agent that owns the tasks.)";

  int64_t epoch = 0;
  int64_t scheduler = 0;
  CommitResultPtr result;

  static constexpr auto fields() {
    return std::tuple{Field{"epoch", &CommitReply::epoch},
                      Field{"scheduler", &CommitReply::scheduler},
                      Field{"result", &CommitReply::result}};
  }
};

struct DecisionDone final : EventOf<DecisionDone> {
  static constexpr EventType kType{kCoreKind, 7, Priority::Decide};
  static constexpr const char* kName = "DecisionDone";
  static constexpr const char* kDoc =
      R"(Runtime -> agent: the plan started by StartDecision(decision) is ready. elapsed_ns: measured,
0 when the clock is not Measured.)";

  int64_t decision = 0;
  int64_t elapsed_ns = 0;

  static constexpr auto fields() {
    return std::tuple{Field{"decision", &DecisionDone::decision},
                      Field{"elapsed_ns", &DecisionDone::elapsed_ns}};
  }
};

struct TasksStarted final : EventOf<TasksStarted> {
  static constexpr EventType kType{kCoreKind, 8, Priority::Free};
  static constexpr const char* kName = "TasksStarted";
  static constexpr const char* kDoc =
      R"(Master -> workers, and those who watch the cell: int64[n] columns; they run from start_us.
owner: int32[n], the agent.)";

  int64_t start_us = 0;
  SharedColumn<int64_t> task;        // [n]
  SharedColumn<int64_t> allocation;  // [n]
  SharedColumn<int32_t> machine;     // [n]
  SharedColumn<int32_t> owner;       // [n], the agent

  static constexpr auto fields() {
    return std::tuple{
        Field{"start_us", &TasksStarted::start_us}, Field{"task", &TasksStarted::task},
        Field{"allocation", &TasksStarted::allocation}, Field{"machine", &TasksStarted::machine},
        Field{"owner", &TasksStarted::owner}};
  }
};

struct TasksCancelled final : EventOf<TasksCancelled> {
  static constexpr EventType kType{kCoreKind, 9, Priority::Free};
  static constexpr const char* kName = "TasksCancelled";
  static constexpr const char* kDoc =
      R"(Master -> workers: these allocations are gone (evicted, machine lost); their ends no longer
count.)";

  SharedColumn<int64_t> allocation;  // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"allocation", &TasksCancelled::allocation}};
  }
};

struct TasksFinished final : EventOf<TasksFinished> {
  static constexpr EventType kType{kCoreKind, 10, Priority::Free};
  static constexpr const char* kName = "TasksFinished";
  static constexpr const char* kDoc =
      R"(Workers -> master: these allocations ended (end_us int64[n], at most the time of sending).)";

  SharedColumn<int64_t> allocation;  // [n]
  SharedColumn<int32_t> owner;       // [n]
  SharedColumn<int64_t> end_us;      // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"allocation", &TasksFinished::allocation},
                      Field{"owner", &TasksFinished::owner},
                      Field{"end_us", &TasksFinished::end_us}};
  }
};

struct TasksEnded final : EventOf<TasksEnded> {
  static constexpr EventType kType{kCoreKind, 11, Priority::Free};
  static constexpr const char* kName = "TasksEnded";
  static constexpr const char* kDoc =
      R"(Master -> owning agent: what became of running tasks. change: a
schedulers.interface.ChangeKind (FINISHED, EVICTED, LOST).

version: int64[n], the partition version of which the release is part. All columns [n]; request
[n, R]. A restarted agent is also told, with allocation -1 and request 0, of tasks that lost
their place before its start: they have to run again.)";

  int64_t change = 0;
  SharedColumn<int64_t> task;        // [n]
  SharedColumn<int64_t> allocation;  // [n]
  SharedColumn<int32_t> machine;     // [n]
  SharedTable<int64_t> request;      // [n, R]
  SharedColumn<int64_t> version;     // [n]

  static constexpr auto fields() {
    return std::tuple{
        Field{"change", &TasksEnded::change},         Field{"task", &TasksEnded::task},
        Field{"allocation", &TasksEnded::allocation}, Field{"machine", &TasksEnded::machine},
        Field{"request", &TasksEnded::request},       Field{"version", &TasksEnded::version}};
  }
};

struct TasksAdopted final : EventOf<TasksAdopted> {
  static constexpr EventType kType{kCoreKind, 12, Priority::Free};
  static constexpr const char* kName = "TasksAdopted";
  static constexpr const char* kDoc =
      R"(Master -> agent: tasks already running that are this agent's (initial state, or after a
restart).)";

  SharedColumn<int64_t> task;        // [n]
  SharedColumn<int64_t> allocation;  // [n]
  SharedColumn<int32_t> machine;     // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"task", &TasksAdopted::task},
                      Field{"allocation", &TasksAdopted::allocation},
                      Field{"machine", &TasksAdopted::machine}};
  }
};

struct MachinesChanged final : EventOf<MachinesChanged> {
  static constexpr EventType kType{kCoreKind, 13, Priority::Free};
  static constexpr const char* kName = "MachinesChanged";
  static constexpr const char* kDoc =
      R"(Arrivals -> master -> those who watch the cell: machines that come up or go down. machine:
int32[n], up: bool[n].)";

  SharedColumn<int32_t> machine;  // [n]
  SharedColumn<bool> up;          // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"machine", &MachinesChanged::machine},
                      Field{"up", &MachinesChanged::up}};
  }
};

struct SampleDue final : EventOf<SampleDue> {
  static constexpr EventType kType{kCoreKind, 14, Priority::Free};
  static constexpr const char* kName = "SampleDue";
  static constexpr const char* kDoc =
      R"(Timer of the master and of agents: the `sample`-th point of the time series is due.)";

  int64_t sample = 0;

  static constexpr auto fields() { return std::tuple{Field{"sample", &SampleDue::sample}}; }
};

struct HeartbeatDue final : EventOf<HeartbeatDue> {
  static constexpr EventType kType{kCoreKind, 15, Priority::Free};
  static constexpr const char* kName = "HeartbeatDue";
  static constexpr const char* kDoc = "Timer of the worker pool: task ends are due.";

  static constexpr auto fields() { return std::tuple<>{}; }
};

struct PhaseDue final : EventOf<PhaseDue> {
  static constexpr EventType kType{kCoreKind, 16, Priority::Free};
  static constexpr const char* kName = "PhaseDue";
  static constexpr const char* kDoc = "Timer of the coordinator: load phase `phase` begins.";

  int64_t phase = 0;

  static constexpr auto fields() { return std::tuple{Field{"phase", &PhaseDue::phase}}; }
};

struct ArrivalsDue final : EventOf<ArrivalsDue> {
  static constexpr EventType kType{kCoreKind, 17, Priority::Decide};
  static constexpr const char* kName = "ArrivalsDue";
  static constexpr const char* kDoc =
      R"(Timer of the arrivals: batches are due, the first of them `batch`.)";

  int64_t batch = 0;

  static constexpr auto fields() { return std::tuple{Field{"batch", &ArrivalsDue::batch}}; }
};

struct MachinesDue final : EventOf<MachinesDue> {
  static constexpr EventType kType{kCoreKind, 18, Priority::Free};
  static constexpr const char* kName = "MachinesDue";
  static constexpr const char* kDoc =
      R"(Timer of the arrivals: machine additions or removals are due, the first of them `row`.)";

  int64_t row = 0;

  static constexpr auto fields() { return std::tuple{Field{"row", &MachinesDue::row}}; }
};

struct ClaimsSettled final : EventOf<ClaimsSettled> {
  static constexpr EventType kType{kCoreKind, 19, Priority::Commit};
  static constexpr const char* kName = "ClaimsSettled";
  static constexpr const char* kDoc =
      R"(Master -> the agent `transaction.scheduler`: the outcome of claims for its tasks that another
participant made.)";

  TransactionPtr transaction;
  CommitResultPtr result;

  static constexpr auto fields() {
    return std::tuple{Field{"transaction", &ClaimsSettled::transaction},
                      Field{"result", &ClaimsSettled::result}};
  }
};

struct AllocationsEnded final : EventOf<AllocationsEnded> {
  static constexpr EventType kType{kCoreKind, 20, Priority::Free};
  static constexpr const char* kName = "AllocationsEnded";
  static constexpr const char* kDoc =
      R"(To those who watch the cell: allocations of any agents ended.

From the master to participants beside it, of all ends, and to the worker pool, of those that
the pool did not report itself. The pool hands these and its own to the queues at the machines.

Attributes:
    change: A schedulers.interface.ChangeKind (FINISHED, EVICTED, LOST).
    task, allocation: int64[n].
    machine: int32[n].
    owner: int32[n], the agent.)";

  int64_t change = 0;
  SharedColumn<int64_t> task;        // [n]
  SharedColumn<int64_t> allocation;  // [n]
  SharedColumn<int32_t> machine;     // [n]
  SharedColumn<int32_t> owner;       // [n]

  static constexpr auto fields() {
    return std::tuple{
        Field{"change", &AllocationsEnded::change}, Field{"task", &AllocationsEnded::task},
        Field{"allocation", &AllocationsEnded::allocation},
        Field{"machine", &AllocationsEnded::machine}, Field{"owner", &AllocationsEnded::owner}};
  }
};

struct QuotaRoundDue final : EventOf<QuotaRoundDue> {
  static constexpr EventType kType{kCoreKind, 21, Priority::Free};
  static constexpr const char* kName = "QuotaRoundDue";
  static constexpr const char* kDoc =
      R"(Timer of the coordinator: the shares of the quota groups are to be computed anew, for the
`round`-th time.)";

  int64_t round = 0;

  static constexpr auto fields() { return std::tuple{Field{"round", &QuotaRoundDue::round}}; }
};

struct QuotaRequest final : EventOf<QuotaRequest> {
  static constexpr EventType kType{kCoreKind, 22, Priority::Sync};
  static constexpr const char* kName = "QuotaRequest";
  static constexpr const char* kDoc =
      R"(Coordinator -> agent: what do your tasks hold, and what do they want?)";

  int64_t round = 0;

  static constexpr auto fields() { return std::tuple{Field{"round", &QuotaRequest::round}}; }
};

struct QuotaReport final : EventOf<QuotaReport> {
  static constexpr EventType kType{kCoreKind, 23, Priority::Sync};
  static constexpr const char* kName = "QuotaReport";
  static constexpr const char* kDoc =
      R"(Agent -> coordinator: the answer to a QuotaRequest, by quota group and resource.

Attributes:
    held: int64[G, R], of tasks that run, are being committed or are being decided on.
    waiting: int64[G, R], of its other tasks.)";

  int64_t agent = 0;
  int64_t round = 0;
  SharedTable<int64_t> held;     // [G, R]
  SharedTable<int64_t> waiting;  // [G, R]

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &QuotaReport::agent}, Field{"round", &QuotaReport::round},
                      Field{"held", &QuotaReport::held}, Field{"waiting", &QuotaReport::waiting}};
  }
};

struct QuotaGrant final : EventOf<QuotaGrant> {
  static constexpr EventType kType{kCoreKind, 24, Priority::Sync};
  static constexpr const char* kName = "QuotaGrant";
  static constexpr const char* kDoc =
      R"(Coordinator -> agent: what its tasks may hold, by quota group and resource.

Attributes:
    amount: int64[G, R], up to which tasks may hold resources from now on.
    reclaim: int64[G, R], what the agent is to give back by ending running tasks.)";

  int64_t round = 0;
  SharedTable<int64_t> amount;   // [G, R]
  SharedTable<int64_t> reclaim;  // [G, R]

  static constexpr auto fields() {
    return std::tuple{Field{"round", &QuotaGrant::round}, Field{"amount", &QuotaGrant::amount},
                      Field{"reclaim", &QuotaGrant::reclaim}};
  }
};

struct QuotaShares final : EventOf<QuotaShares> {
  static constexpr EventType kType{kCoreKind, 25, Priority::Sync};
  static constexpr const char* kName = "QuotaShares";
  static constexpr const char* kDoc =
      R"(Coordinator -> master: the shares of the quota groups, to be recorded.

Attributes:
    wanted: int64[G, R], what all agents' tasks held or waited for.
    share: int64[G, R], each group's fair share of that.
    limit: int64[G, R], what the group's agents were granted together.)";

  int64_t round = 0;
  SharedTable<int64_t> wanted;  // [G, R]
  SharedTable<int64_t> share;   // [G, R]
  SharedTable<int64_t> limit;   // [G, R]

  static constexpr auto fields() {
    return std::tuple{Field{"round", &QuotaShares::round}, Field{"wanted", &QuotaShares::wanted},
                      Field{"share", &QuotaShares::share}, Field{"limit", &QuotaShares::limit}};
  }
};

struct RunningRequest final : EventOf<RunningRequest> {
  static constexpr EventType kType{kCoreKind, 26, Priority::Sync};
  static constexpr const char* kName = "RunningRequest";
  static constexpr const char* kDoc =
      R"(Agent -> master: which tasks of lower priority run in some partitions?

Attributes:
    partition: int32[k].
    below: Only tasks of priorities below this count.)";

  int64_t agent = 0;
  SharedColumn<int32_t> partition;  // [k]
  int64_t below = 0;

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &RunningRequest::agent},
                      Field{"partition", &RunningRequest::partition},
                      Field{"below", &RunningRequest::below}};
  }
};

struct RunningReply final : EventOf<RunningReply> {
  static constexpr EventType kType{kCoreKind, 27, Priority::Sync};
  static constexpr const char* kName = "RunningReply";
  static constexpr const char* kDoc =
      R"(Master -> agent: the tasks of any agents that run in the partitions asked for.

Attributes:
    partition: int32[k].
    allocation, task: int64[n].
    machine: int32[n].)";

  SharedColumn<int32_t> partition;   // [k]
  SharedColumn<int64_t> allocation;  // [n]
  SharedColumn<int64_t> task;        // [n]
  SharedColumn<int32_t> machine;     // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"partition", &RunningReply::partition},
                      Field{"allocation", &RunningReply::allocation},
                      Field{"task", &RunningReply::task}, Field{"machine", &RunningReply::machine}};
  }
};

struct HoldRequest final : EventOf<HoldRequest> {
  static constexpr EventType kType{kCoreKind, 28, Priority::Commit};
  static constexpr const char* kName = "HoldRequest";
  static constexpr const char* kDoc =
      R"(Participant beside the master -> master: hold room for offers, one after the other.

Attributes:
    reply_to: The address that gets the answer.
    sequence: The sender's own number, which the answer repeats.
    holder: int32[k], the agents that the offers go to.
    machine: int32[k].
    amount: int64[k, R].)";

  int64_t reply_to = 0;
  int64_t sequence = 0;
  SharedColumn<int32_t> holder;   // [k]
  SharedColumn<int32_t> machine;  // [k]
  SharedTable<int64_t> amount;    // [k, R]

  static constexpr auto fields() {
    return std::tuple{
        Field{"reply_to", &HoldRequest::reply_to}, Field{"sequence", &HoldRequest::sequence},
        Field{"holder", &HoldRequest::holder}, Field{"machine", &HoldRequest::machine},
        Field{"amount", &HoldRequest::amount}};
  }
};

struct HoldReply final : EventOf<HoldReply> {
  static constexpr EventType kType{kCoreKind, 29, Priority::Commit};
  static constexpr const char* kName = "HoldReply";
  static constexpr const char* kDoc =
      R"(Master -> the address HoldRequest.reply_to.

Attributes:
    sequence: Of the request.
    hold: int64[k], the ids of the holds; -1 where the amount did not fit, or the machine was down.)";

  int64_t sequence = 0;
  SharedColumn<int64_t> hold;  // [k]

  static constexpr auto fields() {
    return std::tuple{Field{"sequence", &HoldReply::sequence}, Field{"hold", &HoldReply::hold}};
  }
};

struct HoldsReleased final : EventOf<HoldsReleased> {
  static constexpr EventType kType{kCoreKind, 30, Priority::Free};
  static constexpr const char* kName = "HoldsReleased";
  static constexpr const char* kDoc =
      R"(Participant beside the master -> master: these holds (int64[k], ids) end, as their offers
were declined, rescinded or have expired. Those that have ended already are skipped.)";

  SharedColumn<int64_t> hold;  // [k]

  static constexpr auto fields() { return std::tuple{Field{"hold", &HoldsReleased::hold}}; }
};

// Why the master ended holds.
enum class HoldEnd : int8_t { Accepted = 0, Lost = 1 };

struct HoldsEnded final : EventOf<HoldsEnded> {
  static constexpr EventType kType{kCoreKind, 31, Priority::Free};
  static constexpr const char* kName = "HoldsEnded";
  static constexpr const char* kDoc =
      R"(Master -> participants beside it that watch the cell: holds ended that nobody released.

Attributes:
    hold: int64[k], their ids.
    remainder: int64[k, R], what the accepted claims of the transaction left of each, which is free
        again. Of several holds on a machine, the one with the lowest id is used up first. Of a
        lost machine, all that was held.
    cause: A parsync.core.events.HoldEnd.)";

  SharedColumn<int64_t> hold;      // [k]
  SharedTable<int64_t> remainder;  // [k, R]
  int64_t cause = 0;

  static constexpr auto fields() {
    return std::tuple{Field{"hold", &HoldsEnded::hold}, Field{"remainder", &HoldsEnded::remainder},
                      Field{"cause", &HoldsEnded::cause}};
  }
};

struct RoomFreed final : EventOf<RoomFreed> {
  static constexpr EventType kType{kCoreKind, 32, Priority::Free};
  static constexpr const char* kName = "RoomFreed";
  static constexpr const char* kDoc =
      R"(Master -> workers, for the queues at the machines: room that was held is free again on these
machines, int32[k]. Holds were released, or a transaction that ended them left a part.)";

  SharedColumn<int32_t> machine;  // [k]

  static constexpr auto fields() { return std::tuple{Field{"machine", &RoomFreed::machine}}; }
};

inline void SyncReply::encode_for_log(EventEncoder&, std::string& out) const {
  msgpack::put_array_head(out, 2);
  msgpack::put_integer(out, epoch);
  msgpack::put_array_head(out, deltas.size());
  for (const PartitionDeltaPtr& delta : deltas) {
    msgpack::put_array_head(out, 3);
    msgpack::put_integer(out, delta->partition);
    msgpack::put_integer(out, delta->from_version);
    msgpack::put_integer(out, delta->to_version);
  }
}

}  // namespace agora
