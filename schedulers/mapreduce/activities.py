"""Which activities of MapReduce jobs wait and run, as far as their scheduler knows, and which of
them start next."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from schedulers.mapreduce.jobs import MAP, REDUCE, MapReduceJobs
from schedulers.mapreduce.performance import useful_workers
from schedulers.mapreduce.policies import WorkerPolicy
from shared_state.tasks import Int64


class ActivityState(IntEnum):
    """What the scheduler knows of an activity."""

    ABSENT = 0  # not submitted to this scheduler, or over
    WAITING = 1
    CLAIMED = 2  # claimed, or running
    RETURNING = 3  # rejected, evicted or lost: its agent will offer it again


_STATES = len(ActivityState)


class Activities:
    """The activities of the MapReduce jobs, by state.

    Args:
        jobs: The workload's.
    """

    def __init__(self, jobs: MapReduceJobs) -> None:
        self._jobs = jobs
        self._state = np.zeros(int(jobs.end_task.max(initial=0)), np.int8)
        self._count = np.zeros((len(jobs), 2, _STATES), np.int64)  # by job, phase and state
        self._count[:, MAP, ActivityState.ABSENT] = jobs.maps
        self._count[:, REDUCE, ActivityState.ABSENT] = jobs.reduces

    def enter(self, task: Int64, state: ActivityState) -> None:
        """Enter the new state of activities, int64[n], each at most once."""
        job = self._jobs.of(task)
        phase = self._jobs.phase_of(task, job)
        before = self._state[task].astype(np.int64)
        np.subtract.at(self._count, (job, phase, before), 1)
        np.add.at(self._count[:, :, state], (job, phase), 1)
        self._state[task] = state

    def ready(self, policy: WorkerPolicy) -> tuple[Int64, Int64]:
        """The waiting activities that should start if there is room.

        Jobs come in the order of their first tasks. A job's reduces are ready once none of its maps
        is left. How much work a job has left counts activities that run as if they had just begun.

        Returns:
            Those that keep each job at what its user asked for, int64[n], and those of extra
            workers, int64[k].
        """
        counts = self._count
        active = np.flatnonzero(counts[:, :, ActivityState.WAITING].any(axis=1))
        if not len(active):
            return _NONE, _NONE
        counts = counts[active]
        left = counts.sum(axis=2) - counts[:, :, ActivityState.ABSENT]
        phase = np.where(left[:, MAP] > 0, MAP, REDUCE)
        waiting = counts[np.arange(len(active)), phase, ActivityState.WAITING]
        running = counts[:, :, ActivityState.CLAIMED].sum(axis=1)
        asked = self._jobs.workers[active]
        wanted = policy.workers(asked, useful_workers(left[:, MAP], left[:, REDUCE]))
        within = np.clip(asked - running, 0, waiting)
        extra = np.clip(wanted - running, within, waiting) - within
        requested_parts, extra_parts = [_NONE], [_NONE]
        for row in np.flatnonzero(within + extra).tolist():
            mine = self._waiting(int(active[row]), int(phase[row]))
            first = int(within[row])
            requested_parts.append(mine[:first])
            extra_parts.append(mine[first : first + int(extra[row])])
        return np.concatenate(requested_parts), np.concatenate(extra_parts)

    def _waiting(self, job: int, phase: int) -> Int64:
        """The waiting maps, or reduces, of a job, in order."""
        start = int(self._jobs.first_task[job])
        middle = start + int(self._jobs.maps[job])
        if phase == MAP:
            end = middle
        else:
            start, end = middle, middle + int(self._jobs.reduces[job])
        return start + np.flatnonzero(self._state[start:end] == ActivityState.WAITING)


_NONE: Int64 = np.zeros(0, np.int64)
