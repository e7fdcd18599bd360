"""The example that documents draw: the cell of Fig. 5 of the Firmament paper, under any policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.flow_graphs.recorder import Recording, RoundRecorder, Wanted
from schedulers.flow.kinds import build
from schedulers.flow.options import FlowOptions, options_with_policy
from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import Transaction
from shared_state.view import ClusterView

SECOND_US = 1_000_000
JOB = np.array([0, 0, 0, 1, 1])  # two jobs of three and two tasks
MBPS = np.array([200, 400])  # that tasks of each job ask for
MACHINES, MACHINE_MBPS = 4, 1000  # of one slot, in racks of two


def example(policy: str) -> Recording:
    """Record four rounds of a flow scheduler with this policy, under preemption, on four machines:
    job 0 comes; job 1 comes, and one task finds no place; a second passes; a task ends.

    Raises:
        AgoraError: There is no such policy, or it cannot do without options.
    """
    options = options_with_policy(FlowOptions, {"policy": policy})
    try:
        chosen = options.model_validate({"policy": policy, "preemption": True})
    except ValueError as error:
        raise AgoraError(f"--example {policy}: it has options that must be set") from error
    cell = CellSpec(
        ("slots", "net_mbps"),
        np.tile(np.array([1, MACHINE_MBPS]), (MACHINES, 1)),
        np.repeat(np.arange(2, dtype=np.int32), 2),
        np.zeros(MACHINES, np.int64),
        np.full(2, 1000, np.int64),
    )
    partitioning = Partitioning.by_topology(cell, 1)
    environment = SchedulerEnvironment("example", cell, partitioning.offsets, _catalog())
    recording = Recording(cell.dimensions)
    recorder = RoundRecorder(build(chosen, environment), Wanted(), recording)
    world = _World(cell, partitioning, recorder)
    world.round(np.flatnonzero(JOB == 0), 0)
    world.round(np.flatnonzero(JOB == 1), SECOND_US)
    world.round(np.zeros(0, np.int64), 2 * SECOND_US)
    world.end_of(1, 3 * SECOND_US)
    world.round(np.zeros(0, np.int64), 3 * SECOND_US)
    return recording


def _catalog() -> PreferenceCatalog:
    """Tasks 0 to 4 have data on some machines and racks. (Set 0 is that of no preference.)"""
    machines = [{}, {0: 2}, {1: 3}, {0: 2, 2: 4}, {2: 2}, {2: 3, 3: 3}]
    racks = [{}, {0: 5}, {0: 6}, {}, {1: 5}, {1: 6}]
    machine_offsets, machine, machine_cost = _csr(machines)
    rack_offsets, rack, rack_cost = _csr(racks)
    return PreferenceCatalog(
        machine_offsets,
        machine.astype(np.int32),
        machine_cost,
        rack_offsets,
        rack.astype(np.int32),
        rack_cost,
        np.array([0, 9, 10, 8, 9, 11]),
        np.full(6, 12),
    )


def _csr(sets: list[dict[int, int]]) -> tuple[Int64, Int64, Int64]:
    offsets = np.cumsum([0, *map(len, sets)])
    flat = [entry for one in sets for entry in sorted(one.items())]
    return offsets, np.array([row for row, _ in flat]), np.array([cost for _, cost in flat])


@dataclass(slots=True)
class _World:
    """A cell with one scheduler, whose claims are all accepted.

    Attributes:
        spec, partitioning: Of the cell.
        scheduler: The scheduler.
    """

    spec: CellSpec
    partitioning: Partitioning
    scheduler: RoundRecorder
    cell: Cell
    view: ClusterView
    rounds: int
    evicted: Int64

    def __init__(
        self, spec: CellSpec, partitioning: Partitioning, scheduler: RoundRecorder
    ) -> None:
        self.spec, self.partitioning, self.scheduler = spec, partitioning, scheduler
        self.cell = Cell(spec, partitioning)
        self.view = ClusterView(spec, partitioning)
        self.view.apply(self.cell.delta_since(0, int(self.view.versions[0]), 0, False))
        self.rounds = 0
        self.evicted = np.zeros(0, np.int64)

    def round(self, new: Int64, now_us: int) -> None:
        """Offer these tasks and those that were evicted, plan, and commit."""
        new, self.evicted = np.concatenate([new, self.evicted]), np.zeros(0, np.int64)
        n = len(new)
        tasks = TaskBatch(
            new,
            JOB[new],
            np.stack([np.ones(n, np.int64), MBPS[JOB[new]]], axis=1),
            np.zeros(n, np.int32),
            np.full(n, now_us),
            (new + 1).astype(np.int32),
            np.full(n, -1),
            np.zeros(n, np.int8),
        )
        order = np.zeros(1, np.int32)
        key = stream_key(1, "example", self.rounds)
        context = PlanContext(now_us, key, PartitionRanking.OPTIMISTIC, order)
        plan = self.scheduler.plan(tasks, self.view, context)
        self.rounds += 1
        victims = self.cell.describe(plan.evict)
        ticket = self.view.claim(plan.machine, plan.request)
        evict = plan.evict if len(plan.evict) else None
        synced = np.zeros(len(plan.task), np.int64)
        transaction = Transaction(
            0, self.rounds, plan.task, plan.machine, plan.request, synced, evict=evict
        )
        result = self.cell.commit(transaction, now_us)
        self.view.settle(ticket, result.reason, result.version)
        assert result.accepted.all(), "nobody else claims anything"
        self.evicted = victims.task
        placed = TaskChanges(
            ChangeKind.COMMITTED, now_us, plan.task, plan.machine, result.allocation
        )
        stopped = TaskChanges(ChangeKind.EVICTED, now_us, victims.task, victims.machine, plan.evict)
        for changes in (placed, stopped):
            if len(changes.task):
                self.scheduler.observe(changes)

    def end_of(self, task: int, now_us: int) -> None:
        """A task ends, if it runs."""
        running = self.cell.allocations(0)
        allocation = running.allocation[running.task == task]
        ended = self.cell.release(np.ascontiguousarray(allocation), None, now_us)
        self.view.released(ended.machine, ended.request, ended.version)
        self.scheduler.observe(
            TaskChanges(ChangeKind.FINISHED, now_us, ended.task, ended.machine, ended.allocation)
        )
