"""Whether a workload keeps its contract (parsync/workload/workload.py). Every workload is checked
before a run, and when it is read back from the files of a run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.workload.workload import Workload
from shared_state.cell import MAX_CAPACITY, MAX_DIMENSIONS
from shared_state.tasks import (
    NO_GANG,
    NOWHERE_ELSE,
    CellSpec,
    Int64,
    PreferenceCatalog,
    TaskBatch,
    TaskClass,
)

# Of a placement, and of waiting. The flow scheduler's arcs go to 2^40, which leaves room for the
# cost of waiting on.
MAX_COST = NOWHERE_ELSE


def larger_than_every_machine(cell: CellSpec, request: Int64) -> NDArray[np.bool_]:
    """Find requests, int64[n, R], that exceed the limit of every machine, up or down, in some
    dimension: bool[n]."""
    # a broadcast column is one request
    distinct = request[:1] if request.strides[0] == 0 else request
    fits = np.zeros(len(distinct), np.bool_)
    for limit in np.unique(cell.limit, axis=0):
        fits |= (distinct <= limit).all(axis=1)
    return np.broadcast_to(~fits, len(request)) if len(distinct) != len(request) else ~fits


def validate(workload: Workload) -> None:
    """Check every invariant of Workload, CellSpec, PreferenceCatalog and TaskBatch. Raises
    ValueError naming the first field at fault."""
    _validate_cell(workload.cell)
    _validate_catalog(workload.catalog, workload.cell)
    _validate_tasks(workload)
    _validate_types(workload)
    _validate_arrivals(workload)
    _validate_machines(workload)
    _validate_phases(workload)
    _validate_waiting(workload)
    _validate_quotas(workload)
    if workload.mapreduce is not None:
        wrong = workload.mapreduce.broken_rule(workload.tasks)
        _require(not wrong, wrong)
    too_large = int(
        np.count_nonzero(larger_than_every_machine(workload.cell, workload.tasks.request))
    )
    _require(
        workload.facts.get("tasks_larger_than_every_machine") == too_large,
        "facts.tasks_larger_than_every_machine: must count the "
        f"{too_large} tasks larger than every machine",
    )


def check_order(workload: Workload) -> None:
    """Raises ValueError unless the tasks of each batch, and those that run at the start, are in the
    order of their ids: a table of tasks tells no other."""
    rows, initial = workload.arrival_rows, workload.initial.task
    ascends = rows[1:] > rows[:-1]
    ascends[workload.arrival_offsets[1:-1] - 1] = True  # where the next batch begins
    _require(ascends.all(), "arrival_rows: not ascending within a batch")
    _require((np.diff(initial) > 0).all(), "initial.task: not ascending")


def _require(holds: bool | np.bool_, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _int64(values: NDArray[Any]) -> bool:
    return values.dtype == np.int64 and values.ndim == 1


def _costs(values: NDArray[Any]) -> bool:
    """Whether they are int64[n] within range; negative ones have a message of their own."""
    return _int64(values) and bool((values <= MAX_COST).all())


def _ascending(values: NDArray[Any]) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _within(values: NDArray[Any], count: int) -> bool:
    return bool(((values >= 0) & (values < count)).all())


def _validate_cell(cell: CellSpec) -> None:
    _require(cell.capacity.ndim == 2, "cell.capacity: int64[M, R] with M > 0")
    machines, dimensions = cell.capacity.shape
    _require(
        cell.capacity.dtype == np.int64 and machines > 0, "cell.capacity: int64[M, R] with M > 0"
    )
    _require(
        dimensions == len(cell.dimensions) == len(cell.overcommit_permille) > 0,
        "cell.dimensions: one name and factor each",
    )
    _require(
        len(set(cell.dimensions)) == dimensions <= MAX_DIMENSIONS,
        f"cell.dimensions: 1 to {MAX_DIMENSIONS} different names",
    )
    _require(_int64(cell.overcommit_permille), "cell.overcommit_permille: int64[R]")
    _require((cell.capacity >= 0).all(), "cell.capacity: negative")
    _require((cell.capacity <= MAX_CAPACITY).all(), f"cell.capacity: above {MAX_CAPACITY}")
    _require((cell.overcommit_permille > 0).all(), "cell.overcommit_permille: not positive")
    _require(
        cell.rack.dtype == np.int32 and len(cell.rack) == machines and _ascending(cell.rack),
        "cell.rack: int32[M], ascending",
    )
    _require(cell.rack[0] >= 0, "cell.rack: negative")
    _require(
        _int64(cell.slot_score)
        and len(cell.slot_score) == machines
        and (cell.slot_score >= 0).all(),
        "cell.slot_score: int64[M], not negative",
    )
    weight = np.maximum(cell.slot_score, 1)  # as views add them up
    total = (int((weight >> 32).sum()) << 32) + int((weight & 0xFFFFFFFF).sum())
    _require(total < 1 << 62, "cell.slot_score: the sum is 2^62 or more")


def _validate_catalog(catalog: PreferenceCatalog, cell: CellSpec) -> None:
    sets = catalog.sets
    racks = int(cell.rack[-1]) + 1
    for name, offsets, member, cost, bound in (
        ("machine", catalog.machine_offsets, catalog.machine, catalog.machine_cost, cell.machines),
        ("rack", catalog.rack_offsets, catalog.rack, catalog.rack_cost, racks),
    ):
        _require(
            _int64(offsets)
            and len(offsets) == sets + 1
            and offsets[0] == 0
            and _ascending(offsets),
            f"catalog.{name}_offsets: int64[K+1], ascending",
        )
        _require(offsets[-1] == len(member) == len(cost), f"catalog.{name}: lengths differ")
        _require(offsets[1] == 0, f"catalog.{name}: set 0 is not empty")
        _require(
            member.dtype == np.int32 and _within(member, bound),
            f"catalog.{name}: int32 in [0, {bound})",
        )
        _require((cost >= 0).all(), f"catalog.{name}_cost: negative")
        _require(_costs(cost), f"catalog.{name}_cost: int64, at most {MAX_COST}")
        of_set = np.repeat(np.arange(sets, dtype=np.int64), np.diff(offsets))
        key = of_set * bound + member
        _require((key[1:] > key[:-1]).all(), f"catalog.{name}: not strictly ascending within a set")
    _require(
        catalog.wait_cost >= 0 and catalog.wait_quantum_us > 0,
        "catalog.wait_quantum_us: not positive, or a negative wait_cost",
    )
    _require(len(catalog.unscheduled_cost) == sets, "catalog.unscheduled_cost: int64[K]")
    _require(catalog.elsewhere_cost[0] == 0, "catalog: set 0 has a cost")
    _require(
        (catalog.elsewhere_cost >= 0).all() and (catalog.unscheduled_cost >= 0).all(),
        "catalog: negative cost",
    )
    _require(
        _costs(catalog.elsewhere_cost) and _costs(catalog.unscheduled_cost),
        f"catalog: elsewhere_cost and unscheduled_cost: int64[K], at most {MAX_COST}",
    )
    lists = np.diff(catalog.machine_offsets) + np.diff(catalog.rack_offsets) > 0
    _require(
        lists[catalog.elsewhere_cost == NOWHERE_ELSE].all(),
        "catalog: a set whose tasks may run nowhere else lists no machine or rack",
    )
    # Or a scheduler that minimises costs would let tasks without preferences wait first.
    dearest = int(catalog.unscheduled_cost.max())
    _require(
        catalog.unscheduled_cost[0] == dearest,
        f"catalog.unscheduled_cost[0], of tasks without preferences: expected at least that of "
        f"every other set, {dearest}, got {catalog.unscheduled_cost[0]}",
    )


def _validate_tasks(workload: Workload) -> None:
    tasks: TaskBatch = workload.tasks
    n = len(tasks)
    _require(np.array_equal(tasks.task, np.arange(n)), "tasks.task: not the rows 0..n-1")
    for name, dtype in (
        ("job", np.int64),
        ("priority", np.int32),
        ("submit_us", np.int64),
        ("preference", np.int32),
        ("gang", np.int64),
        ("task_class", np.int8),
    ):
        column = getattr(tasks, name)
        _require(
            column.shape == (n,) and column.dtype == dtype, f"tasks.{name}: {dtype.__name__}[n]"
        )
    _require(
        tasks.request.shape == (n, len(workload.cell.dimensions)), "tasks.request: int64[n, R]"
    )
    _require(
        tasks.request.dtype == np.int64 and bool((tasks.request >= 0).all()),
        "tasks.request: int64, not negative",
    )
    _require(tasks.request.any(axis=1).all(), "tasks.request: a task that requests nothing at all")
    _require((tasks.job >= 0).all(), "tasks.job: negative")
    _require((tasks.gang >= NO_GANG).all(), f"tasks.gang: neither {NO_GANG} nor from 0 on")
    _require(_within(tasks.preference, workload.catalog.sets), "tasks.preference: no such set")
    _require(_within(tasks.task_class, len(TaskClass)), "tasks.task_class: no such class")
    _require(
        workload.duration_us.shape == (n,) and _int64(workload.duration_us), "duration_us: int64[n]"
    )
    _require(
        ((workload.duration_us > 0) | (workload.duration_us == -1)).all(),
        "duration_us: neither positive nor -1",
    )
    _require(0 < workload.preferred_permille <= 1000, "preferred_permille: not in [1, 1000]")


def _validate_types(workload: Workload) -> None:
    """Check the types of arrivals, initial placement and machine events."""
    for name in ("arrival_us", "arrival_offsets", "arrival_rows"):
        _require(_int64(getattr(workload, name)), f"{name}: int64[n]")
    initial, events = workload.initial, workload.machine_events
    for column, where, dtype in (
        (initial.task, "initial.task", np.int64),
        (initial.machine, "initial.machine", np.int32),
        (events.at_us, "machine_events.at_us", np.int64),
        (events.machine, "machine_events.machine", np.int32),
        (events.up, "machine_events.up", np.bool_),
    ):
        _require(column.dtype == dtype and column.ndim == 1, f"{where}: {dtype.__name__}[n]")


def _validate_arrivals(workload: Workload) -> None:
    tasks, arrival_us, offsets = workload.tasks, workload.arrival_us, workload.arrival_offsets
    _require(_ascending(arrival_us), "arrival_us: not ascending")
    _require(
        len(arrival_us) == 0 or (arrival_us[0] >= 0 and arrival_us[-1] < workload.end_us),
        "arrival_us: not in [0, end_us)",
    )
    _require(
        len(offsets) == len(arrival_us) + 1 and offsets[0] == 0,
        "arrival_offsets: int64[batches + 1] from 0",
    )
    _require(
        (np.diff(offsets) > 0).all() and offsets[-1] == len(workload.arrival_rows),
        "arrival_offsets: an empty batch or rows left over",
    )
    _require(
        _within(workload.arrival_rows, len(tasks)) and _within(workload.initial.task, len(tasks)),
        "arrival_rows: no such task",
    )
    covered = np.bincount(
        np.concatenate([workload.arrival_rows, workload.initial.task]), minlength=len(tasks)
    )
    _require(
        len(covered) == len(tasks) and (covered == 1).all(),
        "arrival_rows: rows not covered exactly once",
    )
    size = np.diff(offsets)
    first = workload.arrival_rows[offsets[:-1]]
    check_order(workload)
    _require(
        (tasks.job[workload.arrival_rows] == np.repeat(tasks.job[first], size)).all(),
        "arrival_rows: a batch of several jobs",
    )
    submitted = tasks.submit_us[workload.arrival_rows]
    _require(
        (submitted == np.repeat(arrival_us, size)).all(),
        "tasks.submit_us: differs from the batch's arrival",
    )


def _validate_machines(workload: Workload) -> None:
    machines = workload.cell.machines
    initial, events = workload.initial, workload.machine_events
    _require(len(initial.task) == len(initial.machine), "initial: lengths differ")
    _require(_within(initial.machine, machines), "initial.machine: no such machine")
    _require(
        len(events.at_us) == len(events.machine) == len(events.up), "machine_events: lengths differ"
    )
    _require(
        _ascending(events.at_us) and (events.at_us >= 0).all(),
        "machine_events.at_us: not ascending from 0",
    )
    _require((events.at_us < workload.end_us).all(), "machine_events.at_us: after the end")
    _require(_within(events.machine, machines), "machine_events.machine: no such machine")
    pair = events.at_us * machines + events.machine
    _require(
        len(np.unique(pair)) == len(pair), "machine_events: two events of a machine at one time"
    )
    down_at_start = events.machine[(events.at_us == 0) & ~events.up]
    _require(
        not np.isin(initial.machine, down_at_start).any(),
        "initial.machine: a machine that is down at 0",
    )


def _validate_waiting(workload: Workload) -> None:
    catalog = workload.catalog
    cost = catalog.wait_cost * -(-workload.end_us // catalog.wait_quantum_us)
    _require(
        cost <= MAX_COST,
        f"catalog.wait_cost: to wait for all of the workload costs {cost}, at most {MAX_COST}",
    )


def _validate_quotas(workload: Workload) -> None:
    quotas, tasks = workload.quotas, workload.tasks
    if quotas is None:
        return
    _require(
        0 < len(set(quotas.names)) == len(quotas.names), "quotas.names: 1 or more different names"
    )
    group = quotas.group
    _require(
        group.dtype == np.int32 and len(group) == len(tasks) and _within(group, len(quotas.names)),
        f"quotas.group: int32[n] in [0, {len(quotas.names)})",
    )
    by_job = np.argsort(tasks.job, kind="stable")
    job, group = tasks.job[by_job], group[by_job]
    _require(
        (group[1:] == group[:-1])[job[1:] == job[:-1]].all(), "quotas.group: a job in two groups"
    )


def _validate_phases(workload: Workload) -> None:
    phases = workload.phases
    _require(len(phases) > 0 and phases[0].start_us == 0, "phases: must begin at 0")
    _require(phases[-1].end_us == workload.end_us, "phases: must end with the workload")
    _require(all(phase.start_us < phase.end_us for phase in phases), "phases: an empty phase")
    _require(all(a.end_us == b.start_us for a, b in pairwise(phases)), "phases: a gap or overlap")
