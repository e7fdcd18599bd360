"""Solves that stop at a budget, and how many tasks of their flow are misplaced."""

import itertools

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, algorithms, misplaced_tasks, solve
from flowsolver.generate import GraphOptions, contended_options, network_aware_graph, quincy_graph

ALL = list(algorithms())
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


def test_misplaced_needs_whole_flows():
    with pytest.raises(ValueError, match="flow has 3 entries, expected 8"):
        misplaced_tasks(cell(), [1, 2, 3], flow_of())
    with pytest.raises(ValueError, match="optimum has 0 entries"):
        misplaced_tasks(cell(), flow_of(), [])


GRAPHS = {"nearly full": GraphOptions(40, 97, 10), "contended": contended_options(40, 105, 10)}


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize("graph", GRAPHS)
def test_budgets_end_at_the_optimum(graph, algorithm):
    """Every flow is within capacities. At the last budget no task is misplaced."""
    scheduling = quincy_graph(GRAPHS[graph], 2)
    net = scheduling.network
    optimum = solve(net, algorithm)
    stopped = 0
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        solution = solve(net, algorithm, max_operations=int(share * optimum.stats.operations))
        count = misplaced_tasks(net, solution.flow, optimum.flow)
        if solution.status is Status.BUDGET:
            stopped += 1
            assert np.all((solution.flow >= 0) & (solution.flow <= net.capacity))
            assert solution.cost == int(np.dot(net.cost, solution.flow))
            assert 0 <= count <= scheduling.tasks
        else:
            assert solution.status is Status.OPTIMAL
            assert count == 0
    assert solution.status is Status.OPTIMAL
    assert stopped > 0


@pytest.mark.parametrize(
    "options", [GraphOptions(100, 102, 6), *GRAPHS.values()], ids=["oversubscribed", *GRAPHS]
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


@pytest.mark.parametrize("algorithm", ALL)
def test_resolve_continues_after_each_budget(algorithm):
    net = quincy_graph(GRAPHS["nearly full"], 3).network
    solver = IncrementalSolver(net, algorithm)
    limit, stops = 2000, 0
    while (status := solver.resolve(max_operations=limit)) is Status.BUDGET:
        reached = solver.flow_reached()
        assert np.all((reached >= 0) & (reached <= net.capacity))
        limit, stops = limit + limit // 2, stops + 1
    assert status is Status.OPTIMAL
    assert stops > 0
    assert solver.certify().ok
    assert solver.cost == solve(net).cost


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
        assert solver.cost == solve(solver.snapshot()[0]).cost
        change()
        status = solver.resolve()
        assert solver.stats.operations < fresh // 4


def small(supply, capacity, cost):
    net = FlowNetwork()
    net.add_nodes(supply)
    net.add_arcs([0], [1], capacity, cost)
    return net


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (([1, -1], 1, 1), Status.OPTIMAL),
        (([1, -1], 0, 1), Status.INFEASIBLE),
        (([1, -2], 1, 1), Status.UNBALANCED),
        (([1, -1], 1, 2**62), Status.BAD_COST_RANGE),
        (([2**62, -(2**62)], 1, 1), Status.BAD_CAPACITY_RANGE),
    ],
    ids=["optimal", "infeasible", "unbalanced", "cost", "capacity"],
)
def test_statuses_of_every_algorithm(algorithm, arguments, status):
    net = small(*arguments)
    assert solve(net, algorithm).status is status
    assert IncrementalSolver(net, algorithm).resolve() is status


@pytest.mark.parametrize("algorithm", ALL)
def test_stopped_statuses_of_every_algorithm(algorithm):
    net = quincy_graph(GRAPHS["nearly full"], 1).network
    assert solve(net, algorithm, max_operations=0).status is Status.BUDGET
    assert solve(net, algorithm, max_seconds=0).status is Status.BUDGET
    solver = IncrementalSolver(net, algorithm)
    solver.cancel()
    assert solver.resolve() is Status.CANCELLED
    assert solver.resolve(max_seconds=0) is Status.BUDGET
    assert solver.resolve() is Status.OPTIMAL


def test_any_length_of_time_is_a_budget():
    net = quincy_graph(GraphOptions(10), 1).network
    assert solve(net, max_seconds=float("inf")).status is Status.OPTIMAL
    assert solve(net, max_seconds=1e300).status is Status.OPTIMAL
    with pytest.raises(ValueError, match="max_seconds = nan"):
        solve(net, max_seconds=float("nan"))


def test_misplaced_tasks_refuses_what_is_no_flow():
    net = quincy_graph(GraphOptions(10), 1).network
    flow = solve(net).flow
    wrong = flow.copy()
    wrong[3] = -1
    with pytest.raises(ValueError, match=r"flow\[3\] = -1: negative"):
        misplaced_tasks(net, wrong, flow)
    with pytest.raises(ValueError, match=r"optimum\[3\] = -1: negative"):
        misplaced_tasks(net, flow, wrong)
