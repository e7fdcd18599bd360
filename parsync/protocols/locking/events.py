"""The messages and timers of the locking protocol."""

from __future__ import annotations

from typing import ClassVar

from parsync.core.event import Event, Priority
from shared_state.static_frozen import static_frozen
from shared_state.tasks import Int32

KIND = "locking"


class LockingEvent(Event):
    """Base class of these events."""

    __slots__ = ()
    kind: ClassVar[str] = KIND


@static_frozen
class LockRequest(LockingEvent):
    """Agent -> lock table: lock some partitions, whichever are free first.

    Attributes:
        agent: Who asks. It holds no lock, and waits for none.
        epoch: Of the agent's Started; the answer repeats it.
        count: How many partitions.
    """

    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.DECIDE
    agent: int
    epoch: int
    count: int


@static_frozen
class LocksGranted(LockingEvent):
    """Lock table -> agent: no other agent has a lock on these partitions, int32[k] ascending."""

    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.DECIDE
    epoch: int
    partition: Int32


@static_frozen
class LocksReleased(LockingEvent):
    """Agent -> lock table: the agent gives back all that it holds, and asks for nothing."""

    number: ClassVar[int] = 3
    priority: ClassVar[Priority] = Priority.COMMIT
    agent: int
    epoch: int


@static_frozen
class RetryDue(LockingEvent):
    """Timer of an agent: the pause after round `round` is over."""

    number: ClassVar[int] = 4
    priority: ClassVar[Priority] = Priority.DECIDE
    round: int


EVENTS: tuple[type[Event], ...] = (LockRequest, LocksGranted, LocksReleased, RetryDue)
