"""A small true cell with one flow scheduler on it, for tests: rounds, rivals, ends, and independent
oracles of the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow
from scipy.optimize import linear_sum_assignment

from schedulers.flow.kinds import LoadSpreadingFlowOptions, build
from schedulers.flow.options import FlowOptions, options_with_policy
from schedulers.flow.scheduler import FlowScheduler
from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import CommitResult, Transaction
from shared_state.view import ClusterView

FLOW, RIVAL = 0, 1
FORBIDDEN = 1 << 40

# A kind of flow scheduler with the policy in its name
QuincyOptions = options_with_policy(FlowOptions, {})
LoadSpreadingOptions = options_with_policy(LoadSpreadingFlowOptions, {})
build_quincy = build_load_spreading = build


def slot_cell(machines: int, slots: int, rack_size: int) -> CellSpec:
    capacity = np.full((machines, 1), slots, np.int64)
    return cell_of(capacity, (np.arange(machines) // rack_size).astype(np.int32))


def cell_of(capacity: Int64, rack: NDArray[np.int32] | None = None) -> CellSpec:
    machines, dimensions = capacity.shape
    names = tuple(f"r{r}" for r in range(dimensions))
    racks = np.zeros(machines, np.int32) if rack is None else rack
    return CellSpec(
        names, capacity, racks, np.zeros(machines, np.int64), np.full(dimensions, 1000, np.int64)
    )


def tasks_of(
    task: Int64,
    *,
    job: Int64 | int = 0,
    request: Int64 | None = None,
    submit_us: int = 0,
    preference: Int64 | int = 0,
    gang: Int64 | int = -1,
) -> TaskBatch:
    n = len(task)
    return TaskBatch(
        np.asarray(task, np.int64),
        np.broadcast_to(np.asarray(job, np.int64), n).copy(),
        np.ones((n, 1), np.int64) if request is None else request,
        np.zeros(n, np.int32),
        np.full(n, submit_us, np.int64),
        np.broadcast_to(np.asarray(preference, np.int32), n).copy(),
        np.broadcast_to(np.asarray(gang, np.int64), n).copy(),
        np.zeros(n, np.int8),
    )


def catalog_of(sets: list[dict[str, object]]) -> PreferenceCatalog:
    """Sets of {"machine": {row: cost}, "rack": {row: cost}, "elsewhere": cost, "unscheduled":
    cost}; set 0 comes by itself."""
    rows = [{"machine": {}, "rack": {}, "elsewhere": 0, "unscheduled": 0}, *sets]

    def csr(field: str) -> tuple[Int64, NDArray[np.int32], Int64]:
        fields: list[Any] = [row.get(field, {}) for row in rows]
        parts = [sorted(dict(entries).items()) for entries in fields]
        offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
        flat = [entry for part in parts for entry in part]
        return (
            offsets,
            np.array([m for m, _ in flat], np.int32),
            np.array([c for _, c in flat], np.int64),
        )

    elsewhere = np.array([row["elsewhere"] for row in rows], np.int64)
    unscheduled = np.array([row["unscheduled"] for row in rows], np.int64)
    return PreferenceCatalog(*csr("machine"), *csr("rack"), elsewhere, unscheduled)


LOCAL = {"machine": {0: 1}, "rack": {0: 5}, "elsewhere": 10, "unscheduled": 50}


def environment(spec: CellSpec, catalog: PreferenceCatalog | None = None) -> SchedulerEnvironment:
    offsets = Partitioning.by_topology(spec, 1).offsets
    return SchedulerEnvironment("flow", spec, offsets, catalog or PreferenceCatalog.empty())


def quincy(
    spec: CellSpec, catalog: PreferenceCatalog | None = None, **options: object
) -> FlowScheduler:
    return build_quincy(
        QuincyOptions(**{"certify_every": 1, **options}), environment(spec, catalog)
    )


def spreading(spec: CellSpec, **options: object) -> FlowScheduler:
    return build_load_spreading(
        LoadSpreadingOptions(**{"certify_every": 1, **options}), environment(spec)
    )


def placed(plan: Plan) -> dict[int, int]:
    return dict(zip(plan.task.tolist(), plan.machine.tolist(), strict=True))


class FlowWorld:
    """One scheduler, its view, the true cell; `held` are the allocations by id: (task, machine,
    owner)."""

    def __init__(self, spec: CellSpec, scheduler: FlowScheduler, partitions: int = 1) -> None:
        self.spec = spec
        self.partitioning = Partitioning.by_topology(spec, partitions)
        self.cell = Cell(spec, self.partitioning)
        self.view = ClusterView(spec, self.partitioning)
        self.scheduler = scheduler
        self.now_us = 0
        self.rounds = 0
        self.offered: list[TaskBatch] = []  # to come with the next plan
        self.sync()

    def sync(self) -> None:
        for p in range(self.partitioning.count):
            self.view.apply(
                self.cell.delta_since(p, int(self.view.versions[p]), self.now_us, False)
            )

    def offer(self, tasks: TaskBatch) -> None:
        self.offered.append(tasks)

    def plan(self) -> Plan:
        """One decision, checked: the whole certificate, OR-tools' cost, and that claims fit the
        view."""
        dimensions = len(self.spec.dimensions)
        batch = TaskBatch.concatenate([TaskBatch.empty(dimensions), *self.offered])
        self.offered = []
        order = np.arange(self.partitioning.count, dtype=np.int32)
        key = stream_key(1, "flow", self.rounds)
        before = self.view.free.copy()
        plan = self.scheduler.plan(
            batch, self.view, PlanContext(self.now_us, key, PartitionRanking.OPTIMISTIC, order)
        )
        self.rounds += 1
        assert np.array_equal(before, self.view.free)
        assert len(np.unique(plan.task)) == len(plan.task)
        self._check_fit(plan)
        solver = self.scheduler.graph.solver
        if self.scheduler.graph.reached is None:
            assert solver.certify().ok
            assert solver.cost == or_tools_cost(solver)
        return plan

    def _check_fit(self, plan: Plan) -> None:
        free = self.view.free.copy()
        victims = self.cell.describe(plan.evict)
        np.add.at(free, victims.machine, victims.request)
        np.subtract.at(free, plan.machine, plan.request)
        assert np.all(free[plan.machine] >= 0)

    def commit(self, plan: Plan) -> CommitResult:
        """Send the plan and tell the scheduler what came of it. (Evicted tasks are the caller's to
        offer again.)"""
        victims = self.cell.describe(plan.evict)
        ticket = self.view.claim(plan.machine, plan.request)
        evict = plan.evict if len(plan.evict) else None
        synced = np.zeros(len(plan.task), np.int64)
        transaction = Transaction(
            FLOW, self.rounds, plan.task, plan.machine, plan.request, synced, evict=evict
        )
        result = self.cell.commit(transaction, self.now_us)
        self.view.settle(ticket, result.reason, result.version)
        won = result.accepted
        self.tell(ChangeKind.COMMITTED, plan.task[won], plan.machine[won], result.allocation[won])
        self.tell(ChangeKind.REJECTED, plan.task[~won], plan.machine[~won], result.allocation[~won])
        gone = np.isin(plan.evict, result.evicted)
        self.tell(ChangeKind.EVICTED, victims.task[gone], victims.machine[gone], plan.evict[gone])
        return result

    def rival_claims(self, machine: list[int], first_task: int) -> CommitResult:
        """Somebody else places tasks of one unit; the scheduler's view does not know until the next
        sync."""
        n = len(machine)
        request = np.ones((n, len(self.spec.dimensions)), np.int64)
        task = np.arange(first_task, first_task + n)
        zero = np.zeros(n, np.int64)
        transaction = Transaction(
            RIVAL, first_task, task, np.array(machine, np.int32), request, zero
        )
        return self.cell.commit(transaction, self.now_us)

    def finish(self, allocation: Int64) -> None:
        if len(allocation) == 0:
            return
        ended = self.cell.release(np.ascontiguousarray(allocation), None, self.now_us)
        self.view.released(ended.machine, ended.request, ended.version)
        self.tell(ChangeKind.FINISHED, ended.task, ended.machine, ended.allocation)

    def tell(
        self, kind: ChangeKind, task: Int64, machine: Int32 | Int64, allocation: Int64
    ) -> None:
        self.scheduler.observe(
            TaskChanges(kind, self.now_us, task, np.asarray(machine, np.int32), allocation)
        )

    def running(self, owner: int) -> Int64:
        """Allocation ids, ascending."""
        return np.sort(self.cell.allocations(owner).allocation)


def or_tools_cost(solver: object) -> int:
    """The optimum of the solver's present network, by OR-tools."""
    network, _, _ = solver.snapshot()  # type: ignore[attr-defined]
    peer = min_cost_flow.SimpleMinCostFlow()
    if network.num_arcs:
        peer.add_arcs_with_capacity_and_unit_cost(
            network.tail, network.head, network.capacity, network.cost
        )
    peer.set_nodes_supplies(np.arange(network.num_nodes), network.supply)
    assert peer.solve() == peer.OPTIMAL
    return int(peer.optimal_cost())


def assignment_optimum(place_cost: Int64, wait_cost: Int64, room: Int64) -> int:
    """The least total cost of giving each of n tasks one machine (place_cost int64[n, M]; at most
    room[m] each) or leaving it waiting (wait_cost int64[n]): by the Hungarian method, knowing
    nothing of flow graphs."""
    n = len(wait_cost)
    slots = np.repeat(np.arange(len(room)), room)
    own_wait = np.full((n, n), FORBIDDEN, np.int64)
    own_wait[np.arange(n), np.arange(n)] = wait_cost
    cost = np.hstack([place_cost[:, slots], own_wait])
    rows, columns = linear_sum_assignment(cost)
    return int(cost[rows, columns].sum())
