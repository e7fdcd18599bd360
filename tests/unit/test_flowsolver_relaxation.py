"""Pitfalls of relaxation. Answers are certified and have OR-tools' costs; the table tests cover all
algorithms.
"""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from flowsolver import FlowNetwork, IncrementalSolver, Status, certify, solve
from flowsolver.generate import (
    GraphOptions,
    contended_options,
    load_spreading_graph,
    network_aware_graph,
    quincy_graph,
)
from tests.fixtures.examples import examples
from tests.fixtures.network_strategies import networks, unit_source_networks
from tests.fixtures.networks import (
    check_solution,
    grid,
    network,
    ortools_answer,
    ortools_cost,
    road_on_a_line,
    violations,
)

RELAXATION = "relaxation"
INT64 = 2**63


def with_costs(net, cost):
    other = FlowNetwork()
    other.add_nodes(net.supply)
    other.add_arcs(net.tail, net.head, net.capacity, cost)
    return other


@examples(150)
@given(networks())
def test_costs_up_to_the_end_of_the_range(net):
    """Scaled so that the largest is as large as it may be: the optimum scales, unless it leaves
    int64."""
    small = with_costs(net, net.cost // np.maximum(1, np.abs(net.cost).max(initial=1) // 6))
    scale = 2**59 // (net.num_nodes + 1) // int(np.abs(small.cost).max(initial=1))
    status, cost = ortools_answer(small)
    expected = status, None if cost is None else cost * scale
    if expected[1] is not None and not -INT64 <= expected[1] < INT64:
        expected = Status.BAD_COST_RANGE, None
    event(expected[0].name)
    large = with_costs(small, small.cost * scale)
    assert violations(large, solve(large, RELAXATION), expected) == []


@examples(150)
@given(st.one_of(networks(), unit_source_networks()), st.data())
def test_continues_from_prices_and_flow_that_are_not_optimal(net, data):
    """The start is a solution for other costs and supplies, all of which then change."""
    arcs, nodes = np.arange(net.num_arcs), np.arange(net.num_nodes)
    order = np.array(data.draw(st.permutations(list(arcs))), dtype=np.int64)
    factor = data.draw(st.sampled_from([-1, 1, 1000]))
    solver = IncrementalSolver(net, RELAXATION)
    if net.num_arcs > 0:
        solver.set_cost(arcs, factor * net.cost[order])
    solver.set_supply(nodes, -net.supply)
    event(f"before: {solver.resolve().name}")
    if net.num_arcs > 0:
        solver.set_cost(arcs, net.cost)
    solver.set_supply(nodes, net.supply)
    status, cost = ortools_answer(net)
    assert solver.resolve() is status
    if status is Status.OPTIMAL:
        assert solver.cost == cost
        assert solver.certify().ok


def test_prices_that_rise_from_round_to_round_return_to_range():
    """Two nodes swap roles: each time the new source must outbid the other, whose price stays. With
    costs at the end of the range, a dozen rounds would exceed the range of prices.
    """
    large = 2**59 // 5
    solver = IncrementalSolver(
        network([0, 1, -1, 0], [(1, 2, 3, large), (2, 1, 3, large), (0, 3, 1, 1)]), RELAXATION
    )
    for turn in range(40):
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cost == large
        assert solver.certify().ok
        assert np.ptp(solver.potential().astype(object)) < 2**61
        solver.set_supply([1, 2], [-1, 1] if turn % 2 == 0 else [1, -1])


def test_infeasible_is_found_behind_many_raises():
    """Each set that can be raised leads on to a more expensive arc; the last arc lacks one unit of
    capacity.
    """
    steps = 30
    here = np.arange(steps)
    arcs = [(k, k + 1, 7, 3**k % 1000) for k in here] + [(k + 1, k, 5, 1 + k) for k in here]
    supply = np.zeros(steps + 1, dtype=np.int64)
    supply[0], supply[-1] = 7, -7
    assert solve(network(supply, arcs), RELAXATION).status is Status.OPTIMAL
    arcs[steps - 1] = (steps - 1, steps, 6, 3**steps % 1000)
    assert solve(network(supply, arcs), RELAXATION).status is Status.INFEASIBLE


def test_an_infeasible_round_can_be_repaired():
    graph = quincy_graph(GraphOptions(20, 90, machines_per_rack=8), 1)
    solver = IncrementalSolver(graph.network, RELAXATION)
    assert solver.resolve() is Status.OPTIMAL
    cost = solver.cost
    into_sink = np.flatnonzero(graph.network.head == graph.sink)
    solver.set_capacity(into_sink, graph.network.capacity[into_sink] // 3)
    assert solver.resolve() is Status.INFEASIBLE
    solver.set_capacity(into_sink, graph.network.capacity[into_sink])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == cost
    assert solver.certify().ok


@pytest.mark.parametrize("seed", [1, 2])
def test_paths_longer_than_hops_are_counted(seed):
    road = road_on_a_line(seed, places=200)
    check_solution(road.network, solve(road.network, RELAXATION), road.cost)
    line = np.arange(300)
    net = network(
        [1, *np.zeros(299, dtype=np.int64), -1],
        np.stack([line, line + 1, line + 1, 0 * line], axis=1),
    )
    check_solution(net, solve(net, RELAXATION), 0)


@pytest.mark.parametrize("scale", [1, 2**40])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_excesses_of_many_units(seed, scale):
    net = grid(seed, least_cost=-3, scale=scale)
    check_solution(net, solve(net, RELAXATION), ortools_cost(net))


def test_waiting_tasks_are_raised_together():
    """In an oversubscribed cell there are far fewer sets than tasks that cannot be placed."""
    graph = quincy_graph(GraphOptions(100, 130, 100), 1)
    solution = solve(graph.network, RELAXATION)
    check_solution(graph.network, solution, solve(graph.network).cost)
    assert 2 * solution.stats.searches < graph.tasks - 100 * graph.slots_per_machine


def test_work_does_not_grow_with_the_arcs_of_an_aggregator():
    """One aggregator has an arc of another cost to every machine: scanning all of them for every
    task would be quadratic.
    """
    scanned = []
    for machines in (500, 4000):
        machine = 2 + np.arange(machines)
        to_machine = np.stack(
            [0 * machine + 1, machine, 0 * machine + 1, 3 * (machine * 7919 % machines)], axis=1
        )
        task = 2 + machines + np.arange(machines // 2)
        to_aggregator = np.stack([task, 0 * task + 1, 0 * task + 1, 0 * task], axis=1)
        to_sink = np.stack([machine, 0 * machine, 0 * machine + 1, 0 * machine], axis=1)
        unplaced = np.stack([task, 0 * task, 0 * task + 1, 0 * task + 3 * machines], axis=1)
        supply = np.concatenate([[-task.size, 0], 0 * machine, 0 * task + 1])
        net = network(supply, np.concatenate([to_machine, to_aggregator, unplaced, to_sink]))
        solution = solve(net, RELAXATION)
        check_solution(net, solution, 3 * sum(range(task.size)))
        scanned.append(solution.stats.scanned / net.num_arcs)
    assert scanned[1] < 2 * scanned[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_aggregators_with_thousands_of_arcs(seed):
    """Sets get expensive on these cells, so that excess is forwarded to the aggregators."""
    net = network_aware_graph(2000, seed, 95, 20).network
    solution = solve(net, RELAXATION)
    check_solution(net, solution, ortools_cost(net))
    assert solution.stats.scanned < 300 * net.num_arcs


@pytest.mark.parametrize("percent_used", [90, 104])
def test_contended_cells_with_all_tasks_waiting(percent_used):
    net = quincy_graph(contended_options(400, percent_used, 100), 3).network
    check_solution(net, solve(net, RELAXATION), ortools_cost(net))


GRAPHS = {
    "network-aware": lambda: network_aware_graph(100, 1),
    "oversubscribed": lambda: quincy_graph(GraphOptions(60, 120, 6, machines_per_rack=8), 1),
    "load spreading": lambda: load_spreading_graph(200, 900, 1),
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_stopped_anywhere_slackness_holds_and_it_continues(graph):
    """After any budget: flow within capacities, complementary slackness, only excesses."""
    net = GRAPHS[graph]().network
    whole = solve(net, RELAXATION)
    unplaced = []
    for budget in range(0, whole.stats.operations * 9 // 10, whole.stats.operations // 25):
        part = solve(net, RELAXATION, max_operations=budget)
        assert part.status is Status.BUDGET
        certificate = certify(net, part)
        assert certificate.capacity_violations == 0
        assert certificate.slackness_violations == 0
        unplaced.append(certificate.balance_violations)
        solver = IncrementalSolver(net, RELAXATION)
        assert solver.resolve(max_operations=budget) is Status.BUDGET
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cost == whole.cost
        assert solver.certify().ok
    assert unplaced[-1] < unplaced[0]


def resolved_as_from_scratch(solver):
    """The state after a resolve, against a fresh solve by another method; what was touched is
    certified as well."""
    fresh = solve(solver.snapshot()[0])
    assert solver.resolve() is fresh.status
    if fresh.status is Status.OPTIMAL:
        assert solver.cost == fresh.cost
        assert solver.certify_touched().ok
        assert solver.certify().ok


@pytest.mark.parametrize("percent_used", [60, 97, 104])
def test_long_histories_of_a_cell(percent_used):
    """Tasks and machines come and go under ids used before, costs age: hundreds of rounds without a
    solve from scratch."""
    graph = quincy_graph(GraphOptions(40, percent_used, machines_per_rack=8), 4)
    net, begin, rng = graph.network, graph.task_arc_begin, np.random.default_rng(6)
    solver = IncrementalSolver(net, RELAXATION)
    tasks = np.arange(graph.first_task, graph.first_task + graph.tasks)
    into_sink = np.flatnonzero(net.head == graph.sink)
    to_wait = into_sink[net.tail[into_sink] >= graph.first_unscheduled]
    of_machines = into_sink[net.tail[into_sink] < graph.first_unscheduled]
    assert solver.resolve() is Status.OPTIMAL
    for turn in range(150):
        gone = rng.choice(tasks, 12, replace=False)
        solver.remove_nodes(gone)
        like = rng.integers(0, graph.tasks, 12)
        ids = solver.add_nodes(np.ones(12, dtype=np.int64))
        rows = np.concatenate([np.arange(begin[i], begin[i + 1]) for i in like])
        solver.add_arcs(
            np.repeat(ids, begin[like + 1] - begin[like]), net.head[rows], 1, net.cost[rows]
        )
        tasks = np.concatenate([np.setdiff1d(tasks, gone), ids])
        solver.set_capacity(to_wait, tasks.size)
        if turn % 3 == 0:  # a machine fails with all that runs there, or comes back
            machine = rng.choice(of_machines, 2, replace=False)
            solver.set_capacity(machine, rng.choice([0, graph.slots_per_machine], 2))
        if turn % 5 == 0:
            now, nodes, arcs = solver.snapshot()
            waiting = np.isin(nodes[now.head], np.arange(graph.first_unscheduled, graph.first_task))
            solver.set_cost(arcs[waiting], now.cost[waiting] + 1)
        resolved_as_from_scratch(solver)


def test_rounds_on_a_solved_cell_take_the_work_of_their_changes():
    """However large the cell is."""
    scanned = []
    for machines in (100, 1000):
        graph = quincy_graph(GraphOptions(machines, 70), 3)
        begin, net = graph.task_arc_begin, graph.network
        solver = IncrementalSolver(net, RELAXATION)
        assert solver.resolve() is Status.OPTIMAL
        most = 0
        for task in range(20):
            solver.remove_nodes([graph.first_task + task])
            rows = np.arange(begin[task], begin[task + 1])
            new = solver.add_nodes([1])
            solver.add_arcs(np.repeat(new, rows.size), net.head[rows], 1, net.cost[rows])
            resolved_as_from_scratch(solver)
            most = max(most, solver.stats.scanned)
        scanned.append(most)
    assert scanned[1] < 3 * scanned[0] + 1000


def test_a_waiting_task_that_gets_more_expensive_moves_nothing():
    """Its price rises with the cost of the arc, as long as no other arc is cheaper by then."""
    solver = IncrementalSolver(
        network(
            [1, 1, -2, 0, 0], [(0, 3, 1, 0), (1, 3, 1, 9), (1, 4, 1, 4), (3, 2, 1, 0), (4, 2, 2, 0)]
        ),
        RELAXATION,
    )
    assert solver.resolve() is Status.OPTIMAL
    for cost in range(5, 9):
        solver.set_cost([2], [cost])
        resolved_as_from_scratch(solver)
        assert solver.stats.pushes == 0
        assert solver.changed_flow()[0].size == 0


def test_capacity_from_zero_and_back():
    """Arcs without capacity have a place in the graph; loops are settled separately."""
    solver = IncrementalSolver(
        network([2, -2], [(0, 1, 0, 1), (0, 1, 2, 8), (0, 0, 3, -2)]), RELAXATION
    )
    resolved_as_from_scratch(solver)
    for capacity in (2, 0, 1, 0):
        solver.set_capacity([0, 2], [capacity, 3 - capacity])
        resolved_as_from_scratch(solver)
        assert solver.cost == capacity + 8 * (2 - capacity) - 2 * (3 - capacity)


def test_deficits_at_both_ends_of_a_chain_of_prices():
    """A task leaves a full, expensive machine: the task that gains most from moving is the one
    farthest away, and each task on the way moves up one place.
    """
    places = 40
    here = np.arange(places)
    tasks = 1 + places + np.arange(places + 1)
    own = [(tasks[k], 1 + k, 1, 2) for k in here]
    next_ones = [(tasks[k + 1], 1 + k, 1, 1) for k in here]
    wait = [(tasks[-1], 0, 1, 500)]
    sink = [(1 + k, 0, 1, 0) for k in here]
    net = network(
        [-(places + 1), *0 * here, *np.ones(places + 1, dtype=np.int64)],
        own + next_ones + wait + sink,
    )
    solver = IncrementalSolver(net, RELAXATION)
    resolved_as_from_scratch(solver)
    solver.remove_nodes([tasks[0]])
    solver.set_supply([0], [-places])
    resolved_as_from_scratch(solver)
    assert solver.cost == places
    again = solver.add_nodes([1])
    solver.add_arcs(again, [1], 1, 2)
    solver.set_supply([0], [-places - 1])
    resolved_as_from_scratch(solver)
    assert solver.cost == 500 + 2 * places


def test_the_same_small_budget_again_and_again_ends():
    graph = quincy_graph(GraphOptions(60, 103, 20, machines_per_rack=8), 2)
    solver = IncrementalSolver(graph.network, RELAXATION)
    rounds = 0
    while solver.resolve(max_operations=3000) is Status.BUDGET:
        rounds += 1
        assert rounds < 5000
    resolved_as_from_scratch(solver)
    machines = np.flatnonzero(graph.network.head == graph.sink)[:20]
    solver.set_capacity(machines, graph.slots_per_machine // 2)
    while solver.resolve(max_operations=100) is Status.BUDGET:
        rounds += 1
        assert rounds < 5000
    resolved_as_from_scratch(solver)
