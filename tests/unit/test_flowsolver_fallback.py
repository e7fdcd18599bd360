"""Which algorithm takes over where the default's shortest paths go far, and that it does so early.

The counts tell which one solved: shortest paths count none of these steps, and no two of the others
count the same.
"""

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, solve
from flowsolver.generate import NetgenOptions, netgen_network, network_aware_graph
from flowsolver.grid_networks import (
    GotoOptions,
    GridgenOptions,
    RoadOptions,
    goto_network,
    gridgen_network,
    road_network,
)
from tests.fixtures.networks import check_solution, hub_network, long_path

CASES = {
    "netgen": (
        lambda: netgen_network(NetgenOptions(2_000, 16_000, 44, 44, 44_000), 1),
        "network_simplex",
    ),
    "goto": (lambda: goto_network(GotoOptions(10, 200, 16_000), 1), "network_simplex"),
    "large goto": (lambda: goto_network(GotoOptions(24, 1_024, 8 * 24_576), 1), "cost_scaling"),
    "gridgen": (
        lambda: gridgen_network(GridgenOptions(40, 50, 16_000, 44, 44, 44_000), 1),
        "network_simplex",
    ),
    "one-way streets": (
        lambda: gridgen_network(GridgenOptions(40, 50, 6_000, 44, 44, 44_000), 1),
        "network_simplex",
    ),
    "roads between few": (lambda: road_network(RoadOptions(80, 80, 30, 100), 1), "relaxation"),
    "roads between many": (lambda: road_network(RoadOptions(80, 80, 640, 1), 1), "network_simplex"),
    "long path": (lambda: long_path(2_000).network, "network_simplex"),
    "long path, signs in blocks": (lambda: long_path(2_000, block=100).network, "network_simplex"),
}


def steps(stats):
    return stats.pushes, stats.relabels, stats.ascents, stats.pivots


@pytest.mark.parametrize("case", CASES)
def test_the_algorithm_that_takes_over(case):
    make, algorithm = CASES[case]
    network = make()
    solution, other = solve(network), solve(network, algorithm)
    check_solution(network, solution, other.cost)
    assert steps(solution.stats) == steps(other.stats) != (0, 0, 0, 0)
    # the limit, and the search that went beyond it
    assert solution.stats.scanned - other.stats.scanned <= 5 * 2 * network.num_arcs


@pytest.mark.parametrize(
    "make",
    [lambda: hub_network(2_000), lambda: road_network(RoadOptions(80, 80, 8), 1)],
    ids=["hub", "roads between very few"],
)
def test_searches_that_stay_near_end_by_themselves(make):
    assert steps(solve(make()).stats) == (0, 0, 0, 0)


def test_scheduling_graphs_keep_cost_scaling():
    """Also with few arcs per task, most of them aggregators' arcs."""
    network = network_aware_graph(300, 1).network
    solution, other = solve(network), solve(network, "cost_scaling")
    check_solution(network, solution, other.cost)
    assert steps(solution.stats) == steps(other.stats) != (0, 0, 0, 0)


def test_a_task_has_no_arcs_in():
    """Unit supplies alone do not make a scheduling graph."""
    network = road_network(RoadOptions(40, 40, 160, 1), 1)
    assert steps(solve(network).stats) == steps(solve(network, "network_simplex").stats)


@pytest.mark.parametrize("case", ["netgen", "roads between few", "long path"])
@pytest.mark.parametrize("parts", [3, 30])
def test_a_first_solve_in_parts_reaches_the_optimum(case, parts):
    """A first resolve that is stopped goes on with the algorithm that had taken over."""
    network = CASES[case][0]()
    whole = solve(network)
    solver = IncrementalSolver(network)
    budget = whole.stats.operations // parts
    resolves = 0
    while solver.resolve(max_operations=budget) is Status.BUDGET:
        resolves += 1
        assert resolves < 100 * parts
    assert resolves > 0
    assert (solver.cost, solver.certify().ok) == (whole.cost, True)
    # later rounds are shortest paths', from that optimum
    solver.set_cost([0], int(network.cost[0]) + 1)
    solver.resolve()
    assert solver.certify().ok


def test_few_arcs_alone_are_no_roads():
    """At most 4 arcs per node, but one way only: nodes in layers."""
    layers, width = 40, 25
    node = np.arange(layers * width)
    inner = node[:-width]
    tail = np.repeat(inner, 3)
    head = (inner[:, None] // width + 1) * width + (
        inner[:, None] * np.array([1, 3, 7]) + np.array([0, 5, 11])
    ) % width
    network = FlowNetwork()
    supply = np.zeros(node.size, dtype=np.int64)
    supply[:4], supply[-4:] = 150, -150
    network.add_nodes(supply)
    draws = np.random.default_rng(1)
    network.add_arcs(tail, head.ravel(), 60, draws.integers(1, 1_000, tail.size))
    solution = solve(network)
    check_solution(network, solution, solve(network, "relaxation").cost)
    assert steps(solution.stats) == steps(solve(network, "network_simplex").stats)
