"""The solver alone on a cell of 12,500 machines x 12 slots under the Quincy policy; peer: OR-tools'
SimpleMinCostFlow.

`solve`: both get the network built already in their own form; the figure is one call of `solve`.
`end to end`: arrays in, flow arrays out. A later round is 100 tasks gone and 100 come at 90 % use:
changes, resolve; the peer, which cannot go on from an earlier answer, solves the graph from
scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from ortools.graph.python import min_cost_flow

from flowsolver import FlowNetwork, IncrementalSolver, Status, certify, solve
from flowsolver.arguments import Int64Array
from flowsolver.generate import GraphOptions, SchedulingGraph, contended_options, quincy_graph

MACHINES = 12_500
ROUNDS, LATER_ROUNDS = 5, 20
CHANGES = 100

# What is solved, and how many times faster than the peer at least.
CASES = {
    "50 % used": (GraphOptions(MACHINES, 50), 80),
    "90 % used": (GraphOptions(MACHINES), 50),
    "97 % used": (GraphOptions(MACHINES, 97), 50),
    "99 % used": (GraphOptions(MACHINES, 99), 50),
    "101 % used": (GraphOptions(MACHINES, 101, 6), 10),
    "102 % used": (GraphOptions(MACHINES, 102, 6), 10),
    "105 % used": (GraphOptions(MACHINES, 105, 6), 10),
    "120 % used": (GraphOptions(MACHINES, 120, 6), 10),
    "90 % used, all tasks waiting": (GraphOptions(MACHINES, percent_pending=100), 20),
    "90 % used, contended": (contended_options(MACHINES), 20),
    "90 % used, contended, all tasks waiting": (contended_options(MACHINES, 90, 100), 20),
}
END_TO_END_RATIO = 20


@lru_cache(maxsize=1)
def network_of(case: str) -> FlowNetwork:
    return quincy_graph(CASES[case][0], seed=1).network


def peer_of(network: FlowNetwork) -> min_cost_flow.SimpleMinCostFlow:
    peer = min_cost_flow.SimpleMinCostFlow()
    peer.add_arcs_with_capacity_and_unit_cost(
        network.tail, network.head, network.capacity, network.cost
    )
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


SOLVERS = pytest.mark.parametrize("solver", ["agora", "ortools"])


def describe(benchmark: Any, solver: str, ratio_target: int) -> None:
    benchmark.extra_info.update(
        {"unit": "ms", "ratio_target": ratio_target} if solver == "agora" else {"label": solver}
    )


@SOLVERS
@pytest.mark.parametrize("case", CASES)
def test_solve(benchmark: Any, case: str, solver: str) -> None:
    benchmark.group = f"solve: 12,500 machines, {case}"
    network = network_of(case)
    if solver == "agora":
        cost = benchmark.pedantic(cost_by_agora(network), rounds=ROUNDS, warmup_rounds=1)
    else:
        cost = benchmark.pedantic(cost_by_ortools(network), rounds=1)
    describe(benchmark, solver, CASES[case][1])
    solution = solve(network)
    assert cost == solution.cost
    assert certify(network, solution).ok


@SOLVERS
def test_end_to_end(benchmark: Any, solver: str) -> None:
    benchmark.group = "solve end to end, arrays to arrays: 12,500 machines, 90 % used"
    network = network_of("90 % used")
    arcs = network.tail, network.head, network.capacity, network.cost
    supply = network.supply

    def agora() -> Int64Array:
        built = FlowNetwork()
        built.add_nodes(supply)
        built.add_arcs(*arcs)
        return solve(built).flow

    def ortools() -> Any:
        peer = min_cost_flow.SimpleMinCostFlow()
        peer.add_arcs_with_capacity_and_unit_cost(*arcs)
        peer.set_nodes_supplies(np.arange(supply.size), supply)
        assert peer.solve() == peer.OPTIMAL
        return peer.flows(np.arange(arcs[0].size))

    flow = benchmark.pedantic(
        agora if solver == "agora" else ortools, rounds=ROUNDS if solver == "agora" else 1
    )
    describe(benchmark, solver, END_TO_END_RATIO)
    assert flow @ network.cost == solve(network).cost


class Rounds:
    """A solved cell, and batches of tasks that go and come (each new one like a task seen before,
    in another rack)."""

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
@pytest.mark.parametrize(
    "solver", [pytest.param("agora", id="agora"), pytest.param("ortools", id="ortools")]
)
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
