"""The events of the protocol of offers: messages between agents and the allocator, and its timers.
They are native: parsync/protocols/native/offers_events.hpp says what each is for.

An agent is what Mesos calls a framework. An offer is room on one machine for one agent.
"""

from __future__ import annotations

from parsync.core.event import Event
from parsync.protocols._native import (
    AllocationDue,
    ExpiryDue,
    IntervalDue,
    Offers,
    OffersAnswered,
    OffersEvent,
    OffersRescinded,
    Revive,
    Subscribe,
    Suppress,
    TasksWanted,
)

__all__ = [
    "EVENTS",
    "KIND",
    "AllocationDue",
    "ExpiryDue",
    "IntervalDue",
    "Offers",
    "OffersAnswered",
    "OffersRescinded",
    "Revive",
    "Subscribe",
    "Suppress",
    "TasksWanted",
]

KIND = OffersEvent.kind
EVENTS: tuple[type[Event], ...] = (
    Subscribe,
    Suppress,
    Revive,
    Offers,
    OffersAnswered,
    OffersRescinded,
    IntervalDue,
    AllocationDue,
    ExpiryDue,
    TasksWanted,
)
