"""An estimator of run times for schedulers, which never see true ones: it knows what they were told
of tasks that have ended."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedulers.interface import ChangeKind, TaskChanges
from shared_state.tasks import Int64, TaskBatch

_NOT_RUNNING = -1
_BEGINS = (ChangeKind.COMMITTED, ChangeKind.ADOPTED)


class EndedTasks(NamedTuple):
    """Tasks that have ended, n of them.

    Attributes:
        task: int64[n], ids.
        machine: int64[n], where each ran.
        ran_us: int64[n], from when it was told to run to when its end was told, at least 1.
    """

    task: Int64
    machine: Int64
    ran_us: Int64


class RunningSince:
    """Since when tasks run, by id: ids are dense, so a column has an entry for each."""

    def __init__(self) -> None:
        self._since_us = np.zeros(0, np.int64)

    def ended(self, changes: TaskChanges) -> EndedTasks:
        """Note what became of tasks, and return those of them whose run times are known now. Tasks
        that were evicted or lost have run for nothing."""
        task = changes.task
        self._since_us = grown(self._since_us, task, _NOT_RUNNING)
        since_us = self._since_us[task]
        begins = changes.kind in _BEGINS
        self._since_us[task] = changes.at_us if begins else _NOT_RUNNING
        known = since_us != _NOT_RUNNING
        if changes.kind != ChangeKind.FINISHED:
            known = np.zeros(len(task), bool)
        ran_us = np.maximum(changes.at_us - since_us[known], 1)
        return EndedTasks(task[known], changes.machine[known].astype(np.int64), ran_us)


class MeanRunTimes:
    """Mean run times by key, an integer from 0 on."""

    def __init__(self) -> None:
        self._sum_us = np.zeros(0, np.int64)
        self._count = np.zeros(0, np.int64)

    def add(self, key: Int64, ran_us: Int64) -> None:
        """Take in run times of tasks with these keys, int64[n] each."""
        self._sum_us, self._count = grown(self._sum_us, key, 0), grown(self._count, key, 0)
        np.add.at(self._sum_us, key, ran_us)
        np.add.at(self._count, key, 1)

    def mean_us(self, key: Int64) -> tuple[Int64, NDArray[np.bool_]]:
        """The mean of each of these keys (int64[n]), rounded down, and whether any task with that
        key has ended: int64[n], bool[n]."""
        self._sum_us, self._count = grown(self._sum_us, key, 0), grown(self._count, key, 0)
        count = self._count[key]
        return self._sum_us[key] // np.maximum(count, 1), count > 0

    def least_mean_us(self, residue: int, modulus: int) -> int:
        """The least mean of any key that leaves this residue, rounded down, at least 1."""
        count = self._count[residue::modulus]
        known = count > 0
        means = self._sum_us[residue::modulus][known] // count[known]
        return max(int(means.min(initial=np.iinfo(np.int64).max)), 1) if known.any() else 1


class RunTimeEstimator:
    """How long tasks are expected to run: as long as tasks of the same job did that have ended, on
    average; before one has, as tasks of the same class (TaskClass) did; before that, `unknown_us`.
    """

    def __init__(self, unknown_us: int) -> None:
        self._unknown_us = unknown_us
        self._running = RunningSince()
        self._of_job, self._of_class = MeanRunTimes(), MeanRunTimes()
        self._job = np.zeros(0, np.int64)  # by task id
        self._class = np.zeros(0, np.int64)

    def estimate_us(self, tasks: TaskBatch) -> Int64:
        """The expected run times of tasks: int64[n]."""
        task_class = tasks.task_class.astype(np.int64)
        self._job, self._class = grown(self._job, tasks.task, 0), grown(self._class, tasks.task, 0)
        self._job[tasks.task], self._class[tasks.task] = tasks.job, task_class
        by_class, class_known = self._of_class.mean_us(task_class)
        by_job, job_known = self._of_job.mean_us(tasks.job)
        return np.where(job_known, by_job, np.where(class_known, by_class, self._unknown_us))

    def learn(self, changes: TaskChanges) -> None:
        """Learn what became of tasks. Those whose run time nobody asked to estimate teach
        nothing."""
        ended = self._running.ended(changes)
        asked = ended.task < len(self._job)
        task, ran_us = ended.task[asked], ended.ran_us[asked]
        self._of_job.add(self._job[task], ran_us)
        self._of_class.add(self._class[task], ran_us)


def grown(column: Int64, index: Int64, value: int) -> Int64:
    """A column that has an entry for each of these indices (int64[n]): itself, or a longer one with
    `value` in its new entries."""
    needed = int(index.max(initial=-1)) + 1
    if needed <= len(column):
        return column
    return np.concatenate([column, np.full(max(needed, 2 * len(column)) - len(column), value)])
