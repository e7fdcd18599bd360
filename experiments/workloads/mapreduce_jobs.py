"""MapReduce jobs beside Omega's batch and service jobs (Schwarzkopf et al., EuroSys 2013, section
6).

The paper's jobs come from traces that are not public. It gives the numbers of workers that users
often ask for (5, 11, 200 and 1,000), and says that large jobs have many more activities than
workers, and that about a fifth of all jobs are MapReduce jobs. All else here is an assumption:
jobs arrive as a Poisson process, the numbers of workers are equally likely, the numbers of
activities are geometric and the run times exponential, as those of the other classes are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from experiments.workloads.draws import geometric, poisson_times
from experiments.workloads.resources import Amount, Dimension
from parsync.strict_model import Strict
from schedulers.mapreduce.jobs import MapReduceJobs
from shared_state.random import Stream, stream_key
from shared_state.tasks import Int64

Workers = Annotated[int, Field(ge=1, le=1_000_000)]


class MapReduceJobClass(Strict):
    """MapReduce jobs. Each activity is a task; the maps of a job take equally long, and so do its
    reduces."""

    interarrival_s: float = Field(
        30.0, gt=0, le=1e6, description="mean time between two jobs (exponential)"
    )
    workers: tuple[Workers, ...] = Field(
        (5, 11, 200, 1000),
        min_length=1,
        max_length=100,
        strict=False,
        description="the numbers of workers that users ask for, equally likely",
    )
    maps_per_worker: float = Field(
        10.0, ge=1, le=1e4, description="mean number of maps per worker asked for (geometric)"
    )
    reduces_per_worker: float = Field(
        2.0, ge=1, le=1e4, description="mean number of reduces per worker asked for (geometric)"
    )
    map_s: float = Field(
        30.0, ge=0.001, le=1e6, description="mean run time of the maps of a job (exponential)"
    )
    reduce_s: float = Field(
        60.0, ge=0.001, le=1e6, description="mean run time of the reduces of a job (exponential)"
    )
    request: dict[Dimension, Amount] = Field(
        default_factory=lambda: {"cpu_milli": 1_000, "mem_mib": 2_048},
        min_length=1,
        max_length=8,
        description="what each activity asks for; 0: also on machines without the resource",
    )

    @property
    def tasks_per_job(self) -> float:
        """The mean number of activities of a job."""
        mean_workers = sum(self.workers) / len(self.workers)
        return mean_workers * (self.maps_per_worker + self.reduces_per_worker)

    @property
    def run_s(self) -> float:
        """The mean run time of an activity."""
        maps, reduces = self.maps_per_worker, self.reduces_per_worker
        return (maps * self.map_s + reduces * self.reduce_s) / (maps + reduces)


@dataclass(frozen=True, slots=True)
class DrawnMapReduceJobs:
    """The MapReduce jobs that arrive: columns of j jobs, as in MapReduceJobs.

    Attributes:
        arrival_us: int64[j], ascending.
    """

    arrival_us: Int64
    workers: Int64
    maps: Int64
    reduces: Int64
    map_us: Int64
    reduce_us: Int64

    def from_task(self, first_task: Int64) -> MapReduceJobs:
        """The jobs, with the first task of each (int64[j])."""
        return MapReduceJobs(
            first_task, self.workers, self.maps, self.reduces, self.map_us, self.reduce_us
        )


def draw(jobs: MapReduceJobClass, end_us: int, seed: int) -> DrawnMapReduceJobs:
    """Draw the jobs that arrive in [0, end_us)."""

    def stream(what: str) -> Stream:
        return Stream(stream_key(seed, f"workload/mapreduce/{what}"))

    def activities(what: str, per_worker: float) -> Int64:
        drawn = np.zeros(count, np.int64)
        for asked in np.unique(workers).tolist():
            rows = np.flatnonzero(workers == asked)
            drawn[rows] = geometric(stream(f"{what}/{asked}"), len(rows), asked * per_worker)
        return drawn

    def run_us(what: str, mean_s: float) -> Int64:
        drawn = (stream(what).exponential(count) * (mean_s * 1e6)).astype(np.int64)
        return np.maximum(drawn, 1)

    arrival_us = poisson_times(stream("arrivals"), jobs.interarrival_s * 1e6, end_us)
    count = len(arrival_us)
    choice = stream("workers").integers(count, len(jobs.workers))
    workers = np.array(jobs.workers, np.int64)[choice]
    return DrawnMapReduceJobs(
        arrival_us,
        workers,
        activities("maps", jobs.maps_per_worker),
        activities("reduces", jobs.reduces_per_worker),
        run_us("map_run", jobs.map_s),
        run_us("reduce_run", jobs.reduce_s),
    )
