"""How long jobs take (JSD, JCT and STET), how long they wait for their scheduler and what they cost
it, and what becomes of gangs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.metric import (
    Counters,
    Merges,
    NativeMetric,
    Rows,
    Scope,
    TableColumns,
    is_incomplete,
    ratio,
)
from parsync.metrics.quantity import Better, Count, Figures, Number, Quantity, Unit, quantity
from parsync.metrics.run_frame import JobIndex, RunFrame
from parsync.metrics.tables import NOT_KNOWN
from parsync.workload.workload import NOT_IN_GANG, TaskGangs
from schedulers.interface import ChangeKind
from schedulers.unplaceable import Unplaceable
from shared_state.tasks import Int64

_DELAY = "Submission of a job to its last first commit"
_ENDED = "Submission of a job to the end of its last task"
_SLOWED = (
    "Job completion time over the run time of the longest task of the job, on machines where its "
    "tasks run fastest; averaged over jobs"
)
_CLASSES = ("batch", "service")


class JobFigures(Figures):
    """Mean times of jobs (ParSync, section 6.4), by the window of the job's submission. All are
    None where the run's jobs are not known, and those of one class where the run has no services.

    The means are over the jobs that got there: jobs_committed of `jobs`, and jobs_finished of
    jobs_ending, which are those that can end.
    """

    jobs: Count | None
    jobs_ending: Count | None
    jobs_committed: Count | None
    jobs_finished: Count | None
    jobs_abandoned: Count | None = quantity(
        "Jobs given up",
        Unit.COUNT,
        Better.LOWER,
        "Jobs with tasks that their scheduler gave up after its last attempt.",
    )
    jct_mean_us: Number | None = quantity(
        "Job completion time",
        Unit.DURATION,
        Better.LOWER,
        f"{_ENDED}; “≥”: jobs that did not end count until the run was last observed.",
        headline=True,
        column_label="JCT",
    )
    jct_batch_mean_us: Number | None = quantity(
        "Job completion time of batch jobs", Unit.DURATION, Better.LOWER, f"{_ENDED}."
    )
    jct_service_mean_us: Number | None = quantity(
        "Job completion time of service jobs", Unit.DURATION, Better.LOWER, f"{_ENDED}."
    )
    slowdown_mean: Number | None = quantity("Job slowdown", Unit.PLAIN, Better.LOWER, f"{_SLOWED}.")
    slowdown_batch_mean: Number | None = quantity(
        "Job slowdown of batch jobs", Unit.PLAIN, Better.LOWER, f"{_SLOWED}."
    )
    slowdown_service_mean: Number | None = quantity(
        "Job slowdown of service jobs", Unit.PLAIN, Better.LOWER, f"{_SLOWED}."
    )
    jsd_mean_us: Number | None = quantity(
        "Job scheduling delay",
        Unit.DURATION,
        Better.LOWER,
        f"{_DELAY} (JSD).",
    )
    jsd_batch_mean_us: Number | None = quantity(
        "Job scheduling delay of batch jobs", Unit.DURATION, Better.LOWER, f"{_DELAY}."
    )
    jsd_service_mean_us: Number | None = quantity(
        "Job scheduling delay of service jobs", Unit.DURATION, Better.LOWER, f"{_DELAY}."
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


# What begins the names of a class's figures, after the name of the quantity, and of its sums.
_OF_CLASS = {"": ""} | {f"_{name}": f"{name}_" for name in _CLASSES}
UNKNOWN = -1
_PREFERS = 1
_PREFERRED = 2
_SLOT_SHIFT = 2
_NO_IDS = np.zeros(0, np.int64)


class JobMetric(NativeMetric):
    """Times of jobs, and of their tasks on machines, from each task's commit and end. Rows may come
    in any order and from several actors."""

    kind = "jobs"
    description = "How long jobs take, and where their tasks run."
    figures_model = JobFigures
    reads: ClassVar[TableColumns] = {
        "submissions": ("agent", "job", "submit_us"),
        "tasks": ("task", "agent", "submit_us", "commit_us", "first", "prefers", "preferred"),
        "ends": ("task", "end_us", "change"),
        "unplaceable": ("task", "abandoned"),
    }

    merges: ClassVar[Merges] = {
        "_rows": np.add,
        "_given_up": np.logical_or,
        "_commit_us": np.maximum,
        "_finish_us": np.maximum,
        "_tag": np.maximum,
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self._is_known = run.job_of is not None
        self._job_of = _NO_IDS if run.job_of is None else run.job_of
        self._index = JobIndex(_NO_IDS) if run.jobs is None else run.jobs
        self._ending = np.ones(len(self._index), np.bool_)
        # of the longest task at its fastest, by the places of the jobs
        self._longest_us: Int64 | None = None
        if run.run_us is not None and self._is_known:
            self._ending = ~self._index.having(run.run_us < 0, self._job_of)
            self._longest_us = np.ones(len(self._index), np.int64)
            ours = self._job_of >= 0
            of_jobs = self._index.places(self._job_of[ours])
            np.maximum.at(self._longest_us, of_jobs, run.fastest_us[ours])
        self._arrivals = JobArrivals(self._index)
        # four numbers per task, 19 bytes; jobs are added up when asked for
        tasks = len(self._job_of)
        self._commit_us = np.full(tasks, UNKNOWN, np.int64)
        self._finish_us = np.full(tasks, UNKNOWN, np.int64)
        self._tag = np.zeros(tasks, np.int16)
        self._given_up = np.zeros(tasks, np.bool_)
        # task -> (commit, tag) of its later commits
        self._again: dict[int, list[tuple[int, int]]] = {}
        self._cut: dict[int, list[int]] = {}  # task -> ends other than by finishing
        self._rows = np.zeros(1, np.int64)  # so far
        # the totals until a time, after so many rows
        self._totals: tuple[tuple[int, int], dict[str, Int64]] | None = None

    def add_up(self, rows: Rows) -> None:
        if not self._is_known:
            return
        rows.count(self._rows)
        if rows.table == "submissions":
            self._arrivals.add_up(rows)
        elif rows.table == "tasks":
            task, commit_us = rows["task"], rows["commit_us"]
            tag = rows.slot("submit_us") * (1 << _SLOT_SHIFT)
            tag += rows["prefers"] * _PREFERS + rows["preferred"] * _PREFERRED
            rows.first_commits.store(self._commit_us, (task,), commit_us)
            rows.first_commits.store(self._tag, (task,), tag)
            rows.where(rows["first"] != 1).call(self._committed_again, task, commit_us, tag)
        elif rows.table == "unplaceable":
            abandoned = rows["abandoned"] == Unplaceable.ABANDONED
            rows.where(abandoned).store(self._given_up, (rows["task"],), 1)
        else:
            finished = rows["change"] == ChangeKind.FINISHED
            rows.where(finished).store(self._finish_us, (rows["task"],), rows["end_us"])
            rows.where(~finished).call(self._cut_short, rows["task"], rows["end_us"])

    def _committed_again(self, task: Int64, commit_us: Int64, tag: Int64) -> None:
        for name, at_us, its in zip(task.tolist(), commit_us.tolist(), tag.tolist(), strict=True):
            self._again.setdefault(name, []).append((at_us, its))

    def _cut_short(self, task: Int64, end_us: Int64) -> None:
        for name, at_us in zip(task.tolist(), end_us.tolist(), strict=True):
            self._cut.setdefault(name, []).append(at_us)

    def merge(self, other: JobMetric) -> None:
        super().merge(other)
        self._arrivals.merge(other._arrivals)
        for task, commits in other._again.items():
            self._again.setdefault(task, []).extend(commits)
        for task, ends in other._cut.items():
            self._cut.setdefault(task, []).extend(ends)

    def figures(self, scope: Scope) -> JobFigures:
        sums = self._sums(scope)
        if not sums:
            return JobFigures.unknown()
        means: dict[str, float | None] = {}
        for name, of in _OF_CLASS.items():
            committed, finished = sums[f"{of}committed"], sums[f"{of}finished"]
            means[f"jsd{name}_mean_us"] = ratio(sums[f"{of}jsd_us"], committed)
            means[f"jct{name}_mean_us"] = ratio(sums[f"{of}jct_us"], finished)
            slowed = self._longest_us is not None
            slowdown = ratio(sums[f"{of}slowdown_permille"], 1000 * finished) if slowed else None
            means[f"slowdown{name}_mean"] = slowdown
        return JobFigures(
            jobs=sums["jobs"],
            jobs_ending=sums["ending"],
            jobs_committed=sums["committed"],
            jobs_finished=sums["finished"],
            jobs_abandoned=sums["abandoned"],
            stet_mean_us=ratio(sums["stet_us"], sums["finished"]),
            preferred_time_share=ratio(sums["preferred_us"], sums["prefers_us"]),
            lost_us=sums["lost_us"],
            **means,
        )

    def lower_bounds(self, scope: Scope, figures: JobFigures) -> Mapping[str, float | None]:
        sums = self._sums(scope)
        if not sums:
            return {}
        bounds: dict[str, float | None] = {}
        for name, of in _OF_CLASS.items():
            every, committed = sums[f"{of}jobs"], sums[f"{of}committed"]
            if is_incomplete(every - committed, every):
                charged = sums[f"{of}jsd_us"] + sums[f"{of}uncommitted_us"]
                bounds[f"jsd{name}_mean_us"] = ratio(charged, every)
            ending, finished = sums[f"{of}ending"], sums[f"{of}finished"]
            if is_incomplete(ending - finished, ending):
                charged = sums[f"{of}jct_us"] + sums[f"{of}unfinished_us"]
                bounds[f"jct{name}_mean_us"] = ratio(charged, ending)
                if self._longest_us is not None:
                    charged = sums[f"{of}slowdown_permille"]
                    charged += sums[f"{of}unfinished_permille"]
                    bounds[f"slowdown{name}_mean"] = ratio(charged, 1000 * ending)
        ending = sums["ending"]
        if is_incomplete(ending - sums["finished"], ending):
            # without it, arms that leave the largest jobs unfinished would seem the better
            bounds["stet_mean_us"] = ratio(sums["stet_us"] + sums["unfinished_stet_us"], ending)
        return bounds

    def task_times(self) -> tuple[Int64, Int64] | None:
        """When each task was first committed, and when it ran to its end, each int64[tasks] in
        microseconds, UNKNOWN (-1) if never; None where the run's jobs are not known."""
        return (self._commit_us.copy(), self._finish_us.copy()) if self._is_known else None

    def _sums(self, scope: Scope) -> dict[str, int]:
        """The totals within a scope; {} where the run's jobs are not known."""
        if not self._is_known:
            return {}
        known = scope.last_us, int(self._rows[0])
        if self._totals is None or self._totals[0] != known:
            self._totals = known, self._totals_until(scope.last_us)
        return {name: scope.sum(total) for name, total in self._totals[1].items()}

    def _totals_until(self, end_us: int) -> dict[str, Int64]:
        """Sums over the jobs (and, for time, the tasks with preferences) of each agent and slot.
        What has not ended is taken to run or to wait until end_us.

        Returns: int64[agents, slots] each.
            jobs: Jobs submitted.
            committed: Jobs with all tasks committed.
            jsd_us: Their summed delays: from the submission of the job to its last first commit.
            uncommitted_us: Of the other jobs, the time from submission until end_us.
            ending: Jobs that can end: all their tasks can.
            finished: Jobs with all tasks ended.
            jct_us: Their summed JCT (ParSync section 6.4).
            slowdown_permille: Their summed slowdowns, in thousandths, each rounded down.
            unfinished_us: Of jobs that can end and have not, the time from submission to end_us.
            unfinished_permille: What they are slowed down by end_us, at least 1000 each.
            batch_jobs, service_jobs and so on: These ten of the jobs of one class; 0 where the run
                has no services.
            abandoned: Jobs with a task that was given up.
            stet_us: Summed STET of the finished jobs (ParSync section 6.4).
            unfinished_stet_us: Of jobs that can end and have not, the execution time of those tasks
                that have ended.
            prefers_us, preferred_us: Time that tasks with preferences ran, and on a preferred
                machine.
            lost_us: Time of allocations that were evicted or whose machine failed.
        """
        cells = self.run.agents * self.run.slots
        arrivals, jobs = self._arrivals, len(self._index)
        task = np.flatnonzero(self._job_of >= 0)
        job = self._index.places(self._job_of[task])
        commit, finish = self._commit_us[task], self._finish_us[task]
        start, (prefers_us, preferred_us), lost_us = self._times(task, commit, finish, end_us)
        known = arrivals.agent >= 0
        # one beyond: jobs nobody saw submitted
        base = np.where(known, arrivals.agent.astype(np.int64) * self.run.slots, cells)
        cell_of_job = np.where(known, base + arrivals.slot, cells)
        cell_of_task = np.where(known[job], base[job] + (self._tag[task] >> _SLOT_SHIFT), cells)

        def per_job(weight: Int64) -> Int64:
            total = np.zeros(jobs, np.int64)
            np.add.at(total, job, weight)
            return total

        def per_cell(index: Int64, weight: Int64) -> Int64:
            total = np.zeros(cells + 1, np.int64)
            np.add.at(total, index, weight)
            return total[:-1].reshape(self.run.agents, self.run.slots)

        def of_jobs(chosen: NDArray[np.bool_], weight: Int64) -> Int64:
            return per_cell(cell_of_job[chosen], weight[chosen])

        size = np.bincount(job, minlength=jobs)
        committed = known & (per_job((commit >= 0).astype(np.int64)) == size)
        finished = committed & (per_job((finish >= 0).astype(np.int64)) == size)
        last_commit, last_finish = np.zeros((2, jobs), np.int64)
        np.maximum.at(last_commit, job, commit)
        np.maximum.at(last_finish, job, finish)
        # Of a job that has not ended only the tasks that have: what runs may yet be evicted, and
        # counts from its next start.
        stet = per_job(np.where(finish >= 0, finish - start, 0))
        one = np.ones(jobs, np.int64)
        waited_us = np.maximum(end_us - arrivals.submit_us, 0)
        ending = known & self._ending
        unfinished = ending & ~finished
        is_service = self.run.service_jobs
        jsd_us, jct_us = last_commit - arrivals.submit_us, last_finish - arrivals.submit_us
        longest_us = one if self._longest_us is None else self._longest_us
        slowdown = np.where(finished, jct_us, 0) * 1000 // longest_us
        slowed = np.maximum(np.where(known, waited_us, 0) * 1000 // longest_us, 1000)
        classes = dict.fromkeys(_OF_CLASS.values(), np.zeros(jobs, np.bool_)) | {"": known}
        if is_service is not None:
            classes |= {"batch_": known & ~is_service, "service_": known & is_service}
        totals: dict[str, Int64] = {}
        for of, mine in classes.items():
            totals |= {
                f"{of}jobs": of_jobs(mine, one),
                f"{of}committed": of_jobs(mine & committed, one),
                f"{of}jsd_us": of_jobs(mine & committed, jsd_us),
                f"{of}uncommitted_us": of_jobs(mine & ~committed, waited_us),
                f"{of}ending": of_jobs(mine & ending, one),
                f"{of}finished": of_jobs(mine & finished, one),
                f"{of}jct_us": of_jobs(mine & finished, jct_us),
                f"{of}slowdown_permille": of_jobs(mine & finished, slowdown),
                f"{of}unfinished_us": of_jobs(mine & unfinished, waited_us),
                f"{of}unfinished_permille": of_jobs(mine & unfinished, slowed),
            }
        given_up = per_job(self._given_up[task].astype(np.int64)) > 0
        return totals | {
            "abandoned": of_jobs(known & given_up, one),
            "stet_us": of_jobs(finished, stet),
            "unfinished_stet_us": of_jobs(unfinished, stet),
            "prefers_us": per_cell(cell_of_task, prefers_us),
            "preferred_us": per_cell(cell_of_task, preferred_us),
            "lost_us": per_cell(cell_of_task, lost_us),
        }

    def _times(
        self, task: Int64, commit: Int64, finish: Int64, end_us: int
    ) -> tuple[Int64, tuple[Int64, Int64], Int64]:
        """Per task: start of its last allocation; time run with a preference and on a preferred
        machine; time lost."""
        tag = self._tag[task].astype(np.int64)
        start = commit.copy()
        # what is due later has not run longer
        until = np.where((finish >= 0) & (finish < end_us), finish, end_us)
        ran = np.where(commit >= 0, np.maximum(until - commit, 0), 0)
        prefers_us = np.where(tag & _PREFERS, ran, 0)
        preferred_us = np.where(tag & _PREFERRED, ran, 0)
        lost_us = np.zeros(len(task), np.int64)
        # tasks with several allocations: few
        for name in sorted(self._again.keys() | self._cut.keys()):
            row = int(np.searchsorted(task, name))
            if row == len(task) or task[row] != name or commit[row] < 0:
                continue
            commits = sorted([(int(commit[row]), int(tag[row])), *self._again.get(name, [])])
            ends = sorted(self._cut.get(name, []))
            start[row] = commits[-1][0]
            prefers_us[row] = preferred_us[row] = 0
            for number, (at_us, its) in enumerate(commits):
                end = ends[number] if number < len(ends) else int(until[row])
                prefers_us[row] += max(end - at_us, 0) if its & _PREFERS else 0
                preferred_us[row] += max(end - at_us, 0) if its & _PREFERRED else 0
                lost_us[row] += max(end - at_us, 0) if number < len(ends) else 0
        return start, (prefers_us, preferred_us), lost_us


class JobArrivals:
    """The submissions of jobs: columns by the places of a JobIndex.

    Attributes:
        submit_us: int64[jobs], of the first batch; the largest number for jobs never submitted.
        agent: int32[jobs], to whom, or UNKNOWN.
        slot: int32[jobs], the slot of submit_us.
    """

    def __init__(self, index: JobIndex) -> None:
        jobs = len(index)
        self._index = index
        self.submit_us = np.full(jobs, np.iinfo(np.int64).max, np.int64)
        self.agent = np.full(jobs, UNKNOWN, np.int32)
        self.slot = np.zeros(jobs, np.int32)

    def add_up(self, rows: Rows) -> None:
        """Declare what is kept of the table `submissions`."""
        place = (rows["job"].place_among(self._index.ids),)
        beside = (self.agent, rows["agent"]), (self.slot, rows.slot("submit_us"))
        rows.store_earliest(self.submit_us, place, rows["submit_us"], beside)

    def merge(self, other: JobArrivals) -> None:
        """Take over what another object saw of the same run."""
        earlier = other.submit_us < self.submit_us
        for mine, theirs in (
            (self.submit_us, other.submit_us),
            (self.agent, other.agent),
            (self.slot, other.slot),
        ):
            mine[earlier] = theirs[earlier]


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
    """The waits of jobs for their scheduler (Omega's job wait time: Schwarzkopf et al., EuroSys
    2013, section 4), by the window of the job's submission. Decision times of the attempt itself
    are not part of a wait, those of earlier attempts are.

    Means are over the jobs that got there, percentiles over all submitted jobs. All are None where
    the protocol has no decision rounds, and those of one class where the run has no services. Jobs
    whose tasks are placed by queues at machines, after the attempt, are left out of full waits.
    """

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

    merges: ClassVar[Merges] = {
        "_unplaced": np.add,
        "_lost": np.logical_or,
        "_placed_later": np.logical_or,
        "_first_us": np.minimum,
        "_last_us": np.maximum,
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        index = JobIndex(_NO_IDS) if run.jobs is None else run.jobs
        jobs = len(index)
        self._index = index
        self._arrivals = JobArrivals(index)
        self._unplaced = np.zeros(jobs, np.int64)  # tasks submitted less those placed
        self._first_us = np.full(jobs, _NEVER, np.int64)  # the start of the first attempt
        self._last_us = np.zeros(jobs, np.int64)  # that of the last one that placed a task
        # an attempt was lost with a killed scheduler, and so were the job's waits
        self._lost = np.zeros(jobs, np.bool_)
        # no attempt of the job placed tasks: queues at machines do
        self._placed_later = np.zeros(jobs, np.bool_)

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
        ours.where(placed == NOT_KNOWN).store(self._placed_later, (job,), 1)
        ours.where(placed > 0).add(self._unplaced, (job,), -placed)
        ours.where(placed > 0).largest(self._last_us, (job,), start_us)

    def merge(self, other: JobWaitMetric) -> None:
        super().merge(other)
        self._arrivals.merge(other._arrivals)

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
        is_service = self.run.service_jobs
        if is_service is not None:
            classes |= {"_batch": inside & ~is_service, "_service": inside & is_service}
        every_job = np.ones(len(inside), np.bool_)
        for name, start_us, reached, defined in (
            ("job_wait", self._first_us, self._first_us < _NEVER, every_job),
            ("job_wait_full", self._last_us, self._unplaced == 0, ~self._placed_later),
        ):
            wait_us = np.where(reached, start_us, scope.last_us) - submit_us
            for of_class, of_it in classes.items():
                chosen = of_it & defined
                got, waiting = wait_us[chosen & reached], wait_us[chosen & ~reached]
                every = np.concatenate([np.sort(got), np.maximum(waiting, 0)])
                yield f"{name}{of_class}", _Waits(every, len(got))


_COUNTED = ("tried", "failed", "useful_us", "wasted_us")
_BUSY = "Decision time for {} jobs whose attempt met no conflict, per time; more than 100 % if "
_BUSY += "several schedulers share them."
_FAILED = "Scheduling attempts of {} jobs with a conflict, over those with claims and no conflict."


class JobClassFigures(Figures):
    """Scheduling attempts by the class of the job, in the window in which they began (Omega's
    figures show the two classes apart). All are None where the run has no service jobs, or the
    protocol no decision rounds."""

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
        "job_attempts": ("agent", "job", "start_us", "decision_us", "claims", "conflicts")
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters([f"{name}_{what}" for name in _CLASSES for what in _COUNTED], run)

    def add_up(self, rows: Rows) -> None:
        if self.run.service_jobs is None or self.run.jobs is None:
            return
        job = rows["job"].place_among(self.run.jobs.ids)
        # times are not known of transactions that were lost with a killed scheduler
        rows = rows.where((job >= 0) & (rows["start_us"] != NOT_KNOWN))
        place = rows["agent"], rows.slot("start_us")
        is_service = rows.take(self.run.service_jobs, job, "job") == 1
        failed = rows["conflicts"] > 0
        for name, mine in (("batch", rows.where(~is_service)), ("service", rows.where(is_service))):
            mine.where(rows["claims"] > 0).add(self.count[f"{name}_tried"], place)
            mine.where(failed).add(self.count[f"{name}_failed"], place)
            time_us = rows["decision_us"]
            mine.where(~failed).add(self.count[f"{name}_useful_us"], place, time_us)
            mine.where(failed).add(self.count[f"{name}_wasted_us"], place, time_us)

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


_NO_GANGS = TaskGangs(
    np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
)


class GangFigures(Figures):
    """The gangs with two or more arriving tasks, by the window of their submission: every submitted
    one is whole, torn or unplaced.

    A gang is torn if its tasks started with different commits or only in part, and if any of them
    was evicted or lost its machine, also after a whole start. So a gang of which every task runs
    may still be a torn one.

    All are None where the workload has no gangs. gang_wait_max_us is over the gangs of which every
    task was placed; what left the queue unplaced has no wait.
    """

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
        "Gangs never placed", Unit.COUNT, Better.LOWER, "No task of the gang ever started."
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
    merges: ClassVar[Merges] = {
        "_agent": np.maximum,
        "_submitted_us": np.maximum,
        "_started": np.add,
        "_first_start_us": np.minimum,
        "_last_start_us": np.maximum,
        "_commit_us": np.maximum,
        "_lost": np.logical_or,
        "_left": np.logical_or,
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        known = run.gangs is not None and run.jobs is not None
        self._gangs = run.gangs if known and run.gangs is not None else _NO_GANGS
        self._jobs = run.jobs if known and run.jobs is not None else JobIndex(_NO_IDS)
        gangs, jobs = len(self._gangs), len(self._jobs)
        self._agent = np.full(jobs, UNKNOWN, np.int32)
        self._submitted_us = np.full(jobs, UNKNOWN, np.int64)  # the last batch of each job
        # of the first commits of each gang's tasks
        self._started = np.zeros(gangs, np.int64)
        self._first_start_us = np.full(gangs, _NEVER, np.int64)
        self._last_start_us = np.full(gangs, UNKNOWN, np.int64)
        self._commit_us = np.full(gangs, UNKNOWN, np.int64)
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

    def run_quantities(self) -> list[Quantity]:
        return self.quantities() if len(self._gangs) else []

    def figures(self, scope: Scope) -> GangFigures:
        if not len(self._gangs):
            return GangFigures.unknown()
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
