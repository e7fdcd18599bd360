"""What a scheduler knows of MapReduce jobs (Schwarzkopf et al., *Omega*, EuroSys 2013, section 6).

A MapReduce job consists of map activities and reduce activities. No reduce activity may start
before all maps of its job have ended. Each activity is a task; a **worker** is the room that one
activity of the job holds at a time, so a job with w workers runs at most w activities at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
