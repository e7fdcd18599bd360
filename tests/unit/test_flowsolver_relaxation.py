"""Relaxation: what this method in particular could get wrong. Certificates and OR-tools' costs; all algorithms: the table tests."""

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from flowsolver import FlowNetwork, IncrementalSolver, Status, certify, solve
from flowsolver.generate import (
    GraphOptions,
    contended_options,
    load_spreading_graph,
    network_aware_graph,
    quincy_graph,
)
from tests.fixtures.network_strategies import networks, unit_source_networks
from tests.fixtures.networks import check_solution, grid, network, objections, peers_answer, peers_cost, road_on_a_line

RELAXATION = "relaxation"
INT64 = 2**63


def with_costs(net, cost):
    other = FlowNetwork()
    other.add_nodes(net.supply)
    other.add_arcs(net.tail, net.head, net.capacity, cost)
    return other


@settings(max_examples=150, deadline=None)
@given(networks())
def test_costs_up_to_the_end_of_the_range(net):
    """Scaled so that the largest is as large as it may be: the optimum scales, unless it leaves int64."""
    small = with_costs(net, net.cost // np.maximum(1, np.abs(net.cost).max(initial=1) // 6))
    scale = 2**59 // (net.num_nodes + 1) // int(np.abs(small.cost).max(initial=1))
    status, cost = peers_answer(small)
    expected = status, None if cost is None else cost * scale
    if expected[1] is not None and not -INT64 <= expected[1] < INT64:
        expected = Status.BAD_COST_RANGE, None
    event(expected[0].name)
    large = with_costs(small, small.cost * scale)
    assert objections(large, solve(large, RELAXATION), expected) == []


@settings(max_examples=150, deadline=None)
@given(st.one_of(networks(), unit_source_networks()), st.data())
def test_goes_on_from_prices_and_flow_that_do_not_suit(net, data):
    """Solved under other costs and supplies, which leaves its prices and its flow; then all of them change."""
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
    status, cost = peers_answer(net)
    assert solver.resolve() is status
    if status is Status.OPTIMAL:
        assert solver.cost == cost
        assert solver.certify().ok


def test_prices_that_climb_from_round_to_round_are_brought_back():
    """Two nodes swap their roles: each time the new source must outbid the other, whose price stays.

    With costs at the end of the range a dozen rounds would lead beyond what prices may be.
    """
    large = 2**59 // 5
    solver = IncrementalSolver(network([0, 1, -1, 0], [(1, 2, 3, large), (2, 1, 3, large), (0, 3, 1, 1)]), RELAXATION)
    for turn in range(40):
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cost == large
        assert solver.certify().ok
        assert np.ptp(solver.potential().astype(object)) < 2**61
        solver.set_supply([1, 2], [-1, 1] if turn % 2 == 0 else [1, -1])


def test_infeasible_is_found_behind_many_raises():
    """Each set that could be raised leads on to a dearer arc; the last one is a unit too narrow."""
    steps = 30
    here = np.arange(steps)
    arcs = [(k, k + 1, 7, 3**k % 1000) for k in here] + [(k + 1, k, 5, 1 + k) for k in here]
    supply = np.zeros(steps + 1, dtype=np.int64)
    supply[0], supply[-1] = 7, -7
    assert solve(network(supply, arcs), RELAXATION).status is Status.OPTIMAL
    arcs[steps - 1] = (steps - 1, steps, 6, 3**steps % 1000)
    assert solve(network(supply, arcs), RELAXATION).status is Status.INFEASIBLE


def test_an_infeasible_round_can_be_put_right():
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
def test_ways_longer_than_hops_are_counted(seed):
    road = road_on_a_line(seed, places=200)
    check_solution(road.network, solve(road.network, RELAXATION), road.cost)
    line = np.arange(300)
    net = network([1, *np.zeros(299, dtype=np.int64), -1], np.stack([line, line + 1, line + 1, 0 * line], axis=1))
    check_solution(net, solve(net, RELAXATION), 0)


@pytest.mark.parametrize("scale", [1, 2**40])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_excesses_of_many_units(seed, scale):
    net = grid(seed, least_cost=-3, scale=scale)
    check_solution(net, solve(net, RELAXATION), peers_cost(net))


def test_waiting_tasks_are_raised_together():
    """An oversubscribed cell: far fewer sets than tasks that cannot be placed."""
    graph = quincy_graph(GraphOptions(100, 130, 100), 1)
    solution = solve(graph.network, RELAXATION)
    check_solution(graph.network, solution, solve(graph.network).cost)
    assert 2 * solution.stats.searches < graph.tasks - 100 * graph.slots_per_machine


def test_work_does_not_grow_with_the_arcs_of_an_aggregator():
    """One aggregator with an arc of another cost to every machine: looking at all of them for every task would be the square."""
    scanned = []
    for machines in (500, 4000):
        machine = 2 + np.arange(machines)
        to_machine = np.stack([0 * machine + 1, machine, 0 * machine + 1, 3 * (machine * 7919 % machines)], axis=1)
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
    """Sets get dear on these cells, so that excess is passed on to the aggregators."""
    net = network_aware_graph(2000, seed, 95, 20).network
    solution = solve(net, RELAXATION)
    check_solution(net, solution, peers_cost(net))
    assert solution.stats.scanned < 300 * net.num_arcs


@pytest.mark.parametrize("percent_used", [90, 104])
def test_contended_cells_with_all_tasks_waiting(percent_used):
    net = quincy_graph(contended_options(400, percent_used, 100), 3).network
    check_solution(net, solve(net, RELAXATION), peers_cost(net))


GRAPHS = {
    "network-aware": lambda: network_aware_graph(100, 1),
    "oversubscribed": lambda: quincy_graph(GraphOptions(60, 120, 6, machines_per_rack=8), 1),
    "load spreading": lambda: load_spreading_graph(200, 900, 1),
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_stopped_anywhere_prices_suit_the_flow_and_it_goes_on_from_there(graph):
    """After any budget: flow within capacities, complementary slackness; excesses are all that is missing."""
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
