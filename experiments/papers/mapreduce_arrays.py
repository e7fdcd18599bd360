"""What a run keeps of its MapReduce jobs: run times job by job, and the use of the cell over time.

Figures of speed-ups need the same job in two runs, which no figure of one run can tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.results.mapreduce import run_times_us
from parsync.metrics.jobs import UNKNOWN, JobMetric
from parsync.metrics.run_metrics import RunMetrics
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

RUN_US, USED_AT_US, USED_PERMILLE = "run_us", "used_at_us", "used_permille"


def mapreduce_arrays(metrics: RunMetrics, workload: Workload) -> dict[str, NDArray[Any]]:
    """The arrays of a run in which messages take no time: a task starts when it is committed.

    Returns:
        run_us: int64[j], of each MapReduce job (experiments.results.mapreduce.run_times_us).
        used_at_us, used_permille: int64[s], samples of the use of the cell's first resource
            (processors), while jobs arrive.

    Raises:
        AgoraError: The workload has no MapReduce jobs, or the run has no times of jobs.
    """
    times = metrics.get(JobMetric).task_times()
    if workload.mapreduce is None or times is None:
        raise AgoraError("the workload has no MapReduce jobs")
    commit_us, finish_us = times
    started, finished = np.flatnonzero(commit_us != UNKNOWN), np.flatnonzero(finish_us != UNKNOWN)
    run_us = run_times_us(
        workload.mapreduce, started, commit_us[started], finished, finish_us[finished]
    )
    cell = metrics.samples("cell")
    arriving = cell["at_us"] <= workload.phases[-1].end_us
    return {
        RUN_US: run_us,
        USED_AT_US: cell["at_us"][arriving].astype(np.int64),
        USED_PERMILLE: cell["used_permille"][arriving].astype(np.int64),
    }
