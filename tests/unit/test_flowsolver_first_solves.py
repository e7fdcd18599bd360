"""Counted operations per arc of solves from scratch on long paths and on hubs. The limits are about
twice the current values. Times: tests/benchmarks/bench_flowsolver.py.
"""

import pytest

from flowsolver import algorithms, certify, solve
from tests.fixtures.networks import check_solution, hub_network, long_path

PATHS = {
    "random": {},
    "blocks of one sign": {"block": 100},
    "narrow": {"narrow": True},
    "no costs": {"largest_cost": 0},
}
# Excesses that are sent one by one over a long way take the square of its length.
LIMITS = {
    ("random", "successive_shortest_path"): 4_200,
    ("random", "network_simplex"): 200,
    ("random", "relaxation"): 1_200,
    ("blocks of one sign", "network_simplex"): 400,
    ("narrow", "network_simplex"): 200,
    ("no costs", "cycle_cancelling"): 150,
    ("no costs", "network_simplex"): 200,
}


@pytest.mark.parametrize(("kind", "algorithm"), LIMITS)
def test_a_path_of_10_000_nodes_with_supplies_everywhere(kind, algorithm):
    known = long_path(10_000, **PATHS[kind])
    solution = solve(known.network, algorithm)
    check_solution(known.network, solution, known.cost)
    assert solution.stats.operations <= LIMITS[kind, algorithm] * known.network.num_arcs


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("algorithm", algorithms())
def test_long_paths_are_solved(algorithm, kind):
    known = long_path(2_000, **PATHS[kind])
    check_solution(known.network, solve(known.network, algorithm), known.cost)


@pytest.mark.parametrize("leaves", [5_000, 50_000])
def test_relaxation_work_per_leaf_does_not_grow(leaves):
    """Gathering once scanned all postponed leaves again for each set."""
    network = hub_network(leaves)
    solution = solve(network, "relaxation")
    assert certify(network, solution).ok
    assert solution.stats.operations <= 80 * network.num_arcs
