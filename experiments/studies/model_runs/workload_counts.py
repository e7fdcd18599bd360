"""What a workload consists of, counted without running it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.campaign.task import Arrays
from experiments.config.workload_config import WorkloadConfig
from experiments.studies.model_runs.run import ModelRun
from parsync.workload.workload import Workload

# The ends of the bins of run times in seconds: ten for each factor of ten.
RUN_TIME_ENDS_S = 10.0 ** (np.arange(-10, 41) / 10)
_TASK_S = 1e-6  # of a processor


@dataclass(frozen=True)
class WorkloadRun(ModelRun):
    """The arrivals and the run times of one workload.

    Attributes:
        workload: The kind and its options.
    """

    workload: WorkloadConfig

    def content(self) -> dict[str, Any]:
        return {"workload": self.workload.model_dump(mode="json")}

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        return counts(self.workload.make(seed))

    @property
    def expected_s(self) -> float:
        outline = self.workload.outline()
        return 1.0 if outline is None else _TASK_S * outline.tasks


def counts(workload: Workload) -> dict[str, NDArray[Any]]:
    """The counts of a workload, over S seconds and B bins of run times.

    Tasks that run at time 0 do not arrive, so they do not count. A job arrives with its first task.

    Returns:
        phase_end_s float64[L], of the load phases; tasks and jobs int64[S], that arrive in each
        second up to the end of the last phase; run_time_end_s float64[B], and shorter int64[B]:
        tasks with a run time below each; longer_than_run: tasks that outlast the run.
    """
    rows = workload.arrival_rows
    batch = np.repeat(np.arange(len(workload.arrival_us)), np.diff(workload.arrival_offsets))
    second = workload.arrival_us // 1_000_000
    end_us = workload.phases[-1].end_us
    seconds = -(-end_us // 1_000_000)
    # Batches are in the order of time, so the first row of a job is its arrival.
    _, first = np.unique(workload.tasks.job[rows], return_index=True)
    run_us = workload.duration_us[rows]
    finite_s = np.sort(run_us[run_us >= 0]) / 1e6
    return {
        "phase_end_s": np.array([phase.end_us / 1e6 for phase in workload.phases]),
        "tasks": np.bincount(second[batch], minlength=seconds)[:seconds],
        "jobs": np.bincount(second[batch[first]], minlength=seconds)[:seconds],
        "run_time_end_s": RUN_TIME_ENDS_S,
        "shorter": np.searchsorted(finite_s, RUN_TIME_ENDS_S, side="left"),
        "longer_than_run": np.array(np.count_nonzero(run_us < 0)),
    }
