"""The timers of optimistic agents. (Their messages are the cell's own: sync and commit.)

The classes are native: parsync/protocols/native/optimistic_events.hpp says what each is for.
"""

from __future__ import annotations

from parsync.core.event import Event
from parsync.protocols._native import RequeueDue, RetryDue, RoundDue, SyncDue
from parsync.protocols.optimistic.event import KIND

__all__ = ["EVENTS", "KIND", "RequeueDue", "RetryDue", "RoundDue", "SyncDue"]

EVENTS: tuple[type[Event], ...] = (SyncDue, RequeueDue, RetryDue, RoundDue)
