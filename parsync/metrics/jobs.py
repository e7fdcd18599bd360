"""How long jobs take: JSD, JCT and STET (ParSync, section 6.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.job_times import JobTimes, JobTotals
from parsync.metrics.metric import NativeMetric, Scope, TableColumns, is_incomplete, ratio
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows
from shared_state.tasks import Int64


class JobFigures(Figures):
    """Mean times of jobs, by the window of the job's submission. All are None where the run's jobs
    are not known.

    The means are over the jobs that got there: jobs_committed of `jobs`, and jobs_finished of
    jobs_ending, which are those that can end.
    """

    jobs: Count | None
    jobs_ending: Count | None
    jobs_committed: Count | None
    jobs_finished: Count | None
    jct_mean_us: Number | None = quantity(
        "Job completion time",
        Unit.DURATION,
        Better.LOWER,
        "Submission of a job to the end of its last task; “≥”: jobs that did not end count "
        "until the run was last observed.",
        headline=True,
        column_label="JCT",
    )
    jsd_mean_us: Number | None = quantity(
        "Job scheduling delay",
        Unit.DURATION,
        Better.LOWER,
        "Submission of a job to its last first commit (JSD).",
    )
    stet_mean_us: Number | None = quantity(
        "Summed execution time of a job",
        Unit.DURATION,
        Better.LOWER,
        "Averaged over jobs (STET); “≥”: of jobs that did not finish, only tasks that did count.",
    )
    preferred_time_share: Number | None = quantity(
        "Time on a preferred machine",
        Unit.SHARE,
        Better.HIGHER,
        "Of the time that tasks with preferences ran.",
    )
    lost_us: Count | None = quantity(
        "Work lost",
        Unit.DURATION,
        Better.LOWER,
        "Run time of tasks that were evicted or whose machine failed.",
    )


class JobMetric(NativeMetric):
    """Times of jobs, and of their tasks on machines."""

    kind = "jobs"
    description = "How long jobs take, and where their tasks run."
    figures_model = JobFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "job", "submit_us"),
        "tasks": ("task", "agent", "submit_us", "commit_us", "first", "prefers", "preferred"),
        "ends": ("task", "end_us", "change"),
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self._times = (
            None
            if run.job_of is None or run.jobs is None
            else JobTimes(run.job_of, run.jobs, run.agents, run.slots, run.endless)
        )
        self._rows = np.zeros(1, np.int64)  # so far
        # the totals until a time, after so many rows
        self._totals: tuple[tuple[int, int], JobTotals] | None = None

    def add_up(self, rows: Rows) -> None:
        if self._times is not None:
            rows.count(self._rows)
            self._times.add_up(rows)

    def merge(self, other: JobMetric) -> None:
        self._rows += other._rows
        if self._times is not None and other._times is not None:
            self._times.merge(other._times)

    def figures(self, scope: Scope) -> JobFigures:
        sums = self._sums(scope)
        if not sums:
            return JobFigures(**dict.fromkeys(JobFigures.model_fields))
        return JobFigures(
            jobs=sums["jobs"],
            jobs_ending=sums["ending"],
            jobs_committed=sums["committed"],
            jobs_finished=sums["finished"],
            jsd_mean_us=ratio(sums["jsd_us"], sums["committed"]),
            jct_mean_us=ratio(sums["jct_us"], sums["finished"]),
            stet_mean_us=ratio(sums["stet_us"], sums["finished"]),
            preferred_time_share=ratio(sums["preferred_us"], sums["prefers_us"]),
            lost_us=sums["lost_us"],
        )

    def lower_bounds(self, scope: Scope, figures: JobFigures) -> Mapping[str, float | None]:
        sums = self._sums(scope)
        if not sums:
            return {}
        jobs, ending = sums["jobs"], sums["ending"]
        bounds: dict[str, float | None] = {}
        if is_incomplete(jobs - sums["committed"], jobs):
            bounds["jsd_mean_us"] = ratio(sums["jsd_us"] + sums["uncommitted_us"], jobs)
        if is_incomplete(ending - sums["finished"], ending):
            bounds["jct_mean_us"] = ratio(sums["jct_us"] + sums["unfinished_us"], ending)
            # without it, arms that leave the largest jobs unfinished would seem the better
            bounds["stet_mean_us"] = ratio(sums["stet_us"] + sums["unfinished_stet_us"], ending)
        return bounds

    def task_times(self) -> tuple[Int64, Int64] | None:
        """When each task was first committed, and when it ran to its end, each int64[tasks] in
        microseconds, UNKNOWN (-1) if never; None where the run's jobs are not known."""
        return None if self._times is None else self._times.task_times()

    def totals(self, last_us: int) -> JobTotals | None:
        """The sums over all jobs until last_us; None where the run's jobs are not known."""
        if self._times is None:
            return None
        known = last_us, int(self._rows[0])
        if self._totals is None or self._totals[0] != known:
            self._totals = known, self._times.totals(last_us)
        return self._totals[1]

    def _sums(self, scope: Scope) -> dict[str, int]:
        totals = self.totals(scope.last_us)
        if totals is None:
            return {}
        return {
            field.name: scope.sum(getattr(totals, field.name))
            for field in dataclasses.fields(totals)
        }
