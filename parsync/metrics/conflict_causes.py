"""Why claims conflict: the state they were planned on was old, tasks want the same machines, or two
transactions came at the same time.

A claim that is rejected as stale, full or evicted has one cause, the first of these that applies.
Its rival is the other scheduler that last claimed the machine (CommitResult.rival).

1. Same tick: the rival's claim was decided at the same microsecond of the cell. No synchronisation
   could have shown it.
2. Contention for quality: the rejected task and the rival's both prefer the machine.
3. Staleness: everything else. The machine was one of many that would have done, and was taken after
   the state that the claim was planned on.

Section 6.2 of ParSync explains its conflicts by the last two, without counting them apart.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Self

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.workload.workload import Workload
from schedulers.objective import placement_cost
from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, Transaction, is_conflict

_NOBODY = -1
_LONG_AGO_US = -1  # when the initial tasks were placed


class ConflictCauses(Figures):
    """Shares of the conflicts, which add up to 1. None without conflicts, or if not observed."""

    same_tick_conflict_share: Number | None = quantity(
        "Conflicts in the same tick",
        Unit.SHARE,
        Better.NEITHER,
        "Of all conflicts, those with a claim that was decided at the same microsecond.",
    )
    quality_conflict_share: Number | None = quantity(
        "Conflicts over preferred machines",
        Unit.SHARE,
        Better.NEITHER,
        "Of all conflicts, those of two tasks that both prefer the machine, in different ticks.",
    )
    stale_conflict_share: Number | None = quantity(
        "Conflicts by staleness alone",
        Unit.SHARE,
        Better.NEITHER,
        "Of all conflicts, the others: the room was taken after the state that was planned on.",
    )

    @classmethod
    def of(cls, same_tick: int = 0, quality: int = 0, stale: int = 0) -> Self:
        """The shares of so many conflicts by cause."""
        conflicts = same_tick + quality + stale
        return cls(
            same_tick_conflict_share=ratio(same_tick, conflicts),
            quality_conflict_share=ratio(quality, conflicts),
            stale_conflict_share=ratio(stale, conflicts),
        )


class ConflictCauseWatch(CellObserver):
    """Observes a cell and counts the causes of conflicts.

    It counts transactions that are decided after the first settle_us of a phase, and before the
    phase's end.
    """

    def __init__(self, workload: Workload, settle_us: int) -> None:
        self._workload = workload
        self._starts_us = [phase.start_us + settle_us for phase in workload.phases]
        self._ends_us = [phase.end_us for phase in workload.phases]
        machines = workload.cell.machines
        # of each machine's last claim, and of the last one that another scheduler made before it
        self._scheduler, self._before_scheduler = np.full((2, machines), _NOBODY, np.int32)
        self._task, self._before_task = np.full((2, machines), _NOBODY, np.int64)
        self._at_us, self._before_us = np.zeros((2, machines), np.int64)
        self._same_tick = self._quality = self._stale = 0

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        rejected = result.reason != 0
        if rejected.any():
            if self._counts(now_us):
                conflict = is_conflict(result.reason)
                self._count(transaction, conflict, result.rival, now_us)
            accepted = ~rejected
            self._claimed(
                transaction.scheduler,
                transaction.machine[accepted],
                transaction.task[accepted],
                now_us,
            )
        else:
            self._claimed(transaction.scheduler, transaction.machine, transaction.task, now_us)

    def on_load(
        self,
        cell: Cell,
        task: Int64,
        machine: Int32,
        request: Int64,
        owner: Int32,
        allocation: Int64,
    ) -> None:
        self._scheduler[machine] = owner
        self._task[machine] = task
        self._at_us[machine] = _LONG_AGO_US

    def causes(self) -> ConflictCauses:
        """The shares so far."""
        return ConflictCauses.of(self._same_tick, self._quality, self._stale)

    def _counts(self, now_us: int) -> bool:
        phase = bisect_right(self._starts_us, now_us) - 1
        return phase >= 0 and now_us < self._ends_us[phase]

    def _count(
        self, transaction: Transaction, conflict: NDArray[np.bool_], rival: Int32, now_us: int
    ) -> None:
        known = np.flatnonzero(conflict & (rival != _NOBODY))
        is_last = self._scheduler[transaction.machine[known]] == rival[known]
        is_before = self._before_scheduler[transaction.machine[known]] == rival[known]
        known, is_last = known[is_last | is_before], is_last[is_last | is_before]
        machine, task = transaction.machine[known], transaction.task[known]
        at_us = np.where(is_last, self._at_us[machine], self._before_us[machine])
        rival_task = np.where(is_last, self._task[machine], self._before_task[machine])
        same_tick = at_us == now_us
        both = ~same_tick
        both[both] = self._prefers(task[both], machine[both])
        both[both] = self._prefers(rival_task[both], machine[both])
        self._same_tick += int(np.count_nonzero(same_tick))
        self._quality += int(np.count_nonzero(both))
        self._stale += int(np.count_nonzero(conflict)) - int(np.count_nonzero(same_tick | both))

    def _claimed(self, scheduler: int, machine: Int32, task: Int64, now_us: int) -> None:
        others = machine[self._scheduler[machine] != scheduler]
        self._before_scheduler[others] = self._scheduler[others]
        self._before_task[others] = self._task[others]
        self._before_us[others] = self._at_us[others]
        self._scheduler[machine] = scheduler
        self._task[machine] = task
        self._at_us[machine] = now_us

    def _prefers(self, task: Int64, machine: Int32) -> NDArray[np.bool_]:
        workload = self._workload
        preference = workload.tasks.preference[task]
        _, preferred = placement_cost(workload.catalog, workload.cell.rack, preference, machine)
        return preferred
