"""How long MapReduce jobs ran, and how much faster than in another arm (Omega section 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.results.loaded_run import LoadedArm
from schedulers.interface import ChangeKind
from schedulers.mapreduce.jobs import NOT_MAPREDUCE, MapReduceJobs
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

NOT_FINISHED = -1
_NEVER_US = np.iinfo(np.int64).max


def run_times_us(
    jobs: MapReduceJobs, started: Int64, start_us: Int64, finished: Int64, end_us: Int64
) -> Int64:
    """The time of each job from its first start to its last end: int64[j], NOT_FINISHED if
    activities of it did not finish.

    Args:
        jobs: The MapReduce jobs of the workload.
        started: int64[n], tasks that started, one row per start.
        start_us: int64[n], when.
        finished: int64[k], tasks that ran to their end.
        end_us: int64[k], when.
    """
    first_us = np.full(len(jobs), _NEVER_US, np.int64)
    job = jobs.of(started)
    mine = job != NOT_MAPREDUCE
    np.minimum.at(first_us, job[mine], start_us[mine])
    last_us, count = np.zeros(len(jobs), np.int64), np.zeros(len(jobs), np.int64)
    job = jobs.of(finished)
    mine = job != NOT_MAPREDUCE
    np.maximum.at(last_us, job[mine], end_us[mine])
    np.add.at(count, job[mine], 1)
    return np.where(count == jobs.maps + jobs.reduces, last_us - first_us, NOT_FINISHED)


def run_times_of(arm: LoadedArm) -> Int64:
    """The run times of the MapReduce jobs of an arm, as run_times_us. Activities that still run at
    the end of the run count as ending when they are due.

    Raises:
        AgoraError: The arm's workload has no MapReduce jobs, or a table cannot be read.
    """
    jobs = arm.workload.mapreduce
    if jobs is None:
        raise AgoraError(f"{arm.directory}: its workload has no MapReduce jobs")
    tasks = arm.table("tasks", ["task", "start_us"])
    ends = arm.table("ends", ["task", "end_us", "change"])
    ran = ends["change"].to_numpy() == ChangeKind.FINISHED
    return run_times_us(
        jobs,
        tasks["task"].to_numpy(),
        tasks["start_us"].to_numpy(),
        ends["task"].to_numpy()[ran],
        ends["end_us"].to_numpy()[ran],
    )


def speedups(arm: LoadedArm, baseline: LoadedArm) -> NDArray[np.float64]:
    """How many times as fast the MapReduce jobs of an arm ran as in another arm of the same run:
    float64[k], of the jobs that finished in both.

    Raises:
        AgoraError: As run_times_of.
    """
    return speedups_of(run_times_of(arm), run_times_of(baseline))


def speedups_of(run_us: Int64, before_us: Int64) -> NDArray[np.float64]:
    """How many times as fast jobs ran as before: float64[k], of those that finished both times.

    Args:
        run_us: int64[j], the run times of the jobs, NOT_FINISHED without one.
        before_us: int64[j], those of the same jobs before.
    """
    both = (run_us != NOT_FINISHED) & (before_us != NOT_FINISHED)
    faster: NDArray[np.float64] = before_us[both] / np.maximum(1, run_us[both])
    return faster
