"""The demand ledger: adds up, beside the master, what all schedulers that share demand were
offered.

It counts tasks by preference set, each task once: whoever reports it, and however often. So the
sums do not depend on the order of reports. After the restart of a scheduler host its agents are
offered their waiting tasks anew, and report them again: that adds nothing.

Every report gives each sum that it concerns a new number, its **version**. An agent asks for the
sums with a higher version than the last that it knows. At most SETS_PER_REPLY fit a reply; the
others come with the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.protocols import _native
from parsync.protocols.base import BaseCellSide
from parsync.protocols.optimistic.shared_demand.events import (
    DemandReply,
    DemandReport,
    DemandRequest,
)
from parsync.protocols.spec import Environment
from shared_state.cell import Cell
from shared_state.tasks import Int64

BYTES_PER_SET = 4 + 8 + 8  # of a reply; packing makes most columns shorter
SETS_PER_REPLY = 100_000 // BYTES_PER_SET


class DemandLedger(BaseCellSide):
    """Sums of reported tasks, by preference set.

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
