"""The tables of the Google 2011 cluster trace (ClusterData 2011 v2.1). Columns have the names of
its schema.csv.

A table is a folder of files named part-00000-of-00500.csv, which may be compressed with gzip
(.csv.gz) and may begin with a line of names. Parts are read one after the other, in order. Memory
holds one part and the rows that matter for the window: see window_rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

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

TRACE_START_US = 600_000_000  # the trace begins here; time 0 in the files means "before"

_PART = re.compile(r"part-(\d{5})-of-(\d{5})\.csv(\.gz)?")
_LATER = ("job_events_later.csv.gz", "job_events_later.csv")

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


_RowsOf = TypeVar("_RowsOf", MachineRows, TaskRows)


@dataclass(frozen=True, slots=True)
class Trace:
    """What the tables say about a window.

    Args:
        machines: all rows of machine_events.
        tasks: the rows of task_events that matter for the window, as window_rows has them.
        ended_job, job_end_us: the last end event of each job, ascending by job.
        last_us: time of the last row of task_events; 0 if there is none.
        over_before: how often a task was over before the window.
        dropped_rows: rows with times beyond the end of the trace.
        facts: which parts were read, for the report.
    """

    machines: MachineRows
    tasks: TaskRows
    ended_job: Int64
    job_end_us: Int64
    last_us: int
    over_before: int
    dropped_rows: int
    facts: dict[str, int | float | str]


FileStamp = tuple[str, int, int]  # name, size in bytes, time of the last change in ns


def file_stamps(directory: Path) -> tuple[FileStamp, ...]:
    """The stamps of the files that read_trace reads: equal as long as none of them changes."""
    stamps = []
    for path in sorted(part.path for part in _Files.of(directory).all()):
        stat = path.stat()
        stamps.append((str(path), stat.st_size, stat.st_mtime_ns))
    return tuple(stamps)


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a table: part `number` of `count`."""

    path: Path
    number: int
    count: int


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a trace, in order; `later` holds at most one."""

    machines: list[_Part]
    tasks: list[_Part]
    jobs: list[_Part]
    later: list[_Part]

    @classmethod
    def of(cls, directory: Path) -> _Files:
        """The files in a folder. AgoraError if a table has a part twice."""
        later = [directory / name for name in _LATER if (directory / name).is_file()]
        return cls(
            _parts(directory / "machine_events"),
            _parts(directory / "task_events"),
            _parts(directory / "job_events"),
            [_Part(path, 0, 1) for path in later[:1]],
        )

    def all(self) -> list[_Part]:
        return [*self.machines, *self.tasks, *self.jobs, *self.later]


def _parts(folder: Path) -> list[_Part]:
    found: dict[int, _Part] = {}
    for path in sorted(folder.glob("part-*")):
        match = _PART.fullmatch(path.name)
        if match is None or not path.is_file():
            continue
        part = _Part(path, int(match[1]), int(match[2]))
        if part.number in found:
            raise AgoraError(
                f"{folder}: {found[part.number].path.name} and {path.name} are the same part"
            )
        found[part.number] = part
    return [found[number] for number in sorted(found)]


def _numbers(parts: Sequence[_Part]) -> str:
    """Which parts these are, as "0-3, 5 of 500"."""
    if not parts:
        return "none"
    runs: list[list[int]] = []
    for part in parts:
        if runs and part.number == runs[-1][1] + 1:
            runs[-1][1] = part.number
        else:
            runs.append([part.number, part.number])
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in runs]
    return f"{', '.join(texts)} of {parts[-1].count}"


MACHINE_COLUMNS = {
    0: time_column("time"),
    1: integer_column("machine ID"),
    2: integer_column("event type", max(MachineEvent)),
    4: fraction_column("CPUs"),
    5: fraction_column("Memory"),
}
TASK_COLUMNS = {
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
JOB_COLUMNS = {
    0: time_column("time"),
    2: integer_column("job ID"),
    3: integer_column("event type", max(TaskEvent)),
}


def read_trace(directory: Path, start_us: int = TRACE_START_US, end_us: int | None = None) -> Trace:
    """Read and check every part present of machine_events and task_events, and of job_events
    and job_events_later if there are any.

    Args:
        directory: holds the folders of the tables.
        start_us, end_us: the window, in trace time; None: up to the last row.

    Raises:
        AgoraError: names what is missing, or the file and line of what is malformed. A part of
            task_events may only be missing before the first or after the last that is there.
    """
    if not directory.is_dir():
        raise AgoraError(f"{directory}: no such trace directory")
    files = _Files.of(directory)
    tables = {"machine_events": files.machines, "task_events": files.tasks}
    missing = [f"{table}/part-*.csv.gz" for table, parts in tables.items() if not parts]
    if missing:
        raise AgoraError(f"{directory}: the trace lacks {', '.join(missing)}")
    for table, parts in tables.items():
        for part, following in pairwise(parts):
            if following.number != part.number + 1:
                first, last = part.number + 1, following.number - 1
                lacking = f"part {first} is" if first == last else f"parts {first} to {last} are"
                raise AgoraError(
                    f"{directory / table}: {lacking} missing; add what is missing, or take out the "
                    f"parts from {following.number} on"
                )
    machines = _Table(files.machines, 6, MACHINE_COLUMNS)
    tasks = _Table(files.tasks, 13, TASK_COLUMNS)
    jobs, later = (_Table(parts, 8, JOB_COLUMNS) for parts in (files.jobs, files.later))
    machine_rows = _joined(
        MachineRows, [MachineRows(*_columns(rows, MACHINE_COLUMNS)) for rows in machines.parts()]
    )
    task_rows, over_before = window_rows(
        (TaskRows(*_columns(rows, TASK_COLUMNS)) for rows in tasks.parts()), start_us, end_us
    )
    if files.tasks[0].number and tasks.first_us is not None and start_us < tasks.first_us:
        raise AgoraError(
            f"{files.tasks[0].path}: the first part present begins at "
            f"{tasks.first_us / 1e6:g} s of the trace, after the window, at {start_us / 1e6:g} s; "
            "choose a later window_start_s"
        )
    job, end = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for rows in chain(jobs.parts(), later.parts()):
        ends = is_end(rows["event type"])
        job, end = _last_ends(
            np.concatenate([job, rows["job ID"][ends]]), np.concatenate([end, rows["time"][ends]])
        )
    facts: dict[str, int | float | str] = {
        "task_events_parts": _numbers(files.tasks),
        "job_events_parts": _numbers(files.jobs)
        + (f" and {files.later[0].path.name}" if files.later else ""),
    }
    if files.tasks[0].number:
        facts["tasks_running_before_the_first_part"] = "unknown"
    dropped = sum(table.dropped for table in (machines, tasks, jobs, later))
    return Trace(machine_rows, task_rows, job, end, tasks.last_us, over_before, dropped, facts)


_Rows = dict[str, NDArray[Any]]


@dataclass(slots=True)
class _Table:
    """A table that is read part by part.

    Attributes:
        files, width, columns: What to read.
        first_us, last_us: Time of the first and the last row that were read.
        dropped: Rows with times beyond the end of the trace.
    """

    files: Sequence[_Part]
    width: int
    columns: dict[int, Column]
    first_us: int | None = None
    last_us: int = 0
    dropped: int = 0

    def parts(self) -> Iterator[_Rows]:
        """The rows of each part, in order. AgoraError if a part goes back in time."""
        before: _Part | None = None
        for part in self.files:
            rows, dropped = _before_the_end(part.path, self.width, self.columns)
            self.dropped += dropped
            if len(rows["time"]):
                first_us = int(rows["time"][0])
                if before is not None and first_us < self.last_us:
                    raise AgoraError(
                        f"{part.path}: begins at {first_us} us, before the last row of "
                        f"{before.path.name} at {self.last_us} us"
                    )
                self.first_us = first_us if self.first_us is None else self.first_us
                self.last_us = int(rows["time"][-1])
                before = part
            yield rows


def _columns(rows: _Rows, columns: dict[int, Column]) -> Iterator[NDArray[Any]]:
    return (rows[column.name] for column in columns.values())


def _before_the_end(path: Path, width: int, columns: dict[int, Column]) -> tuple[_Rows, int]:
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


def window_rows(
    parts: Iterable[TaskRows], start_us: int, end_us: int | None
) -> tuple[TaskRows, int]:
    """The rows that matter for the window [start_us, end_us), in order of time, and how often a
    task was over before it. How the rows are cut into parts makes no difference to their tasks.

    - What a task did before the window up to its last end there is left out, and so are its UPDATE
      rows. So memory before the window holds the tasks that wait or run.
    - From parts that lie behind the window, only attempts of tasks that were seen are read.
    """
    kept: list[TaskRows] = []
    over_before = 0
    seen: _TaskSet | None = None
    for rows in parts:
        if not len(rows.time_us):
            continue
        if end_us is not None and rows.time_us[0] >= end_us:
            if seen is None:
                seen = _TaskSet(_joined(TaskRows, kept))
            attempts = (rows.event == TaskEvent.SCHEDULE) | is_end(rows.event)
            kept.append(_taken(rows, attempts & seen.has(rows)))
            continue
        kept.append(rows)
        if rows.time_us[0] < start_us:
            rows, over = _since_the_last_end(_joined(TaskRows, kept), start_us)
            kept, over_before = [rows], over_before + over
    return _joined(TaskRows, kept), over_before


def _since_the_last_end(rows: TaskRows, start_us: int) -> tuple[TaskRows, int]:
    """The rows without those of tasks that were over before start_us, up to that end, and without
    UPDATE rows before it; and how many attempts to run a task ended so."""
    rows = _taken(rows, (rows.event < TaskEvent.UPDATE_PENDING) | (rows.time_us >= start_us))
    order = np.lexsort((np.arange(len(rows.job)), rows.index, rows.job))
    job, index, event = rows.job[order], rows.index[order], rows.event[order]
    same_task = np.zeros(len(order), np.bool_)
    same_task[1:] = (job[1:] == job[:-1]) & (index[1:] == index[:-1])
    task = np.cumsum(~same_task) - 1
    end_before = is_end(event) & (rows.time_us[order] < start_us)
    last_end = np.full(int(task[-1]) + 1 if len(task) else 0, -1, np.int64)
    ends = np.flatnonzero(end_before)
    last_end[task[ends]] = ends  # the last assignment, that of the latest row, stands
    after_submission = np.zeros(len(order), np.bool_)
    after_submission[1:] = same_task[1:] & ~is_end(event[:-1])
    keep = np.zeros(len(order), np.bool_)
    keep[order[np.arange(len(order)) > last_end[task]]] = True
    return _taken(rows, keep), int(np.count_nonzero(end_before & after_submission))


class _TaskSet:
    """The tasks of some rows."""

    def __init__(self, rows: TaskRows) -> None:
        self._jobs = np.unique(rows.job)
        self._tasks = np.unique(self._key(rows))

    def has(self, rows: TaskRows) -> NDArray[np.bool_]:
        """Which rows are of one of these tasks: bool[n]."""
        key = self._key(rows)
        return (key >= 0) & np.isin(key, self._tasks)

    def _key(self, rows: TaskRows) -> Int64:
        """A number for each task; negative where its job has none."""
        if not len(self._jobs):
            return np.full(len(rows.job), -1, np.int64)
        at = np.minimum(np.searchsorted(self._jobs, rows.job), len(self._jobs) - 1)
        return np.where(self._jobs[at] == rows.job, (at << 31) | rows.index, -1)


def _taken(rows: TaskRows, which: NDArray[np.bool_]) -> TaskRows:
    if which.all():
        return rows
    return TaskRows(*(getattr(rows, field.name)[which] for field in fields(TaskRows)))


def _joined(kind: type[_RowsOf], parts: Sequence[_RowsOf]) -> _RowsOf:
    """The rows of several tables, one after the other."""
    if len(parts) == 1:
        return parts[0]
    columns: list[NDArray[Any]] = [
        np.concatenate([getattr(rows, field.name) for rows in parts])
        if parts
        else np.zeros(0, np.int64)
        for field in fields(kind)
    ]
    return kind(*columns)


def _last_ends(job: Int64, end_us: Int64) -> tuple[Int64, Int64]:
    """Each job once, ascending, with its last end."""
    ended, of = np.unique(job, return_inverse=True)
    last = np.zeros(len(ended), np.int64)
    np.maximum.at(last, of, end_us)
    return ended, last


def is_end(event: Int64) -> NDArray[np.bool_]:
    """The events that end an attempt: bool[n]."""
    return (event >= TaskEvent.EVICT) & (event <= TaskEvent.LOST)
