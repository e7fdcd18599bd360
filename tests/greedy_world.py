"""Small cells, views and plans of greedy schedulers, for tests."""

from __future__ import annotations

import numpy as np

from schedulers import registry
from schedulers.interface import (
    PartitionQuality,
    PartitionRanking,
    Plan,
    PlanContext,
    SchedulerEnvironment,
)
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import CellSpec, PreferenceCatalog, TaskBatch
from shared_state.transaction import PartitionDelta
from shared_state.view import ClusterView


def cell_of(capacity, score=None, rack_size=4):
    capacity = np.array(capacity, np.int64).reshape(len(capacity), -1)
    machines, dimensions = capacity.shape
    rack = np.arange(machines, dtype=np.int32) // rack_size
    score = np.zeros(machines, np.int64) if score is None else np.array(score, np.int64)
    return CellSpec(
        tuple("abc"[:dimensions]), capacity, rack, score, np.full(dimensions, 1000, np.int64)
    )


def view_of(spec, partitioning, used=None, up=None):
    """A view synced to this state of the cell."""
    used = (
        np.zeros_like(spec.capacity)
        if used is None
        else np.array(used, np.int64).reshape(spec.capacity.shape)
    )
    up = np.ones(spec.machines, bool) if up is None else np.array(up, bool)
    view = ClusterView(spec, partitioning)
    for p in range(partitioning.count):
        rows = partitioning.rows(p)
        offsets = np.arange(rows.stop - rows.start, dtype=np.uint32)
        view.apply(PartitionDelta(p, 0, 1, p, offsets, used[rows], up[rows], None))
    return view


def tasks_of(request, preference=0, gang=-1):
    request = np.array(request, np.int64).reshape(len(request), -1)
    n = len(request)
    return TaskBatch(
        np.arange(n, dtype=np.int64),
        np.zeros(n, np.int64),
        request,
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.broadcast_to(np.array(preference, np.int32), n).copy(),
        np.broadcast_to(np.array(gang, np.int64), n).copy(),
        np.zeros(n, np.int8),
    )


def catalog_of(*sets):
    """Sets of ({machine: cost}, {rack: cost}) after the empty one; elsewhere costs 100."""
    machine = [[], *(sorted(m.items()) for m, _ in sets)]
    rack = [[], *(sorted(r.items()) for _, r in sets)]

    def csr(rows):
        entries = [entry for row in rows for entry in row]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return (
            offsets,
            np.array([e[0] for e in entries], np.int32),
            np.array([e[1] for e in entries], np.int64),
        )

    elsewhere = np.array([0] + [100] * len(sets), np.int64)
    return PreferenceCatalog(*csr(machine), *csr(rack), elsewhere, elsewhere * 2)


class Greedy:
    """One scheduler of a kind on one view."""

    def __init__(self, kind, spec, partitions=1, used=None, up=None, catalog=None):
        self.partitioning = Partitioning(np.arange(partitions + 1) * spec.machines // partitions)
        self.view = view_of(spec, self.partitioning, used, up)
        catalog = PreferenceCatalog.empty() if catalog is None else catalog
        found = registry.get(kind)
        environment = SchedulerEnvironment("greedy", spec, self.partitioning.offsets, catalog)
        self.scheduler = found.build(found.parse_options({}), environment)
        self.order = np.arange(partitions, dtype=np.int32)[::-1].copy()

    def plan(
        self,
        tasks,
        ranking=PartitionRanking.OPTIMISTIC,
        stream=0,
        order=None,
        quality=PartitionQuality.MEAN_WEIGHT,
    ) -> Plan:
        order = self.order if order is None else np.array(order, np.int32)
        key = stream_key(1, "greedy", stream)
        context = PlanContext(0, key, ranking, order, quality=quality)
        return self.scheduler.plan(tasks, self.view, context)
