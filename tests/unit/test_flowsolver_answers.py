"""What is answered, by every algorithm and by races: on small networks with known answers, on every
family of networks with the cost of OR-tools or a formula, with capacities that count as unbounded,
and the maximum flow of minimum cost. Certificates, never particular flows.
"""

import copy
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from flowsolver import (
    UNBOUNDED,
    FlowNetwork,
    IncrementalSolver,
    Solution,
    Status,
    algorithms,
    certify,
    parse_dimacs,
    solve,
    solve_max_flow,
)
from flowsolver.generate import (
    NetgenOptions,
    contended_options,
    netgen_network,
    network_aware_graph,
    quincy_graph,
)
from tests.fixtures import networks
from tests.fixtures.networks import CELLS, check_solution, network, ortools_cost, scheduling_graph

LARGE = 2**62
ALL = list(algorithms())
RACE = ["cost_scaling", "relaxation"]
each_algorithm = pytest.mark.parametrize("algorithm", ALL)


# name, supply, arcs, optimal cost
SOLVABLE = [
    ("empty", [], [], 0),
    ("one node", [0], [], 0),
    ("isolated nodes", [0, 0, 0], [], 0),
    (
        "textbook",
        [4, 0, 0, -4],
        [(0, 1, 4, 2), (0, 2, 2, 2), (1, 2, 2, 1), (1, 3, 3, 3), (2, 3, 5, 1)],
        14,
    ),
    ("parallel arcs, cheapest first", [3, -3], [(0, 1, 1, 5), (0, 1, 1, 1), (0, 1, 2, 3)], 7),
    (
        "parallel arcs into the sink from between",
        [3, 0, -3],
        [(0, 1, 3, 0), (1, 2, 1, 4), (1, 2, 5, 6)],
        16,
    ),
    ("zero capacity is no arc", [1, -1], [(0, 1, 0, -9), (0, 1, 1, 4)], 4),
    ("self-loop of negative cost fills", [0], [(0, 0, 3, -2)], -6),
    ("self-loop of positive cost stays empty", [1, -1], [(0, 0, 3, 2), (0, 1, 1, 1)], 1),
    ("negative cycle fills", [0, 0, 0], [(0, 1, 2, -3), (1, 2, 5, 1), (2, 0, 3, 1)], -2),
    ("zero-cost cycle", [1, 0, -1], [(0, 1, 2, 0), (1, 0, 2, 0), (1, 2, 1, 0)], 0),
    ("negative arc on the way", [2, 0, -2], [(0, 1, 2, -5), (1, 2, 2, 3), (0, 2, 2, -1)], -4),
    (
        "several sources and sinks",
        [3, 2, -1, -4],
        [(0, 2, 9, 1), (0, 3, 2, 5), (1, 3, 9, 1), (1, 2, 9, 7), (2, 3, 9, 2)],
        9,
    ),
    ("two components", [1, -1, 2, -2], [(0, 1, 1, 1), (2, 3, 2, 10)], 21),
    (
        "detour over the sink",
        [1, -2, 1, 0],
        [(0, 1, 5, 1), (1, 3, 5, 0), (3, 1, 5, 0), (2, 3, 5, 2)],
        3,
    ),
    ("transit through a sink", [2, -1, -1], [(0, 1, 2, 1), (1, 2, 2, 1)], 3),
    ("wide values", [2**40, -(2**40)], [(0, 1, 2**40, 2**20)], 2**60),
    (
        "one deficit after another",
        [5, -2, -2, -1],
        [(0, 1, 9, 1), (1, 2, 9, 1), (2, 3, 9, 1), (0, 3, 1, 9)],
        9,
    ),
    ("wide capacity never used", [1, -1], [(0, 1, 2**50, 3)], 3),
]


@each_algorithm
@pytest.mark.parametrize(
    ("supply", "arcs", "cost"), [c[1:] for c in SOLVABLE], ids=[c[0] for c in SOLVABLE]
)
def test_known_optimum(algorithm, supply, arcs, cost):
    net = network(supply, arcs)
    check_solution(net, solve(net, algorithm), cost)


UNSOLVABLE = [
    ("no way", [1, -1], [], Status.INFEASIBLE),
    ("too narrow", [2, 0, -2], [(0, 1, 2, 0), (1, 2, 1, 0)], Status.INFEASIBLE),
    (
        "a cycle to go round in",
        [2, 0, 0, -2],
        [(0, 1, 9, 1), (1, 2, 9, 1), (2, 0, 9, 1), (2, 3, 1, 1)],
        Status.INFEASIBLE,
    ),
    (
        "a negative cycle of the largest costs",
        [1, 0, 0, -1],
        [(0, 1, 9, 1), (1, 2, 9, -(2**55)), (2, 1, 9, 1), (3, 0, 9, 0)],
        Status.INFEASIBLE,
    ),
    ("wrong direction", [1, -1], [(1, 0, 5, 0)], Status.INFEASIBLE),
    (
        "supplies balance overall but not per component",
        [1, -2, 2, -1],
        [(0, 1, 9, 0), (2, 3, 9, 0)],
        Status.INFEASIBLE,
    ),
    ("supply left over", [1], [], Status.UNBALANCED),
    ("demand left over", [1, -2], [(0, 1, 9, 0)], Status.UNBALANCED),
    ("cost beyond range", [1, -1], [(0, 1, 1, LARGE)], Status.BAD_COST_RANGE),
    ("least int64 as cost", [1, -1], [(0, 1, 1, -(2**63))], Status.BAD_COST_RANGE),
    ("optimal cost beyond int64", [2**40, -(2**40)], [(0, 1, 2**40, 2**30)], Status.BAD_COST_RANGE),
    (
        "capacities at a node beyond range, none of them unbounded",
        [2**59, -(2**59)],
        [(0, 1, 2**60, 0)] * 3,
        Status.BAD_CAPACITY_RANGE,
    ),
    ("supply beyond range", [LARGE, -LARGE], [(0, 1, 1, 0)], Status.BAD_CAPACITY_RANGE),
    ("least int64 as supply", [-(2**63), 2**63 - 1, 1], [], Status.BAD_CAPACITY_RANGE),
]


@each_algorithm
@pytest.mark.parametrize(
    ("supply", "arcs", "status"), [c[1:] for c in UNSOLVABLE], ids=[c[0] for c in UNSOLVABLE]
)
def test_status_of_bad_networks(algorithm, supply, arcs, status):
    net = network(supply, arcs)
    assert solve(net, algorithm).status is status
    assert IncrementalSolver(net, algorithm).resolve() is status


def test_without_a_price_estimate_searches_end_in_phases():
    """Waiting has a limit too, for less than half of the tasks, so that all prices climb from zero;
    in the end by one search for all sources at once."""
    graph = quincy_graph(contended_options(1000, 140, 100), 1)
    net = graph.network
    capacity = net.capacity
    waiting = (net.tail >= graph.first_unscheduled) & (net.tail < graph.first_task)
    capacity[waiting] = np.maximum(1, (capacity[waiting] - 1) // 2)
    limited = FlowNetwork()
    limited.add_nodes(net.supply)
    limited.add_arcs(net.tail, net.head, capacity, net.cost)
    solution = solve(limited)
    assert solution.stats.phases > 0
    assert certify(limited, solution).ok


@pytest.mark.parametrize("spoil", ["flow above capacity", "flow unbalanced", "potential", "cost"])
def test_certificate_sees_every_kind_of_error(spoil):
    net = network([1, 0, -1], [(0, 1, 1, 1), (1, 2, 1, 1), (0, 2, 1, 5)])
    good = solve(net)
    flow, potential, cost = good.flow.copy(), good.potential.copy(), good.cost
    if spoil == "flow above capacity":
        flow[0] += 1
    elif spoil == "flow unbalanced":
        flow[2] += 1
    elif spoil == "potential":
        potential[1] += 1
    else:
        cost -= 1
    certificate = certify(net, Solution(good.status, cost, flow, potential, good.stats))
    assert not certificate.ok
    seen = {
        "flow above capacity": certificate.capacity_violations,
        "flow unbalanced": certificate.balance_violations,
        "potential": certificate.slackness_violations,
        "cost": not certificate.costs_agree,
    }
    assert seen[spoil]


def test_feasible_but_more_expensive_flow_is_not_certified():
    net = network([1, -1], [(0, 1, 1, 1), (0, 1, 1, 2)])
    good = solve(net)
    dear = Solution(good.status, 2, np.array([0, 1]), good.potential, good.stats)
    certificate = certify(net, dear)
    assert certificate.capacity_violations == 0
    assert certificate.balance_violations == 0
    assert not certificate.ok


FAMILIES = {
    **{
        cell: lambda seed, cell=cell: scheduling_graph(cell, seed).network
        for cell in (*CELLS, "load spreading")
    },
    **networks.SHAPES,
    "grid": networks.grid,
    "grid with negative costs": lambda seed: networks.grid(seed, least_cost=-12),
    "grid of wide streets": lambda seed: networks.grid(seed, scale=2**36),
    "random": networks.random_network,
    "random and sparse": lambda seed: networks.random_network(seed, 80, 120),
    "random and dense": lambda seed: networks.random_network(seed, 15, 600),
    "network-aware": lambda seed: network_aware_graph(16, seed).network,
    "network-aware and oversubscribed": lambda seed: (
        network_aware_graph(12, seed, 120, 20, 6).network
    ),
    "netgen": partial(netgen_network, NetgenOptions(80, 600, 8, 9, 900)),
    "netgen with transshipment": partial(
        netgen_network, NetgenOptions(60, 900, 8, 9, 900, 4, 5, -20, 100, 30, 70, 0, 60)
    ),
}


SOLVERS = {
    **{name: partial(solve, algorithm=name) for name in algorithms()},
    "race": partial(solve, algorithm=RACE),
    "deterministic race": partial(solve, algorithm=RACE, deterministic=True),
}


each_solver = pytest.mark.parametrize("run", SOLVERS.values(), ids=SOLVERS)


@cache
def with_peers_cost(family, seed):
    net = FAMILIES[family](seed)
    return net, ortools_cost(net)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
@each_solver
def test_costs_equal_those_of_ortools(run, family, seed):
    net, cost = with_peers_cost(family, seed)
    check_solution(net, run(net), cost)


FORMULAS = [
    networks.assignment_on_a_line,
    networks.transport_on_a_line,
    networks.road_on_a_line,
    networks.monge_transport,
    networks.even_spread,
    networks.staircase,
]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("formula", FORMULAS)
@each_solver
def test_costs_equal_those_of_a_formula(run, formula, seed):
    known = formula(seed)
    check_solution(known.network, run(known.network), known.cost)


def as_file_with_lower_bounds(net, seed):
    """A DIMACS file whose flows are those of the network plus a lower bound on every arc; with the
    bounds and its supplies."""
    rng = np.random.default_rng(seed)
    low = rng.integers(-9, 10, net.num_arcs)
    supply = net.supply
    np.add.at(supply, net.tail, low)
    np.add.at(supply, net.head, -low)
    lines = [f"p min {net.num_nodes} {net.num_arcs}"]
    lines += [f"n {node + 1} {amount}" for node, amount in enumerate(supply)]
    rows = zip(net.tail + 1, net.head + 1, low, low + net.capacity, net.cost, strict=True)
    lines += ["a {} {} {} {} {}".format(*row) for row in rows]
    return "\n".join(lines).encode(), low, supply


@pytest.mark.parametrize("family", ["grid with negative costs", "random"])
@each_algorithm
def test_file_with_lower_bounds(algorithm, family):
    """What is found meets the bounds and the supplies of the file, at the cost of the file."""
    net, cost = with_peers_cost(family, 1)
    text, low, supply = as_file_with_lower_bounds(net, 5)
    problem = parse_dimacs(text)
    solution = solve(problem.network, algorithm)
    check_solution(problem.network, solution, cost)
    flow = solution.flow + problem.low
    assert ((low <= flow) & (flow <= low + net.capacity)).all()
    leaving = np.zeros(net.num_nodes, dtype=np.int64)
    np.add.at(leaving, net.tail, flow)
    np.add.at(leaving, net.head, -flow)
    np.testing.assert_array_equal(leaving, supply)
    assert solution.cost + problem.base_cost == flow @ net.cost


@pytest.mark.parametrize("cell", ["oversubscribed", "contended"])
@each_algorithm
def test_arcs_and_nodes_in_any_order(algorithm, cell):
    """Sources whose arcs are strewn over the network, and renumbered nodes."""
    net, cost = with_peers_cost(cell, 1)
    rng = np.random.default_rng(3)
    arc, node = rng.permutation(net.num_arcs), rng.permutation(net.num_nodes)
    supply = np.empty_like(net.supply)
    supply[node] = net.supply
    strewn = FlowNetwork()
    strewn.add_nodes(supply)
    strewn.add_arcs(node[net.tail[arc]], node[net.head[arc]], net.capacity[arc], net.cost[arc])
    check_solution(strewn, solve(strewn, algorithm), cost)


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "race"])
def test_same_answer_again(name):
    """Only a race for time depends on time: flow and counted work are otherwise the same at every
    call.
    """
    first, second = (SOLVERS[name](networks.random_network(4)) for _ in range(2))
    np.testing.assert_array_equal(first.flow, second.flow)
    np.testing.assert_array_equal(first.potential, second.potential)
    assert first.stats.operations == second.stats.operations > 0
    assert first.winner == second.winner


@pytest.mark.parametrize("cut", [0, 1, 7])
@each_solver
def test_infeasible_by_little(run, cut):
    """A bottleneck of parallel arcs between two grids, as wide as the flow that must pass it or
    slightly less.
    """
    half = networks.grid(2, side=6)
    nodes, passing = half.num_nodes, 40
    supply = np.concatenate([half.supply, half.supply])
    supply[[0, nodes]] += [passing, -passing]
    rows = np.stack([half.tail, half.head, half.capacity + passing, half.cost], axis=1)
    bridge = [(5, nodes + 9, 10, 3)] * 3 + [(17, nodes + 2, 10 - cut, 1)]
    net = network(supply, np.concatenate([rows, rows + np.array([nodes, nodes, 0, 0]), bridge]))
    cost = ortools_cost(net)
    assert (cost is None) == (cut > 0)
    check_solution(net, run(net), cost)


def test_families_have_the_properties_they_are_for():
    """Tight cells leave tasks waiting, contended ones have expensive machines, and random networks
    have each oddity.
    """
    assert solve(FAMILIES["oversubscribed"](1)).potential.max() > 200
    graph = scheduling_graph("contended", 1)
    assert solve(graph.network).potential[graph.first_machine : graph.first_unscheduled].any()
    aware = network_aware_graph(16, 1)
    links = np.stack([aware.network.tail, aware.network.head])
    _, times = np.unique(
        links[:, aware.network.tail < aware.first_machine], axis=1, return_counts=True
    )
    assert times.max() > 5
    net: FlowNetwork = FAMILIES["random and dense"](1)
    pairs = np.stack([net.tail, net.head])
    assert np.unique(pairs, axis=1).shape[1] < net.num_arcs
    assert (net.tail == net.head).any()
    assert (net.capacity == 0).any()
    assert (net.cost < 0).any()


@pytest.mark.parametrize("algorithm", [*ALL, RACE], ids=str)
@pytest.mark.parametrize("capacity", [2**59, 2**60, 2**61, 2**62, UNBOUNDED])
def test_arcs_without_bounds_carry_what_is_useful(algorithm, capacity):
    net = network(
        [4, 3, 0, -7],
        [(0, 2, capacity, 1), (1, 2, capacity, 2), (2, 3, capacity, 1), (0, 3, 2, 5)]
        + [(2, 2, capacity, 3)] * 4,
    )
    solution = solve(net, algorithm, deterministic=True)
    assert (solution.status, solution.cost) == (Status.OPTIMAL, 17)
    assert certify(net, solution).ok


@each_algorithm
@pytest.mark.parametrize(
    ("closing", "capacity", "status", "cost"),
    [
        (-2, UNBOUNDED, Status.OPTIMAL, 2),  # cost 0 around
        (-3, UNBOUNDED, Status.UNBOUNDED, None),
        (-(2**40), UNBOUNDED, Status.UNBOUNDED, None),  # what is carried costs more than int64
        (-3, 5, Status.OPTIMAL, -3),  # bounded: filled
    ],
)
def test_cycles_of_negative_cost(algorithm, closing, capacity, status, cost):
    most = UNBOUNDED
    net = network(
        [1, 0, 0, -1],
        [(0, 1, most, 1), (1, 2, most, 1), (2, 0, capacity, closing), (1, 3, most, 1)],
    )
    solution = solve(net, algorithm)
    assert solution.status is status
    if cost is not None:
        assert solution.cost == cost
        assert certify(net, solution).ok


@each_algorithm
def test_what_cannot_be_met_is_infeasible_before_it_is_unbounded(algorithm):
    net = network([1, 0, -1], [(0, 1, UNBOUNDED, -1), (1, 0, UNBOUNDED, -1)])
    assert solve(net, algorithm).status is Status.INFEASIBLE


@each_algorithm
def test_many_bounded_capacities_beside_unbounded_ones(algorithm):
    """The bounded ones add up to more than a 32-bit level: negative cycles over them are filled."""
    rows = [(0, 1, 2**40, -5)] * 8 + [(1, 0, UNBOUNDED, 1)] * 3
    net = network([0, 0], rows)
    solution = solve(net, algorithm)
    assert (solution.status, solution.cost) == (Status.OPTIMAL, -4 * 8 * 2**40)
    assert certify(net, solution).ok


@each_algorithm
def test_supplies_that_need_a_high_level(algorithm):
    supply = 2**50
    net = network([supply, 0, -supply], [(0, 1, UNBOUNDED, 3), (1, 2, UNBOUNDED, 4)] * 5)
    solution = solve(net, algorithm)
    assert (solution.status, solution.cost) == (Status.OPTIMAL, 7 * supply)
    assert certify(net, solution).ok


def test_narrow_networks_stay_narrow():
    """An unbounded arc costs no memory and no speed: the level is one that fits 32 bits."""
    rng = np.random.default_rng(1)
    rows = [(0, v, UNBOUNDED, int(rng.integers(1, 100))) for v in range(1, 500)]
    rows += [(v, 500, 1, int(rng.integers(1, 100))) for v in range(1, 500)]
    supply = np.zeros(501, dtype=np.int64)
    supply[[0, 500]] = 400, -400
    bounded = [(t, h, min(c, 400), w) for t, h, c, w in rows]
    wide, narrow = solve(network(supply, rows)), solve(network(supply, bounded))
    assert wide.cost == narrow.cost
    assert wide.stats.operations <= 1.1 * narrow.stats.operations


@pytest.mark.parametrize("algorithm", [*ALL, RACE], ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_a_history_with_unbounded_arcs_agrees_with_solves_from_scratch(algorithm, seed):
    """Unbounded arcs are added, removed and bounded, with costs of both signs: the same statuses
    and costs in the same rounds.
    """
    rng = np.random.default_rng(seed)
    capacities = np.array([0, 1, 5, 2**20, 2**40, 2**59, 2**61, 2**62, UNBOUNDED])
    least = -4 if seed % 2 else 0
    net = FlowNetwork()
    nodes = net.add_nodes(np.zeros(12, dtype=np.int64))

    def arcs(count):
        ends = rng.integers(0, nodes.size, (2, count))
        return *nodes[ends], rng.choice(capacities, count), rng.integers(least, 20, count)

    net.add_arcs(nodes, np.roll(nodes, 1), np.full(12, UNBOUNDED), rng.integers(20, 40, 12))
    live = net.add_arcs(*arcs(30))
    solver = IncrementalSolver(net, algorithm, deterministic=True)
    seen = set()
    for _ in range(25):
        some = rng.choice(live, 4, replace=False)
        solver.set_capacity(some[:2], rng.choice(capacities, 2))
        solver.set_cost(some[1:3], rng.integers(least, 20, 2))
        solver.remove_arcs(some[3:])
        live = np.append(live[live != some[3]], solver.add_arcs(*arcs(1)))
        supply = rng.integers(-4, 5, nodes.size) * rng.choice([1, 1, 1, 2**33])
        supply[0] -= supply.sum()
        solver.set_supply(nodes, supply)
        status = solver.resolve()
        now, _, ids = solver.snapshot()
        answer = solve(now)
        assert status is answer.status
        seen.add(status)
        if status is Status.OPTIMAL:
            assert solver.cost == answer.cost
            assert solver.certify().ok
            flow = replace(answer, flow=solver.flow()[ids], potential=solver.potential()[nodes])
            assert certify(now, flow).ok
        elif status is Status.INFEASIBLE:
            assert solver.certify_cut().ok
    assert seen & {Status.OPTIMAL, Status.UNBOUNDED}


def test_a_snapshot_has_the_capacities_as_they_were_given():
    solver = IncrementalSolver(network([1, -1], [(0, 1, UNBOUNDED, 1), (0, 1, 2**62, 2)]))
    assert solver.resolve() is Status.OPTIMAL
    solver.set_supply([0, 1], [2**40, -(2**40)])  # a higher level
    assert solver.resolve() is Status.OPTIMAL
    solver.set_capacity([1], [7])
    now, _, _ = solver.snapshot()
    assert now.capacity.tolist() == [UNBOUNDED, 7]


@pytest.mark.parametrize("algorithm", [*ALL, RACE], ids=str)
def test_an_unbounded_cycle_comes_and_goes(algorithm):
    """Nothing of an UNBOUNDED round is adopted, and the level follows supplies and costs."""
    most = UNBOUNDED
    solver = IncrementalSolver(
        network([3, 0, -3], [(0, 1, most, 1), (1, 2, most, 1), (2, 0, most, 5)]), algorithm
    )
    for supply, closing, status in (
        (3, 5, Status.OPTIMAL),
        (3, -3, Status.UNBOUNDED),
        (3, -2, Status.OPTIMAL),
        (2**50, -3, Status.UNBOUNDED),
        (2**50, 7, Status.OPTIMAL),
        (4, -(2**40), Status.UNBOUNDED),
        (4, 0, Status.OPTIMAL),
    ):
        before = solver.cost
        solver.set_supply([0, 2], [supply, -supply])
        solver.set_cost([2], closing)
        assert solver.resolve() is status
        if status is Status.OPTIMAL:
            assert solver.certify().ok
            before = 2 * supply
        assert solver.cost == before
    solver.set_cost([2], -3)
    assert solver.resolve() is Status.UNBOUNDED
    solver.set_capacity([2], 10)  # bounded: filled
    assert (solver.resolve(), solver.cost) == (Status.OPTIMAL, 8 - 10)
    assert solver.certify().ok


@pytest.mark.parametrize("algorithm", [*ALL, ["relaxation", "network_simplex"]], ids=str)
@pytest.mark.parametrize(
    ("supply", "arcs", "amount", "cost"),
    [
        ([], [], 0, 0),
        ([5, -3], [], 0, 0),
        ([5, 0, -9], [(0, 1, 3, 1), (1, 2, UNBOUNDED, 1), (0, 2, 1, 7)], 4, 13),
        # the cheaper source sends, the dearer one keeps
        ([2, 2, -2], [(0, 2, 9, 5), (1, 2, 9, 3)], 2, 6),
        # the nearer sink takes
        ([2, -2, -2], [(0, 1, 9, 5), (0, 2, 9, 3)], 2, 6),
        # as much as possible comes first, even where it is dear
        ([1, 1, 0, -2], [(0, 2, 1, 1), (1, 2, 1, 100), (2, 3, 2, 1)], 2, 103),
        # negative cycles are filled, too
        ([1, 0, -1], [(0, 1, 1, 1), (1, 2, 1, 1), (1, 1, 3, -2)], 1, -4),
    ],
)
def test_maximum_flow(algorithm, supply, arcs, amount, cost):
    net = network(supply, arcs)
    most = solve_max_flow(net, algorithm)
    assert (most.solution.status, most.amount, most.solution.cost) == (Status.OPTIMAL, amount, cost)
    assert most.supply[most.supply > 0].sum() == amount == -most.supply[most.supply < 0].sum()
    sent = copy.copy(net)
    sent.set_supply(np.arange(net.num_nodes), most.supply)
    assert certify(sent, most.solution).ok


def test_statuses_of_a_maximum_flow():
    unbounded = network([1, -1], [(0, 1, UNBOUNDED, -1), (1, 0, UNBOUNDED, -1)])
    assert solve_max_flow(unbounded).solution.status is Status.UNBOUNDED
    dear = network([1, -1], [(0, 1, 1, 2**62)])
    assert solve_max_flow(dear).solution.status is Status.BAD_COST_RANGE
    large = network([2**62, 2**62, -1], [(0, 2, 1, 1)])
    assert solve_max_flow(large).solution.status is Status.BAD_CAPACITY_RANGE
    with pytest.raises(TypeError, match="network: expected a FlowNetwork"):
        solve_max_flow(None)


def run(*arguments: str, text: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "flowsolver", "solve", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_the_command_for_a_maximum_flow():
    text = "p min 3 3\nn 1 9\nn 3 -4\na 1 2 0 3 1\na 1 3 0 2 5\na 2 3 0 9 1\n"
    refused = run(text=text)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "unbalanced" in refused.stderr
    done = run("--max-flow", "--certify", text=text)
    assert (done.returncode, done.stdout) == (0, "s 11\nf 1 2 3\nf 1 3 1\nf 2 3 3\n")
    told = json.loads(run("--max-flow", "--certify", "--json", text=text).stdout)
    assert (told["sent"], told["certified"]) == (4, True)
    bounded = run("--max-flow", text=text.replace("a 1 2 0", "a 1 2 1"))
    assert bounded.returncode == 2
    assert "<stdin>: --max-flow does not support lower bounds" in bounded.stderr
