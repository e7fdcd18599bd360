"""What became of every task and job: sums that need a task's commit and its end side by side.

Three numbers are kept per task (18 bytes); jobs are added up when asked for. Rows may come in any
order and from several actors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.job_arrivals import UNKNOWN, JobArrivals
from parsync.metrics.job_index import JobIndex
from parsync.metrics.table_fold import Rows
from schedulers.interface import ChangeKind
from shared_state.tasks import Int64

NOT_IN_JOB = -1
_PREFERS = 1
_PREFERRED = 2
_SLOT_SHIFT = 2


@dataclass(frozen=True, slots=True)
class JobTotals:
    """Sums over the jobs (and, for time, the tasks with preferences) of one slot and agent: each
    int64[agents, slots].

    Attributes:
        jobs: Jobs submitted.
        committed: Jobs with all tasks committed.
        jsd_us: Their summed delays: from the submission of the job to its last first commit.
        ending: Jobs that can end: all their tasks can.
        finished: Jobs with all tasks ended.
        jct_us, stet_us: Their summed JCT and STET (ParSync section 6.4).
        uncommitted_us, unfinished_us: Of the jobs that were not all committed, and of those that
            can end and have not, the time from submission until the run was last seen.
        unfinished_stet_us: Of the latter, the summed execution time of those of their tasks that
            have ended. What still runs may yet be evicted, and counts only from its next start.
        prefers_us, preferred_us: Time that tasks with preferences ran, and ran on a preferred
            machine, up to the end of the run.
        lost_us: Time of allocations that were evicted or whose machine failed.
    """

    jobs: Int64
    committed: Int64
    jsd_us: Int64
    finished: Int64
    jct_us: Int64
    stet_us: Int64
    ending: Int64
    uncommitted_us: Int64
    unfinished_us: Int64
    unfinished_stet_us: Int64
    prefers_us: Int64
    preferred_us: Int64
    lost_us: Int64


class JobTimes:
    """The commits and ends of tasks, by task id.

    Args:
        job_of: int64[tasks], NOT_IN_JOB for tasks to leave out (those running before the run
            began).
        index: Of these jobs.
        endless: bool[tasks], those that never end (default: none).
    """

    def __init__(
        self,
        job_of: Int64,
        index: JobIndex,
        agents: int,
        slots: int,
        endless: NDArray[np.bool_] | None = None,
    ) -> None:
        self._agents = agents
        self._slots = slots
        self._index = index
        self._job_of = job_of
        jobs = len(index)
        self._ending = np.ones(jobs, np.bool_)
        if endless is not None:
            self._ending[index.places(job_of[endless & (job_of >= 0)])] = False
        self._arrivals = JobArrivals(index)
        self._commit_us = np.full(len(job_of), UNKNOWN, np.int64)
        self._finish_us = np.full(len(job_of), UNKNOWN, np.int64)
        self._tag = np.zeros(len(job_of), np.int16)
        # task -> (commit, tag) of its later commits
        self._again: dict[int, list[tuple[int, int]]] = {}
        self._cut: dict[int, list[int]] = {}  # task -> ends other than by finishing

    def add_up(self, rows: Rows) -> None:
        """Declare what is kept of the tables `submissions`, `tasks` and `ends`."""
        if rows.table == "submissions":
            self._arrivals.add_up(rows)
        elif rows.table == "tasks":
            self._commits(rows)
        else:
            finished = rows["change"] == ChangeKind.FINISHED
            rows.where(finished).store(self._finish_us, (rows["task"],), rows["end_us"])
            rows.where(~finished).call(self._cut_short, rows["task"], rows["end_us"])

    def _commits(self, rows: Rows) -> None:
        task, commit_us = rows["task"], rows["commit_us"]
        tag = rows.slot("submit_us") * (1 << _SLOT_SHIFT)
        tag += rows["prefers"] * _PREFERS + rows["preferred"] * _PREFERRED
        rows.first_commits.store(self._commit_us, (task,), commit_us)
        rows.first_commits.store(self._tag, (task,), tag)
        rows.where(rows["first"] != 1).call(self._committed_again, task, commit_us, tag)

    def _committed_again(self, task: Int64, commit_us: Int64, tag: Int64) -> None:
        for name, *commit in zip(task.tolist(), commit_us.tolist(), tag.tolist(), strict=True):
            self._again.setdefault(name, []).append((commit[0], commit[1]))

    def _cut_short(self, task: Int64, end_us: Int64) -> None:
        for name, at_us in zip(task.tolist(), end_us.tolist(), strict=True):
            self._cut.setdefault(name, []).append(at_us)

    def merge(self, other: JobTimes) -> None:
        """Take over what another accumulator saw of the same workload."""
        self._arrivals.merge(other._arrivals)
        np.maximum(self._commit_us, other._commit_us, out=self._commit_us)
        np.maximum(self._finish_us, other._finish_us, out=self._finish_us)
        np.maximum(self._tag, other._tag, out=self._tag)
        for task, commits in other._again.items():
            self._again.setdefault(task, []).extend(commits)
        for task, ends in other._cut.items():
            self._cut.setdefault(task, []).extend(ends)

    def task_times(self) -> tuple[Int64, Int64]:
        """When each task was first committed, and when it ran to its end, each int64[tasks] in
        microseconds; UNKNOWN if never."""
        return self._commit_us.copy(), self._finish_us.copy()

    def totals(self, end_us: int) -> JobTotals:
        """Add up over the jobs.

        Args:
            end_us: The end of the run, until which what has not ended is taken to run or to wait.
        """
        cells = self._agents * self._slots
        shape = (self._agents, self._slots)
        arrivals = self._arrivals
        task = np.flatnonzero(self._job_of >= 0)
        job = self._index.places(self._job_of[task])
        jobs = len(self._index)
        commit, finish = self._commit_us[task], self._finish_us[task]
        start, execution_us, lost_us = self._times(task, commit, finish, end_us)
        known = arrivals.agent >= 0
        cell_of_job = np.where(
            known, arrivals.agent.astype(np.int64) * self._slots + arrivals.slot, cells
        )

        def per_job(weight: Int64) -> Int64:
            total = np.zeros(jobs, np.int64)
            np.add.at(total, job, weight)
            return total

        def per_cell(index: Int64, weight: Int64) -> Int64:
            total = np.zeros(cells + 1, np.int64)  # one beyond: jobs nobody saw submitted
            np.add.at(total, index, weight)
            return total[:-1].reshape(shape)

        size = np.bincount(job, minlength=jobs)
        committed = known & (per_job((commit >= 0).astype(np.int64)) == size)
        finished = committed & (per_job((finish >= 0).astype(np.int64)) == size)
        last_commit, last_finish = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
        np.maximum.at(last_commit, job, commit)
        np.maximum.at(last_finish, job, finish)
        stet = per_job(np.where(finish >= 0, finish - start, 0))
        one = np.ones(jobs, np.int64)
        waited_us = np.maximum(end_us - arrivals.submit_us, 0)
        late, unfinished = known & ~committed, known & self._ending & ~finished
        ending = known & self._ending

        tag = self._tag[task].astype(np.int64)
        of_task = np.where(
            arrivals.agent[job] >= 0,
            arrivals.agent[job].astype(np.int64) * self._slots + (tag >> _SLOT_SHIFT),
            cells,
        )
        prefers_us, preferred_us = execution_us
        return JobTotals(
            jobs=per_cell(cell_of_job, one),
            committed=per_cell(cell_of_job[committed], one[committed]),
            jsd_us=per_cell(cell_of_job[committed], (last_commit - arrivals.submit_us)[committed]),
            finished=per_cell(cell_of_job[finished], one[finished]),
            jct_us=per_cell(cell_of_job[finished], (last_finish - arrivals.submit_us)[finished]),
            stet_us=per_cell(cell_of_job[finished], stet[finished]),
            ending=per_cell(cell_of_job[ending], one[ending]),
            uncommitted_us=per_cell(cell_of_job[late], waited_us[late]),
            unfinished_us=per_cell(cell_of_job[unfinished], waited_us[unfinished]),
            unfinished_stet_us=per_cell(cell_of_job[unfinished], stet[unfinished]),
            prefers_us=per_cell(of_task, prefers_us),
            preferred_us=per_cell(of_task, preferred_us),
            lost_us=per_cell(of_task, lost_us),
        )

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
