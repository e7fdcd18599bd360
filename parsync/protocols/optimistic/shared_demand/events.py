"""The messages by which schedulers share demand: what they were offered, for their slot prices.

All have the same priority, so that those of one agent arrive in the order in which it sent them,
also within one instant.
"""

from __future__ import annotations

from typing import ClassVar

from parsync.core.event import Event, Priority
from parsync.protocols.optimistic.events import OptimisticEvent
from shared_state.static_frozen import static_frozen
from shared_state.tasks import Int32, Int64


@static_frozen
class DemandReport(OptimisticEvent):
    """Agent -> demand ledger: tasks that its scheduler was offered for the first time.

    Attributes:
        task: int64[n], ids.
    """

    number: ClassVar[int] = 5
    priority: ClassVar[Priority] = Priority.SYNC
    task: Int64


@static_frozen
class DemandRequest(OptimisticEvent):
    """Agent -> demand ledger: what has changed since a version?

    Attributes:
        version: Of the last reply; 0: nothing is known.
    """

    number: ClassVar[int] = 6
    priority: ClassVar[Priority] = Priority.SYNC
    agent: int
    version: int


@static_frozen
class DemandReply(OptimisticEvent):
    """Demand ledger -> agent: the sums that have changed, the longest unknown first.

    A sum is over all reports since the start of the run. So an agent that receives one twice, or
    misses one, is right again with the next.

    Attributes:
        version: What the agent is to ask with the next time.
        waiting: How many further sums have changed, which did not find room in this reply.
        preference: int32[n], sets.
        tasks: int64[n], tasks of each set that were reported.
        squares: int64[n], the sum over reports of the tasks of each set, squared.
    """

    number: ClassVar[int] = 7
    priority: ClassVar[Priority] = Priority.SYNC
    version: int
    waiting: int
    preference: Int32
    tasks: Int64
    squares: Int64


EVENTS: tuple[type[Event], ...] = (DemandReport, DemandRequest, DemandReply)
