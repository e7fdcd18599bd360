"""The events of the protocol of offers: messages between agents and the allocator, and its timers.

An agent is what Mesos calls a framework. An offer is room on one machine for one agent.
"""

from __future__ import annotations

from typing import ClassVar

from parsync.core.event import Event, Priority, static_frozen
from shared_state.tasks import Int32, Int64

KIND = "offers"


class OffersEvent(Event):
    """Base class of these events."""

    __slots__ = ()
    kind: ClassVar[str] = KIND


@static_frozen
class Subscribe(OffersEvent):
    """Agent -> allocator: the agent begins, or begins again.

    Attributes:
        agent: Who asks for offers.
        epoch: Of the agent's Started. Offers repeat it; those to an earlier epoch end.
        suppressed: Whether it wants none yet.
    """

    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.COMMIT
    agent: int
    epoch: int
    suppressed: bool


@static_frozen
class Suppress(OffersEvent):
    """Agent -> allocator: the agent wants no offers until it revives them."""

    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.COMMIT
    agent: int
    epoch: int


@static_frozen
class Revive(OffersEvent):
    """Agent -> allocator: the agent wants offers again, also of what it has declined."""

    number: ClassVar[int] = 3
    priority: ClassVar[Priority] = Priority.COMMIT
    agent: int
    epoch: int


@static_frozen
class Offers(OffersEvent):
    """Allocator -> agent: it may use this room.

    Attributes:
        epoch: Of the agent that they are for.
        made_us: When the allocator made them.
        offer: int64[n], their ids. Where offers hold room they are those of the cell's holds.
        machine: int32[n].
        amount: int64[n, R], of each resource.
    """

    number: ClassVar[int] = 4
    priority: ClassVar[Priority] = Priority.SYNC
    epoch: int
    made_us: int
    offer: Int64
    machine: Int32
    amount: Int64


@static_frozen
class OffersAnswered(OffersEvent):
    """Agent -> allocator: what the agent made of offers.

    Attributes:
        agent, epoch: Who, and of which start.
        accepted: int64[n], those that its claims of this instant rest on. Where offers hold room
            the cell tells the allocator of these, and the column is empty.
        declined: int64[m], those that it does not want.
        accepted_amount: int64[n, R], what it claims of each accepted one.
    """

    number: ClassVar[int] = 5
    priority: ClassVar[Priority] = Priority.COMMIT
    agent: int
    epoch: int
    accepted: Int64
    accepted_amount: Int64
    declined: Int64


@static_frozen
class OffersRescinded(OffersEvent):
    """Allocator -> agent: these offers, int64[n], have ended: their machine was lost, or they had
    no answer for too long."""

    number: ClassVar[int] = 6
    priority: ClassVar[Priority] = Priority.SYNC
    epoch: int
    offer: Int64


@static_frozen
class TasksWanted(OffersEvent):
    """Agent -> allocator, where it offers room for one task at a time: what the agent wants room
    for, instead of what it said before.

    Attributes:
        agent, epoch: Who, and of which start.
        request: int64[k, R], the sizes of its tasks, in the order in which it wants room.
        tasks: int64[k], how many of each it has waiting.
    """

    number: ClassVar[int] = 10
    priority: ClassVar[Priority] = Priority.COMMIT
    agent: int
    epoch: int
    request: Int64
    tasks: Int64


@static_frozen
class IntervalDue(OffersEvent):
    """Timer of the allocator: it looks at all machines."""

    number: ClassVar[int] = 7
    priority: ClassVar[Priority] = Priority.DECIDE


@static_frozen
class AllocationDue(OffersEvent):
    """Timer of the allocator: the allocation run that was asked for takes place."""

    number: ClassVar[int] = 8
    priority: ClassVar[Priority] = Priority.DECIDE


@static_frozen
class ExpiryDue(OffersEvent):
    """Timer of the allocator: the oldest offers have had no answer for too long."""

    number: ClassVar[int] = 9
    priority: ClassVar[Priority] = Priority.DECIDE


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
