"""Every algorithm, with all settings, against OR-tools on thousands of small random networks."""

import numpy as np
from hypothesis import event, given

from flowsolver import algorithms, parse_dimacs, solve, write_dimacs
from tests.fixtures.algorithm_variants import VARIANTS
from tests.fixtures.examples import examples
from tests.fixtures.network_strategies import networks, shaped_networks, unit_source_networks
from tests.fixtures.networks import ortools_answer, violations


def check_all_algorithms(network):
    """Check all algorithms on one network, so that it is drawn and solved by OR-tools once. Each
    failure is named.
    """
    expected = ortools_answer(network)
    event(expected[0].name)
    wrong = {
        name: violations(network, solve(network, choices, deterministic=True), expected)
        for name, choices in ({name: name for name in algorithms()} | VARIANTS).items()
    }
    assert {algorithm: what for algorithm, what in wrong.items() if what} == {}


@examples(1500)
@given(networks())
def test_general_networks(network):
    check_all_algorithms(network)


@examples(600)
@given(unit_source_networks())
def test_unit_sources(network):
    check_all_algorithms(network)


@examples(400)
@given(shaped_networks())
def test_shapes(network):
    check_all_algorithms(network)


@examples(50)
@given(networks())
def test_dimacs_round_trip(network):
    again = parse_dimacs(write_dimacs(network)).network
    for name in ("tail", "head", "capacity", "cost", "supply"):
        np.testing.assert_array_equal(getattr(network, name), getattr(again, name))
