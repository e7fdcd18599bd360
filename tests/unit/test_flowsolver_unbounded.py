"""Capacities up to int64's maximum: as much as can be useful, or no least cost at all."""

import numpy as np
import pytest

from flowsolver import UNBOUNDED, Status, algorithms, certify, solve
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
