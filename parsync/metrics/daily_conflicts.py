"""Conflicts from day to day (Omega: Schwarzkopf et al., EuroSys 2013, section 4: the conflict
fraction is the median of the daily values, its error bars the median absolute deviation)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.days import Days
from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import NativeMetric, Scope, TableColumns
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import ColumnValue, Rows
from parsync.metrics.tables import NOT_KNOWN
from shared_state.tasks import Int64

_NAMES = ("", "batch_", "service_")
_FROM = "Median absolute deviation from the median."


def _median(of: str, what: str) -> Any:
    """Declare the median of the daily values of one kind of attempt."""
    return quantity(
        f"Daily conflict fraction{of}",
        Unit.PLAIN,
        Better.LOWER,
        f"Median over the days of {what} with a conflict, over those without one (Omega); of runs "
        "shorter than two days, over tenths of the run.",
    )


def _deviation(of: str) -> Any:
    return quantity(
        f"Deviation of the daily conflict fraction{of}", Unit.PLAIN, Better.NEITHER, _FROM
    )


class DailyConflictFigures(Figures):
    """Conflict fractions day by day: of transactions by the day of the answer, and of scheduling
    attempts of batch and service jobs by the day on which they began. Runs of less than two days
    have tenths in place of days. Days without transactions do not count. None if no transaction
    succeeded on half of the days. Figures by class are None where the run has no service jobs."""

    conflict_fraction_median: Number | None = _median("", "transactions")
    conflict_fraction_mad: Number | None = _deviation("")
    batch_conflict_fraction_median: Number | None = _median(
        " of batch jobs", "attempts of batch jobs"
    )
    batch_conflict_fraction_mad: Number | None = _deviation(" of batch jobs")
    service_conflict_fraction_median: Number | None = _median(
        " of service jobs", "attempts of service jobs"
    )
    service_conflict_fraction_mad: Number | None = _deviation(" of service jobs")


class DailyConflictMetric(NativeMetric):
    """Transactions and attempts with claims, and those of them with a conflict, by day."""

    kind = "daily_conflicts"
    description = "How often transactions conflict from day to day."
    figures_model = DailyConflictFigures
    reads: ClassVar[TableColumns] = {
        "commits": ("agent", "commit_us", "claims", "stale", "full", "evicted"),
        "job_attempts": ("agent", "job", "start_us", "claims", "conflicts"),
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self._days = Days(run)
        shape = (run.agents, run.slots, self._days.count)
        self._tried = {name: np.zeros(shape, np.int64) for name in _NAMES}
        self._failed = {name: np.zeros(shape, np.int64) for name in _NAMES}
        self._is_service: NDArray[np.bool_] | None = None  # by the place of the job
        if run.jobs is not None and run.job_of is not None and run.services is not None:
            of_job = run.jobs.having(run.services, run.job_of)
            self._is_service = of_job if of_job.any() else None

    def add_up(self, rows: Rows) -> None:
        if rows.table == "commits":
            failed = (rows["stale"] > 0) | (rows["full"] > 0) | (rows["evicted"] > 0)
            self._add("", rows, "commit_us", failed)
            return
        if self._is_service is None or self.run.jobs is None:
            return
        job = rows["job"].place_among(self.run.jobs.ids)
        rows = rows.where(job >= 0)
        is_service = rows.take(self._is_service, job, "job") == 1
        for name, mine in (("batch_", ~is_service), ("service_", is_service)):
            self._add(name, rows.where(mine), "start_us", rows["conflicts"] > 0)

    def _add(self, name: str, rows: Rows, time: str, failed: ColumnValue) -> None:
        """Count transactions on the days of their times."""
        # times are not known of transactions that were lost with a killed scheduler
        sent = rows.where((rows["claims"] > 0) & (rows[time] != NOT_KNOWN))
        day = (rows[time] // self._days.length_us).clip(0, self._days.count - 1)
        place = rows["agent"], rows.slot(time), day
        sent.add(self._tried[name], place)
        sent.where(failed).add(self._failed[name], place)

    def merge(self, other: DailyConflictMetric) -> None:
        for name in _NAMES:
            self._tried[name] += other._tried[name]
            self._failed[name] += other._failed[name]

    def figures(self, scope: Scope) -> DailyConflictFigures:
        whole = self._days.is_whole(self._days.counted_us(scope.slots))
        chosen = np.ix_(np.array(scope.agents), np.array(scope.slots), np.flatnonzero(whole))
        found: dict[str, float | None] = {}
        for name in _NAMES:
            tried = self._tried[name][chosen].sum(axis=(0, 1))
            failed = self._failed[name][chosen].sum(axis=(0, 1))
            median, mad = _median_and_deviation(tried, failed)
            found[f"{name}conflict_fraction_median"] = median
            found[f"{name}conflict_fraction_mad"] = mad
        return DailyConflictFigures(**found)


def _median_and_deviation(tried: Int64, failed: Int64) -> tuple[float | None, float | None]:
    """The median of failed over successful transactions, int64[days] each, and the median absolute
    deviation. A day on which all fail has an infinite fraction."""
    tried, failed = tried[tried > 0], failed[tried > 0]
    if not len(tried):
        return None, None
    succeeded = tried - failed
    fraction = np.divide(failed, succeeded, out=np.full(len(tried), np.inf), where=succeeded > 0)
    median = float(np.median(fraction))
    if not np.isfinite(median):
        return None, None
    mad = float(np.median(np.abs(fraction - median)))
    return median, mad if np.isfinite(mad) else None
