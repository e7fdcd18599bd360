"""Pitfalls of cost scaling: bounds of relabels, ends of the range, starts that are not optimal. All
answers are certified.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow

from flowsolver import FlowNetwork, IncrementalSolver, Status, certify, solve
from flowsolver.generate import (
    GraphOptions,
    NetgenOptions,
    contended_options,
    load_spreading_graph,
    netgen_network,
    network_aware_graph,
    quincy_graph,
)
from tests.fixtures.examples import examples

MOST_PATH_COST = 2**59


def network(supply, arcs):
    """arcs: rows (tail, head, capacity, cost)."""
    net = FlowNetwork()
    net.add_nodes(np.array(supply, dtype=np.int64))
    rows = np.array(arcs, dtype=np.int64).reshape(-1, 4)
    net.add_arcs(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3])
    return net


def answer(net):
    solution = solve(net, "cost_scaling")
    if solution.status is Status.OPTIMAL:
        assert certify(net, solution).ok
    return solution


def status_and_cost_by_peer(net):
    peer = min_cost_flow.SimpleMinCostFlow()
    peer.add_arcs_with_capacity_and_unit_cost(net.tail, net.head, net.capacity, net.cost)
    peer.set_nodes_supplies(np.arange(net.num_nodes), net.supply)
    if peer.solve() == peer.OPTIMAL:
        return Status.OPTIMAL, peer.optimal_cost()
    return Status.INFEASIBLE, None


@st.composite
def networks(draw, largest_cost=20):
    nodes = draw(st.integers(2, 9))
    node = st.integers(0, nodes - 1)
    arc = st.tuples(node, node, st.integers(0, 6), st.integers(-largest_cost, largest_cost))
    arcs = draw(st.lists(arc, max_size=30))
    supply = [0] * nodes
    for source, sink, units in draw(st.lists(st.tuples(node, node, st.integers(0, 4)), max_size=4)):
        supply[source] += units
        supply[sink] -= units
    return network(supply, arcs)


@examples(300)
@given(networks())
def test_costs_equal_ortools(net):
    status, cost = status_and_cost_by_peer(net)
    solution = answer(net)
    assert solution.status is status
    if status is Status.OPTIMAL:
        assert solution.cost == cost


@examples(100)
@given(networks(largest_cost=3), st.integers(0, 2))
def test_costs_at_the_end_of_the_range(net, below):
    """Costs as far apart as they may be: prices and epsilons take more than 64 bits."""
    most = MOST_PATH_COST // (net.num_nodes + 1) - below
    large = network(
        net.supply, np.column_stack([net.tail, net.head, net.capacity, net.cost * (most // 3)])
    )
    small, solution = answer(net), answer(large)
    assert solution.status in (small.status, Status.BAD_COST_RANGE)
    if solution.status is Status.OPTIMAL:
        assert solution.cost == small.cost * (most // 3)


@pytest.mark.parametrize("sign", [1, -1])
def test_longest_path_of_largest_cost(sign):
    """The price at one end reaches the bound of relabels."""
    nodes = 40
    cost = sign * (MOST_PATH_COST // (nodes + 1))
    net = network([1] + [0] * (nodes - 2) + [-1], [(v, v + 1, 1, cost) for v in range(nodes - 1)])
    assert answer(net).cost == (nodes - 1) * cost


def test_large_and_small_costs_together():
    """Epsilon starts at a fraction of the largest cost; the smallest still decide."""
    far = MOST_PATH_COST // 6 - 1
    net = network(
        [3, 0, 0, 0, -3],
        [(0, 1, 1, far), (0, 2, 2, far - 1), (0, 3, 3, far + 1)]
        + [(v, 4, 3, 0) for v in (1, 2, 3)],
    )
    assert answer(net).cost == far + 2 * (far - 1)


UNREACHABLE = {
    "the excess has no way out": ([2, 0, -2], [(1, 2, 5, 1)]),
    "a cycle to go round in": (
        [2, 0, 0, -2],
        [(0, 1, 9, 1), (1, 2, 9, 1), (2, 0, 9, 1), (2, 3, 1, 1)],
    ),
    "a negative cycle": ([1, 0, 0, -1], [(0, 1, 9, 1), (1, 2, 9, -5), (2, 1, 9, 1), (3, 0, 9, 0)]),
    "a cut far away": (
        [3] + [0] * 30 + [-3],
        [(v, v + 1, 2 if v == 30 else 3, 7) for v in range(31)],
    ),
    "only the smaller part arrives": ([1, 1, 0, -2], [(0, 2, 1, 0), (1, 2, 1, 0), (2, 3, 1, 4)]),
    "no capacity": ([1, -1], [(0, 1, 0, 1)]),
}


@pytest.mark.parametrize("largest", [1, 2**20, 2**50])
@pytest.mark.parametrize("case", UNREACHABLE)
def test_infeasible(case, largest):
    """Costs far above the first epsilon must not delay the proof."""
    supply, arcs = UNREACHABLE[case]
    assert (
        solve(
            network(supply, [(u, v, cap, cost * largest) for u, v, cap, cost in arcs]),
            "cost_scaling",
        ).status
        is Status.INFEASIBLE
    )


def test_wide_negative_cycle_does_not_circulate():
    """An excess on a cycle whose cost is negative by a fraction of epsilon must not circulate a
    unit at a time.
    """
    wide = 2**40
    net = network(
        [1, 0, 0, -1], [(0, 1, wide, 1), (1, 2, wide, -1), (2, 0, wide, -1), (2, 3, 1, 2**30)]
    )
    solution = answer(net)
    assert solution.cost == 2**30 + 1 - wide
    assert solution.stats.operations < 10_000


@examples(150)
@given(networks(), st.data())
def test_any_change_from_any_answer(net, data):
    """Start flows that do not balance, and prices that do not prove anything about them."""
    solver = IncrementalSolver(net, "cost_scaling")
    solver.resolve()
    costs, capacities = st.integers(-(10**6), 10**6), st.integers(0, 9)
    for _ in range(3):
        if net.num_arcs == 0:
            break
        arc = data.draw(st.integers(0, net.num_arcs - 1))
        solver.set_cost([arc], [data.draw(costs)])
        solver.set_capacity([data.draw(st.integers(0, net.num_arcs - 1))], [data.draw(capacities)])
        status = solver.resolve()
        fresh = solve(solver.snapshot()[0])
        assert status is fresh.status
        if status is Status.OPTIMAL:
            assert solver.cost == fresh.cost
            assert solver.certify().ok


@pytest.mark.parametrize(
    "options",
    [
        GraphOptions(60, 95),
        GraphOptions(60, 110, 6),
        contended_options(60),
        GraphOptions(60, 90, 100),
    ],
)
def test_tasks_come_and_go(options):
    """Removed tasks leave deficits at their machines. The cost is that of a solve from scratch,
    with far less work.
    """
    graph = quincy_graph(options, 4)
    net = graph.network
    scratch = answer(net).stats
    solver = IncrementalSolver(net, "cost_scaling")
    assert solver.resolve() is Status.OPTIMAL
    rng = np.random.default_rng(1)
    alive = np.arange(graph.first_task, graph.first_task + graph.tasks)
    begin = graph.task_arc_begin
    pushes = []
    for _ in range(4):
        change = rng.choice(alive.size, 5, replace=False)
        like = rng.integers(0, graph.tasks, 5)
        solver.remove_nodes(alive[change])
        alive[change] = solver.add_nodes(np.ones(5, dtype=np.int64))
        for v, i in zip(alive[change], like, strict=True):
            row = slice(begin[i], begin[i + 1])
            solver.add_arcs(np.full(begin[i + 1] - begin[i], v), net.head[row], 1, net.cost[row])
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cost == solve(solver.snapshot()[0]).cost
        assert solver.certify().ok
        pushes.append(solver.stats.pushes)
    assert np.mean(pushes) < scratch.pushes / 2


def test_the_flow_of_a_removed_task_is_cancelled():
    """Its flow is taken off its path: no other unit moves, and no node is relabelled."""
    net = network(
        [1, 1, 0, 0, -2], [(0, 2, 1, 1), (1, 2, 1, 3), (2, 3, 2, 0), (3, 4, 2, 0), (1, 4, 1, 9)]
    )
    solver = IncrementalSolver(net, "cost_scaling")
    assert solver.resolve() is Status.OPTIMAL
    solver.remove_nodes([0])
    solver.set_supply([4], [-1])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 3
    assert solver.stats.augmentations == 1
    assert solver.stats.pushes == 2
    assert solver.stats.relabels == 0


def test_a_misleading_estimate():
    """There are more tasks than slots, but not all of those that may wait can: the price of slots
    is far above the estimate.
    """
    graph = quincy_graph(GraphOptions(40, 130, 100), 1)
    net = graph.network
    capacity = net.capacity.copy()
    waiting = (net.tail >= graph.first_unscheduled) & (net.tail < graph.first_task)
    capacity[waiting] = np.maximum(1, capacity[waiting] * 9 // 10)
    limited = network(net.supply, np.column_stack([net.tail, net.head, capacity, net.cost]))
    assert answer(limited).cost == solve(limited).cost


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.7, 0.95])
def test_budget_leaves_flow_within_capacities(fraction):
    net = quincy_graph(GraphOptions(60, 105, 6), 2).network
    full = answer(net).stats.operations
    stopped = solve(net, "cost_scaling", max_operations=int(full * fraction))
    assert stopped.status is Status.BUDGET
    assert stopped.stats.operations < full
    assert np.all((stopped.flow >= 0) & (stopped.flow <= net.capacity))
    assert stopped.cost == stopped.flow @ net.cost


GENERAL = {
    "few units": NetgenOptions(400, 4_000, 20, 20, 200),
    "many units": NetgenOptions(400, 4_000, 20, 20, 20_000),
    "dense": NetgenOptions(100, 6_000, 10, 10, 10_000),
    "assignment": NetgenOptions(400, 6_000, 200, 200, 200),
    "large costs": NetgenOptions(500, 4_000, 22, 22, 22_000, max_cost=10**7),
    "costs alike": NetgenOptions(600, 4_000, 24, 24, 24_000, max_cost=4),
    "some of either sign": NetgenOptions(500, 4_000, 22, 22, 22_000, min_cost=-500, max_cost=500),
    "no limits": NetgenOptions(500, 4_000, 22, 22, 22_000, percent_capacitated=0),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", GENERAL)
def test_general_networks_of_many_phases(case, seed):
    """The first epsilon is far too small, and from the second phase on most arcs are fixed."""
    net = netgen_network(GENERAL[case], seed)
    _, cost = status_and_cost_by_peer(net)
    assert answer(net).cost == cost


def test_arcs_are_fixed_in_later_phases():
    """All phases after the first few scan little in total, though there are many of them."""
    net = netgen_network(NetgenOptions(2_000, 60_000, 45, 45, 45_000), 1)
    stats = answer(net).stats
    assert stats.phases >= 4
    assert stats.scanned < 80 * 2 * net.num_arcs


def test_a_first_phase_that_stalls_is_ended_early():
    net = netgen_network(NetgenOptions(3_000, 24_000, 55, 55, 55_000), 1)
    assert answer(net).stats.relabels < 100 * net.num_nodes


@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(lambda: load_spreading_graph(200, 400, 1), id="load spreading"),
        pytest.param(lambda: quincy_graph(contended_options(200), 1), id="contended"),
        pytest.param(
            lambda: quincy_graph(contended_options(200, 90, 100), 1), id="contended, all waiting"
        ),
    ],
)
def test_aggregators_rise_in_one_step(graph):
    """A relabel at the end of a path does not count the half-edge back: aggregators do not rise by
    two epsilons at a time.
    """
    net = graph().network
    stats = answer(net).stats
    assert stats.phases == 1
    assert stats.relabels < 4 * net.num_nodes


def test_network_aware_cell():
    net = network_aware_graph(150, 1).network
    _, cost = status_and_cost_by_peer(net)
    assert answer(net).cost == cost


def long_chain(rng):
    """Two-way chains whose costs reach the end of the range, a few nodes hung on: prices may
    outgrow 64 bits in late phases."""
    length, hung = int(rng.integers(20, 120)), int(rng.integers(0, 6))
    nodes = length + hung
    dearest = int(
        min(2 ** rng.uniform(57.3, 59) / (nodes * (nodes + 1)), MOST_PATH_COST // (nodes + 1))
    )
    supply = np.zeros(nodes, dtype=np.int64)
    supply[[0, length - 1]] = 50, -50
    inner = rng.permutation(np.arange(1, length - 1))[:10]
    supply[inner[:5]] = rng.integers(1, 9, 5)
    supply[inner[5:]] = -supply[inner[:5]]
    net = FlowNetwork()
    net.add_nodes(supply)
    cheapest = max(0, dearest - int(dearest * rng.random() ** 3) - 1)
    here = np.arange(length - 1)
    for _ in range(int(rng.integers(1, 4))):
        for tail, head in ((here, here + 1), (here + 1, here)):
            net.add_arcs(
                tail,
                head,
                rng.integers(20, 100, here.size),
                rng.integers(cheapest, dearest + 1, here.size),
            )
    for tail, head in ((here, here + 1), (here + 1, here)):
        net.add_arcs(tail, head, 1000, np.full(here.size, dearest))
    if hung:
        ends = length + np.repeat(np.arange(hung), 2)
        net.add_arcs(
            rng.integers(0, length, ends.size), ends, 9, rng.integers(0, dearest, ends.size)
        )
    return net, dearest


@pytest.mark.parametrize("seed", [608534143, 1, 2, 3])
def test_arcs_that_were_fixed_are_open_again_when_64_bits_run_out(seed):
    """The first of these seeds does so in its third round, which then ends in 128 bits."""
    rng = np.random.default_rng(seed)
    net, dearest = long_chain(rng)
    solver = IncrementalSolver(net, "cost_scaling")
    solver.resolve()
    for turn in range(4):
        if turn:
            arcs = rng.integers(0, net.num_arcs, 8)
            if rng.random() < 0.5:
                solver.set_cost(arcs, rng.integers(0, dearest, 8))
            else:
                solver.set_capacity(arcs, rng.integers(0, 60, 8))
        peer = solve(solver.snapshot()[0], "network_simplex")
        assert solver.resolve() is peer.status
        if peer.status is Status.OPTIMAL:
            assert solver.cost == peer.cost
            assert solver.certify().ok
