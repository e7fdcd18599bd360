"""What single algorithms are prone to: counted work that must not grow, ends of the range, prices
that drift, networks on which one once did not end. All answers are certified.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, algorithms, certify, solve
from flowsolver.generate import (
    GraphOptions,
    NetgenOptions,
    contended_options,
    load_spreading_graph,
    netgen_network,
    network_aware_graph,
    quincy_graph,
)
from flowsolver.problem_files import parse_problem
from tests.fixtures.networks import (
    check_resolved,
    check_solution,
    hub,
    hub_network,
    long_path,
    mixed_sign_network,
    network,
    ortools_answer,
    ortools_cost,
    violations,
)

ROOT = Path(__file__).parents[2]
RELAXATION = "relaxation"
SIMPLEX = "network_simplex"
MOST_PATH_COST = 2**59


def answer(net, algorithm="cost_scaling"):
    solution = solve(net, algorithm)
    check_solution(net, solution, ortools_cost(net))
    return solution


def resolved(net, algorithm=SIMPLEX):
    solver = IncrementalSolver(net, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    return solver


def check(solver):
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)


def replace_task(solver, graph, task, like):
    """One task leaves and one with the arcs of another comes."""
    solver.remove_nodes([graph.first_task + task])
    row = slice(*graph.task_arc_begin[[like, like + 1]])
    new = np.repeat(solver.add_nodes([1]), row.stop - row.start)
    solver.add_arcs(new, graph.network.head[row], 1, graph.network.cost[row])


each_algorithm = pytest.mark.parametrize("algorithm", algorithms())


@each_algorithm
@pytest.mark.parametrize("sign", [1, -1])
def test_paths_of_the_largest_cost_in_range(algorithm, sign):
    """Distances, labels and prices reach both ends of their range. Short of a unit of capacity, or
    of an arc, the network is infeasible, whatever artificial arcs cost.
    """
    nodes = 40
    most = sign * (MOST_PATH_COST // (nodes + 1))
    path = [(v, v + 1, 1, most) for v in range(nodes - 1)]

    def solved(units, arcs):
        net = network([units, *[0] * (nodes - 2), -units], arcs)
        return net, solve(net, algorithm)

    check_solution(*solved(1, path), most * (nodes - 1))
    check_solution(*solved(2, path), None)
    check_solution(*solved(1, [arc for arc in path if arc[0] != nodes // 2]), None)


@each_algorithm
def test_prices_from_one_end_of_the_range_to_the_other(algorithm):
    """Each round moves the prices as far as the range lets them."""
    nodes = 12
    most = MOST_PATH_COST // (nodes + 1)
    arcs = np.arange(nodes - 1)
    path = [(v, v + 1, 1, most) for v in arcs]
    solver = IncrementalSolver(network([1, *[0] * (nodes - 2), -1], path), algorithm)
    for sign in (1, -1, 1, -1):
        solver.set_cost(arcs, sign * most)
        check(solver)
        assert solver.cost == sign * most * (nodes - 1)


@each_algorithm
def test_capacities_as_wide_as_the_range_allows(algorithm):
    """They take a few augmentations, not one per unit."""
    wide = 2**60
    net = network([wide // 2, 0, -wide // 2], [(0, 1, wide, 1), (1, 2, wide - 8, 1), (1, 0, 3, -1)])
    solution = solve(net, algorithm)
    check_solution(net, solution, wide)
    assert solution.stats.augmentations < 20
    cycle = network([0, 0, 0], [(0, 1, wide, -1), (1, 2, wide, 0), (2, 0, wide, 0)])
    check_solution(cycle, solve(cycle, algorithm), -wide)


@each_algorithm
def test_large_and_small_costs_together(algorithm):
    """Epsilon starts at a fraction of the largest cost; the smallest still decide."""
    far = MOST_PATH_COST // 6 - 1
    net = network(
        [3, 0, 0, 0, -3],
        [(0, 1, 1, far), (0, 2, 2, far - 1), (0, 3, 3, far + 1)]
        + [(v, 4, 3, 0) for v in (1, 2, 3)],
    )
    check_solution(net, solve(net, algorithm), far + 2 * (far - 1))


@each_algorithm
def test_costs_reversed_below_an_optimal_flow(algorithm):
    net = quincy_graph(GraphOptions(20, 95, machines_per_rack=8), 1).network
    solver = resolved(net, algorithm)
    solver.set_cost(np.arange(net.num_arcs), 7 - net.cost)
    check(solver)


# A circulation of 160 nodes and 2,201 arcs with costs of both signs.
HANG = ROOT / "tests" / "data" / "relaxation_hang.npz"


HANG_COST = -252921838878  # by OR-tools


@pytest.mark.parametrize("algorithm", algorithms())
def test_a_circulation_that_relaxation_never_solved(algorithm):
    """In a process of its own, so that the test ends if the solver does not."""
    command = [sys.executable, "-m", "flowsolver", "solve", str(HANG), "--algorithm", algorithm]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"s {HANG_COST}"


# A method may run this much over its budget: a few looks at its control, each of thousands of
# operations.
OVERRUN = 65_536


HARD = {
    "the circulation": lambda: parse_problem(HANG.read_bytes(), HANG.name).network,
    "both signs": lambda: mixed_sign_network(13, 300),
    "a path": lambda: long_path(3_000).network,
    "a hub": lambda: hub_network(3_000),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("algorithm", algorithms())
def test_budgets_are_respected(algorithm, kind):
    """From scratch and in resolves, wherever in the solve the budget ends."""
    net = HARD[kind]()
    whole = solve(net, algorithm)
    assert whole.status is Status.OPTIMAL
    for part in range(8):
        budget = max(1, whole.stats.operations * part // 8)
        stopped = solve(net, algorithm, max_operations=budget)
        assert stopped.status in (Status.BUDGET, Status.OPTIMAL)
        assert stopped.stats.operations <= budget + OVERRUN
        assert ((stopped.flow >= 0) & (stopped.flow <= net.capacity)).all()
    solver = IncrementalSolver(net, algorithm)
    budget = 1 + whole.stats.operations // 4
    while solver.resolve(max_operations=budget) is Status.BUDGET:
        assert solver.stats.operations <= budget + OVERRUN
        budget += budget // 2
    assert solver.cost == whole.cost
    assert solver.certify().ok


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
@each_algorithm
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


def general(nodes, arcs, seed, *, sources=None, supply=None):
    sources = sources or nodes // 10
    return netgen_network(
        NetgenOptions(nodes, arcs, sources, nodes // 10, supply or 10 * nodes), seed
    )


FAR_NETWORKS = {
    "network-aware 60": lambda seed: network_aware_graph(60, seed).network,
    "network-aware 300": lambda seed: network_aware_graph(300, seed).network,
    "network-aware 300, oversubscribed": lambda seed: (
        network_aware_graph(300, seed, 104, 6).network
    ),
    "network-aware 300, cold": lambda seed: network_aware_graph(300, seed, 80, 100).network,
    "network-aware 1,000": lambda seed: network_aware_graph(1_000, seed).network,
    "general, 1,000 arcs": lambda seed: general(200, 1_000, seed),
    "general, 20,000 arcs": lambda seed: general(1_500, 20_000, seed),
    "general, 60,000 arcs": lambda seed: general(4_000, 60_000, seed),
    "general, one source": lambda seed: general(2_000, 30_000, seed, sources=1, supply=200),
    "load spreading": lambda seed: load_spreading_graph(500, 1_000, seed).network,
}


FAR = "network-aware 1,000", "general, 20,000 arcs", "general, 60,000 arcs"


CELLS = {
    "90 %": GraphOptions(300, 90),
    "102 %": GraphOptions(300, 102, 6),
    "120 %": GraphOptions(300, 120, 6),
    "contended": contended_options(300),
    "contended, cold": contended_options(300, 90, 100),
    "contended, 105 %": contended_options(300, 105, 6),
}


@cache
def network_and_cost(name, seed):
    network = FAR_NETWORKS[name](seed)
    return network, ortools_cost(network)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", FAR_NETWORKS)
def test_networks_on_which_shortest_paths_search_far(name, seed):
    """From scratch; and an engine that starts from the answer has nothing to do."""
    net, cost = network_and_cost(name, seed)
    check_solution(net, solve(net), cost)
    solver = resolved(net, "incremental_ssp")
    assert solver.cost == cost
    check(solver)
    assert solver.stats.searches == 0


@pytest.mark.parametrize("name", FAR)
def test_another_algorithm_takes_over(name):
    stats = solve(network_and_cost(name, 1)[0]).stats
    assert stats.relabels + stats.pivots > 0


@pytest.mark.parametrize("cell", CELLS)
def test_cells_of_the_quincy_shape_need_shortest_paths_only(cell):
    stats = solve(quincy_graph(CELLS[cell], 1).network).stats
    assert stats.relabels == 0


@pytest.mark.parametrize("name", FAR)
def test_a_budget_counts_what_went_before(name):
    network, cost = network_and_cost(name, 1)
    whole = solve(network).stats.operations
    half = solve(network, max_operations=whole // 2)
    assert half.status is Status.BUDGET
    assert whole // 2 <= half.stats.operations < 0.75 * whole
    assert solve(network, max_operations=whole).cost == cost


def test_infeasible_after_searches_went_far():
    network = general(1_500, 20_000, 3)
    sink = int(np.argmin(network.supply))
    capacity = np.where(network.head == sink, 0, network.capacity)
    cut_off = FlowNetwork()
    cut_off.add_nodes(network.supply)
    cut_off.add_arcs(network.tail, network.head, capacity, network.cost)
    assert solve(cut_off).status is Status.INFEASIBLE
    solver = IncrementalSolver(cut_off)
    assert solver.resolve() is Status.INFEASIBLE
    solver.set_capacity(np.arange(network.num_arcs), network.capacity)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == ortools_cost(network)


@pytest.mark.parametrize("percent_used", [102, 120])
def test_removed_tasks_do_not_affect_the_estimate(percent_used):
    """Removed tasks are nodes without supply: their unscheduled aggregator stays a bypass."""
    network = quincy_graph(GraphOptions(1000, percent_used), 1).network
    supply, capacity = np.array(network.supply), np.array(network.capacity)
    gone = np.flatnonzero(supply == 1)[::100]
    supply[np.argmin(supply)] += gone.size
    supply[gone] = 0
    scanned = [solve(network).stats.scanned]
    for left in (capacity, np.where(np.isin(network.tail, gone), 0, capacity)):
        cell = FlowNetwork()
        cell.add_nodes(supply)
        cell.add_arcs(network.tail, network.head, left, network.cost)
        solution = solve(cell)
        assert certify(cell, solution).ok
        scanned.append(solution.stats.scanned)
    assert max(scanned[1:]) < 2 * scanned[0], scanned


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
    answer(limited)


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
    answer(netgen_network(GENERAL[case], seed))


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


def star(leaves):
    """Sources 1..leaves, each with an arc to the sink 0 at a cost of its number."""
    source = np.arange(1, leaves + 1)
    rows = np.stack([source, 0 * source, 0 * source + 1, source], axis=1)
    return network([-leaves, *[1] * leaves], rows)


@each_algorithm
def test_half_edges_are_compacted(algorithm):
    """Parallel arcs by the hundred: blocks of half-edges move until most places are unused."""
    rng = np.random.default_rng(1)
    solver = resolved(network([50, 0, -50], [(0, 1, 100, 900), (1, 2, 100, 900)]), algorithm)
    for _ in range(20):
        for tail in (0, 1):
            solver.add_arcs([tail] * 400, tail + 1, 1, rng.integers(0, 900, 400))
        check(solver)
        solver.set_cost(np.flatnonzero(solver.flow())[::3], 800)
        check(solver)


@each_algorithm
def test_many_arcs_at_one_node(algorithm):
    """Its block of half-edges grows, and shrinks; removed ids are reused."""
    solver = resolved(star(5), algorithm)
    for count in (1, 30, 200):
        nodes = solver.add_nodes(np.ones(count, dtype=np.int64))
        solver.add_arcs(nodes, [0] * count, 1, np.arange(count))
        solver.add_arcs(nodes, [1] * count, 1, -1)
        solver.set_capacity([0], [count + 1])
        solver.set_supply([0], [-5 - count])
        check(solver)
        solver.remove_nodes(nodes[: count // 2])
        solver.set_supply([0], [-5 - count + count // 2])
        check(solver)
        solver.remove_nodes(nodes[count // 2 :])
        solver.set_supply([0], [-5])
        check(solver)


@pytest.mark.parametrize("cost", [-(2**20), 2**20, -(2**40), 2**40])
def test_costs_far_beyond_the_earlier_ones(cost):
    graph = quincy_graph(GraphOptions(30, 95), 2)
    solver = IncrementalSolver(graph.network, "cost_scaling")
    check(solver)
    arcs = np.flatnonzero(solver.flow() > 0)[::7]
    solver.set_cost(arcs, cost)
    check(solver)
    solver.set_cost(arcs, graph.network.cost[arcs])
    check(solver)
    assert solver.cost == solve(graph.network).cost


def test_nodes_beyond_the_scale():
    """Sixteen times as many nodes as at first: prices are rescaled meanwhile."""
    solver = IncrementalSolver(star(4), "cost_scaling")
    check(solver)
    for count in range(5, 70, 4):
        nodes = solver.add_nodes([1, 1, 1, 1])
        solver.add_arcs(nodes, [0, 1, 2, 3], 1, [5, -3, 2, 1])
        solver.set_capacity(np.arange(4), count)
        solver.set_supply([0], [-count - 3])
        check(solver)


def change_leaves(solver, hub_node, rng):
    """Cheap wide arcs between leaves; some leaves are removed, and one gets their supply; others
    are added.
    """
    net, nodes, _ = solver.snapshot()
    leaves = rng.permutation(np.flatnonzero(nodes != hub_node))
    ends, gone, heir = nodes[leaves[:20]], leaves[20:24], leaves[24]
    solver.add_arcs(ends[:10], ends[10:], rng.integers(1, 1_000_000, 10), -35)
    solver.remove_nodes(nodes[gone])
    solver.set_supply([nodes[heir]], [net.supply[heir] + net.supply[gone].sum()])
    come = solver.add_nodes([3, -5, 2, 0])
    at_hub = np.full(come.size, hub_node)
    solver.add_arcs(np.concatenate([come, at_hub]), np.concatenate([at_hub, come]), 1_000_000, 200)


@pytest.mark.parametrize(
    "racers", [["cost_scaling"], ["cost_scaling", "successive_shortest_path"]], ids="+".join
)
def test_leaves_of_a_hub_come_and_go(racers):
    """The hub has far more half-edges than a relabel looks at one by one."""
    for seed in range(12):
        net, rng = hub(seed, leaves=150), np.random.default_rng(seed)
        solver = IncrementalSolver(net, racers, deterministic=True)
        assert solver.resolve() is Status.OPTIMAL
        for _ in range(4):
            change_leaves(solver, net.num_nodes - 1, rng)
            assert solver.resolve() is Status.OPTIMAL
            check_resolved(solver)


@pytest.mark.parametrize("budget", [1, 3000, 10_000])
def test_leaves_of_a_hub_come_and_go_while_a_resolve_is_stopped(budget):
    for seed in range(12):
        net, rng = hub(seed, leaves=150), np.random.default_rng(seed)
        solver = IncrementalSolver(net, "cost_scaling")
        assert solver.resolve() is Status.OPTIMAL
        for _ in range(2):
            change_leaves(solver, net.num_nodes - 1, rng)
            solver.resolve(max_operations=budget)
            change_leaves(solver, net.num_nodes - 1, rng)
            assert solver.resolve() is Status.OPTIMAL
            check_resolved(solver)


@pytest.mark.parametrize("algorithm", ["cost_scaling", RELAXATION])
def test_rounds_on_a_solved_cell_take_the_work_of_their_changes(algorithm):
    """However large the cell is."""
    scanned = []
    for machines in (100, 1000):
        graph = quincy_graph(GraphOptions(machines, 70), 3)
        solver = resolved(graph.network, algorithm)
        most = []
        for task in range(20):
            replace_task(solver, graph, task, task + 50)
            check(solver)
            most.append(solver.stats.scanned)
        scanned.append(sorted(most)[15])
    assert scanned[1] < 3 * scanned[0] + 1000


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
    for budget in range(1, whole.stats.operations * 9 // 10, whole.stats.operations // 25):
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
        check(solver)
        assert solver.stats.pushes == 0
        assert solver.changed_flow()[0].size == 0


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
    solver = resolved(graph.network)
    scratch = solver.stats.pivots
    for task in range(0, 50, 10):
        replace_task(solver, graph, task, task)
    check(solver)
    assert 20 * solver.stats.pivots < scratch


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
        check(solver)


def test_costs_of_many_tree_arcs_at_once():
    """If more subtrees move than are moved one by one, all prices are computed again."""
    graph = quincy_graph(GraphOptions(60, 99), 1)
    solver = resolved(graph.network)
    machines = graph.first_machine + np.arange(graph.machines)
    ways = np.flatnonzero(np.isin(graph.network.tail, machines))
    for step in (7, -3, 1):
        solver.set_cost(ways, graph.network.cost[ways] + step * (ways % 5))
        check(solver)
        assert solver.stats.rebuilds == 0


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
    check(solver)
    assert solver.stats.rebuilds == 0
    assert solver.stats.scanned < 3 * net.num_arcs
    assert solver.changed_flow()[0].size < 200


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
