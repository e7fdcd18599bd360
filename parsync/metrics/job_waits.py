"""How long jobs wait for their scheduler (Omega's job wait time: Schwarzkopf et al., EuroSys 2013,
section 4): until their first scheduling attempt, and until the one that places their last task.

Decision times of the attempt itself are not part of a wait, those of earlier attempts are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from parsync.metrics.figures import Figures, Number
from parsync.metrics.job_arrivals import JobArrivals
from parsync.metrics.job_index import JobIndex
from parsync.metrics.metric import NativeMetric, Scope, TableColumns, is_incomplete
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows
from parsync.metrics.tables import NOT_KNOWN
from shared_state.tasks import Int64

_NEVER = np.iinfo(np.int64).max
_TAIL_PERCENT = 90


def _wait(label: str, description: str) -> Any:
    """Declare a wait, of which the 90th percentile is over all jobs submitted."""
    return quantity(label, Unit.DURATION, Better.LOWER, description)


def _tail(label: str, description: str) -> Any:
    return quantity(label, Unit.DURATION, Better.LOWER, description, unbounded=True)


_FIRST = "From the submission of a job to the start of its first scheduling attempt"
_FULL = "From the submission of a job to the start of the attempt that placed its last task"
_ALL = "Over all submitted jobs."


class JobWaitFigures(Figures):
    """The waits of jobs, by the window of the job's submission. Means are over the jobs that got
    there, percentiles over all submitted jobs. All are None where the protocol has no decision
    rounds, and those of one class where the run has no services."""

    job_wait_mean_us: Number | None = _wait("Job wait", f"{_FIRST} (Omega).")
    job_wait_p90_us: Number | None = _tail("90th percentile of the job wait", _ALL)
    job_wait_batch_mean_us: Number | None = _wait("Job wait of batch jobs", f"{_FIRST}.")
    job_wait_batch_p90_us: Number | None = _tail("90th percentile, batch jobs", _ALL)
    job_wait_service_mean_us: Number | None = _wait("Job wait of service jobs", f"{_FIRST}.")
    job_wait_service_p90_us: Number | None = _tail("90th percentile, service jobs", _ALL)
    job_wait_full_mean_us: Number | None = _wait("Job wait, fully scheduled", f"{_FULL}.")
    job_wait_full_p90_us: Number | None = _tail("90th percentile, fully scheduled", _ALL)
    job_wait_full_batch_mean_us: Number | None = _wait(
        "Job wait of batch jobs, fully scheduled", f"{_FULL}."
    )
    job_wait_full_batch_p90_us: Number | None = _tail(
        "90th percentile, batch jobs, fully scheduled", _ALL
    )
    job_wait_full_service_mean_us: Number | None = _wait(
        "Job wait of service jobs, fully scheduled", f"{_FULL}."
    )
    job_wait_full_service_p90_us: Number | None = _tail(
        "90th percentile, service jobs, fully scheduled", _ALL
    )


class _Waits(NamedTuple):
    """The waits of j jobs.

    Attributes:
        wait_us: int64[j]: first, ascending, of the jobs that got there; then of the others, charged
            until the run was last seen.
        reached: How many got there.
    """

    wait_us: Int64
    reached: int

    @property
    def mean_us(self) -> float | None:
        return float(self.wait_us[: self.reached].mean()) if self.reached else None

    @property
    def tail_us(self) -> float | None:
        rank = self._tail_rank
        return float(self.wait_us[rank]) if len(self.wait_us) and rank < self.reached else None

    @property
    def bounds_us(self) -> tuple[float, float]:
        """The mean and the percentile with all jobs in them: lower bounds."""
        charged = np.sort(self.wait_us)
        return float(charged.mean()), float(charged[self._tail_rank])

    @property
    def _tail_rank(self) -> int:
        """The place of the smallest wait that so many per cent of all jobs do not exceed."""
        return -(-len(self.wait_us) * _TAIL_PERCENT // 100) - 1


class JobWaitMetric(NativeMetric):
    """The first attempt of each job, and the one that completed it."""

    kind = "job_waits"
    description = "How long jobs wait for their scheduler's attention."
    figures_model = JobWaitFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "job", "submit_us", "tasks"),
        "job_attempts": ("job", "start_us", "placed"),
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        index = JobIndex(np.zeros(0, np.int64)) if run.jobs is None else run.jobs
        jobs = len(index)
        self._index = index
        self._arrivals = JobArrivals(index)
        self._is_service = np.zeros(jobs, np.bool_)
        if run.job_of is not None and run.services is not None:
            self._is_service = index.having(run.services, run.job_of)
        self._unplaced = np.zeros(jobs, np.int64)  # tasks submitted less those placed
        self._first_us = np.full(jobs, _NEVER, np.int64)  # the start of the first attempt
        self._last_us = np.zeros(jobs, np.int64)  # that of the last one that placed a task
        # an attempt was lost with a killed scheduler, and so were the job's waits
        self._lost = np.zeros(jobs, np.bool_)

    def add_up(self, rows: Rows) -> None:
        if not len(self._index):
            return
        job = rows["job"].place_among(self._index.ids)
        if rows.table == "submissions":
            self._arrivals.add_up(rows)
            rows.add(self._unplaced, (job,), rows["tasks"])
            return
        ours = rows.where(job >= 0)  # not those evicted from before the run
        start_us, placed = rows["start_us"], rows["placed"]
        known = start_us != NOT_KNOWN
        ours.where(~known).store(self._lost, (job,), 1)
        ours.where(known).smallest(self._first_us, (job,), start_us)
        ours.add(self._unplaced, (job,), -placed)
        ours.where(placed > 0).largest(self._last_us, (job,), start_us)

    def merge(self, other: JobWaitMetric) -> None:
        self._arrivals.merge(other._arrivals)
        self._unplaced += other._unplaced
        self._lost |= other._lost
        np.minimum(self._first_us, other._first_us, out=self._first_us)
        np.maximum(self._last_us, other._last_us, out=self._last_us)

    def figures(self, scope: Scope) -> JobWaitFigures:
        found: dict[str, float | None] = dict.fromkeys(JobWaitFigures.model_fields)
        for name, waits in self._waits(scope):
            found[f"{name}_mean_us"] = waits.mean_us
            found[f"{name}_p90_us"] = waits.tail_us
        return JobWaitFigures(**found)

    def lower_bounds(self, scope: Scope, figures: JobWaitFigures) -> Mapping[str, float | None]:
        bounds: dict[str, float | None] = {}
        for name, waits in self._waits(scope):
            if is_incomplete(len(waits.wait_us) - waits.reached, len(waits.wait_us)):
                bounds[f"{name}_mean_us"], bounds[f"{name}_p90_us"] = waits.bounds_us
        return bounds

    def _waits(self, scope: Scope) -> Iterator[tuple[str, _Waits]]:
        """The waits of the scope by the name of their figures."""
        if not (self._first_us < _NEVER).any():
            return
        submit_us = self._arrivals.submit_us
        inside = np.isin(self._arrivals.agent, scope.agents)
        inside &= np.isin(self._arrivals.slot, scope.slots) & ~self._lost
        classes = {"": inside}
        if self._is_service.any():
            classes |= {
                "_batch": inside & ~self._is_service,
                "_service": inside & self._is_service,
            }
        for name, start_us, reached in (
            ("job_wait", self._first_us, self._first_us < _NEVER),
            ("job_wait_full", self._last_us, self._unplaced == 0),
        ):
            wait_us = np.where(reached, start_us, scope.last_us) - submit_us
            for of_class, chosen in classes.items():
                got, waiting = wait_us[chosen & reached], wait_us[chosen & ~reached]
                every = np.concatenate([np.sort(got), np.maximum(waiting, 0)])
                yield f"{name}{of_class}", _Waits(every, len(got))
