"""A workload: the cell, every task with its true duration, arrivals in batches, machine events and
load phases. All columnar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedulers.mapreduce.jobs import MapReduceJobs
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of offered load, in per cent of the cell's capacity (0 where the load is the
    trace's own)."""

    start_us: int
    end_us: int
    load_percent: int


@dataclass(frozen=True, slots=True)
class InitialPlacement:
    """Tasks running at time 0: task int64[k] ascending, machine int32[k]. Their durations in the
    workload are what remains."""

    task: Int64
    machine: Int32


@dataclass(frozen=True, slots=True)
class MachineEvents:
    """Ascending times: at_us int64[k], machine int32[k], up bool[k]."""

    at_us: Int64
    machine: Int32
    up: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class QuotaMembership:
    """Which quota group each task belongs to. All tasks of a job belong to the same.

    Attributes:
        names: Of the groups.
        group: int32[n], by task id: a position in `names`.
    """

    names: tuple[str, ...]
    group: Int32


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that happens from outside. The loop is open: arrivals never wait for the cell.

    Batch b holds the rows arrival_rows[arrival_offsets[b]: arrival_offsets[b+1]], ascending and all
    of one job, submitted at arrival_us[b] (ascending). The tasks of `initial` arrive with no batch.

    Attributes:
        tasks: Every task, row = id.
        duration_us: int64[n], true run time away from preferred machines (a task on a preferred one
            runs preferred_permille/1000 of it); -1: runs past the end of the run.
        facts: Counts and notes about how it came to be (trace rows dropped, tasks too large, ...),
            for the report.
        quotas: The quota groups of the tasks; None if there are none.
        mapreduce: The MapReduce jobs among the jobs; None if there are none.
    """

    name: str
    cell: CellSpec
    catalog: PreferenceCatalog
    tasks: TaskBatch
    duration_us: Int64
    preferred_permille: int
    arrival_us: Int64
    arrival_offsets: Int64
    arrival_rows: Int64
    initial: InitialPlacement
    machine_events: MachineEvents
    phases: tuple[Phase, ...]
    end_us: int
    facts: dict[str, int | float | str]
    quotas: QuotaMembership | None = None
    mapreduce: MapReduceJobs | None = None
