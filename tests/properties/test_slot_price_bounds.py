"""Prices of any cell, preferences and offers: never negative, never falling as a machine fills,
never above what a task can lose; and equal calls give equal bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers import _native
from schedulers.prices import registry
from tests.fixtures.examples import examples
from tests.price_world import PriceWorld

MACHINES = 6
costs = st.one_of(st.integers(0, 2000), st.integers(0, 2**32))
sets = st.lists(
    st.tuples(costs, st.dictionaries(st.integers(0, MACHINES - 1), costs, max_size=MACHINES)),
    min_size=1,
    max_size=5,
)
capacities = st.lists(
    st.one_of(st.integers(0, 20), st.integers(0, 2**40)), min_size=MACHINES, max_size=MACHINES
)
offers = st.lists(
    st.tuples(
        st.lists(st.integers(0, 5), max_size=20),  # sets, modulo their number
        st.integers(1, 4),  # what each task asks for
        st.integers(0, 3_000_000),  # how much later
        st.integers(0, MACHINES - 1),  # a machine that fills by as much
    ),
    min_size=1,
    max_size=8,
)


def history(kind, capacity, sets, offers):
    """The prices after each offer, and the most that a task of any set offered can lose."""
    world = PriceWorld(kind, capacity, sets)
    found, most, now_us = [], 0, 0
    for chosen, request, later_us, machine in offers:
        preference = [k % (len(sets) + 1) for k in chosen]
        for k in preference:
            if k:
                elsewhere, listed = sets[k - 1]
                most = max([most, *(elsewhere - cost for cost in listed.values())])
        world.offer(preference, [[request]] * len(preference))
        world.occupy([machine], [[request]])
        now_us += later_us
        found.append((world.estimator.update(world.view, now_us), most))
    return found


@pytest.mark.parametrize("kind", registry.kinds())
@examples(60)
@given(capacities, sets, offers)
def test_prices_are_bounded_and_never_fall(kind, capacity, sets, offers):
    for prices, most in history(kind, capacity, sets, offers):
        assert prices.price.min() >= 0 and prices.price.max() <= most
        assert (np.diff(prices.price, axis=1) >= 0).all()
        assert prices.slots.max() <= 256


@pytest.mark.parametrize("kind", registry.kinds())
@examples(20)
@given(capacities, sets, offers)
def test_equal_calls_give_equal_bytes(kind, capacity, sets, offers):
    runs = [history(kind, capacity, sets, offers) for _ in range(2)]
    for (a, _), (b, _) in zip(*runs, strict=True):
        for field in ("price", "slots", "unit"):
            assert getattr(a, field).tobytes() == getattr(b, field).tobytes()


@examples(200)
@given(
    st.one_of(st.integers(0, 2**62), st.integers(0, 2**36)),
    st.one_of(st.integers(1, 2**33), st.just(0)),
    st.integers(0, 256),
    st.integers(0, 2**32),
)
def test_implied_costs_grow_with_load_and_occupancy(load, more, slots, gain):
    price = _native.implied_cost(load, slots, gain, slots + 1)
    assert price[-1] == gain and (np.diff(price) >= 0).all() and price[0] >= 0
    busier = _native.implied_cost(min(load + more, 2**62), slots, gain, slots + 1)
    assert (busier >= price - 1).all()
