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

from typing import Self

import numpy as np

from parsync.metrics import _native
from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.workload.workload import Workload
from schedulers.objective import native_columns
from shared_state.observed_cell import NativeObserver


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


class ConflictCauseWatch(NativeObserver):
    """Observes a cell and counts the causes of conflicts.

    It counts transactions that are decided after the first settle_us of a phase, and before the
    phase's end.
    """

    native: _native.ConflictCauses

    def __init__(self, workload: Workload, settle_us: int) -> None:
        causes = _native.ConflictCauses(
            workload.cell.machines,
            np.ascontiguousarray(workload.tasks.preference, np.int32),
            native_columns(workload.catalog, workload.cell),
            [phase.start_us + settle_us for phase in workload.phases],
            [phase.end_us for phase in workload.phases],
        )
        super().__init__(causes)

    def causes(self) -> ConflictCauses:
        """The shares so far."""
        return ConflictCauses.of(*self.native.counts())
