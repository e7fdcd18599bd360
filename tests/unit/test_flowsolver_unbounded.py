"""Capacities up to int64's maximum: they count as unbounded, and some networks then have no least
cost.
"""

from dataclasses import replace

import numpy as np
import pytest

from flowsolver import (
    UNBOUNDED,
    FlowNetwork,
    IncrementalSolver,
    Status,
    algorithms,
    certify,
    solve,
)
from tests.fixtures.networks import network

ALL = list(algorithms())
RACE = ["cost_scaling", "relaxation"]


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


@pytest.mark.parametrize("algorithm", ALL)
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


@pytest.mark.parametrize("algorithm", ALL)
def test_what_cannot_be_met_is_infeasible_before_it_is_unbounded(algorithm):
    net = network([1, 0, -1], [(0, 1, UNBOUNDED, -1), (1, 0, UNBOUNDED, -1)])
    assert solve(net, algorithm).status is Status.INFEASIBLE


@pytest.mark.parametrize("algorithm", ALL)
def test_many_bounded_capacities_beside_unbounded_ones(algorithm):
    """The bounded ones add up to more than a 32-bit level: negative cycles over them are filled."""
    rows = [(0, 1, 2**40, -5)] * 8 + [(1, 0, UNBOUNDED, 1)] * 3
    net = network([0, 0], rows)
    solution = solve(net, algorithm)
    assert (solution.status, solution.cost) == (Status.OPTIMAL, -4 * 8 * 2**40)
    assert certify(net, solution).ok


@pytest.mark.parametrize("algorithm", ALL)
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
