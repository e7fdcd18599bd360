"""Pitfalls of textbook successive shortest path and cycle cancelling, with OR-tools as oracle."""

import numpy as np
import pytest

from flowsolver import IncrementalSolver, Status, solve
from flowsolver.generate import GraphOptions, quincy_graph
from tests.fixtures.networks import (
    check_resolved,
    check_solution,
    check_stops,
    network,
    ortools_answer,
    random_network,
    violations,
)

CLASSICS = pytest.mark.parametrize("algorithm", ["successive_shortest_path", "cycle_cancelling"])


@CLASSICS
def test_random_networks(algorithm):
    for seed in range(150):
        net = random_network(seed, 3 + seed % 20, 5 + 5 * (seed % 20))
        assert violations(net, solve(net, algorithm), ortools_answer(net)) == [], seed


@CLASSICS
def test_chains_of_the_largest_costs(algorithm):
    """Distances and labels reach the ends of their range, in both directions."""
    nodes = 30
    most = 2**59 // (nodes + 1)
    for sign in (1, -1):
        path = [(v, v + 1, 2, sign * most) for v in range(nodes - 1)]
        back = [(v + 1, v, 1, 0) for v in range(nodes - 1)]
        net = network([1, *[0] * (nodes - 2), -1], path + back)
        expected = most * (nodes - 1) if sign > 0 else -2 * most * (nodes - 1)
        check_solution(net, solve(net, algorithm), expected)


@CLASSICS
def test_wide_capacities_take_one_augmentation(algorithm):
    wide = 2**60
    net = network([wide // 2, 0, -wide // 2], [(0, 1, wide, 1), (1, 2, wide - 8, 1), (1, 0, 3, -1)])
    solution = solve(net, algorithm)
    check_solution(net, solution, wide)
    assert solution.stats.augmentations < 10


@CLASSICS
def test_negative_cycle_without_supply(algorithm):
    net = network([0] * 4, [(0, 1, 2, -3), (1, 2, 5, 1), (2, 0, 3, 1), (3, 2, 9, -9), (2, 3, 4, 9)])
    check_solution(net, solve(net, algorithm), -2)


@CLASSICS
def test_one_deficit_after_another(algorithm):
    """A source whose nearest sink takes too little sends the rest on to the next one."""
    net = network([5, -2, -2, -1], [(0, 1, 9, 1), (1, 2, 9, 1), (2, 3, 9, 1), (0, 3, 1, 9)])
    check_solution(net, solve(net, algorithm), 2 * 1 + 2 * 2 + 1 * 3)


@CLASSICS
def test_from_prices_that_are_not_optimal(algorithm):
    net = quincy_graph(GraphOptions(20, 95, machines_per_rack=8), 1).network
    solver = IncrementalSolver(net, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    solver.set_cost(np.arange(net.num_arcs), 7 - net.cost)
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)


@CLASSICS
def test_prices_from_one_end_of_the_range_to_the_other(algorithm):
    """Each round moves the prices as far as the range lets them."""
    nodes = 12
    most = 2**59 // (nodes + 1)
    solver = IncrementalSolver(
        network([1, *[0] * (nodes - 2), -1], [(v, v + 1, 1, most) for v in range(nodes - 1)]),
        algorithm,
    )
    arcs = np.arange(nodes - 1)
    for sign in (1, -1, 1, -1):
        solver.set_cost(arcs, sign * most)
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cost == sign * most * (nodes - 1)
        assert solver.certify().ok


@CLASSICS
@pytest.mark.parametrize("seed", range(6))
def test_narrower_arcs_leave_an_unbalanced_flow(algorithm, seed):
    net = random_network(seed, 20, 120)
    solver = IncrementalSolver(net, algorithm)
    solver.resolve()
    solver.set_capacity(np.arange(0, net.num_arcs, 3), net.capacity[::3] // 2)
    if solver.resolve() is Status.OPTIMAL:
        check_resolved(solver)
    else:
        assert solve(solver.snapshot()[0]).status is Status.INFEASIBLE


@CLASSICS
def test_budgets(algorithm):
    net = quincy_graph(GraphOptions(20, 95, machines_per_rack=8), 1).network
    check_stops(net, algorithm, 20)


def test_cycle_cancelling_has_a_feasible_flow_that_gets_cheaper():
    """Stopped at any time after the start, the flow meets the supplies, and more time means less
    cost.
    """
    net = quincy_graph(GraphOptions(20, 95, machines_per_rack=8), 1).network
    whole = solve(net, "cycle_cancelling")
    costs = []
    for most in np.linspace(0.2, 0.99, 12) * whole.stats.operations:
        partial = solve(net, "cycle_cancelling", max_operations=int(most))
        assert partial.status is Status.BUDGET
        balance = np.zeros(net.num_nodes, dtype=np.int64)
        np.add.at(balance, net.tail, partial.flow)
        np.add.at(balance, net.head, -partial.flow)
        assert (balance == net.supply).all()
        costs.append(partial.cost)
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1] >= whole.cost


def test_a_stored_optimum_needs_no_work():
    net = quincy_graph(GraphOptions(20, 95, machines_per_rack=8), 1).network
    for algorithm in ("successive_shortest_path", "cycle_cancelling"):
        solver = IncrementalSolver(net, algorithm)
        assert solver.resolve() is Status.OPTIMAL
        solver.set_cost([0], [int(net.cost[0]) + 1])
        solver.set_cost([0], [int(net.cost[0])])
        assert solver.resolve() is Status.OPTIMAL
        assert solver.stats.pushes == 0
