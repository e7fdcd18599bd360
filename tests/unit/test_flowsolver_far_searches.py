"""Networks on which shortest paths from scratch search far: network-aware cells and general
networks.

The default algorithm leaves them to cost scaling after a counted limit, but not cells of the Quincy
shape. Answers, and engines that start from them, are certified and have OR-tools' cost.
"""

from functools import cache

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, certify, solve
from flowsolver.benchmark.solvers import Rounds
from flowsolver.generate import (
    GraphOptions,
    NetgenOptions,
    contended_options,
    load_spreading_graph,
    netgen_network,
    network_aware_graph,
    quincy_graph,
)
from tests.fixtures.networks import ortools_cost


def general(nodes, arcs, seed, *, sources=None, supply=None):
    sources = sources or nodes // 10
    return netgen_network(
        NetgenOptions(nodes, arcs, sources, nodes // 10, supply or 10 * nodes), seed
    )


NETWORKS = {
    "network-aware 60": lambda seed: network_aware_graph(60, seed).network,
    "network-aware 300": lambda seed: network_aware_graph(300, seed).network,
    "network-aware 300, oversubscribed": lambda seed: (
        network_aware_graph(300, seed, 104, 6).network
    ),
    "network-aware 300, cold": lambda seed: network_aware_graph(300, seed, 80, 100).network,
    "network-aware 1,000": lambda seed: network_aware_graph(1_000, seed).network,
    "general, 1,000 arcs": lambda seed: general(200, 1_000, seed),
    "general, 20,000 arcs": lambda seed: general(1_500, 20_000, seed),
    "general, 60,000 arcs": lambda seed: general(4_000, 60_000, seed),
    "general, one source": lambda seed: general(2_000, 30_000, seed, sources=1, supply=200),
    "load spreading": lambda seed: load_spreading_graph(500, 1_000, seed).network,
}
FAR = "network-aware 1,000", "general, 20,000 arcs", "general, 60,000 arcs"
CELLS = {
    "90 %": GraphOptions(300, 90),
    "102 %": GraphOptions(300, 102, 6),
    "120 %": GraphOptions(300, 120, 6),
    "contended": contended_options(300),
    "contended, cold": contended_options(300, 90, 100),
    "contended, 105 %": contended_options(300, 105, 6),
}


@cache
def network_and_cost(name, seed):
    network = NETWORKS[name](seed)
    return network, ortools_cost(network)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_from_scratch(name, seed):
    network, cost = network_and_cost(name, seed)
    solution = solve(network)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == cost
    assert certify(network, solution).ok


@pytest.mark.parametrize("name", NETWORKS)
def test_an_engine_starts_from_the_answer(name):
    network, cost = network_and_cost(name, 1)
    solver = IncrementalSolver(network)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == cost
    assert solver.certify().ok
    assert solver.resolve() is Status.OPTIMAL
    assert solver.stats.searches == 0


@pytest.mark.parametrize("name", FAR)
def test_cost_scaling_takes_over(name):
    assert solve(network_and_cost(name, 1)[0]).stats.relabels > 0


@pytest.mark.parametrize("cell", CELLS)
def test_cells_of_the_quincy_shape_need_shortest_paths_only(cell):
    stats = solve(quincy_graph(CELLS[cell], 1).network).stats
    assert stats.relabels == 0


def test_rounds_of_a_network_aware_cell():
    graph = network_aware_graph(300, 5)
    rounds = Rounds(graph.network, graph.first_task, "incremental_ssp", 60.0, 6)
    rounds.resolve()
    for _ in range(5):
        rounds.apply(*rounds.draw(40))
        rounds.resolve()
        network, _, _ = rounds.solver.snapshot()
        assert rounds.solver.cost == ortools_cost(network)
        assert rounds.solver.certify().ok
        assert rounds.solver.certify_touched().ok


def test_changes_of_a_general_network():
    network, _ = network_and_cost("general, 20,000 arcs", 2)
    rng = np.random.default_rng(7)
    solver = IncrementalSolver(network)
    assert solver.resolve() is Status.OPTIMAL
    for _ in range(5):
        arcs = rng.choice(network.num_arcs, 20, replace=False)
        solver.set_cost(arcs, rng.integers(1, 10_000, 20))
        solver.set_capacity(arcs[:10], network.capacity[arcs[:10]] + 5)
        assert solver.resolve() is Status.OPTIMAL
        changed, _, _ = solver.snapshot()
        assert solver.cost == ortools_cost(changed)
        assert solver.certify().ok


@pytest.mark.parametrize("name", FAR)
def test_a_budget_counts_what_went_before(name):
    network, cost = network_and_cost(name, 1)
    whole = solve(network).stats.operations
    half = solve(network, max_operations=whole // 2)
    assert half.status is Status.BUDGET
    assert whole // 2 <= half.stats.operations < 0.75 * whole
    assert solve(network, max_operations=whole).cost == cost


def test_infeasible_after_searches_went_far():
    network = general(1_500, 20_000, 3)
    sink = int(np.argmin(network.supply))
    capacity = np.where(network.head == sink, 0, network.capacity)
    cut_off = FlowNetwork()
    cut_off.add_nodes(network.supply)
    cut_off.add_arcs(network.tail, network.head, capacity, network.cost)
    assert solve(cut_off).status is Status.INFEASIBLE
    solver = IncrementalSolver(cut_off)
    assert solver.resolve() is Status.INFEASIBLE
    solver.set_capacity(np.arange(network.num_arcs), network.capacity)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == ortools_cost(network)
