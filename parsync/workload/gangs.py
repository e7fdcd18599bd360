"""The gangs of a workload: tasks that are of use only together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parsync.workload.workload import Workload
from shared_state.tasks import NO_GANG, Int32, Int64

NOT_IN_GANG = -1
LEAST_TASKS = 2  # one task by itself cannot be torn


@dataclass(frozen=True, slots=True)
class TaskGangs:
    """The gangs with two or more arriving tasks, in the order of their ids. Tasks that run as the
    run begins are in none of them: they have their places.

    Attributes:
        place: int32[tasks], which gang each task is in; NOT_IN_GANG if in none.
        size: int64[gangs], how many tasks.
        submit_us: int64[gangs], when the first of them is submitted.
        job: int64[gangs], the job of that task.
    """

    place: Int32
    size: Int64
    submit_us: Int64
    job: Int64

    @staticmethod
    def of(workload: Workload) -> TaskGangs | None:
        """The gangs of a workload; None if it has none."""
        tasks = workload.tasks
        gang = tasks.gang[workload.arrival_rows]  # in the order of arrival
        rows = workload.arrival_rows[gang != NO_GANG]
        _, first, place, size = np.unique(
            gang[gang != NO_GANG], return_index=True, return_inverse=True, return_counts=True
        )
        counts = size >= LEAST_TASKS
        if not counts.any():
            return None
        number = np.where(counts, np.cumsum(counts) - 1, NOT_IN_GANG)
        of_task = np.full(len(tasks), NOT_IN_GANG, np.int32)
        of_task[rows] = number[place]
        first_rows = rows[first[counts]]
        return TaskGangs(of_task, size[counts], tasks.submit_us[first_rows], tasks.job[first_rows])

    def __len__(self) -> int:
        return len(self.size)
