"""The base class of the optimistic protocol's events."""

from __future__ import annotations

from typing import ClassVar

from parsync.core.event import Event

KIND = "optimistic"


class OptimisticEvent(Event):
    """Base class of these events."""

    __slots__ = ()
    kind: ClassVar[str] = KIND
