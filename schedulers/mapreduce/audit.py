"""Whether a run kept the order of its MapReduce jobs: an audit of what the cell accepted and
released.

The rule: the cell accepts a reduce only after all maps of its job have ended. A scheduler learns of
ends later than the cell, so the rule holds for each claim that the cell sees.
"""

from __future__ import annotations

import numpy as np

from schedulers.mapreduce.jobs import MAP, NOT_MAPREDUCE, REDUCE, MapReduceJobs
from shared_state.invariants import InvariantViolation
from shared_state.tasks import Int64


class MapReduceAudit:
    """Call one method per event, in the order in which the cell handled them.

    Args:
        jobs: The workload's.

    Attributes:
        reduces: How many were accepted, and found to be in order.
    """

    def __init__(self, jobs: MapReduceJobs) -> None:
        self._jobs = jobs
        self._maps_left = jobs.maps.copy()
        self.reduces = 0

    def accepted(self, task: Int64, now_us: int) -> None:
        """The cell accepted claims for these tasks, int64[n].

        Raises:
            InvariantViolation: One of them is a reduce of a job whose maps have not all ended.
        """
        task, job = self._of_phase(task, REDUCE)
        early = np.flatnonzero(self._maps_left[job])
        if len(early):
            raise InvariantViolation(
                f"commit at {now_us} us: task {task[early[0]]} is a reduce, and "
                f"{self._maps_left[job[early[0]]]} maps of its job have not ended"
            )
        self.reduces += len(task)

    def finished(self, task: Int64) -> None:
        """These tasks ran to their end, int64[n]."""
        _, job = self._of_phase(task, MAP)
        np.subtract.at(self._maps_left, job, 1)

    def _of_phase(self, task: Int64, phase: int) -> tuple[Int64, Int64]:
        """The maps, or the reduces, among tasks: ids and rows of their jobs, int64[k]."""
        job = self._jobs.of(task)
        task, job = task[job != NOT_MAPREDUCE], job[job != NOT_MAPREDUCE]
        rows = self._jobs.phase_of(task, job) == phase
        return task[rows], job[rows]
