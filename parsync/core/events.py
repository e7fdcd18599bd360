"""What the protocol's participants tell each other, and what they ask of their runtime.

Every participant is a plain object `handle(now_us, event) -> list[Effect]`. Events are batches,
never single tasks. At one instant the virtual runtime delivers by priority (`PRIORITY`): freed
slots, then syncs, then commits, then decisions; ties go by order of sending.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.record import Record
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, PartitionDelta, Transaction

MASTER = -1
WORKERS = -2
COORDINATOR = -3
ARRIVALS = -4


class Timer(IntEnum):
    """What a participant's timer is for; `key` of TimerFired tells which one."""

    SYNC = 0  # agent: the k-th periodic synchronisation is due
    RETRY = 1  # agent: rejected tasks rejoin the queue (requeue policy)
    HEARTBEAT = 2  # workers: task ends are due
    PHASE = 3  # coordinator: a load phase begins
    ARRIVAL = 4  # arrivals: batches are due
    MACHINES = 5  # arrivals: machine additions or removals are due
    SAMPLE = 6  # master: a point of the utilisation time series is due
    LIVENESS = 7  # coordinator: check who is alive
    # agent: look again for the room not found in round `key` (where no periodic sync wakes it)
    ATTEMPT = 8


# --- events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimerFired:
    timer: Timer
    key: int


@dataclass(frozen=True, slots=True)
class Started:
    """First event of every participant. epoch counts the participant's lives (0 = first)."""

    epoch: int


@dataclass(frozen=True, slots=True)
class TasksSubmitted:
    """Arrivals -> agent: task int64[n], rows of the task table every participant holds."""

    task: Int64


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """Agent -> master: bring these partitions up to date. version: int64[k], what the view holds (0
    = nothing)."""

    agent: int
    partition: Int32
    version: Int64
    with_seqnum: bool


@dataclass(frozen=True, slots=True)
class SyncReply:
    """Master -> agent: one delta per partition asked for, in that order. epoch: the master's life
    (a change means: resync from 0)."""

    epoch: int
    deltas: tuple[PartitionDelta, ...]


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """Agent -> master."""

    agent: int
    transaction: Transaction


@dataclass(frozen=True, slots=True)
class CommitReply:
    """Master -> agent."""

    epoch: int
    result: CommitResult


@dataclass(frozen=True, slots=True)
class DecisionDone:
    """Runtime -> agent: the plan started by StartDecision(decision) is ready. elapsed_ns: measured,
    0 when the clock is not Measured."""

    decision: int
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class TasksStarted:
    """Master -> workers: int64[n] columns; they run from start_us. owner: int32[n], the agent."""

    start_us: int
    task: Int64
    allocation: Int64
    machine: Int32
    owner: Int32


@dataclass(frozen=True, slots=True)
class TasksCancelled:
    """Master -> workers: these allocations are gone (evicted, machine lost); their ends no longer
    count."""

    allocation: Int64


@dataclass(frozen=True, slots=True)
class TasksFinished:
    """Workers -> master: these allocations ended (end_us int64[n], at most the time of sending)."""

    allocation: Int64
    owner: Int32
    end_us: Int64


@dataclass(frozen=True, slots=True)
class TasksEnded:
    """Master -> owning agent: what became of running tasks. change: a
    schedulers.interface.ChangeKind (FINISHED, EVICTED, LOST).

    version: int64[n], the partition version of which the release is part. All columns [n]; request
    [n, R].
    """

    change: int
    task: Int64
    allocation: Int64
    machine: Int32
    request: Int64
    version: Int64


@dataclass(frozen=True, slots=True)
class TasksAdopted:
    """Master -> agent: tasks already running that are this agent's (initial state, or after a
    restart)."""

    task: Int64
    allocation: Int64
    machine: Int32


@dataclass(frozen=True, slots=True)
class MachinesChanged:
    """Arrivals -> master: machines that come up or go down. machine: int32[n], up: bool[n]."""

    machine: Int32
    up: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PhaseBegan:
    """Coordinator -> all."""

    phase: int


Event = (
    TimerFired
    | Started
    | TasksSubmitted
    | SyncRequest
    | SyncReply
    | CommitRequest
    | CommitReply
    | DecisionDone
    | TasksStarted
    | TasksCancelled
    | TasksFinished
    | TasksEnded
    | TasksAdopted
    | MachinesChanged
    | PhaseBegan
)


class Priority(IntEnum):
    """Order of delivery at one instant (reference model: FREE, SYNC, COMMIT, DECIDE)."""

    FREE = 0
    SYNC = 1
    COMMIT = 2
    DECIDE = 3


PRIORITY: dict[type, Priority] = {
    Started: Priority.FREE,
    PhaseBegan: Priority.FREE,
    MachinesChanged: Priority.FREE,
    TasksStarted: Priority.FREE,
    TasksCancelled: Priority.FREE,
    TasksFinished: Priority.FREE,
    TasksEnded: Priority.FREE,
    TasksAdopted: Priority.FREE,
    SyncRequest: Priority.SYNC,
    SyncReply: Priority.SYNC,
    CommitRequest: Priority.COMMIT,
    CommitReply: Priority.COMMIT,
    TasksSubmitted: Priority.DECIDE,
    DecisionDone: Priority.DECIDE,
}

TIMER_PRIORITY: dict[Timer, Priority] = {
    Timer.HEARTBEAT: Priority.FREE,
    Timer.PHASE: Priority.FREE,
    Timer.MACHINES: Priority.FREE,
    Timer.SAMPLE: Priority.FREE,
    Timer.LIVENESS: Priority.FREE,
    Timer.SYNC: Priority.SYNC,
    Timer.ARRIVAL: Priority.DECIDE,
    Timer.RETRY: Priority.DECIDE,
    Timer.ATTEMPT: Priority.DECIDE,
}


# --- effects ------------------------------------------------------------------------------------
# Not frozen, as a frozen one takes more than twice as long to make: an effect goes from a core to
# its runtime and no further.


@dataclass(slots=True)
class Send:
    to: int
    event: Event


@dataclass(slots=True)
class SetTimer:
    """Deliver TimerFired(timer, key) to the sender at at_us (at once if that is past)."""

    at_us: int
    timer: Timer
    key: int


@dataclass(slots=True)
class StartDecision:
    """Run the sender's `decide(decision, now_us)` on its view as of now; deliver DecisionDone no
    earlier than now + its `decision_us(elapsed_ns)`."""

    decision: int


Effect = Send | SetTimer | StartDecision | Record


class Participant(Protocol):
    """A sans-I/O core."""

    def handle(self, now_us: int, event: Event) -> list[Effect]: ...
