"""Sparrow on a sample of the Google trace, beside what the public simulator of Hawk and Eagle
(EPFL) prints for the same jobs (google.toml).

The jobs are those of part 0 of the 2011 trace, which is not part of Agora: it is read below
$AGORA_TRACES. A task counts if it was first submitted from 600 s on, where the trace begins, and
its first attempt ended within the part; its run time is that attempt's, rounded up to whole
seconds, which is what the simulator reads. Of these jobs 3,000 are drawn with replacement and
submitted as a Poisson process. The draws are those of Python's Mersenne Twister with seed 1, as
they were for the simulator, so that both have the same jobs at the same microsecond under every
seed: seeds change which machines are probed, and nothing else.

Other assumptions are the simulator's: 4,000 one-slot machines, hops of 0.5 ms, no cancellation, and
machines drawn with replacement unless it says otherwise.
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.config.flags import TRACES
from experiments.papers.sparrow.runs import (
    HOP_S,
    US_PER_S,
    JobsRun,
    Ran,
    jobs_workload,
    probing_group,
)
from experiments.papers.sparrow.settings import TASK_S
from experiments.workloads.csv_columns import read_columns
from experiments.workloads.google2011_tables import (
    TASK_COLUMNS,
    TRACE_START_US,
    TaskEvent,
    is_end,
)
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

MACHINES, JOBS = 4_000, 3_000
SHORT_S = 500  # the longest mean run time of a short job
SHORT, LONG = "short", "long"
PERCENTILES = (50, 90, 99)
_DRAWN_WITH_SEED = 1
_PART_0 = "google2011/task_events/part-00000-of-00500.csv"
_COLUMNS_OF_A_ROW = 13
_TASKS = 151_025  # of the sample


@dataclass(frozen=True, slots=True)
class SampleJobs:
    """The jobs of the sample at a load.

    Attributes:
        submit_us, sizes: When each is submitted, int64[jobs], and its number of tasks.
        duration_s: Of each task, in the order of the jobs.
    """

    submit_us: Int64
    sizes: Int64
    duration_s: Int64

    def mean_s(self) -> Int64:
        """The mean run time of each job in whole seconds: int64[jobs]."""
        ends = np.cumsum(self.sizes)
        sums: Int64 = np.add.reduceat(self.duration_s, ends - self.sizes)
        return sums // self.sizes


def why_no_trace() -> str:
    """Why the sample cannot be drawn on this machine, in one sentence; "" if it can."""
    if not os.environ.get(TRACES):
        return f"It needs the Google trace of 2011: set {TRACES} to the folder with google2011/."
    path = _path()
    return "" if path.is_file() else f"It needs the Google trace of 2011: there is no {path}."


def sample_jobs(load: float) -> SampleJobs:
    """The sample at a load of MACHINES one-slot machines. Raises AgoraError if there is no trace,
    or it cannot be read."""
    if reason := why_no_trace():
        raise AgoraError(reason)
    path = _path()
    jobs = _trace_jobs(path, path.stat().st_size)
    uniform = random.Random(_DRAWN_WITH_SEED).random
    drawn = [jobs[int(uniform() * len(jobs))] for _ in range(JOBS)]
    work_s = sum(int(job.sum()) for job in drawn) / JOBS
    gap_s = work_s / (load * MACHINES)
    at_s = 0.0
    submit_us: list[int] = []
    for _ in range(JOBS):
        at_s -= math.log(1.0 - uniform()) * gap_s
        # no two at one time: the simulator would move one of them
        submit_us.append(max(round(at_s * 1e6), submit_us[-1] + 1 if submit_us else 0))
    sizes = np.array([len(job) for job in drawn])
    return SampleJobs(np.array(submit_us), sizes, np.concatenate(drawn))


def _path() -> Path:
    plain = Path(os.environ[TRACES]) / _PART_0
    return plain if plain.is_file() else plain.with_name(plain.name + ".gz")


@lru_cache(maxsize=1)
def _trace_jobs(path: Path, size: int) -> tuple[Int64, ...]:
    """The run times in s of the tasks of each job that counts, by first submission and then by id;
    tasks by index. It is read again if the file has another size."""
    rows = read_columns(path, _COLUMNS_OF_A_ROW, TASK_COLUMNS)
    time_us, event = rows["time"].astype(np.int64), rows["event type"]
    job, index = rows["job ID"], rows["task index"]
    order = np.lexsort((np.arange(len(job)), index, job))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(job[order]) != 0) | (np.diff(index[order]) != 0)
    task = np.empty(len(order), np.int64)
    task[order] = np.cumsum(begins) - 1
    tasks = int(task.max()) + 1
    first = order[begins]

    submit_us = _first(task, time_us, event == TaskEvent.SUBMIT, tasks)
    start_us = _first(task, time_us, event == TaskEvent.SCHEDULE, tasks)
    # of rows at one time the later one in the file is the later event
    place = np.arange(len(task))
    started_at = _first(task, place, event == TaskEvent.SCHEDULE, tasks)
    ends = is_end(event) & (place > started_at[task]) & (started_at[task] >= 0)
    end_us = _first(task, time_us, ends, tasks)
    counts = np.flatnonzero((submit_us >= TRACE_START_US) & (end_us >= 0))
    duration_s = np.maximum(1, -(-(end_us - start_us) // US_PER_S))

    found: dict[int, list[int]] = {}
    for one in counts.tolist():  # tasks are in the order of job and index
        found.setdefault(int(job[first[one]]), []).append(one)
    in_order = sorted(found.items(), key=lambda item: (submit_us[item[1]].min(), item[0]))
    return tuple(duration_s[of] for _, of in in_order)


def _first(task: Int64, values: Int64, which: NDArray[np.bool_], tasks: int) -> Int64:
    """The value at the first of these rows of each task, -1 of tasks that have none:
    int64[tasks]."""
    found = np.full(tasks, -1, np.int64)
    rows = np.flatnonzero(which)[::-1]
    found[task[rows]] = values[rows]  # the last assignment, that of the first row, stands
    return found


@dataclass(frozen=True)
class SampleRun(JobsRun):
    """The sample at a load.

    Attributes:
        load: Of the cell.
    """

    load: float

    @property
    def expected_s(self) -> float:
        return self.draws * _TASKS * TASK_S

    def content(self) -> dict[str, Any]:
        path = _path()
        return {**super().content(), "trace": [path.name, path.stat().st_size]}

    def workload(self, draw: int) -> Workload:
        jobs = sample_jobs(self.load)
        return jobs_workload(MACHINES, 1, jobs.submit_us, jobs.sizes, jobs.duration_s * US_PER_S)

    def summary(self, ran: Ran) -> dict[str, float]:
        """short_p50 to long_p99: percentiles of the response of short and long jobs in s, by
        nearest rank; asked, empty: questions per task, and those without an answer; short_ratio:
        the mean response of short jobs over the mean of their longest tasks."""
        mean_s = sample_jobs(self.load).mean_s()
        return {
            **percentiles_s(ran, mean_s),
            "asked": ran.per_task("asked"),
            "empty": ran.per_task("empty"),
            "short_ratio": float(
                ran.job_response_us()[mean_s <= SHORT_S].mean()
                / ran.longest_us()[mean_s <= SHORT_S].mean()
            ),
        }


def percentiles_s(ran: Ran, mean_s: Int64) -> dict[str, float]:
    """The percentiles of short and long jobs, by the names of SampleRun.summary.

    Args:
        mean_s: The mean run time of each job.
    """
    response_s = ran.job_response_us() / US_PER_S
    found = {}
    for name, chosen in ((SHORT, mean_s <= SHORT_S), (LONG, mean_s > SHORT_S)):
        values = np.sort(response_s[chosen])
        for percent in PERCENTILES:
            found[f"{name}_p{percent}"] = float(values[math.ceil(percent * len(values) / 100) - 1])
    return found


def sample_run(label: str, load: float, d: int, replaces: bool, draws: int) -> SampleRun:
    """The run of a load and a number of probes, machines drawn with or without replacement."""
    group = probing_group(probe_ratio=float(d), with_replacement=replaces, cancellation=False)
    return SampleRun(label, group, HOP_S, 1000, draws, load)
