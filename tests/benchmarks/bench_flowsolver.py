"""The solver alone on a cell of 12,500 machines x 12 slots under the Quincy policy; peer: OR-tools' SimpleMinCostFlow.

Both get the network built already in their own form; the figure is one call of `solve`. A later round is 100 tasks gone and
100 come at 90 % use: changes, resolve; the peer, which cannot go on from an earlier answer, solves the graph from scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ortools.graph.python import min_cost_flow

from flowsolver import FlowNetwork, IncrementalSolver, Status, solve
from flowsolver.generate import GraphOptions, SchedulingGraph, contended_options, quincy_graph
from flowsolver.network import Int64Array

MACHINES = 12_500
SCRATCH_RATIO = 30
ROUNDS, LATER_ROUNDS = 3, 20
CHANGES = 100

CASES = {
    "90 % used": GraphOptions(MACHINES),
    "90 % used, cold": GraphOptions(MACHINES, percent_pending=100),
    "90 % used, contended": contended_options(MACHINES),
    "105 % used": GraphOptions(MACHINES, 105, 6),
}


def peer_of(network: FlowNetwork) -> min_cost_flow.SimpleMinCostFlow:
    peer = min_cost_flow.SimpleMinCostFlow()
    peer.add_arcs_with_capacity_and_unit_cost(network.tail, network.head, network.capacity, network.cost)
    peer.set_nodes_supplies(np.arange(network.num_nodes), network.supply)
    return peer


def cost_by_agora(network: FlowNetwork) -> Callable[[], int]:
    return lambda: solve(network).cost


def cost_by_ortools(network: FlowNetwork) -> Callable[[], int]:
    peer = peer_of(network)

    def run() -> int:
        assert peer.solve() == peer.OPTIMAL
        return int(peer.optimal_cost())

    return run


def scratch(benchmark: Any, case: str, prepare: Callable[[FlowNetwork], Callable[[], int]]) -> None:
    network = quincy_graph(CASES[case], seed=1).network
    cost = benchmark.pedantic(prepare(network), rounds=ROUNDS if prepare is cost_by_agora else 1, warmup_rounds=1)
    if prepare is cost_by_agora:
        benchmark.extra_info.update(unit="ms", ratio_target=SCRATCH_RATIO if case == "90 % used" else None)
    assert cost == solve(network).cost


BOTH = pytest.mark.parametrize(
    "prepare", [pytest.param(cost_by_agora, id="agora"), pytest.param(cost_by_ortools, id="ortools")]
)


@pytest.mark.benchmark(group="solve: 12,500 machines, 90 % used")
@BOTH
def test_plain(benchmark: Any, prepare: Callable[[FlowNetwork], Callable[[], int]]) -> None:
    scratch(benchmark, "90 % used", prepare)


@pytest.mark.benchmark(group="solve: 12,500 machines, 90 % used, all tasks waiting")
@BOTH
def test_cold(benchmark: Any, prepare: Callable[[FlowNetwork], Callable[[], int]]) -> None:
    scratch(benchmark, "90 % used, cold", prepare)


@pytest.mark.benchmark(group="solve: 12,500 machines, 90 % used, contended")
@BOTH
def test_contended(benchmark: Any, prepare: Callable[[FlowNetwork], Callable[[], int]]) -> None:
    scratch(benchmark, "90 % used, contended", prepare)


@pytest.mark.benchmark(group="solve: 12,500 machines, 105 % used")
@BOTH
def test_oversubscribed(benchmark: Any, prepare: Callable[[FlowNetwork], Callable[[], int]]) -> None:
    scratch(benchmark, "105 % used", prepare)


class Rounds:
    """A solved cell, and batches of tasks that go and come (each new one like a task seen before, in another rack)."""

    def __init__(self, graph: SchedulingGraph, seed: int) -> None:
        self.graph = graph
        self.rng = np.random.default_rng(seed)
        network = graph.network
        self.head, self.cost = network.head, network.cost
        self.begin = graph.task_arc_begin
        self.alive = np.arange(graph.first_task, graph.first_task + graph.tasks)
        self.solver = IncrementalSolver(network)
        assert self.solver.resolve() is Status.OPTIMAL

    def batch(self) -> tuple[tuple[Int64Array, Int64Array, Int64Array, Int64Array], dict[str, Any]]:
        """Places in `alive` that change, and the new tasks' arcs: which task, head, cost."""
        graph = self.graph
        change = self.rng.choice(self.alive.size, CHANGES, replace=False)
        like = self.rng.integers(0, graph.tasks, CHANGES)
        size = self.begin[like + 1] - self.begin[like]
        task = np.repeat(np.arange(CHANGES), size)
        row = np.repeat(self.begin[like] - np.cumsum(size) + size, size) + np.arange(task.size)
        head = self.head[row].copy()
        full_racks = graph.machines // graph.machines_per_rack
        shift = self.rng.integers(0, full_racks, CHANGES)[task]
        per_rack = graph.machines_per_rack
        for first, last, step in (
            (graph.first_rack, graph.first_rack + full_racks, 1),
            (graph.first_machine, graph.first_machine + full_racks * per_rack, per_rack),
        ):
            inside = (head >= first) & (head < last)
            head[inside] = first + (head[inside] - first + step * shift[inside]) % (last - first)
        return (change, task, head, self.cost[row]), {}

    def run(self, change: Int64Array, task: Int64Array, head: Int64Array, cost: Int64Array) -> None:
        self.solver.remove_nodes(self.alive[change])
        self.alive[change] = self.solver.add_nodes(np.ones(CHANGES, dtype=np.int64))
        self.solver.add_arcs(self.alive[change][task], head, 1, cost)
        assert self.solver.resolve() is Status.OPTIMAL


@pytest.fixture(scope="module")
def rounds() -> Rounds:
    return Rounds(quincy_graph(GraphOptions(MACHINES), seed=1), seed=2)


@pytest.mark.benchmark(group="resolve: 12,500 machines, 90 % used, 100 tasks gone and 100 come")
@pytest.mark.parametrize("solver", [pytest.param("agora", id="agora"), pytest.param("ortools", id="ortools")])
def test_later_round(benchmark: Any, rounds: Rounds, solver: str) -> None:
    if solver == "agora":
        benchmark.pedantic(rounds.run, setup=rounds.batch, rounds=LATER_ROUNDS)
        benchmark.extra_info.update(unit="ms")
        assert rounds.solver.certify().ok
    else:
        network, _, _ = rounds.solver.snapshot()
        peer = peer_of(network)
        benchmark.pedantic(peer.solve, rounds=1)
        assert peer.optimal_cost() == rounds.solver.cost
