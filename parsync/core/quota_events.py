"""The events of quotas: a timer of the coordinator, and its messages from and to others."""

from __future__ import annotations

from typing import ClassVar

from parsync.core.event import CoreEvent, Priority
from shared_state.static_frozen import static_frozen
from shared_state.tasks import Int64


@static_frozen
class QuotaRoundDue(CoreEvent):
    """Timer of the coordinator: the shares of the quota groups are to be computed anew, for the
    `round`-th time."""

    number: ClassVar[int] = 21
    priority: ClassVar[Priority] = Priority.FREE
    round: int


@static_frozen
class QuotaRequest(CoreEvent):
    """Coordinator -> agent: what do your tasks hold, and what do they want?"""

    number: ClassVar[int] = 22
    priority: ClassVar[Priority] = Priority.SYNC
    round: int


@static_frozen
class QuotaReport(CoreEvent):
    """Agent -> coordinator: the answer to a QuotaRequest, by quota group and resource.

    Attributes:
        held: int64[G, R], of tasks that run, are being committed or are being decided on.
        waiting: int64[G, R], of its other tasks.
    """

    number: ClassVar[int] = 23
    priority: ClassVar[Priority] = Priority.SYNC
    agent: int
    round: int
    held: Int64
    waiting: Int64


@static_frozen
class QuotaGrant(CoreEvent):
    """Coordinator -> agent: what its tasks may hold, by quota group and resource.

    Attributes:
        amount: int64[G, R], up to which tasks may hold resources from now on.
        reclaim: int64[G, R], what the agent is to give back by ending running tasks.
    """

    number: ClassVar[int] = 24
    priority: ClassVar[Priority] = Priority.SYNC
    round: int
    amount: Int64
    reclaim: Int64


@static_frozen
class QuotaShares(CoreEvent):
    """Coordinator -> master: the shares of the quota groups, to be recorded.

    Attributes:
        wanted: int64[G, R], what all agents' tasks held or waited for.
        share: int64[G, R], each group's fair share of that.
        limit: int64[G, R], what the group's agents were granted together.
    """

    number: ClassVar[int] = 25
    priority: ClassVar[Priority] = Priority.SYNC
    round: int
    wanted: Int64
    share: Int64
    limit: Int64
