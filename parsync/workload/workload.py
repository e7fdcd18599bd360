"""A workload: the cell, every task with its true duration, arrivals in batches, machine events and
load phases. All columnar. Beside it its gangs, and how an arm begins: with the tasks that its own
warm-up left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedulers.mapreduce.jobs import MapReduceJobs
from shared_state.tasks import NO_GANG, CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch


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


NOT_IN_GANG = -1
LEAST_TASKS = 2  # one task by itself cannot be torn


@dataclass(frozen=True, slots=True)
class TaskGangs:
    """The gangs with two or more arriving tasks, in the order of their ids. Tasks that run as the
    run begins are in none of them: they have their places.

    Attributes:
        place: int32[tasks], which gang each task is in; NOT_IN_GANG if in none.
        size: int64[gangs], how many tasks.
        submit_us: int64[gangs], when the first of them is submitted.
        job: int64[gangs], the job of that task.
    """

    place: Int32
    size: Int64
    submit_us: Int64
    job: Int64

    @staticmethod
    def of(workload: Workload) -> TaskGangs | None:
        """The gangs of a workload; None if it has none."""
        tasks = workload.tasks
        gang = tasks.gang[workload.arrival_rows]  # in the order of arrival
        rows = workload.arrival_rows[gang != NO_GANG]
        _, first, place, size = np.unique(
            gang[gang != NO_GANG], return_index=True, return_inverse=True, return_counts=True
        )
        counts = size >= LEAST_TASKS
        if not counts.any():
            return None
        number = np.where(counts, np.cumsum(counts) - 1, NOT_IN_GANG)
        of_task = np.full(len(tasks), NOT_IN_GANG, np.int32)
        of_task[rows] = number[place]
        first_rows = rows[first[counts]]
        return TaskGangs(of_task, size[counts], tasks.submit_us[first_rows], tasks.job[first_rows])

    def __len__(self) -> int:
        return len(self.size)


WAITS = -1


@dataclass(frozen=True, slots=True)
class StartState:
    """k tasks that are not over at time 0.

    Attributes:
        tasks: Their columns; ids, jobs and gangs are numbered by themselves.
        machine: int32[k], where each runs, or WAITS.
        duration_us: int64[k], what remains of its run time, counted as away from preferred
            machines; -1 = never ends.
        quota_group: int32[k], a position among the names of the workload's quota groups; None if
            it has none.
    """

    tasks: TaskBatch
    machine: Int32
    duration_us: Int64
    quota_group: Int32 | None = None


def starting_from(workload: Workload, state: StartState) -> Workload:
    """A workload that begins with the tasks of a state.

    They come behind its own tasks, whose ids stay as they are, and so do their jobs and gangs.
    Those that wait are submitted at time 0, before all others.

    Raises:
        ValueError: Tasks run at the start of the workload already.
    """
    if len(workload.initial.task):
        raise ValueError("the workload says itself what runs at time 0")
    n, k = len(workload.tasks), len(state.tasks)
    rows = np.arange(n, n + k, dtype=np.int64)
    own, before = workload.tasks, state.tasks
    gang = before.gang.copy()
    gang[gang != NO_GANG] += int(own.gang.max(initial=NO_GANG)) + 1
    added = replace(
        before,
        task=rows,
        job=before.job + (int(own.job.max(initial=-1)) + 1),
        submit_us=np.zeros(k, np.int64),
        gang=gang,
    )
    runs = state.machine != WAITS
    waiting = rows[~runs]
    waiting = waiting[np.argsort(added.job[waiting - n], kind="stable")]
    job = added.job[waiting - n]
    first = np.flatnonzero(np.diff(job, prepend=-1))
    return replace(
        workload,
        tasks=joined_tasks(own, added),
        duration_us=np.concatenate([workload.duration_us, state.duration_us]),
        arrival_us=np.concatenate([np.zeros(len(first), np.int64), workload.arrival_us]),
        arrival_offsets=np.concatenate([first, workload.arrival_offsets + len(waiting)]),
        arrival_rows=np.concatenate([waiting, workload.arrival_rows]),
        initial=InitialPlacement(rows[runs], state.machine[runs]),
        quotas=joined_quotas(workload.quotas, state.quota_group),
    )


def joined_quotas(own: QuotaMembership | None, before: Int32 | None) -> QuotaMembership | None:
    """The quota groups of the workload's tasks, then those of the tasks of its start."""
    if own is None or before is None:
        assert own is None and before is None, "a warm-up has the quota groups of its workload"
        return None
    return replace(own, group=joined_column(own.group, before))


def joined_tasks(one: TaskBatch, other: TaskBatch) -> TaskBatch:
    """The rows of one table, then those of the other. Columns whose values are all alike stay
    read-only broadcasts."""
    columns: dict[str, Any] = {
        name: joined_column(getattr(one, name), getattr(other, name))
        for name in TaskBatch.__dataclass_fields__
    }
    return TaskBatch(**columns)


def joined_column(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The values of one column, then those of the other."""
    if len(one) and one.strides[0] == 0 and (other == one[0]).all():
        return np.broadcast_to(one[0], (len(one) + len(other), *one.shape[1:]))
    return np.concatenate([one, other])
