"""The events that every protocol shares: messages of the cell's side, and its timers.

The classes are native: native/events.hpp says what each is for, as help() does. Every participant
is a plain object `handle(now_us, event) -> list[Effect]` (participant.py).
"""

from __future__ import annotations

from enum import IntEnum

from parsync.core._native import (
    AllocationsEnded,
    ArrivalsDue,
    ClaimsSettled,
    CommitReply,
    CommitRequest,
    DecisionDone,
    HeartbeatDue,
    HoldReply,
    HoldRequest,
    HoldsEnded,
    HoldsReleased,
    MachinesChanged,
    MachinesDue,
    PhaseDue,
    QuotaGrant,
    QuotaReport,
    QuotaRequest,
    QuotaRoundDue,
    QuotaShares,
    RoomFreed,
    RunningReply,
    RunningRequest,
    SampleDue,
    Started,
    SyncReply,
    SyncRequest,
    TasksAdopted,
    TasksCancelled,
    TasksEnded,
    TasksFinished,
    TasksStarted,
    TasksSubmitted,
)
from parsync.core.event import Event

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
    HoldRequest,
    HoldReply,
    HoldsReleased,
    HoldsEnded,
    RoomFreed,
)


class HoldEnd(IntEnum):
    """Why holds ended that nobody released (HoldsEnded)."""

    ACCEPTED = 0  # a transaction named them, whatever became of its claims
    LOST = 1  # their machine went down
