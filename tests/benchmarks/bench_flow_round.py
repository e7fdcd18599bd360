"""Rounds of the flow scheduler on a cell of the Google trace's size, end to end from Python; peer:
OR-tools on the same graph, solve only.

12,477 machines x 13 slots in racks of 30; 145,000 tasks (2 % more than slots when oversubscribed),
each with up to 6 preferred machines and 4 racks. A first round takes arrays to claims: graph,
solve, certificate, extraction. A later round has 200 changes since the last: 100 tasks ended, 100
came. `pinned`: running tasks are no part of the graph (the default). `preemption`: all are, and all
start waiting. The peer solves the graph that the measured round solved, from scratch.

Rounds with ageing (150,000 tasks, 12,500 machines, one second from round to round) stand beside a
whole round of OR-tools from scratch on a graph of all tasks: its graph, solve and flows; process
time. Ratios are those of the median and of the 99th percentile to the peer's median.

Slot prices: a later round with prices takes turns with one without in the same run; process time.
Prices are made anew in every fifth round; what that takes is told apart.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from ortools.graph.python import min_cost_flow

from flowsolver import FlowNetwork
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
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import Transaction
from shared_state.view import ClusterView
from tests.flow_world import QuincyOptions, build_quincy

MACHINES, SLOTS, RACK = 12_477, 13, 30
PARTITIONS = 8
TASKS, RUNNING = 145_000, 133_000
OVERSUBSCRIBED = MACHINES * SLOTS * 102 // 100
CHANGES = 200
STEP_US = 200_000
LATER_ROUNDS = 40
AGEING_ROUNDS = 200
AGEING_TASKS, AGEING_PINNED = 150_000, 138_000
AGEING_STEP_US = 1_000_000
AGEING_TARGET = {"preemption": 300, "pinned": 1500}  # times as fast as the peer, at the median
FIRST_TARGET_MS, LATER_TARGET_MS = 1000, 50
UPDATE_ROUNDS = 5  # between updates of slot prices
PRICED_TARGET = 1.1  # a round with slot prices, over one without

# Tasks in all, tasks running as the scheduler begins, preemption.
CASES = {
    "pinned": (TASKS, RUNNING, False),
    "preemption": (TASKS, 0, True),
    "oversubscribed": (OVERSUBSCRIBED, RUNNING + 29_000, False),
}


def csr(degree: Int64, bound: int, rng: np.random.Generator) -> tuple[Int64, Any]:
    """Offsets and ascending distinct entries below `bound`, about degree[k] in row k."""
    row = np.repeat(np.arange(len(degree)), degree)
    key = np.unique(row * bound + rng.integers(0, bound, len(row)))
    return np.searchsorted(key, np.arange(len(degree) + 1) * bound), (key % bound).astype(np.int32)


def make_catalog(sets: int, racks: int, rng: np.random.Generator) -> PreferenceCatalog:
    degree = rng.integers(1, 7, sets)
    degree[0] = 0
    machine_offsets, machine = csr(degree, MACHINES, rng)
    rack_offsets, rack = csr(np.where(degree > 0, 4, 0), racks, rng)
    size = 10 + np.floor(55 * rng.exponential(1.0, sets)).astype(np.int64)
    size[0] = 0
    of_machine = (
        np.repeat(size, np.diff(machine_offsets)) * rng.integers(0, 50, len(machine)) // 100
    )
    of_rack = np.repeat(size, np.diff(rack_offsets)) * rng.integers(50, 100, len(rack)) // 100
    return PreferenceCatalog(
        machine_offsets, machine, of_machine, rack_offsets, rack, of_rack, 2 * size, 2 * size + 200
    )


class GoogleSizedCell:
    """The cell as loaded, one scheduler that has seen nothing yet, and the changes to come."""

    def __init__(
        self,
        tasks: int,
        running: int,
        preemption: bool,
        later_rounds: int = LATER_ROUNDS,
        step_us: int = STEP_US,
        **options: Any,
    ) -> None:
        rng = np.random.default_rng(1)
        rack = (np.arange(MACHINES) // RACK).astype(np.int32)
        capacity = np.full((MACHINES, 1), SLOTS, np.int64)
        self.spec = CellSpec(
            ("slots",), capacity, rack, np.zeros(MACHINES, np.int64), np.array([1000])
        )
        partitioning = Partitioning.by_topology(self.spec, PARTITIONS)
        self.cell = Cell(self.spec, partitioning)
        self.view = ClusterView(self.spec, partitioning)
        self.step_us = step_us
        total = tasks + CHANGES * later_rounds
        catalog = make_catalog(total + 1, int(rack[-1]) + 1, rng)
        row = np.arange(total)
        job = np.cumsum(rng.integers(0, 30, total) == 0)
        none = np.full(total, -1, np.int64)
        self.tasks = TaskBatch(
            row,
            job,
            np.ones((total, 1), np.int64),
            np.zeros(total, np.int32),
            np.zeros(total, np.int64),
            (row + 1).astype(np.int32),
            none,
            np.zeros(total, np.int8),
        )
        slot = rng.permutation(MACHINES * SLOTS)[:running] // SLOTS
        self.cell.load(
            row[:running],
            slot.astype(np.int32),
            self.tasks.request[:running],
            np.zeros(running, np.int32),
        )
        self.next, self.offered = tasks, self.tasks.take(slice(running, tasks))
        self.environment = SchedulerEnvironment("flow", self.spec, partitioning.offsets, catalog)
        self.options = QuincyOptions(preemption=preemption, **options)
        self.now_us = self.rounds = 0
        self.rng = rng
        self._sync()

    def first_round(self) -> Plan:
        self.scheduler = build_quincy(self.options, self.environment)
        return self.plan()

    def plan(self) -> Plan:
        context = PlanContext(
            self.now_us,
            self.rounds + 1,
            PartitionRanking.OPTIMISTIC,
            np.zeros(PARTITIONS, np.int32),
        )
        return self.scheduler.plan(self.offered, self.view, context)

    def settle(self, plan: Plan) -> None:
        """Commit the plan, then let the world move: 100 tasks end, 100 come, evicted ones return;
        the view syncs."""
        self.rounds += 1
        ticket = self.view.claim(plan.machine, plan.request)
        synced = np.zeros(len(plan.task), np.int64)
        evict = plan.evict if len(plan.evict) else None
        victims = self.cell.describe(plan.evict)
        transaction = Transaction(
            0, self.rounds, plan.task, plan.machine, plan.request, synced, evict=evict
        )
        result = self.cell.commit(transaction, self.now_us)
        assert result.accepted.all()
        self.view.settle(ticket, result.reason, result.version)
        self._tell(ChangeKind.COMMITTED, plan.task, plan.machine, result.allocation)
        self._tell(ChangeKind.EVICTED, victims.task, victims.machine, victims.allocation)
        held = self.cell.allocations().allocation
        ended = self.cell.release(
            np.sort(self.rng.choice(held, CHANGES // 2, replace=False)), None, self.now_us
        )
        self._tell(ChangeKind.FINISHED, ended.task, ended.machine, ended.allocation)
        come = self.tasks.take(slice(self.next, self.next + CHANGES // 2))
        self.next += CHANGES // 2
        self.now_us += self.step_us
        come.submit_us[:] = self.now_us
        self.offered = TaskBatch.concatenate([self.tasks.take(victims.task), come])
        self._sync()

    def network(self) -> FlowNetwork:
        return self.scheduler.graph.solver.snapshot()[0]

    def _sync(self) -> None:
        for p in range(PARTITIONS):
            self.view.apply(
                self.cell.delta_since(p, int(self.view.versions[p]), self.now_us, False)
            )

    def _tell(self, kind: ChangeKind, task: Int64, machine: Any, allocation: Int64) -> None:
        self.scheduler.observe(TaskChanges(kind, self.now_us, task, machine, allocation))


def or_tools(network: FlowNetwork) -> min_cost_flow.SimpleMinCostFlow:
    peer = min_cost_flow.SimpleMinCostFlow()
    peer.add_arcs_with_capacity_and_unit_cost(
        network.tail, network.head, network.capacity, network.cost
    )
    peer.set_nodes_supplies(np.arange(network.num_nodes), network.supply)
    return peer


def solve_peer(benchmark: Any, network: FlowNetwork, cost: int) -> None:
    peers = []

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        peers.append(or_tools(network))
        return (), {}

    status = benchmark.pedantic(lambda: peers[-1].solve(), setup=setup, rounds=1)
    assert status == peers[-1].OPTIMAL
    assert peers[-1].optimal_cost() == cost


def describe(benchmark: Any, target_ms: int, plan: Plan) -> None:
    benchmark.extra_info.update(unit="ms", peer="or-tools", target=target_ms, **plan.stats)


@pytest.mark.parametrize("solver", ["agora", "or-tools"])
@pytest.mark.parametrize("case", CASES)
def test_first_round(benchmark: Any, case: str, solver: str) -> None:
    benchmark.group = f"flow: first round, 12,477 machines, {case}"
    world = GoogleSizedCell(*CASES[case])
    if solver == "or-tools":
        plan = world.first_round()
        solve_peer(benchmark, world.network(), world.scheduler.graph.solver.cost)
    else:
        plan = benchmark.pedantic(world.first_round, rounds=3)
    describe(benchmark, FIRST_TARGET_MS, plan)
    tasks, running, _ = CASES[case]
    assert len(plan.task) == min(MACHINES * SLOTS, tasks) - running


@pytest.mark.parametrize("solver", ["agora", "or-tools"])
@pytest.mark.parametrize("case", CASES)
def test_later_round(benchmark: Any, case: str, solver: str) -> None:
    benchmark.group = f"flow: later round, 200 changes, 12,477 machines, {case}"
    world = GoogleSizedCell(*CASES[case])
    plans = [world.first_round()]
    world.settle(plans[-1])
    plans.append(world.plan())  # everything that started in the first round changes hands

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        world.settle(plans[-1])
        return (), {}

    def later_round() -> None:
        plans.append(world.plan())

    if solver == "or-tools":
        setup()
        later_round()
        solve_peer(benchmark, world.network(), world.scheduler.graph.solver.cost)
    else:
        benchmark.pedantic(later_round, setup=setup, rounds=LATER_ROUNDS)
    describe(benchmark, LATER_TARGET_MS, plans[-1])
    assert len(plans[-1].task) >= CHANGES // 2


def whole_round_of_peer(network: FlowNetwork) -> float:
    """Milliseconds of process time that a round from scratch takes: graph, solve, flows."""
    begin = time.process_time()
    peer = or_tools(network)
    assert peer.solve() == peer.OPTIMAL
    peer.flows(np.arange(network.num_arcs))
    return 1e3 * (time.process_time() - begin)


@pytest.mark.parametrize("case", AGEING_TARGET)
def test_round_with_ageing(benchmark: Any, case: str) -> None:
    """The peer's graph has all tasks, with preemption and without: so it is the same for both."""
    benchmark.group = f"flow: round of 200 changes and a second's ageing, 12,477 machines, {case}"
    worlds = {
        name: GoogleSizedCell(AGEING_TASKS, running, running == 0, AGEING_ROUNDS, AGEING_STEP_US)
        for name, running in {"preemption": 0, case: AGEING_PINNED * (case == "pinned")}.items()
    }
    plans = {name: world.first_round() for name, world in worlds.items()}
    took_ms: list[float] = []
    peer_ms: list[float] = []

    def later(name: str) -> float:
        worlds[name].settle(plans[name])
        begin = time.process_time()
        plans[name] = worlds[name].plan()
        return 1e3 * (time.process_time() - begin)

    for name in worlds:
        for _ in range(3):  # everything that started in the first round changes hands
            later(name)

    def one() -> None:
        took_ms.append(later(case))
        if len(took_ms) % (AGEING_ROUNDS // 4) == 1:
            peer_ms.append(whole_round_of_peer(worlds["preemption"].network()))

    benchmark.pedantic(one, rounds=AGEING_ROUNDS - 4)
    peer, median, late = np.median(peer_ms), np.median(took_ms), np.quantile(took_ms, 0.99)
    note = f"{median:.2f} ms, p99 {late:.2f}: {peer / late:.0f} times; peer {peer:.0f} ms"
    benchmark.extra_info.update(
        unit="times", figure=float(peer / median), target=AGEING_TARGET[case], note=note
    )
    print(f"\n{case}: {peer / median:.0f} times; {note}")


@pytest.mark.parametrize("scope", ["all", "elsewhere"])
@pytest.mark.parametrize("kind", ["demand", "implied", "occupancy"])
@pytest.mark.parametrize("case", CASES)
def test_later_round_with_prices(benchmark: Any, case: str, kind: str, scope: str) -> None:
    benchmark.group = f"flow: later round with slot prices, 12,477 machines, {case}"
    update_s = UPDATE_ROUNDS * STEP_US / 1e6
    priced: dict[str, Any] = {
        "prices": kind,
        "price_options": {"update_s": update_s},
        "price_scope": scope,
    }
    worlds = [GoogleSizedCell(*CASES[case]), GoogleSizedCell(*CASES[case], **priced)]
    plans = [world.first_round() for world in worlds]
    took_ms: list[list[float]] = [[], []]

    def later_round(i: int) -> None:
        worlds[i].settle(plans[i])
        begin = time.process_time()
        plans[i] = worlds[i].plan()
        took_ms[i].append(1e3 * (time.process_time() - begin))

    def both() -> None:
        later_round(0)
        later_round(1)

    both()
    took_ms[0].clear()
    took_ms[1].clear()
    benchmark.pedantic(both, rounds=LATER_ROUNDS - 2)
    # The first round was at 0, this is the third.
    plain, dear = (np.array(times) for times in took_ms)
    updates = np.arange(2, 2 + len(plain)) % UPDATE_ROUNDS == 0
    ratio = float(np.median(dear[~updates]) / np.median(plain[~updates]))
    note = (
        f"{np.median(dear[~updates]):.2f} ms, without prices {np.median(plain[~updates]):.2f} ms; "
        f"with an update of prices {np.median(dear[updates]):.2f} ms"
    )
    benchmark.extra_info.update(unit="times", figure=ratio, target=PRICED_TARGET, note=note)
    print(f"\n{case}, {kind}, {scope}: {ratio:.2f} times; {note}")
