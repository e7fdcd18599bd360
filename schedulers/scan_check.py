"""Holds the numbers of Plan.partitions_scanned that a kind states against the rule that Plan gives.

Every number is checked where the rule leaves one answer: single tasks on cells with full, small and
large partitions, and batches of equal tasks on a cell of slots. A kind that states no number has
nothing to check, because the platform counts for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from schedulers.interface import PartitionRanking, Plan, PlanContext, SchedulerEnvironment
from schedulers.registry import SchedulerSpec
from shared_state.partition import Partitioning
from shared_state.random import Stream, stream_key
from shared_state.tasks import NO_GANG, CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import PartitionDelta
from shared_state.view import ClusterView

PARTITIONS = 4
MACHINES_EACH = 3
MACHINES = PARTITIONS * MACHINES_EACH
ROOM = 5  # of an empty machine; 1 in the cell of slots
SINGLE_TASKS = 24
BATCHES = 6
BATCH = 7  # tasks: not a multiple of the number of partitions


@dataclass(frozen=True, slots=True)
class _Case:
    """Equal tasks, and what the view shows free (int64[MACHINES]) in which order of freshness."""

    limit: int
    tasks: int
    request: int
    free: Int64
    order: Int32


def broken_scan_rule(spec: SchedulerSpec, options: BaseModel, seed: int) -> str | None:
    """The first number that breaks the rule, as `field: what is wrong`; None if none does."""
    for number, case in enumerate(_cases(seed)):
        for ranking in PartitionRanking:
            plan = _plan(spec, options, case, ranking, stream_key(seed, "scans", number))
            if plan.partitions_scanned is None:
                continue
            expected = _expected(plan, case, ranking)
            if isinstance(expected, str):
                return f"plan.partitions_scanned: expected None, {expected} under {ranking.name}"
            if plan.partitions_scanned != expected:
                return (
                    f"plan.partitions_scanned: expected {expected} under {ranking.name}, "
                    f"got {plan.partitions_scanned} (tasks: {case.tasks}, of request "
                    f"{case.request}; free, by machine: {case.free.tolist()}; partitions of "
                    f"{MACHINES_EACH} machines, freshest first: {case.order.tolist()})"
                )
    return None


def _cases(seed: int) -> Iterator[_Case]:
    stream = Stream(stream_key(seed, "scan cases", 0))
    for _ in range(SINGLE_TASKS):
        largest = np.array([0, 1, ROOM])[stream.integers(PARTITIONS, 3)]  # room by partition
        most = np.repeat(largest, MACHINES_EACH)
        free = np.minimum(stream.integers(MACHINES, ROOM + 1), most)
        request = 1 + int(stream.integers(1, ROOM)[0])
        yield _Case(ROOM, 1, request, free, _order(stream))
    for _ in range(BATCHES):
        yield _Case(1, BATCH, 1, stream.integers(MACHINES, 2), _order(stream))


def _order(stream: Stream) -> Int32:
    return stream.permutation(PARTITIONS).astype(np.int32)


def _plan(
    spec: SchedulerSpec, options: BaseModel, case: _Case, ranking: PartitionRanking, stream: int
) -> Plan:
    """The plan of a new scheduler, as it states it."""
    cell = CellSpec(
        ("slots",),
        np.full((MACHINES, 1), case.limit, np.int64),
        np.arange(MACHINES, dtype=np.int32) // MACHINES_EACH,
        np.zeros(MACHINES, np.int64),
        np.array([1000], np.int64),
    )
    partitioning = Partitioning(np.arange(PARTITIONS + 1, dtype=np.int64) * MACHINES_EACH)
    view = ClusterView(cell, partitioning)
    used = (case.limit - case.free)[:, None]
    rows = np.arange(MACHINES_EACH, dtype=np.uint16)
    up = np.ones(MACHINES_EACH, np.bool_)
    for p in range(PARTITIONS):
        view.apply(PartitionDelta(p, 0, 1, 1, rows, used[partitioning.rows(p)], up, None))
    environment = SchedulerEnvironment(
        "conformance", cell, partitioning.offsets, PreferenceCatalog.empty()
    )
    n = case.tasks
    tasks = TaskBatch(
        np.arange(n, dtype=np.int64),
        np.zeros(n, np.int64),
        np.full((n, 1), case.request, np.int64),
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        np.full(n, NO_GANG, np.int64),
        np.zeros(n, np.int8),
    )
    return spec.build(options, environment).plan(
        tasks, view, PlanContext(1, stream, ranking, case.order)
    )


def _expected(plan: Plan, case: _Case, ranking: PartitionRanking) -> int | str:
    """The number that the rule gives for this plan, or how the plan shows that its scheduler does
    not search in the order of the ranking."""
    place = np.argsort(case.order)  # of each partition in the order of freshness
    free = case.free.copy()
    count = 0
    # Equal tasks: those placed in fresher partitions may be taken to have been placed before.
    claims = plan.machine[np.argsort(place[plan.machine // MACHINES_EACH], kind="stable")]
    for machine in [*claims.tolist(), *[None] * (case.tasks - len(claims))]:
        is_open = _by_place(free > 0, case.order)
        if ranking in (PartitionRanking.LATENCY_FIRST, PartitionRanking.FRESHEST_PREFERRED):
            upto = PARTITIONS
            if machine is not None:
                upto = int(place[machine // MACHINES_EACH]) + 1
                fits = _by_place(free >= case.request, case.order)
                if fits[: upto - 1].any():
                    return "as a fresher partition than the one chosen had room for a task"
            count += int(np.count_nonzero(is_open[:upto]))
        elif is_open.any():
            count += PARTITIONS
        if machine is not None:
            free[machine] -= case.request
    return count


def _by_place(machines: NDArray[np.bool_], order: Int32) -> NDArray[np.bool_]:
    """Whether any machine of a partition is among these (bool[M]): bool[P], freshest partition
    first."""
    in_partition = machines.reshape(PARTITIONS, MACHINES_EACH)
    any_of_them: NDArray[np.bool_] = np.logical_or.reduce(in_partition, axis=1)[order]
    return any_of_them
