"""What becomes of gangs: placed whole, torn, or never placed.

A gang is torn if its tasks started with different commits or only in part, and if any of them was
evicted or lost its machine, also after a whole start. So a gang of which every task runs may still
be a torn one. Gangs belong to the window of their submission.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.job_index import JobIndex
from parsync.metrics.metric import NativeMetric, Scope, TableColumns
from parsync.metrics.quantity import Better, Quantity, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows
from parsync.workload.gangs import NOT_IN_GANG, TaskGangs
from schedulers.interface import ChangeKind

_NOT_SEEN = -1
_NEVER = np.iinfo(np.int64).max
_NO_GANGS = TaskGangs(
    np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
)


class GangFigures(Figures):
    """The gangs with two or more arriving tasks: every submitted one is whole, torn or unplaced.
    All are None where the workload has no gangs. gang_wait_max_us is over the gangs of which every
    task was placed; what left the queue unplaced has no wait."""

    gangs: Count | None = quantity(
        "Gangs submitted",
        Unit.COUNT,
        Better.NEITHER,
        "Gangs of two or more tasks, which are of use only together.",
    )
    gangs_whole: Count | None = quantity(
        "Gangs placed whole",
        Unit.COUNT,
        Better.HIGHER,
        "All tasks started with one commit, and none was evicted or lost its machine.",
    )
    gangs_torn: Count | None = quantity(
        "Gangs torn",
        Unit.COUNT,
        Better.LOWER,
        "Tasks started with different commits or only in part, or some were evicted or lost their "
        "machine.",
        headline=True,
        column_label="Torn",
    )
    gangs_unplaced: Count | None = quantity(
        "Gangs never placed",
        Unit.COUNT,
        Better.LOWER,
        "No task of the gang ever started.",
    )
    gang_wait_max_us: Number | None = quantity(
        "Longest wait of a gang",
        Unit.DURATION,
        Better.LOWER,
        "From the submission of a gang to the commit of its last task; “≥”: gangs that "
        "still waited count until the run was last observed.",
    )


class _Gangs(NamedTuple):
    """The submitted gangs of a scope: bool[gangs] each, by their places."""

    submitted: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    unplaced: NDArray[np.bool_]
    complete: NDArray[np.bool_]  # every task was placed
    waiting: NDArray[np.bool_]  # some task was not, and none has left the queue


class GangMetric(NativeMetric):
    """First starts and losses of the tasks of each gang."""

    kind = "gangs"
    description = "What becomes of gangs: placed whole, torn, or never placed."
    figures_model = GangFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "job", "submit_us"),
        "tasks": ("task", "commit_us", "start_us", "first"),
        "ends": ("task", "change"),
        "unplaceable": ("task",),
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        known = run.gangs is not None and run.jobs is not None
        self._gangs = run.gangs if known and run.gangs is not None else _NO_GANGS
        self._jobs = run.jobs if known and run.jobs is not None else JobIndex(np.zeros(0, np.int64))
        gangs, jobs = len(self._gangs), len(self._jobs)
        self._agent = np.full(jobs, _NOT_SEEN, np.int32)
        self._submitted_us = np.full(jobs, _NOT_SEEN, np.int64)  # the last batch of each job
        # of the first commits of each gang's tasks
        self._started = np.zeros(gangs, np.int64)
        self._first_start_us = np.full(gangs, _NEVER, np.int64)
        self._last_start_us = np.full(gangs, _NOT_SEEN, np.int64)
        self._commit_us = np.full(gangs, _NOT_SEEN, np.int64)
        # whether a task was evicted or lost its machine, and whether one left the queue unplaced
        self._lost = np.zeros(gangs, np.bool_)
        self._left = np.zeros(gangs, np.bool_)

    def add_up(self, rows: Rows) -> None:
        if not len(self._gangs):
            return
        if rows.table == "submissions":
            job = rows["job"].place_among(self._jobs.ids)
            rows.store(self._agent, (job,), rows["agent"])
            rows.largest(self._submitted_us, (job,), rows["submit_us"])
            return
        gang = rows.take(self._gangs.place, rows["task"], "task")
        rows = rows.where(gang != NOT_IN_GANG)
        if rows.table == "tasks":
            firsts, start_us = rows.first_commits, rows["start_us"]
            firsts.add(self._started, (gang,))
            firsts.smallest(self._first_start_us, (gang,), start_us)
            firsts.largest(self._last_start_us, (gang,), start_us)
            firsts.largest(self._commit_us, (gang,), rows["commit_us"])
        elif rows.table == "ends":
            lost = rows["change"].is_one_of((ChangeKind.EVICTED, ChangeKind.LOST))
            rows.where(lost).store(self._lost, (gang,), 1)
        else:
            rows.store(self._left, (gang,), 1)

    def merge(self, other: GangMetric) -> None:
        np.maximum(self._agent, other._agent, out=self._agent)
        np.maximum(self._submitted_us, other._submitted_us, out=self._submitted_us)
        self._started += other._started
        np.minimum(self._first_start_us, other._first_start_us, out=self._first_start_us)
        np.maximum(self._last_start_us, other._last_start_us, out=self._last_start_us)
        np.maximum(self._commit_us, other._commit_us, out=self._commit_us)
        self._lost |= other._lost
        self._left |= other._left

    def run_quantities(self) -> list[Quantity]:
        return self.quantities() if len(self._gangs) else []

    def figures(self, scope: Scope) -> GangFigures:
        if not len(self._gangs):
            return GangFigures(**dict.fromkeys(GangFigures.model_fields))
        found = self._within(scope)
        submitted, whole = np.count_nonzero(found.submitted), np.count_nonzero(found.whole)
        unplaced = np.count_nonzero(found.unplaced)
        waits_us = (self._commit_us - self._gangs.submit_us)[found.complete]
        return GangFigures(
            gangs=int(submitted),
            gangs_whole=int(whole),
            gangs_torn=int(submitted - whole - unplaced),
            gangs_unplaced=int(unplaced),
            gang_wait_max_us=float(waits_us.max()) if len(waits_us) else None,
        )

    def lower_bounds(self, scope: Scope, figures: Any) -> Mapping[str, float | None]:
        if not len(self._gangs):
            return {}
        found = self._within(scope)
        if not found.waiting.any():
            return {}
        until_us = np.where(found.waiting, scope.last_us, self._commit_us)
        waits_us = (until_us - self._gangs.submit_us)[found.waiting | found.complete]
        return {"gang_wait_max_us": float(waits_us.max())}

    def _within(self, scope: Scope) -> _Gangs:
        gangs = self._gangs
        job = self._jobs.places(gangs.job)
        submitted = gangs.submit_us <= self._submitted_us[job]
        submitted &= np.isin(self._agent[job], scope.agents)
        submitted &= np.isin(self.run.slot_of(gangs.submit_us), scope.slots)
        complete = submitted & (self._started == gangs.size)
        at_once = self._first_start_us == self._last_start_us
        return _Gangs(
            submitted=submitted,
            whole=complete & at_once & ~self._lost,
            unplaced=submitted & (self._started == 0),
            complete=complete,
            waiting=submitted & ~complete & ~self._left,
        )
