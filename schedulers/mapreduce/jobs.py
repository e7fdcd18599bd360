"""What a scheduler knows of MapReduce jobs (Schwarzkopf et al., *Omega*, EuroSys 2013, section 6),
how long a job takes with so many workers, and an audit of the order of activities.

A MapReduce job consists of map activities and reduce activities. No reduce activity may start
before all maps of its job have ended. Each activity is a task; a **worker** is the room that one
activity of the job holds at a time, so a job with w workers runs at most w activities at once.

The model of how long a job takes is that of Omega's case study: the run time falls linearly with
the number of workers up to the point where all map activities, and all reduce activities, run in
parallel (section 6.1). The model knows no set-up time of workers and no stragglers, so large
speed-ups are optimistic (section 6.2). It ignores that activities are whole, too: 4 maps on 3
workers take 4/3 of a map there, and 2 in a run. `whole_activities_us` counts those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared_state.invariants import InvariantViolation
from shared_state.tasks import Int64, TaskBatch

NOT_MAPREDUCE = -1
MAP, REDUCE = 0, 1
_LEAST = {"first_task": 0, "workers": 1, "maps": 1, "reduces": 0, "map_us": 1, "reduce_us": 1}


@dataclass(frozen=True, slots=True)
class MapReduceJobs:
    """The MapReduce jobs of a workload, columns of j jobs.

    The activities of a job are the tasks [first_task, first_task + maps + reduces), maps first.
    They ask for the same and share their preference set; none belongs to a gang.

    Attributes:
        first_task: int64[j], ascending.
        workers: int64[j], how many workers its user asked for; at least 1.
        maps: int64[j], at least 1.
        reduces: int64[j], 0 or more.
        map_us: int64[j], the average run time of its map activities, as earlier runs of the job
            have shown; at least 1.
        reduce_us: int64[j], the same of its reduce activities.
    """

    first_task: Int64
    workers: Int64
    maps: Int64
    reduces: Int64
    map_us: Int64
    reduce_us: Int64

    def __len__(self) -> int:
        return len(self.first_task)

    @property
    def end_task(self) -> Int64:
        """int64[j], one more than the last task of each."""
        return self.first_task + self.maps + self.reduces

    def of(self, task: Int64) -> Int64:
        """The row of each task's job (task int64[n], ids): int64[n], NOT_MAPREDUCE if it has
        none."""
        row = np.searchsorted(self.first_task, task, side="right") - 1
        if not len(self):
            return row
        return np.where((row >= 0) & (task < self.end_task[row]), row, NOT_MAPREDUCE)

    def phase_of(self, task: Int64, job: Int64) -> Int64:
        """MAP or REDUCE of each task int64[n] of the jobs int64[n]: int64[n]."""
        return np.where(task < self.first_task[job] + self.maps[job], MAP, REDUCE)

    def broken_rule(self, tasks: TaskBatch) -> str:
        """What is wrong with these jobs of a workload's tasks (row = id), "" if nothing."""
        for name, least in _LEAST.items():
            column = getattr(self, name)
            if column.dtype != np.int64 or column.shape != (len(self),):
                return f"mapreduce.{name}: expected int64[j]"
            if (column < least).any():
                return f"mapreduce.{name}: expected at least {least}"
        if (self.end_task > len(tasks)).any():
            return "mapreduce.first_task: no such task"
        if (self.first_task[1:] < self.end_task[:-1]).any():
            return "mapreduce.first_task: not ascending, or a task in two jobs"
        for first, end in zip(self.first_task.tolist(), self.end_task.tolist(), strict=True):
            own = tasks.take(slice(first, end))
            for name in ("job", "request", "preference", "gang"):
                column = getattr(own, name)
                if (column != column[0]).any():
                    return f"mapreduce: tasks.{name}: expected the same for tasks {first} to {end}"
            if own.gang[0] >= 0:
                return f"mapreduce: task {first}: a MapReduce job cannot be a gang"
        return ""


def predicted_us(
    maps: Int64, reduces: Int64, map_us: Int64, reduce_us: Int64, workers: Int64
) -> Int64:
    """The predicted time from the first map to the last reduce, rounded up to microseconds.

    Args:
        maps: int64[j], activities still to run, those that run included.
        reduces: int64[j].
        map_us: int64[j], the average run time of a map.
        reduce_us: int64[j].
        workers: int64[j], at least 1.

    Returns:
        int64[j].
    """
    return _phase_us(maps, map_us, workers) + _phase_us(reduces, reduce_us, workers)


def whole_activities_us(
    maps: Int64, reduces: Int64, map_us: Int64, reduce_us: Int64, workers: Int64
) -> Int64:
    """The same for activities that cannot be divided: int64[j]. Exact where a job's activities of
    each kind take equally long, and its workers are never without room."""
    return -(-maps // workers) * map_us + -(-reduces // workers) * reduce_us


def useful_workers(maps: Int64, reduces: Int64) -> Int64:
    """The least number of workers with the earliest predicted finish: more of them find no activity
    to run. int64[j]; arguments as in predicted_us."""
    return np.maximum(maps, reduces)


def _phase_us(activities: Int64, each_us: Int64, workers: Int64) -> Int64:
    """The predicted time of all maps, or of all reduces."""
    busy = np.maximum(1, np.minimum(workers, activities))
    return -(-activities * each_us // busy)


class MapReduceAudit:
    """Whether a run kept the order of its MapReduce jobs: an audit of what the cell accepted and
    released. Call one method per event, in the order in which the cell handled them.

    The rule: the cell accepts a reduce only after all maps of its job have ended. A scheduler
    learns of ends later than the cell, so the rule holds for each claim that the cell sees.

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
