"""Schedulers that share demand: each tells the others what it was offered, for their slot prices.

Agents report to a ledger beside the master, and ask it for the sums of all. The messages are
native: parsync/protocols/native/optimistic_events.hpp says what each is for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.metrics.record import Measurements, Record
from parsync.metrics.tables import Tables
from parsync.protocols import _native
from parsync.protocols.base import BaseCellSide
from parsync.protocols.optimistic.events import DemandReply, DemandReport, DemandRequest
from parsync.protocols.spec import AgentEnvironment, Environment
from parsync.schema import Column, TableSchema
from schedulers.checked import CheckedScheduler
from schedulers.prices.interface import DemandCounts
from shared_state._native import pack_columns
from shared_state.cell import Cell
from shared_state.tasks import Int64

BYTES_PER_SET = 4 + 8 + 8  # of a reply; packing makes most columns shorter
SETS_PER_REPLY = 100_000 // BYTES_PER_SET
DEMAND_UPDATES = "demand_updates"

TABLES: Tables = {
    DEMAND_UPDATES: TableSchema(
        "One row per update of the demand that schedulers share: what an agent learnt of the tasks "
        "that others were offered. Empty unless schedulers share demand.",
        {
            "agent": Column("int32", "id", "the scheduler, counted over the groups of the arm"),
            "at_us": Column("int64", "us", "when"),
            "sets": Column("int32", "sets", "preference sets whose sums had changed"),
            "waiting": Column("int32", "sets", "further ones, that come with the next update"),
            "tasks": Column(
                "int64",
                "tasks",
                "of other schedulers, that were new; below 0: of its own, that had counted twice",
            ),
            "bytes": Column("int64", "bytes", "size of the sums in the message"),
        },
    )
}


class DemandLedger(BaseCellSide):
    """Adds up what all schedulers that share demand were offered, by preference set.

    It counts each task once: whoever reports it, and however often. So the sums do not depend on
    the order of reports. After the restart of a scheduler host its agents are offered their waiting
    tasks anew, and report them again: that adds nothing.

    Every report gives each sum that it concerns a new number, its **version**. An agent asks for
    the sums with a higher version than the last that it knows. At most SETS_PER_REPLY fit a reply;
    the others come with the next.

    Its state is (last version, whether each task was reported as bits, tasks, squares and version
    of each set).
    """

    state: tuple[int, NDArray[np.uint8], Int64, Int64, Int64]

    def __init__(self, environment: Environment, cell: Cell) -> None:
        super().__init__(environment, cell)
        sets = environment.catalog.sets
        self._preference = environment.table.preference
        self.state = (
            0,
            np.zeros((len(environment.table) + 7) // 8, np.uint8),
            np.zeros(sets, np.int64),
            np.zeros(sets, np.int64),
            np.zeros(sets, np.int64),
        )

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Take in a report, or answer a request."""
        match event:
            case DemandReport(task):
                self._add(task)
                return []
            case DemandRequest(agent, version):
                return [Send(agent, self._since(version))]
        raise TypeError(f"demand ledger cannot handle {type(event).__name__}")

    def _add(self, task: Int64) -> None:
        last, reported, tasks, squares, version = self.state
        last = _native.add_report(self._preference, task, reported, tasks, squares, version, last)
        self.state = last, reported, tasks, squares, version

    def _since(self, known: int) -> DemandReply:
        _, _, tasks, squares, version = self.state
        changed = np.flatnonzero(version > known)
        waiting = max(0, len(changed) - SETS_PER_REPLY)
        sets = changed[np.argsort(version[changed])][:SETS_PER_REPLY]
        upto = int(version[sets[-1]]) if len(sets) else known
        return DemandReply(upto, waiting, sets.astype(np.int32), tasks[sets], squares[sets])


class DemandExchange:
    """An agent's part: it reports what its scheduler was offered, and tells the scheduler what
    others were.

    The scheduler counts its own tasks as soon as it is offered them. The ledger's sums contain
    them, too, once they are reported. So what is new in a sum counts less the own tasks that were
    reported before the request for it.

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
