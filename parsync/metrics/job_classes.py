"""What batch and service jobs cost their schedulers: decision time and conflicts of scheduling
attempts (Omega's figures show the two classes apart: Schwarzkopf et al., EuroSys 2013, section 4).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.counters import Counters
from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import NativeMetric, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows
from parsync.metrics.tables import NOT_KNOWN

_CLASSES = ("batch", "service")
_COUNTED = ("tried", "failed", "useful_us", "wasted_us")
_BUSY = "Decision time for {} jobs whose attempt met no conflict, per time; more than 100 % if "
_BUSY += "several schedulers share them."
_FAILED = "Scheduling attempts of {} jobs with a conflict, over those with claims and no conflict."


class JobClassFigures(Figures):
    """Scheduling attempts by the class of the job, in the window in which they began. All are None
    where the run has no service jobs, or the protocol no decision rounds."""

    batch_useful_share: Number | None = quantity(
        "Deciding usefully on batch jobs", Unit.SHARE, Better.NEITHER, _BUSY.format("batch")
    )
    batch_wasted_share: Number | None = quantity(
        "Deciding in vain on batch jobs",
        Unit.SHARE,
        Better.LOWER,
        "The same for attempts with a conflict.",
    )
    batch_conflict_fraction: Number | None = quantity(
        "Conflict fraction of batch jobs", Unit.PLAIN, Better.LOWER, _FAILED.format("batch")
    )
    service_useful_share: Number | None = quantity(
        "Deciding usefully on service jobs", Unit.SHARE, Better.NEITHER, _BUSY.format("service")
    )
    service_wasted_share: Number | None = quantity(
        "Deciding in vain on service jobs",
        Unit.SHARE,
        Better.LOWER,
        "The same for attempts with a conflict.",
    )
    service_conflict_fraction: Number | None = quantity(
        "Conflict fraction of service jobs", Unit.PLAIN, Better.LOWER, _FAILED.format("service")
    )


class JobClassMetric(NativeMetric):
    """Counts of scheduling attempts, and their decision times, by class."""

    kind = "job_classes"
    description = "What batch and service jobs cost their schedulers."
    figures_model = JobClassFigures
    reads: ClassVar[TableColumns] = {
        "job_attempts": ("agent", "job", "start_us", "decision_us", "claims", "conflicts"),
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters([f"{name}_{what}" for name in _CLASSES for what in _COUNTED], run)
        self._is_service: NDArray[np.bool_] | None = None  # by the place of the job
        if run.jobs is not None and run.job_of is not None and run.services is not None:
            of_job = run.jobs.having(run.services, run.job_of)
            self._is_service = of_job if of_job.any() else None

    def add_up(self, rows: Rows) -> None:
        if self._is_service is None or self.run.jobs is None:
            return
        job = rows["job"].place_among(self.run.jobs.ids)
        # times are not known of transactions that were lost with a killed scheduler
        rows = rows.where((job >= 0) & (rows["start_us"] != NOT_KNOWN))
        place = rows["agent"], rows.slot("start_us")
        is_service = rows.take(self._is_service, job, "job") == 1
        failed = rows["conflicts"] > 0
        for name, mine in (("batch", rows.where(~is_service)), ("service", rows.where(is_service))):
            mine.where(rows["claims"] > 0).add(self.count[f"{name}_tried"], place)
            mine.where(failed).add(self.count[f"{name}_failed"], place)
            time_us = rows["decision_us"]
            mine.where(~failed).add(self.count[f"{name}_useful_us"], place, time_us)
            mine.where(failed).add(self.count[f"{name}_wasted_us"], place, time_us)

    def merge(self, other: JobClassMetric) -> None:
        self.count.merge(other.count)

    def figures(self, scope: Scope) -> JobClassFigures:
        found: dict[str, float | None] = dict.fromkeys(JobClassFigures.model_fields)
        total = {name: scope.sum(self.count[name]) for name in self.count}
        window_us = self.run.window_us(scope.slots)
        if any(self.count[name].any() for name in self.count):
            for name in _CLASSES:
                tried, failed = total[f"{name}_tried"], total[f"{name}_failed"]
                found[f"{name}_conflict_fraction"] = ratio(failed, tried - failed)
                for part in ("useful", "wasted"):
                    found[f"{name}_{part}_share"] = ratio(total[f"{name}_{part}_us"], window_us)
        return JobClassFigures(**found)
