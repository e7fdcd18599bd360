"""Every algorithm, and races, on every family of networks: certified, with the cost of OR-tools or
a formula.
"""

from functools import cache, partial

import numpy as np
import pytest

from flowsolver import FlowNetwork, algorithms, parse_dimacs, solve
from flowsolver.generate import NetgenOptions, netgen_network, network_aware_graph
from tests.fixtures import networks
from tests.fixtures.networks import CELLS, check_solution, network, ortools_cost, scheduling_graph

FAMILIES = {
    **{
        cell: lambda seed, cell=cell: scheduling_graph(cell, seed).network
        for cell in (*CELLS, "load spreading")
    },
    **networks.SHAPES,
    "grid": networks.grid,
    "grid with negative costs": lambda seed: networks.grid(seed, least_cost=-12),
    "grid of wide streets": lambda seed: networks.grid(seed, scale=2**36),
    "random": networks.random_network,
    "random and sparse": lambda seed: networks.random_network(seed, 80, 120),
    "random and dense": lambda seed: networks.random_network(seed, 15, 600),
    "network-aware": lambda seed: network_aware_graph(16, seed).network,
    "network-aware and oversubscribed": lambda seed: (
        network_aware_graph(12, seed, 120, 20, 6).network
    ),
    "netgen": partial(netgen_network, NetgenOptions(80, 600, 8, 9, 900)),
    "netgen with transshipment": partial(
        netgen_network, NetgenOptions(60, 900, 8, 9, 900, 4, 5, -20, 100, 30, 70, 0, 60)
    ),
}

FIRMAMENT = ("relaxation", "cost_scaling")
SOLVERS = {
    **{name: partial(solve, algorithm=name) for name in algorithms()},
    "race": partial(solve, algorithm=FIRMAMENT),
    "deterministic race": partial(solve, algorithm=FIRMAMENT, deterministic=True),
}
each_solver = pytest.mark.parametrize("run", SOLVERS.values(), ids=SOLVERS)


@cache
def with_peers_cost(family, seed):
    net = FAMILIES[family](seed)
    return net, ortools_cost(net)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
@each_solver
def test_costs_equal_those_of_ortools(run, family, seed):
    net, cost = with_peers_cost(family, seed)
    check_solution(net, run(net), cost)


FORMULAS = [
    networks.assignment_on_a_line,
    networks.transport_on_a_line,
    networks.road_on_a_line,
    networks.monge_transport,
    networks.even_spread,
    networks.staircase,
]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("formula", FORMULAS)
@each_solver
def test_costs_equal_those_of_a_formula(run, formula, seed):
    known = formula(seed)
    check_solution(known.network, run(known.network), known.cost)


def as_file_with_lower_bounds(net, seed):
    """A DIMACS file whose flows are those of the network plus a lower bound on every arc; with the
    bounds and its supplies."""
    rng = np.random.default_rng(seed)
    low = rng.integers(-9, 10, net.num_arcs)
    supply = net.supply
    np.add.at(supply, net.tail, low)
    np.add.at(supply, net.head, -low)
    lines = [f"p min {net.num_nodes} {net.num_arcs}"]
    lines += [f"n {node + 1} {amount}" for node, amount in enumerate(supply)]
    rows = zip(net.tail + 1, net.head + 1, low, low + net.capacity, net.cost, strict=True)
    lines += ["a {} {} {} {} {}".format(*row) for row in rows]
    return "\n".join(lines).encode(), low, supply


@pytest.mark.parametrize("family", ["grid with negative costs", "random"])
@pytest.mark.parametrize("algorithm", algorithms())
def test_file_with_lower_bounds(algorithm, family):
    """What is found meets the bounds and the supplies of the file, at the cost of the file."""
    net, cost = with_peers_cost(family, 1)
    text, low, supply = as_file_with_lower_bounds(net, 5)
    problem = parse_dimacs(text)
    solution = solve(problem.network, algorithm)
    check_solution(problem.network, solution, cost)
    flow = solution.flow + problem.low
    assert ((low <= flow) & (flow <= low + net.capacity)).all()
    leaving = np.zeros(net.num_nodes, dtype=np.int64)
    np.add.at(leaving, net.tail, flow)
    np.add.at(leaving, net.head, -flow)
    np.testing.assert_array_equal(leaving, supply)
    assert solution.cost + problem.base_cost == flow @ net.cost


@pytest.mark.parametrize("cell", ["oversubscribed", "contended"])
@pytest.mark.parametrize("algorithm", algorithms())
def test_arcs_and_nodes_in_any_order(algorithm, cell):
    """Sources whose arcs are strewn over the network, and renumbered nodes."""
    net, cost = with_peers_cost(cell, 1)
    rng = np.random.default_rng(3)
    arc, node = rng.permutation(net.num_arcs), rng.permutation(net.num_nodes)
    supply = np.empty_like(net.supply)
    supply[node] = net.supply
    strewn = FlowNetwork()
    strewn.add_nodes(supply)
    strewn.add_arcs(node[net.tail[arc]], node[net.head[arc]], net.capacity[arc], net.cost[arc])
    check_solution(strewn, solve(strewn, algorithm), cost)


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "race"])
def test_same_answer_again(name):
    """Only a race for time depends on time: flow and counted work are otherwise the same at every
    call.
    """
    first, second = (SOLVERS[name](networks.random_network(4)) for _ in range(2))
    np.testing.assert_array_equal(first.flow, second.flow)
    np.testing.assert_array_equal(first.potential, second.potential)
    assert first.stats.operations == second.stats.operations > 0
    assert first.winner == second.winner


@pytest.mark.parametrize("cut", [0, 1, 7])
@each_solver
def test_infeasible_by_little(run, cut):
    """A bottleneck of parallel arcs between two grids, as wide as the flow that must pass it or
    slightly less.
    """
    half = networks.grid(2, side=6)
    nodes, passing = half.num_nodes, 40
    supply = np.concatenate([half.supply, half.supply])
    supply[[0, nodes]] += [passing, -passing]
    rows = np.stack([half.tail, half.head, half.capacity + passing, half.cost], axis=1)
    bridge = [(5, nodes + 9, 10, 3)] * 3 + [(17, nodes + 2, 10 - cut, 1)]
    net = network(supply, np.concatenate([rows, rows + np.array([nodes, nodes, 0, 0]), bridge]))
    cost = ortools_cost(net)
    assert (cost is None) == (cut > 0)
    check_solution(net, run(net), cost)


def test_families_have_the_properties_they_are_for():
    """Tight cells leave tasks waiting, contended ones have expensive machines, and random networks
    have each oddity.
    """
    assert solve(FAMILIES["oversubscribed"](1)).potential.max() > 200
    graph = scheduling_graph("contended", 1)
    assert solve(graph.network).potential[graph.first_machine : graph.first_unscheduled].any()
    aware = network_aware_graph(16, 1)
    links = np.stack([aware.network.tail, aware.network.head])
    _, times = np.unique(
        links[:, aware.network.tail < aware.first_machine], axis=1, return_counts=True
    )
    assert times.max() > 5
    net: FlowNetwork = FAMILIES["random and dense"](1)
    pairs = np.stack([net.tail, net.head])
    assert np.unique(pairs, axis=1).shape[1] < net.num_arcs
    assert (net.tail == net.head).any()
    assert (net.capacity == 0).any()
    assert (net.cost < 0).any()
