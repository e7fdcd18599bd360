"""The solver from scratch on graphs outside the Quincy shape, beside OR-tools' SimpleMinCostFlow:
network-aware cells, NETGEN-like general networks, load spreading.

Both get the network built already; the figure is one call of `solve`. The ratio aimed at for
network-aware and general networks, on which the default algorithm ends with cost scaling, is that
of cost scaling.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from flowsolver import FlowNetwork, certify, solve
from flowsolver.generate import (
    NetgenOptions,
    load_spreading_graph,
    netgen_network,
    network_aware_graph,
)
from tests.benchmarks.bench_flowsolver import (
    MACHINES,
    SOLVERS,
    cost_by_agora,
    cost_by_ortools,
    describe,
)

ROUNDS = 5


def general(nodes: int, arcs: int) -> FlowNetwork:
    return netgen_network(NetgenOptions(nodes, arcs, nodes // 10, nodes // 10, 10 * nodes), seed=1)


# What is solved, and how many times faster than the peer at least.
CASES: dict[str, tuple[Callable[[], FlowNetwork], int]] = {
    "network-aware, 1,000 machines": (lambda: network_aware_graph(1_000, seed=1).network, 1),
    "network-aware, 12,500 machines": (lambda: network_aware_graph(MACHINES, seed=1).network, 1),
    "general, 100,000 arcs": (lambda: general(6_250, 100_000), 1),
    "general, 1,000,000 arcs": (lambda: general(62_500, 1_000_000), 1),
    "load spreading, 12,500 machines, 1,000 new tasks": (
        lambda: load_spreading_graph(MACHINES, 1_000, seed=1).network,
        10,
    ),
    "load spreading, 12,500 machines, 10,000 new tasks": (
        lambda: load_spreading_graph(MACHINES, 10_000, seed=1).network,
        8,
    ),
}


@lru_cache(maxsize=1)
def network_of(case: str) -> FlowNetwork:
    return CASES[case][0]()


@SOLVERS
@pytest.mark.parametrize("case", CASES)
def test_solve(benchmark: Any, case: str, solver: str) -> None:
    benchmark.group = f"solve: {case}"
    network = network_of(case)
    if solver == "agora":
        cost = benchmark.pedantic(cost_by_agora(network), rounds=ROUNDS, warmup_rounds=1)
    else:
        cost = benchmark.pedantic(cost_by_ortools(network), rounds=ROUNDS)
    describe(benchmark, solver, CASES[case][1])
    solution = solve(network)
    assert cost == solution.cost
    assert certify(network, solution).ok
