"""solve: hard structural cases with known answers, statuses, ranges, bad arguments. Certificates,
never particular flows."""

import numpy as np
import pytest

from flowsolver import FlowNetwork, Solution, Status, algorithms, certify, solve
from flowsolver.generate import contended_options, quincy_graph
from tests.fixtures.networks import check_solution, network

LARGE = 2**62


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
    ("wide capacity never used", [1, -1], [(0, 1, 2**50, 3)], 3),
]


@pytest.mark.parametrize("algorithm", algorithms())
@pytest.mark.parametrize(
    ("supply", "arcs", "cost"), [c[1:] for c in SOLVABLE], ids=[c[0] for c in SOLVABLE]
)
def test_known_optimum(algorithm, supply, arcs, cost):
    net = network(supply, arcs)
    check_solution(net, solve(net, algorithm), cost)


UNSOLVABLE = [
    ("no way", [1, -1], [], Status.INFEASIBLE),
    ("too narrow", [2, 0, -2], [(0, 1, 2, 0), (1, 2, 1, 0)], Status.INFEASIBLE),
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


@pytest.mark.parametrize("algorithm", algorithms())
@pytest.mark.parametrize(
    ("supply", "arcs", "status"), [c[1:] for c in UNSOLVABLE], ids=[c[0] for c in UNSOLVABLE]
)
def test_status_of_bad_networks(algorithm, supply, arcs, status):
    assert solve(network(supply, arcs), algorithm).status is status


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


def test_unknown_algorithm():
    with pytest.raises(ValueError, match="no algorithm"):
        solve(network([0], []), "simplex")


@pytest.mark.parametrize(
    ("arc", "message"),
    [
        ((0, 2, 1, 1), r"head\[1\] = 2: no such node"),
        ((-1, 0, 1, 1), r"tail\[1\] = -1: no such node"),
        ((0, 1, -1, 1), r"capacity\[1\] = -1: negative"),
    ],
)
def test_bad_arcs_name_field_and_index_and_add_nothing(arc, message):
    net = network([0, 0], [])
    rows = np.array([(0, 1, 1, 1), arc])
    with pytest.raises(ValueError, match=message):
        net.add_arcs(*rows.T)
    assert net.num_arcs == 0


def test_bad_arrays():
    net = network([0, 0], [])
    with pytest.raises(ValueError, match="cost holds float64"):
        net.add_arcs([0], [1], [1], [0.5])
    with pytest.raises(ValueError, match="head has 3 entries, expected 2"):
        net.add_arcs([0, 0], [1, 1, 1], 1, 1)
    with pytest.raises(ValueError, match="beyond int64"):
        net.add_nodes(np.array([2**63], dtype=np.uint64))
    with pytest.raises(ValueError, match="2 dimensions"):
        net.add_nodes([[1, 2]])


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
