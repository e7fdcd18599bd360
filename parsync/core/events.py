"""The events that every protocol shares: messages of the cell's side, and its timers.

Every participant is a plain object `handle(now_us, event) -> list[Effect]` (participant.py).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.core.event import CoreEvent, Event, Priority
from parsync.core.quota_events import (
    QuotaGrant,
    QuotaReport,
    QuotaRequest,
    QuotaRoundDue,
    QuotaShares,
)
from shared_state.static_frozen import static_frozen
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, PartitionDelta, Transaction


@static_frozen
class Started(CoreEvent):
    """First event of every participant.

    Attributes:
        epoch: Of participants beside the cell: how often they were restarted before. Of an agent: a
            number that is greater in every later process of its scheduler host, 0 in virtual time.
            A request that may be answered later than in the step that brings it carries this
            number, and so does the answer: see Send. 0 for the others, which are never restarted.
    """

    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.FREE
    epoch: int


@static_frozen
class TasksSubmitted(CoreEvent):
    """Arrivals -> agent: task int64[n], rows of the task table every participant holds."""

    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.DECIDE
    task: Int64


@static_frozen
class SyncRequest(CoreEvent):
    """Agent -> master: bring these partitions up to date. version: int64[k], what the view holds (0
    = nothing)."""

    number: ClassVar[int] = 3
    priority: ClassVar[Priority] = Priority.SYNC
    agent: int
    partition: Int32
    version: Int64
    with_seqnum: bool


@static_frozen
class SyncReply(CoreEvent):
    """Master -> agent: one delta per partition asked for, in that order. epoch: the master's
    (a change means: resync from 0)."""

    number: ClassVar[int] = 4
    priority: ClassVar[Priority] = Priority.SYNC
    epoch: int
    deltas: tuple[PartitionDelta, ...]


def sync_reply_log_form(reply: SyncReply) -> tuple[int, tuple[tuple[int, int, int], ...]]:
    """What an event log holds of a sync reply: a replayed master makes the rows anew."""
    return (
        reply.epoch,
        tuple((delta.partition, delta.from_version, delta.to_version) for delta in reply.deltas),
    )


@static_frozen
class CommitRequest(CoreEvent):
    """Anyone -> master: claims for the tasks of the agent `transaction.scheduler`.

    Args:
        reply_to: The address that gets the answer: the agent, or the worker pool for the queues at
            the machines. If it is not the agent, the agent gets ClaimsSettled besides.
    """

    number: ClassVar[int] = 5
    priority: ClassVar[Priority] = Priority.COMMIT
    reply_to: int
    transaction: Transaction


@static_frozen
class CommitReply(CoreEvent):
    """Master -> the address CommitRequest.reply_to. scheduler: the agent that owns the tasks."""

    number: ClassVar[int] = 6
    priority: ClassVar[Priority] = Priority.COMMIT
    epoch: int
    scheduler: int
    result: CommitResult


@static_frozen
class DecisionDone(CoreEvent):
    """Runtime -> agent: the plan started by StartDecision(decision) is ready. elapsed_ns: measured,
    0 when the clock is not Measured."""

    number: ClassVar[int] = 7
    priority: ClassVar[Priority] = Priority.DECIDE
    decision: int
    elapsed_ns: int


@static_frozen
class TasksStarted(CoreEvent):
    """Master -> workers, and those who watch the cell: int64[n] columns; they run from start_us.
    owner: int32[n], the agent."""

    number: ClassVar[int] = 8
    priority: ClassVar[Priority] = Priority.FREE
    start_us: int
    task: Int64
    allocation: Int64
    machine: Int32
    owner: Int32


@static_frozen
class TasksCancelled(CoreEvent):
    """Master -> workers: these allocations are gone (evicted, machine lost); their ends no longer
    count."""

    number: ClassVar[int] = 9
    priority: ClassVar[Priority] = Priority.FREE
    allocation: Int64


@static_frozen
class TasksFinished(CoreEvent):
    """Workers -> master: these allocations ended (end_us int64[n], at most the time of sending)."""

    number: ClassVar[int] = 10
    priority: ClassVar[Priority] = Priority.FREE
    allocation: Int64
    owner: Int32
    end_us: Int64


@static_frozen
class TasksEnded(CoreEvent):
    """Master -> owning agent: what became of running tasks. change: a
    schedulers.interface.ChangeKind (FINISHED, EVICTED, LOST).

    version: int64[n], the partition version of which the release is part. All columns [n]; request
    [n, R]. A restarted agent is also told, with allocation -1 and request 0, of tasks that lost
    their place before its start: they have to run again.
    """

    number: ClassVar[int] = 11
    priority: ClassVar[Priority] = Priority.FREE
    change: int
    task: Int64
    allocation: Int64
    machine: Int32
    request: Int64
    version: Int64


@static_frozen
class TasksAdopted(CoreEvent):
    """Master -> agent: tasks already running that are this agent's (initial state, or after a
    restart)."""

    number: ClassVar[int] = 12
    priority: ClassVar[Priority] = Priority.FREE
    task: Int64
    allocation: Int64
    machine: Int32


@static_frozen
class MachinesChanged(CoreEvent):
    """Arrivals -> master -> those who watch the cell: machines that come up or go down. machine:
    int32[n], up: bool[n]."""

    number: ClassVar[int] = 13
    priority: ClassVar[Priority] = Priority.FREE
    machine: Int32
    up: NDArray[np.bool_]


@static_frozen
class SampleDue(CoreEvent):
    """Timer of the master and of agents: the `sample`-th point of the time series is due."""

    number: ClassVar[int] = 14
    priority: ClassVar[Priority] = Priority.FREE
    sample: int


@static_frozen
class HeartbeatDue(CoreEvent):
    """Timer of the worker pool: task ends are due."""

    number: ClassVar[int] = 15
    priority: ClassVar[Priority] = Priority.FREE


@static_frozen
class PhaseDue(CoreEvent):
    """Timer of the coordinator: load phase `phase` begins."""

    number: ClassVar[int] = 16
    priority: ClassVar[Priority] = Priority.FREE
    phase: int


@static_frozen
class ArrivalsDue(CoreEvent):
    """Timer of the arrivals: batches are due, the first of them `batch`."""

    number: ClassVar[int] = 17
    priority: ClassVar[Priority] = Priority.DECIDE
    batch: int


@static_frozen
class MachinesDue(CoreEvent):
    """Timer of the arrivals: machine additions or removals are due, the first of them `row`."""

    number: ClassVar[int] = 18
    priority: ClassVar[Priority] = Priority.FREE
    row: int


@static_frozen
class ClaimsSettled(CoreEvent):
    """Master -> the agent `transaction.scheduler`: the outcome of claims for its tasks that another
    participant made."""

    number: ClassVar[int] = 19
    priority: ClassVar[Priority] = Priority.COMMIT
    transaction: Transaction
    result: CommitResult


@static_frozen
class AllocationsEnded(CoreEvent):
    """To those who watch the cell: allocations of any agents ended.

    From the master to participants beside it, of all ends, and to the worker pool, of those that
    the pool did not report itself. The pool hands these and its own to the queues at the machines.

    Attributes:
        change: A schedulers.interface.ChangeKind (FINISHED, EVICTED, LOST).
        task, allocation: int64[n].
        machine: int32[n].
        owner: int32[n], the agent.
    """

    number: ClassVar[int] = 20
    priority: ClassVar[Priority] = Priority.FREE
    change: int
    task: Int64
    allocation: Int64
    machine: Int32
    owner: Int32


@static_frozen
class RunningRequest(CoreEvent):
    """Agent -> master: which tasks of lower priority run in some partitions?

    Attributes:
        partition: int32[k].
        below: Only tasks of priorities below this count.
    """

    number: ClassVar[int] = 26
    priority: ClassVar[Priority] = Priority.SYNC
    agent: int
    partition: Int32
    below: int


@static_frozen
class RunningReply(CoreEvent):
    """Master -> agent: the tasks of any agents that run in the partitions asked for.

    Attributes:
        partition: int32[k].
        allocation, task: int64[n].
        machine: int32[n].
    """

    number: ClassVar[int] = 27
    priority: ClassVar[Priority] = Priority.SYNC
    partition: Int32
    allocation: Int64
    task: Int64
    machine: Int32


CORE_EVENTS: tuple[type[Event], ...] = (
    Started,
    TasksSubmitted,
    SyncRequest,
    SyncReply,
    CommitRequest,
    CommitReply,
    DecisionDone,
    TasksStarted,
    TasksCancelled,
    TasksFinished,
    TasksEnded,
    TasksAdopted,
    MachinesChanged,
    SampleDue,
    HeartbeatDue,
    PhaseDue,
    ArrivalsDue,
    MachinesDue,
    ClaimsSettled,
    AllocationsEnded,
    QuotaRoundDue,
    QuotaRequest,
    QuotaReport,
    QuotaGrant,
    QuotaShares,
    RunningRequest,
    RunningReply,
)
