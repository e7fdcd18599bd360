"""The events of the optimistic protocol: the timers of its agents, and the messages by which
schedulers share demand. (Its other messages are the cell's own: sync and commit.) They are native:
parsync/protocols/native/optimistic_events.hpp says what each is for."""

from __future__ import annotations

from parsync.core.event import Event
from parsync.protocols._native import (
    DemandReply,
    DemandReport,
    DemandRequest,
    OptimisticEvent,
    RequeueDue,
    RetryDue,
    RoundDue,
    SyncDue,
)

__all__ = [
    "EVENTS",
    "KIND",
    "DemandReply",
    "DemandReport",
    "DemandRequest",
    "OptimisticEvent",
    "RequeueDue",
    "RetryDue",
    "RoundDue",
    "SyncDue",
]

KIND = OptimisticEvent.kind
EVENTS: tuple[type[Event], ...] = (
    SyncDue,
    RequeueDue,
    RetryDue,
    RoundDue,
    DemandReport,
    DemandRequest,
    DemandReply,
)
