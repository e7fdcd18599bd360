"""Solves that stop at a budget or are cancelled: the flow is within capacities, continuing reaches
the optimum, however small the budgets; and how many tasks of such a flow are misplaced.
"""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsolver import FlowNetwork, IncrementalSolver, Status, algorithms, misplaced_tasks, solve
from flowsolver.generate import GraphOptions, contended_options, network_aware_graph, quincy_graph
from tests.fixtures.changing_cell import Cell, all_costs_anew, arrivals, machines_fail
from tests.fixtures.examples import examples
from tests.fixtures.network_strategies import networks
from tests.fixtures.networks import (
    check_resolved,
    network,
    ortools_answer,
    ortools_cost,
    random_network,
)

each_algorithm = pytest.mark.parametrize("algorithm", algorithms())


A, B, X, M, N, SINK = range(6)  # two tasks, an aggregator, two machines


ARCS = [(A, X), (B, X), (A, M), (B, N), (X, M), (X, N), (M, SINK), (N, SINK)]


def cell():
    net = FlowNetwork()
    net.add_nodes([1, 1, 0, 0, 0, -2])
    tail, head = zip(*ARCS, strict=True)
    net.add_arcs(tail, head, [1, 1, 1, 1, 2, 2, 2, 2], 0)
    return net


def flow_of(*paths):
    flow = np.zeros(len(ARCS), dtype=np.int64)
    for path in paths:
        for arc in itertools.pairwise(path):
            flow[ARCS.index(arc)] += 1
    return flow


A_OVER_X_TO_M, A_OVER_X_TO_N = (A, X, M, SINK), (A, X, N, SINK)
B_OVER_X_TO_M, B_OVER_X_TO_N = (B, X, M, SINK), (B, X, N, SINK)


@pytest.mark.parametrize(
    ("reached", "optimum", "misplaced"),
    [
        # alike through the aggregator
        ([A_OVER_X_TO_M, B_OVER_X_TO_N], [A_OVER_X_TO_N, B_OVER_X_TO_M], 0),
        # the same machine another way
        ([(A, M, SINK), B_OVER_X_TO_N], [A_OVER_X_TO_M, B_OVER_X_TO_N], 0),
        ([(A, M, SINK), B_OVER_X_TO_M], [(A, M, SINK), (B, N, SINK)], 1),  # another machine
        ([(A, M, SINK)], [(A, M, SINK), (B, N, SINK)], 1),  # not delivered
        ([(A, X), (B, N)], [(A, M, SINK), (B, N, SINK)], 2),  # both on the way
        ([(X, M, SINK), (X, N, SINK)], [A_OVER_X_TO_M, B_OVER_X_TO_N], 2),  # units from nowhere
        ([], [A_OVER_X_TO_M, B_OVER_X_TO_N], 2),
    ],
)
def test_misplaced_by_hand(reached, optimum, misplaced):
    assert misplaced_tasks(cell(), flow_of(*reached), flow_of(*optimum)) == misplaced


def test_misplaced_is_an_upper_bound_of_the_least_count():
    """All placements of the two tasks, in both flows, compared with brute force over all
    decompositions.
    """
    ways = [(path_a, path_b) for path_a in routes(A) for path_b in routes(B)]
    net = cell()
    for reached, optimum in itertools.product(ways, ways):
        flow, best = flow_of(*reached), flow_of(*optimum)
        same = [(w, v) for w in ways for v in ways if flow_is(w, flow) and flow_is(v, best)]
        least = min(sum(x[-2] != y[-2] for x, y in zip(w, v, strict=True)) for w, v in same)
        counted = misplaced_tasks(net, flow, best)
        assert least <= counted <= 2
        assert counted == 0 or not np.array_equal(flow, best)


def routes(task):
    return [(task, X, M, SINK), (task, X, N, SINK), (A, M, SINK) if task == A else (B, N, SINK)]


def flow_is(way, flow):
    return np.array_equal(flow_of(*way), flow)


def test_misplaced_tasks_refuses_what_is_no_flow():
    full = flow_of(A_OVER_X_TO_M)
    for flow, optimum, says in (
        ([1, 2, 3], full, "flow has 3 entries, expected 8"),
        (full, [], "optimum has 0 entries"),
        (-full, full, r"flow\[0\] = -1: negative"),
        (full, -full, r"optimum\[0\] = -1: negative"),
    ):
        with pytest.raises(ValueError, match=says):
            misplaced_tasks(cell(), flow, optimum)


TIGHT = {"nearly full": GraphOptions(40, 97, 10), "contended": contended_options(40, 105, 10)}


@pytest.mark.parametrize(
    "options", [GraphOptions(100, 102, 6), *TIGHT.values()], ids=["oversubscribed", *TIGHT]
)
def test_a_larger_budget_misplaces_fewer_tasks(options):
    """A solve stops between the assignments of two tasks; assigned tasks reach the sink."""
    scheduling = quincy_graph(options, 1)
    net = scheduling.network
    optimum = solve(net)
    task = (net.tail >= scheduling.first_task) & (
        net.tail < scheduling.first_task + scheduling.tasks
    )
    counts, placed = [], []
    for share in (0.1, 0.3, 0.5, 0.7):
        solution = solve(net, max_operations=int(share * optimum.stats.operations))
        assert solution.status is Status.BUDGET
        assert np.all((solution.flow >= 0) & (solution.flow <= net.capacity))
        assert solution.cost == int(np.dot(net.cost, solution.flow))
        counts.append(misplaced_tasks(net, solution.flow, optimum.flow))
        placed.append(int(solution.flow[task].sum()))
    assert all(fewer < more for more, fewer in itertools.pairwise([scheduling.tasks, *counts]))
    assert placed == sorted(placed)
    assert counts[-1] < scheduling.tasks // 2


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
@each_algorithm
@examples(8)
@given(percent=st.integers(1, 99))
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
@each_algorithm
@examples(5)
@given(percent=st.integers(1, 99))
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


@each_algorithm
@examples(6)
@given(budget=st.integers(1, 20_000))
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
@given(networks(), st.integers(1, 300))
def test_small_networks(net, budget):
    """Status and cost are those of an unlimited solve, unless it was stopped."""
    expected, cost = ortools_answer(net)
    for algorithm in algorithms():
        solver = IncrementalSolver(net, algorithm)
        for stopped in (solver.resolve(max_operations=budget), solver.resolve(max_seconds=1e-9)):
            assert stopped in (Status.BUDGET, expected), algorithm
            assert within_capacities(net, solver.flow_reached()), algorithm
        assert solver.resolve() is expected, algorithm
        if expected is Status.OPTIMAL:
            assert solver.cost == cost, algorithm
            assert solver.certify().ok, algorithm


@each_algorithm
def test_no_time_at_all(algorithm):
    net, cost = graph_and_cost("cell")
    assert solve(net, algorithm, max_seconds=1e-9).status is Status.BUDGET
    solver = IncrementalSolver(net, algorithm)
    assert solver.resolve(max_seconds=1e-9) is Status.BUDGET
    assert within_capacities(net, solver.flow_reached())
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == cost
    check_resolved(solver)


# Made in each test: a native object in a module's globals may outlive nanobind's check for leaks.
STOPPED_CELLS = {
    # solved by shortest paths
    "oversubscribed": lambda: quincy_graph(GraphOptions(100, 102, 6), 1),
    # solved by cost scaling
    "network-aware": lambda: network_aware_graph(300, 1),
}


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("cell_name", STOPPED_CELLS)
def test_a_stopped_first_resolve_takes_no_longer_than_a_fresh_one(cell_name, share):
    net = STOPPED_CELLS[cell_name]().network
    fresh = solve(net)
    solver = IncrementalSolver(net)
    assert solver.resolve(max_operations=int(share * fresh.stats.operations)) is Status.BUDGET
    assert solver.flow_reached().any()
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == fresh.cost
    assert solver.certify().ok
    assert solver.stats.operations < 2 * fresh.stats.operations


@pytest.mark.parametrize("cell_name", STOPPED_CELLS)
def test_a_stopped_first_resolve_takes_changes(cell_name):
    """Changes between stopped resolves, and after the first complete one: then the work of a round
    depends on its changes again.
    """
    graph = STOPPED_CELLS[cell_name]()
    net = graph.network
    tasks = np.arange(graph.first_task, graph.first_task + graph.tasks)
    fresh = solve(net).stats.operations
    solver = IncrementalSolver(net)
    stops, leaving = 0, iter(tasks.tolist())

    def change():
        solver.remove_nodes([next(leaving)])
        solver.set_supply([graph.sink], [1 + solver.snapshot()[0].supply[graph.sink]])
        solver.set_cost([int(np.flatnonzero(net.tail == tasks[-1 - stops])[0])], [stops])

    while (status := solver.resolve(max_operations=fresh // 8)) is Status.BUDGET:
        stops += 1
        assert stops < 300
        reached = solver.flow_reached()
        assert np.all((reached >= 0) & (reached <= net.capacity))
        change()
    assert stops > 3
    for _ in range(3):
        assert status is Status.OPTIMAL
        assert solver.certify().ok
        assert solver.certify_touched().ok
        assert solver.certify_changes().ok
        assert solver.cost == solve(solver.snapshot()[0]).cost
        change()
        status = solver.resolve()
        assert solver.stats.operations < fresh // 4


def test_any_length_of_time_is_a_budget():
    net = quincy_graph(GraphOptions(10), 1).network
    assert solve(net, max_seconds=float("inf")).status is Status.OPTIMAL
    assert solve(net, max_seconds=1e300).status is Status.OPTIMAL
    with pytest.raises(ValueError, match="max_seconds = nan"):
        solve(net, max_seconds=float("nan"))


# Made in each test: a native object in a module's globals may outlive nanobind's check for leaks.
STOPPED = {
    "nearly full": lambda: quincy_graph(GraphOptions(40, 97, 10), 2),
    "contended": lambda: quincy_graph(contended_options(40, 105, 10), 2),
    "network-aware": lambda: network_aware_graph(60, 1),
}


RACE = ("cost_scaling", "relaxation")


def resolve_repeatedly(solver, most, **budget):
    """The number of stopped resolves, and the final status."""
    for stops in range(most):
        status = solver.resolve(**budget)
        reached = solver.flow_reached()
        live, _, arcs = solver.snapshot()
        assert ((reached[arcs] >= 0) & (reached[arcs] <= live.capacity)).all()
        if status is not Status.BUDGET:
            return stops, status
    raise AssertionError(f"{most} resolves were not enough")


@pytest.mark.parametrize("algorithm", [*algorithms(), RACE], ids=str)
@pytest.mark.parametrize("cell", STOPPED)
def test_any_budget_suffices_eventually(cell, algorithm):
    """Each path found is lasting progress, so there are at most about as many resolves as tasks."""
    graph = STOPPED[cell]()
    solver = IncrementalSolver(graph.network, algorithm, deterministic=algorithm == RACE)
    most = 10 * graph.tasks
    fresh = solve(graph.network, "incremental_ssp").stats.operations
    stops, status = resolve_repeatedly(solver, most, max_operations=1)
    assert stops > 0
    assert status is Status.OPTIMAL
    check_resolved(solver)
    for gone, budget in (
        (5, {"max_operations": 1}),
        (10, {"max_operations": fresh // 100}),
        (15, {"max_seconds": 1e-9}),
    ):
        solver.remove_nodes(np.arange(graph.first_task + gone - 5, graph.first_task + gone))
        solver.set_supply([graph.sink], [gone - graph.tasks])
        used = np.flatnonzero(solver.flow())
        solver.set_cost(used[used >= graph.task_arc_begin[gone]][::2], 9 + gone)
        _, status = resolve_repeatedly(solver, most, **budget)
        assert status is Status.OPTIMAL
        check_resolved(solver)


@pytest.mark.parametrize(("algorithm", "own_work"), [("cost_scaling", "relabels")])
def test_an_algorithm_returns_after_the_next_answer(algorithm, own_work):
    graph = STOPPED["contended"]()
    solver = IncrementalSolver(graph.network, algorithm)
    stops, _ = resolve_repeatedly(solver, 10 * graph.tasks, max_operations=1)
    assert stops > 8
    assert getattr(solver.stats, own_work) == 0  # shortest paths ended it
    before = solver.flow()
    solver.set_cost(np.flatnonzero(before[: graph.task_arc_begin[20]]), 100)
    assert solver.resolve() is Status.OPTIMAL
    assert getattr(solver.stats, own_work) > 0
    check_resolved(solver)
    arcs, flow = solver.changed_flow()
    np.testing.assert_array_equal(np.flatnonzero(before != solver.flow()), arcs)
    np.testing.assert_array_equal(solver.flow(arcs), flow)


@each_algorithm
def test_any_budget_suffices_to_prove_infeasibility(algorithm):
    graph = STOPPED["nearly full"]()
    solver = IncrementalSolver(graph.network, algorithm)
    last = np.arange(*graph.task_arc_begin[-2:])
    solver.set_capacity(last, 0)
    _, status = resolve_repeatedly(solver, 10 * graph.tasks, max_operations=1)
    assert status is Status.INFEASIBLE
    solver.set_capacity(last, 1)
    _, status = resolve_repeatedly(solver, 10 * graph.tasks, max_operations=1)
    assert status is Status.OPTIMAL
    check_resolved(solver)


ROUNDS_OF_EVERY_END = {
    Status.OPTIMAL: lambda solver: None,
    Status.UNBALANCED: lambda solver: solver.set_supply([0], [3]),
    Status.INFEASIBLE: lambda solver: solver.set_capacity([2, 3], 0),
    Status.BAD_COST_RANGE: lambda solver: solver.set_cost([0], [2**60]),
    Status.BAD_CAPACITY_RANGE: lambda solver: solver.set_supply([0], [2**62]),
}


@pytest.mark.parametrize("end", ROUNDS_OF_EVERY_END)
@pytest.mark.parametrize("algorithm", [*algorithms(), RACE], ids=str)
def test_a_cancellation_is_for_one_round(algorithm, end):
    """If none is running, it ends the next resolve, whatever its status would be, and no other."""
    arcs = [(0, 1, 1, 1), (0, 2, 2, 4), (1, 3, 5, 0), (2, 3, 5, 0)]
    solver = IncrementalSolver(network([2, 0, 0, -2], arcs), algorithm)
    assert solver.resolve() is Status.OPTIMAL
    ROUNDS_OF_EVERY_END[end](solver)
    solver.cancel()
    solver.cancel()
    assert [solver.resolve() for _ in range(3)] == [Status.CANCELLED, end, end]
