"""The common parts of trace readers: a cell of machines of one or several types, and a workload of
tasks that arrive at a cell that is empty when the run begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parsync.workload.checks import larger_than_every_machine
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
from shared_state.errors import AgoraError
from shared_state.tasks import (
    NO_GANG,
    CellSpec,
    Int32,
    Int64,
    PreferenceCatalog,
    TaskBatch,
    TaskClass,
)


def equal_machines(
    machines: int, capacity: Mapping[str, int], machines_per_rack: int = 40
) -> CellSpec:
    """The cell of equal machines in racks.

    Args:
        machines: how many, at least 1.
        capacity: of each machine, by resource dimension, e.g. {"cpu_milli": 8000}.
        machines_per_rack: machines in each rack but the last, which may have fewer.
    """
    return machines_of_types([(machines, capacity)], machines_per_rack)


def machines_of_types(
    types: Sequence[tuple[int, Mapping[str, int]]], machines_per_rack: int = 40
) -> CellSpec:
    """The cell of machines of several types in racks.

    Args:
        types: for each type how many machines, at least 1, and the capacity of each of them, by
            resource dimension. The machines of a type have numbers one after the other, in the
            order of the types. All types name the same dimensions; 0 is none of one.
        machines_per_rack: machines in each rack but the last, which may have fewer.

    Raises:
        AgoraError: two types name other dimensions.
    """
    dimensions = tuple(types[0][1])
    for _, capacity in types:
        if set(capacity) != set(dimensions):
            raise AgoraError(
                f"machine types: expected {', '.join(dimensions)}, got {', '.join(capacity)}"
            )
    capacities = [[capacity[name] for name in dimensions] for _, capacity in types]
    counts = [count for count, _ in types]
    machines = sum(counts)
    return CellSpec(
        dimensions=dimensions,
        capacity=np.repeat(np.array(capacities, np.int64), counts, axis=0),
        rack=(np.arange(machines, dtype=np.int64) // machines_per_rack).astype(np.int32),
        slot_score=np.zeros(machines, np.int64),
        overcommit_permille=np.full(len(dimensions), 1000, np.int64),
    )


def arriving_tasks(
    name: str,
    cell: CellSpec,
    submit_us: ArrayLike,
    duration_us: ArrayLike,
    request: Mapping[str, ArrayLike],
    job: ArrayLike | None = None,
    end_us: int | None = None,
    facts: Mapping[str, int | float | str] | None = None,
    gang: ArrayLike | None = None,
    priority: ArrayLike | None = None,
    preference: ArrayLike | None = None,
    catalog: PreferenceCatalog | None = None,
    preferred_permille: int = 1000,
) -> Workload:
    """The workload of n tasks that arrive one after the other.

    Tasks of one job that are submitted at the same microsecond arrive together.

    Args:
        name: of the workload, for reports.
        cell: the machines.
        submit_us: int[n], microseconds since the run began, in any order.
        duration_us: int[n], run time in microseconds; 0 counts as 1, -1 is a service that never
            ends.
        request: int[n] for each dimension of the cell. A task may request 0 of some; one that
            requests nothing at all is counted, and takes 1 of each.
        job: int[n], any numbers; None makes each task a job of its own.
        end_us: where the workload ends, later than 0; tasks submitted from then on are left out.
            None: right after the last one arrived.
        facts: what is worth saying about the workload in the report.
        gang: int[n], any numbers from 0 on that tasks share which are of use only together, -1 for
            a task in no gang; None: there are no gangs. The tasks of a gang belong to one job and
            are submitted together.
        priority: int[n], higher is more important; None: all have 0.
        preference: int[n], the set of the catalog that each task prefers, 0 for none; None: no
            task prefers a machine.
        catalog: the sets, for example of experiments.workloads.groups.group_catalog.
        preferred_permille: what a task runs on a preferred machine, in permille of its run time.

    Raises:
        AgoraError: there is no task, a column has another length or a value that cannot be, or a
            dimension is not the cell's.
    """
    if set(request) != set(cell.dimensions):
        raise AgoraError(
            f"request: expected {', '.join(cell.dimensions)}, got {', '.join(request)}"
        )
    submit = _column("submit_us", submit_us)
    n = len(submit)
    jobs = (
        np.arange(n) if job is None else np.unique(_column("job", job, n), return_inverse=True)[1]
    )
    gangs = _optional("gang", gang, n, NO_GANG)
    order = np.lexsort((np.arange(n), gangs, jobs, submit))
    last = int(submit[order[-1]]) + 1 if n else 0
    end = last if end_us is None else end_us
    order = order[submit[order] < end]
    if len(order) == 0:
        raise AgoraError(f"{name}: no task arrives")
    submit, jobs = submit[order], jobs[order].astype(np.int64)
    requests = np.stack([_column(d, request[d], n)[order] for d in cell.dimensions], axis=1)
    requests, nothing = one_unit_at_least(requests)
    duration = _column("duration_us", duration_us, n)[order]
    duration = np.where(duration == 0, 1, duration)
    rows = np.arange(len(order), dtype=np.int64)
    first = np.ones(len(order), np.bool_)  # of its batch
    first[1:] = (jobs[1:] != jobs[:-1]) | (submit[1:] != submit[:-1])
    starts = np.flatnonzero(first)
    gangs = _gang_ids(gangs[order], np.cumsum(first))
    sets = PreferenceCatalog.empty() if catalog is None else catalog
    none64, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    tasks = TaskBatch(
        task=rows,
        job=jobs,
        request=requests,
        priority=_within("priority", _optional("priority", priority, n, 0)[order], -(2**31), 2**31),
        submit_us=submit,
        preference=_within(
            "preference", _optional("preference", preference, n, 0)[order], 0, sets.sets
        ),
        gang=gangs,
        task_class=np.where(duration < 0, TaskClass.SERVICE, TaskClass.BATCH).astype(np.int8),
    )
    too_large = larger_than_every_machine(cell, tasks.request)
    return Workload(
        name=name,
        cell=cell,
        catalog=sets,
        tasks=tasks,
        duration_us=duration,
        preferred_permille=preferred_permille,
        arrival_us=submit[starts],
        arrival_offsets=np.append(starts, len(rows)).astype(np.int64),
        arrival_rows=rows,
        initial=InitialPlacement(none64, none32),
        machine_events=MachineEvents(none64, none32, np.zeros(0, np.bool_)),
        phases=(Phase(0, end, 0),),
        end_us=end,
        facts={
            **(facts or {}),
            **nothing,
            "tasks_after_the_end_dropped": n - len(rows),
            "tasks_larger_than_every_machine": int(np.count_nonzero(too_large)),
        },
    )


def one_unit_at_least(request: Int64) -> tuple[Int64, dict[str, int]]:
    """Give tasks that request nothing of any resource 1 of each, as what takes no room could not be
    scheduled. Requests of 0 beside others stay.

    Args:
        request: int64[n, R].

    Returns: The requests, and a fact that counts such tasks; none if there are none.
    """
    nothing = (request == 0).all(axis=1)
    if not nothing.any():
        return request, {}
    count = int(np.count_nonzero(nothing))
    return np.where(nothing[:, None], 1, request), {"tasks_that_request_nothing": count}


def microseconds(seconds: NDArray[Any], speedup: int = 1) -> Int64:
    """Convert seconds to microseconds, int64[n], divided by speedup and rounded to the nearest."""
    whole: Int64 = np.rint(seconds * 1e6 / speedup).astype(np.int64)
    return whole


def _gang_ids(gang: Int64, batch: NDArray[np.intp]) -> Int64:
    """The gangs renumbered from 0 on, int64[n]. Raises AgoraError for a gang whose tasks are not
    all of one batch."""
    ids: Int64 = np.full(len(gang), NO_GANG, np.int64)
    inside = gang != NO_GANG
    if not inside.any():
        return ids
    if gang.min() < NO_GANG:
        raise AgoraError(f"gang: expected {NO_GANG} or numbers from 0 on, got {gang.min()}")
    numbers, ids[inside] = np.unique(gang[inside], return_inverse=True)
    batches = np.unique(np.stack([ids[inside], batch[inside]]), axis=1)[0]
    if len(batches) > len(numbers):
        parted = numbers[batches[1:][batches[1:] == batches[:-1]][0]]
        raise AgoraError(
            f"gang: the tasks of gang {parted} are not all of one job and submitted together"
        )
    return ids


def _optional(name: str, values: ArrayLike | None, length: int, otherwise: int) -> Int64:
    """A column as int64[n]; `otherwise` for all rows if it is not given."""
    return np.full(length, otherwise, np.int64) if values is None else _column(name, values, length)


def _within(name: str, column: Int64, first: int, end: int) -> Int32:
    """A column as int32[n]. Raises AgoraError for a value that is not in [first, end)."""
    wrong = (column < first) | (column >= end)
    if wrong.any():
        raise AgoraError(f"{name}: expected {first} to {end - 1}, got {column[wrong][0]}")
    return column.astype(np.int32)


def _column(name: str, values: ArrayLike, length: int | None = None) -> Int64:
    """A column as int64[n]. Raises AgoraError for anything else."""
    column = np.asarray(values)
    if column.ndim != 1 or (length is not None and len(column) != length):
        expected = "one dimension" if length is None else f"{length} values"
        raise AgoraError(f"{name}: expected {expected}, got shape {column.shape}")
    if column.dtype.kind not in "iu":
        raise AgoraError(f"{name}: expected integers, got {column.dtype}")
    if column.dtype == np.uint64 and len(column) and column.max() > np.iinfo(np.int64).max:
        raise AgoraError(f"{name}: expected integers up to 2^63 - 1, got {column.max()}")
    return column.astype(np.int64)
