"""Every algorithm stopped at a budget: the flow is within capacities, and continuing reaches the
optimum.
"""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsolver import IncrementalSolver, Status, algorithms, solve
from flowsolver.generate import contended_options, quincy_graph
from tests.fixtures.changing_cell import Cell, all_costs_anew, arrivals, machines_fail
from tests.fixtures.examples import examples
from tests.fixtures.network_strategies import networks
from tests.fixtures.networks import check_resolved, ortools_answer, ortools_cost, random_network

# A method may run this much over: a few looks at its control, each of thousands of operations.
OVERRUN = 65_536

GRAPHS = {
    "cell": lambda: quincy_graph(contended_options(60, 110, 30), 3).network,
    "random": lambda: random_network(7, 300, 3000),
}


@cache
def graph_and_cost(name):
    net = GRAPHS[name]()
    return net, ortools_cost(net)


@cache
def operations_of(name, algorithm):
    return solve(graph_and_cost(name)[0], algorithm).stats.operations


def within_capacities(net, flow):
    return flow.size == net.num_arcs and bool(((flow >= 0) & (flow <= net.capacity)).all())


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("algorithm", algorithms())
@examples(8)
@given(percent=st.integers(0, 99))
def test_stopped_from_scratch(algorithm, graph, percent):
    net, cost = graph_and_cost(graph)
    budget = operations_of(graph, algorithm) * percent // 100
    solution = solve(net, algorithm, max_operations=budget)
    assert solution.status in (Status.BUDGET, Status.OPTIMAL)
    assert solution.stats.operations <= budget + OVERRUN
    assert within_capacities(net, solution.flow)
    assert solution.cost == solution.flow @ net.cost
    assert solution.potential.size == net.num_nodes
    assert solution.status is Status.BUDGET or solution.cost == cost


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("algorithm", algorithms())
@examples(5)
@given(percent=st.integers(0, 99))
def test_continuing_after_budgets(algorithm, graph, percent):
    """Each resolve may do half as much again as the one before, so that one completes even if each
    starts again.
    """
    net, cost = graph_and_cost(graph)
    solver = IncrementalSolver(net, algorithm)
    budget = 1 + operations_of(graph, algorithm) * percent // 100
    while solver.resolve(max_operations=budget) is Status.BUDGET:
        assert within_capacities(net, solver.flow_reached())
        budget += budget // 2 + 1
    assert solver.cost == cost
    assert solver.certify().ok


@pytest.mark.parametrize("algorithm", algorithms())
@examples(6)
@given(budget=st.integers(0, 20_000))
def test_changes_before_it_is_done(algorithm, budget):
    """A stopped resolve, other changes, then a complete one: the cost from scratch."""
    cell = Cell("contended and oversubscribed", algorithm)
    all_costs_anew(cell)
    assert cell.solver.resolve(max_operations=budget) in (Status.BUDGET, Status.OPTIMAL)
    arrivals(cell)
    assert cell.solver.resolve(max_operations=budget) in (Status.BUDGET, Status.OPTIMAL)
    machines_fail(cell)
    cell.resolve()


@examples(150)
@given(networks(), st.integers(0, 300))
def test_small_networks(network, budget):
    """Status and cost are those of an unlimited solve, unless it was stopped."""
    expected, cost = ortools_answer(network)
    for algorithm in algorithms():
        solver = IncrementalSolver(network, algorithm)
        for stopped in (solver.resolve(max_operations=budget), solver.resolve(max_seconds=0)):
            assert stopped in (Status.BUDGET, expected), algorithm
            assert within_capacities(network, solver.flow_reached()), algorithm
        assert solver.resolve() is expected, algorithm
        if expected is Status.OPTIMAL:
            assert solver.cost == cost, algorithm
            assert solver.certify().ok, algorithm


@pytest.mark.parametrize("algorithm", algorithms())
def test_no_time_at_all(algorithm):
    net, cost = graph_and_cost("cell")
    assert solve(net, algorithm, max_seconds=0).status is Status.BUDGET
    solver = IncrementalSolver(net, algorithm)
    assert solver.resolve(max_seconds=0) is Status.BUDGET
    assert within_capacities(net, solver.flow_reached())
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == cost
    check_resolved(solver)
