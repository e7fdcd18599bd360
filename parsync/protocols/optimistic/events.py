"""The timers of optimistic agents. (Their messages are the cell's own: sync and commit.)"""

from __future__ import annotations

from typing import ClassVar

from parsync.core.event import Event, Priority
from shared_state.static_frozen import static_frozen

KIND = "optimistic"


class OptimisticEvent(Event):
    """Base class of these events."""

    __slots__ = ()
    kind: ClassVar[str] = KIND


@static_frozen
class SyncDue(OptimisticEvent):
    """The k-th periodic synchronisation is due."""

    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.SYNC
    k: int


@static_frozen
class RequeueDue(OptimisticEvent):
    """The pause of requeued tasks is over.

    Attributes:
        key: The number of the pause.
    """

    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.DECIDE
    key: int


@static_frozen
class RetryDue(OptimisticEvent):
    """Decide again on tasks that round `round` left waiting: the scheduler asked for it, or no
    periodic synchronisation wakes the agent, or the pause between such rounds is over."""

    number: ClassVar[int] = 3
    priority: ClassVar[Priority] = Priority.DECIDE
    round: int


@static_frozen
class RoundDue(OptimisticEvent):
    """A decision round begins, now that everything else of this instant has been handled."""

    number: ClassVar[int] = 4
    priority: ClassVar[Priority] = Priority.START


EVENTS: tuple[type[Event], ...] = (SyncDue, RequeueDue, RetryDue, RoundDue)
