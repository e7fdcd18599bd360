"""The messages by which schedulers share demand: what they were offered, for their slot prices.

The classes are native: parsync/protocols/native/optimistic_events.hpp says what each is for.
"""

from __future__ import annotations

from parsync.core.event import Event
from parsync.protocols._native import DemandReply, DemandReport, DemandRequest

__all__ = ["EVENTS", "DemandReply", "DemandReport", "DemandRequest"]

EVENTS: tuple[type[Event], ...] = (DemandReport, DemandRequest, DemandReply)
