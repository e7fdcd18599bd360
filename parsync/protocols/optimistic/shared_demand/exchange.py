"""An agent's part in sharing demand: it reports what its scheduler was offered, and tells the
scheduler what others were.

The scheduler counts its own tasks as soon as it is offered them. The ledger's sums contain them,
too, once they are reported. So what is new in a sum counts less the own tasks that were reported
before the request for it.
"""

from __future__ import annotations

import numpy as np

from parsync.core.effects import Effect, Send
from parsync.metrics.record import Measurements, Record
from parsync.protocols import _native
from parsync.protocols.optimistic.shared_demand.events import (
    DemandReply,
    DemandReport,
    DemandRequest,
)
from parsync.protocols.optimistic.shared_demand.tables import DEMAND_UPDATES, TABLES
from parsync.protocols.spec import AgentEnvironment
from schedulers.checked import CheckedScheduler
from schedulers.prices.interface import DemandCounts
from shared_state.packing import pack_columns
from shared_state.tasks import Int64


class NoExchange:
    """Of an agent whose scheduler keeps its demand to itself."""

    def report(self) -> list[Effect]:
        """Report nothing."""
        return []

    def request(self, now_us: int) -> list[Effect]:
        """Ask for nothing."""
        return []

    def on_reply(self, now_us: int, reply: DemandReply) -> None:
        """Refuse a reply, for nothing was asked."""
        raise TypeError("an agent that shares no demand cannot handle DemandReply")

    def flush(self) -> list[Record]:
        """No measurements."""
        return []


class DemandExchange:
    """The demand that one agent shares.

    Args:
        environment: The agent's.
        scheduler: Its scheduler, which has Capability.SHARES_DEMAND.
        gap_us: From one request to the next, unless the last answer left something out. Where
            partitions are synchronised in turn, it would ask once for each otherwise.
    """

    def __init__(
        self, environment: AgentEnvironment, scheduler: CheckedScheduler, gap_us: int
    ) -> None:
        shared = environment.shared
        sets = shared.catalog.sets
        self._agent, self._ledger = environment.index, shared.cell_side
        self._preference = shared.table.preference
        self._scheduler = scheduler
        self._records = Measurements(TABLES)
        self._version = 0
        self._missed_us: int | None = None  # what it asks for at first was offered before this
        self._is_waiting = False  # for a reply
        self._gap_us, self._next_us = gap_us, 0
        self._since_request: list[Int64] = []  # reports
        # by set: what the last replies said, and own tasks reported before the last request that
        # no reply since contained
        self._tasks, self._squares = np.zeros(sets, np.int64), np.zeros(sets, np.int64)
        self._own_tasks, self._own_squares = np.zeros(sets, np.int64), np.zeros(sets, np.int64)

    def report(self) -> list[Effect]:
        """Report what the scheduler was offered since the last report, if it was anything."""
        task = self._scheduler.take_new_demand()
        if not len(task):
            return []
        self._since_request.append(task)
        return [Send(self._ledger, DemandReport(task))]

    def request(self, now_us: int) -> list[Effect]:
        """Ask for what has changed, unless the last answer is still to come, or it is too soon."""
        if self._is_waiting or now_us < self._next_us:
            return []
        self._is_waiting = True
        self._next_us = now_us + self._gap_us
        if self._version == 0 and self._missed_us is None:
            self._missed_us = now_us
        for task in self._since_request:
            _native.add_tasks(self._preference, task, self._own_tasks, self._own_squares)
        self._since_request.clear()
        return [Send(self._ledger, DemandRequest(self._agent, self._version))]

    def on_reply(self, now_us: int, reply: DemandReply) -> None:
        """Tell the scheduler what is new."""
        self._is_waiting = False
        self._version = reply.version
        sets = reply.preference
        tasks = reply.tasks - self._tasks[sets] - self._own_tasks[sets]
        squares = reply.squares - self._squares[sets] - self._own_squares[sets]
        self._tasks[sets], self._squares[sets] = reply.tasks, reply.squares
        self._own_tasks[sets] = self._own_squares[sets] = 0
        new = np.flatnonzero(tasks)
        over_us = 0 if reply.waiting else self._missed_us or 0
        if len(new) or over_us:
            counts = DemandCounts(sets[new], tasks[new], squares[new])
            self._scheduler.learn_demand(counts, over_us)
        if reply.waiting:
            self._next_us = now_us
        else:
            self._missed_us = 0
        if len(sets):
            size = len(pack_columns(sets, reply.tasks, reply.squares))
            self._records.add(
                DEMAND_UPDATES,
                1,
                self._agent,
                now_us,
                len(sets),
                reply.waiting,
                int(tasks.sum()),
                size,
            )

    def flush(self) -> list[Record]:
        """The measurements since the last flush."""
        return self._records.flush()
