"""The tables of the Google 2011 cluster trace (ClusterData 2011 v2.1, part 0). Columns have the
names of its schema.csv."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.workloads.csv_columns import (
    Column,
    fraction_column,
    integer_column,
    read_columns,
    time_column,
)
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

MACHINE_EVENTS = Path("machine_events", "part-00000-of-00001.csv.gz")
TASK_EVENTS = Path("task_events", "part-00000-of-00500.csv.gz")
JOB_EVENTS = Path("job_events", "part-00000-of-00500.csv.gz")
JOB_EVENTS_LATER = Path("job_events_later.csv.gz")

# Times from here on mean "after the trace's end" (the documented mark is 2^63 - 1).
AFTER_THE_END_US = 1 << 62


class MachineEvent(IntEnum):
    ADD = 0
    REMOVE = 1
    UPDATE = 2


class TaskEvent(IntEnum):
    """The events of tasks and jobs. EVICT to LOST end an attempt."""

    SUBMIT = 0
    SCHEDULE = 1
    EVICT = 2
    FAIL = 3
    FINISH = 4
    KILL = 5
    LOST = 6
    UPDATE_PENDING = 7
    UPDATE_RUNNING = 8


@dataclass(frozen=True, slots=True)
class MachineRows:
    """The rows of machine_events, in order of time.

    Attributes:
        cpu, mem: Fractions of the largest machine, NaN where empty.
    """

    time_us: Int64
    machine: Int64
    event: Int64
    cpu: NDArray[np.float64]
    mem: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The rows of task_events, in order of time.

    Attributes:
        machine, different_machines: -1 where empty.
        cpu, mem: NaN where empty.
    """

    time_us: Int64
    job: Int64
    index: Int64
    machine: Int64
    event: Int64
    priority: Int64
    cpu: NDArray[np.float64]
    mem: NDArray[np.float64]
    different_machines: Int64


@dataclass(frozen=True, slots=True)
class Trace:
    """All tables of the trace.

    Args:
        machines, tasks: the events of part 0.
        ended_job, job_end_us: the last end event of each job, ascending by job; from all parts.
        dropped_rows: rows with times beyond the end of the trace.
    """

    machines: MachineRows
    tasks: TaskRows
    ended_job: Int64
    job_end_us: Int64
    dropped_rows: int


FileStamp = tuple[int, int]  # size in bytes, time of the last change in ns


def file_stamps(directory: Path) -> tuple[FileStamp, ...]:
    """The stamps of the four files: equal as long as none of them changes. Files that are missing
    have none."""
    stamps = []
    for path in (MACHINE_EVENTS, TASK_EVENTS, JOB_EVENTS, JOB_EVENTS_LATER):
        with contextlib.suppress(OSError):
            stat = (directory / path).stat()
            stamps.append((stat.st_size, stat.st_mtime_ns))
    return tuple(stamps)


def read_trace(directory: Path) -> Trace:
    """Read and check the four files. AgoraError names what is missing, or the file and line of what
    is malformed."""
    if not directory.is_dir():
        raise AgoraError(f"{directory}: no such trace directory")
    missing = [
        path
        for path in (MACHINE_EVENTS, TASK_EVENTS, JOB_EVENTS, JOB_EVENTS_LATER)
        if not (directory / path).is_file()
    ]
    if missing:
        raise AgoraError(f"{directory}: the trace lacks {', '.join(map(str, missing))}")
    machine_columns = {
        0: time_column("time"),
        1: integer_column("machine ID"),
        2: integer_column("event type", max(MachineEvent)),
        4: fraction_column("CPUs"),
        5: fraction_column("Memory"),
    }
    task_columns = {
        0: time_column("time"),
        2: integer_column("job ID"),
        3: integer_column("task index", (1 << 31) - 1),
        4: integer_column("machine ID", optional=True),
        5: integer_column("event type", max(TaskEvent)),
        8: integer_column("priority", (1 << 31) - 1),
        9: fraction_column("CPU request"),
        10: fraction_column("memory request"),
        12: integer_column("different machines restriction", 1, optional=True),
    }
    job_columns = {
        0: time_column("time"),
        2: integer_column("job ID"),
        3: integer_column("event type", max(TaskEvent)),
    }
    machine, dropped_machine = _before_the_end(directory / MACHINE_EVENTS, 6, machine_columns)
    task, dropped_task = _before_the_end(directory / TASK_EVENTS, 13, task_columns)
    job, dropped_job = _before_the_end(directory / JOB_EVENTS, 8, job_columns)
    later, dropped_later = _before_the_end(directory / JOB_EVENTS_LATER, 8, job_columns)
    ended_job, job_end_us = _job_ends(
        *(np.concatenate([job[name], later[name]]) for name in ("job ID", "event type", "time"))
    )
    return Trace(
        MachineRows(
            *(machine[name] for name in ("time", "machine ID", "event type", "CPUs", "Memory"))
        ),
        TaskRows(
            task["time"],
            task["job ID"],
            task["task index"],
            task["machine ID"],
            task["event type"],
            task["priority"],
            task["CPU request"],
            task["memory request"],
            task["different machines restriction"],
        ),
        ended_job,
        job_end_us,
        dropped_machine + dropped_task + dropped_job + dropped_later,
    )


def _before_the_end(
    path: Path, width: int, columns: dict[int, Column]
) -> tuple[dict[str, NDArray[Any]], int]:
    """The rows of a file without those marked as after the end of the trace, in order of time and,
    at one time, of the file; and how many rows were dropped."""
    table = read_columns(path, width, columns)
    keep = table["time"] < AFTER_THE_END_US
    dropped = len(keep) - int(np.count_nonzero(keep))
    order = np.flatnonzero(keep)
    time_us = table["time"][order].astype(np.int64)
    if (time_us[1:] < time_us[:-1]).any():
        by_time = np.argsort(time_us, kind="stable")
        order, time_us = order[by_time], time_us[by_time]
    rows = {name: column[order] for name, column in table.items()}
    rows["time"] = time_us
    return rows, dropped


def is_end(event: Int64) -> NDArray[np.bool_]:
    """The events that end an attempt: bool[n]."""
    return (event >= TaskEvent.EVICT) & (event <= TaskEvent.LOST)


def _job_ends(job: Int64, event: Int64, time_us: Int64) -> tuple[Int64, Int64]:
    ends = is_end(event)
    ended, of = np.unique(job[ends], return_inverse=True)
    last = np.zeros(len(ended), np.int64)
    np.maximum.at(last, of, time_us[ends])
    return ended, last
