"""Network simplex: ranges, degenerate networks, starts from any flow, budgets. Certificates, and
OR-tools as oracle."""

import numpy as np
import pytest

from flowsolver import IncrementalSolver, Status, certify, solve
from flowsolver.generate import GraphOptions, load_spreading_graph, quincy_graph
from tests.fixtures.networks import (
    check_resolved,
    check_solution,
    check_stops,
    network,
    ortools_answer,
    random_network,
    violations,
)

SIMPLEX = "network_simplex"


def test_paths_of_the_largest_cost_in_range():
    """The only path costs as much as a path can; prices reach both ends, and artificial arcs cost
    more still.
    """
    nodes = 40
    most = 2**59 // (nodes + 1)
    for sign in (1, -1):
        path = [(v, v + 1, 1, sign * most) for v in range(nodes - 1)]
        net = network([1, *[0] * (nodes - 2), -1], path)
        check_solution(net, solve(net, SIMPLEX), sign * most * (nodes - 1))


def test_expensive_networks_without_a_path_are_infeasible():
    """The cost of artificial arcs must not pass for that of an optimum."""
    nodes = 40
    most = 2**59 // (nodes + 1)
    path = [(v, v + 1, 1, most) for v in range(nodes - 1)]
    short_of_one = network([2, *[0] * (nodes - 2), -2], path)
    assert solve(short_of_one, SIMPLEX).status is Status.INFEASIBLE
    cut = network([1, *[0] * (nodes - 2), -1], [arc for arc in path if arc[0] != nodes // 2])
    assert solve(cut, SIMPLEX).status is Status.INFEASIBLE


def test_capacities_as_wide_as_the_range_allows():
    wide = 2**60
    net = network(
        [wide // 2, 0, -wide // 2],
        [(0, 1, wide, 1), (1, 2, wide // 2, 1), (0, 2, wide // 4, 3), (2, 0, 1, 0)],
    )
    check_solution(net, solve(net, SIMPLEX), wide)
    cycle = network([0, 0, 0], [(0, 1, wide, -1), (1, 2, wide, 0), (2, 0, wide, 0)])
    check_solution(cycle, solve(cycle, SIMPLEX), -wide)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_degenerate_assignments_end(levels):
    """Nearly every pivot moves no flow. Without a rule for the leaving arc such networks can
    cycle."""
    rng = np.random.default_rng(levels)
    size = 60
    source, sink = np.indices((size, size)).reshape(2, -1)
    arcs = np.stack(
        [source, size + sink, np.ones_like(source), rng.integers(0, levels, size * size)], axis=1
    )
    net = network([1] * size + [-1] * size, rng.permutation(arcs))
    expected = ortools_answer(net)
    assert violations(net, solve(net, SIMPLEX), expected) == []


def test_trees_stay_valid_through_many_exchanges():
    """Sparse, dense and disconnected networks; a wrong thread or size would not give certified
    answers.
    """
    for seed in range(300):
        net = random_network(seed, 3 + seed % 40, 5 + 7 * (seed % 30))
        assert violations(net, solve(net, SIMPLEX), ortools_answer(net)) == [], seed


def test_load_spreading_starts_at_the_optimum():
    """The start takes the cheapest arcs first at every node, so nothing is left to do."""
    graph = load_spreading_graph(50, 100, 1)
    solution = solve(graph.network, SIMPLEX)
    assert certify(graph.network, solution).ok
    assert solution.stats.pivots == 0


def test_an_optimum_is_recognised():
    solver = IncrementalSolver(quincy_graph(GraphOptions(60, 99), 1).network, SIMPLEX)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.stats.pivots > 0
    solver.set_cost([0], [int(solver.snapshot()[0].cost[0]) + 1])
    solver.set_cost([0], [int(solver.snapshot()[0].cost[0]) - 1])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.stats.pivots == 0
    check_resolved(solver)


def test_few_changes_take_few_pivots():
    graph = quincy_graph(GraphOptions(200, 95), 1)
    solver = IncrementalSolver(graph.network, SIMPLEX)
    assert solver.resolve() is Status.OPTIMAL
    scratch = solver.stats.pivots
    solver.remove_nodes(graph.first_task + np.arange(0, 50, 10))
    task = solver.add_nodes(np.ones(5, dtype=np.int64))
    for i, new in enumerate(task):
        begin, end = graph.task_arc_begin[[10 * i, 10 * i + 1]]
        solver.add_arcs(
            np.full(end - begin, new),
            graph.network.head[begin:end],
            1,
            graph.network.cost[begin:end],
        )
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)
    assert 20 * solver.stats.pivots < scratch


@pytest.mark.parametrize("seed", range(8))
def test_wider_arcs_leave_flows_between_their_bounds(seed):
    """Full arcs that get more capacity are not in the tree; they close cycles, which must be
    resolved.
    """
    net = random_network(seed, 30, 200)
    solver = IncrementalSolver(net, SIMPLEX)
    solver.resolve()
    solver.set_capacity(np.arange(net.num_arcs), 3 * net.capacity + 1)
    if solver.resolve() is Status.OPTIMAL:
        check_resolved(solver)
    else:
        assert solve(solver.snapshot()[0]).status is Status.INFEASIBLE


def test_continues_from_where_budgets_stopped_it():
    """However small the steps: within capacities at every stop, with the claimed cost."""
    net = quincy_graph(GraphOptions(40, 105, 6), 1).network
    whole = check_stops(net, SIMPLEX, 40)
    solver = IncrementalSolver(net, SIMPLEX)
    while solver.resolve(max_operations=whole.stats.operations // 2) is Status.BUDGET:
        assert ((solver.flow_reached() >= 0) & (solver.flow_reached() <= net.capacity)).all()
    assert solver.cost == whole.cost
    check_resolved(solver)


def test_costs_reversed_below_an_optimal_flow():
    """The tree is optimal for the old costs, and every price is wrong."""
    net = quincy_graph(GraphOptions(20, 99), 1).network
    solver = IncrementalSolver(net, SIMPLEX)
    assert solver.resolve() is Status.OPTIMAL
    solver.set_cost(np.arange(net.num_arcs), 7 - net.cost)
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)


def resolved(net):
    solver = IncrementalSolver(net, SIMPLEX)
    assert solver.resolve() is Status.OPTIMAL
    return solver


def check_resolves(solver):
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)


def test_the_tree_grows_beyond_its_initial_room():
    """Unused ids are leaves of the tree until there are more nodes than those."""
    graph = quincy_graph(GraphOptions(20, 50), 1)
    solver = resolved(graph.network)
    begin, end = graph.task_arc_begin[:2]
    for _ in range(3):
        new = solver.add_nodes(np.ones(graph.network.num_nodes // 2, dtype=np.int64))
        for v in new:
            solver.add_arcs(
                np.full(end - begin, v),
                graph.network.head[begin:end],
                1,
                graph.network.cost[begin:end],
            )
        sink = graph.network.supply.argmin()
        solver.set_supply([sink], [int(solver.snapshot()[0].supply[sink]) - new.size])
        check_resolves(solver)


@pytest.mark.parametrize("placed", [False, True])
def test_arcs_into_nodes_that_had_none(placed):
    """Tasks are leaves whose prices affect nothing else; that ends with the first arc into them."""
    net = network(
        [1, 1, 0, 0, -2],
        [
            (0, 2, 1, 1),
            (0, 3, 1, 5),
            (1, 2, 1, 2),
            (1, 3, 1, 9),
            (2, 4, 1 + placed, 0),
            (3, 4, 2, 0),
        ],
    )
    solver = resolved(net)
    solver.add_arcs([1, 0], [0, 1], [1, 1], [0, 0])
    check_resolves(solver)
    assert solver.cost == (3 if placed else 6)
    solver.set_cost([5], [-4])
    check_resolves(solver)


def test_costs_of_many_tree_arcs_at_once():
    """If more subtrees move than are moved one by one, all prices are computed again."""
    graph = quincy_graph(GraphOptions(60, 99), 1)
    solver = resolved(graph.network)
    machines = graph.first_machine + np.arange(graph.machines)
    ways = np.flatnonzero(np.isin(graph.network.tail, machines))
    for step in (7, -3, 1):
        solver.set_cost(ways, graph.network.cost[ways] + step * (ways % 5))
        check_resolves(solver)
        assert solver.stats.rebuilds == 0


def test_capacities_of_tree_arcs_fall_below_their_flow():
    """To the flow, below it, and to zero: another arc joins the subtree to the tree."""
    graph = quincy_graph(GraphOptions(40, 60), 1)
    net = graph.network
    solver = resolved(net)
    machines = graph.first_machine + np.arange(graph.machines)
    ways = np.flatnonzero(np.isin(net.tail, machines))
    for taken in (0, 1, 5):
        flow = solver.flow(ways)
        solver.set_capacity(ways, np.maximum(0, flow - taken * (ways % 2)))
        check_resolves(solver)
    solver.set_capacity(ways, net.capacity[ways])
    check_resolves(solver)
    assert solver.cost == solve(net).cost


def test_loops_come_and_go():
    solver = resolved(network([1, -1], [(0, 1, 1, 3), (0, 0, 4, -2)]))
    assert solver.cost == 3 - 8
    solver.set_capacity([1], [6])
    check_resolves(solver)
    solver.set_cost([1], [1])
    check_resolves(solver)
    assert solver.flow([1]) == [0]
    (loop,) = solver.add_arcs([1], [1], [5], [-1])
    check_resolves(solver)
    assert solver.cost == 3 - 5
    solver.remove_arcs([loop])
    check_resolves(solver)
    assert solver.cost == 3


def test_infeasible_until_there_is_a_path():
    """Flow that no arc can carry stays on artificial arcs, and every resolve finds it there."""
    solver = resolved(network([1, 0, 0, -1], [(0, 1, 1, 1), (1, 3, 1, 1), (2, 3, 1, 0)]))
    solver.set_capacity([1], [0])
    assert solver.resolve() is Status.INFEASIBLE
    solver.set_cost([0], [5])
    assert solver.resolve() is Status.INFEASIBLE
    solver.add_arcs([1], [2], [1], [4])
    check_resolves(solver)
    assert solver.cost == 9


def test_a_round_scans_its_changes_and_all_arcs_once():
    """Nothing is rebuilt: one pass over the arcs ends the round, and little else is scanned."""
    graph = quincy_graph(GraphOptions(300, 90), 1)
    net = graph.network
    solver = resolved(net)
    rng = np.random.default_rng(2)
    sink = int(net.supply.argmin())
    gone = graph.first_task + rng.choice(graph.tasks, 5, replace=False)
    solver.remove_nodes(gone)
    solver.set_supply([sink], [int(net.supply[sink]) + gone.size])
    check_resolves(solver)
    assert solver.stats.rebuilds == 0
    assert solver.stats.scanned < 3 * net.num_arcs
    assert solver.changed_flow()[0].size < 200


def test_rounds_with_the_same_small_budget_end():
    """Pivots, and blocks priced without an entering arc, persist from one resolve to the next."""
    net = quincy_graph(GraphOptions(60, 102, 6), 1).network
    solver = IncrementalSolver(net, SIMPLEX)
    resolves = 1
    while solver.resolve(max_operations=1) is Status.BUDGET:
        resolves += 1
        assert resolves < 10_000
    assert resolves > 2
    check_resolved(solver)
