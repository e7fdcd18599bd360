"""Estimators of slot prices: closed cases by hand, what counts and when, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from schedulers import _native
from schedulers.prices import registry
from schedulers.prices.periodic import KEEP_ALL, kept
from shared_state.errors import AgoraError
from tests.price_world import PriceWorld

KINDS = [kind for kind in registry.kinds() if not registry.get(kind).needs_potentials]


def test_occupancy_rises_to_the_mean_gain():
    # Two tasks save 100 on machine 0; one saves 40 on either machine: the mean is 80.
    world = PriceWorld("occupancy", [4, 2], [(100, {0: 0}), (50, {0: 10, 1: 10})])
    world.offer([1, 1, 2])
    assert world.price() == [[0, 20, 40, 60], [0, 40, 80, 80]]


def test_membership_counts_the_sets_that_were_offered():
    sets = [(90, {0: 0, 1: 0}), (90, {0: 0, 2: 0}), (90, {0: 0, 1: 0}), (90, {3: 0})]
    world = PriceWorld("membership", [1] * 5, sets)
    world.offer([1, 2, 1, 1, 3])
    assert world.price() == [[90], [60], [30], [0], [0]]


def test_demand_is_the_load_that_falls_to_a_machine():
    # Eight of 16 slots are busy. Machine 0 is wanted by half of a quarter of the tasks: one Erlang;
    # machine 1 by that and a half: five.
    world = PriceWorld("demand", [4] * 4, [(100, {0: 0, 1: 0}), (100, {1: 60})], pool=False)
    world.occupy([2, 3], [4, 4])
    world.offer([1, 2, 2, 0])
    # gain of machine 1: (1/2 x 100 + 2 x 40) / (5/2) = 52, times 5/9
    assert world.price() == [[100 // 5], [29], [0], [0]]


def erlang(load: Fraction, slots: int) -> Fraction:
    """Erlang's loss formula, by its definition."""
    terms, term = [], Fraction(1)
    for n in range(slots + 1):
        terms.append(term)
        term = term * load / (n + 1)
    return terms[-1] / sum(terms)


def test_implied_cost_is_the_ratio_of_loss_probabilities():
    world = PriceWorld("implied", [3, 3, 1], [(1000, {0: 0})], pool=False)
    world.occupy([1, 2], [3, 1])  # four busy slots
    world.offer([1, 0])  # half of the tasks want machine 0: two Erlang
    full = erlang(Fraction(2), 3)
    expected = [round(1000 * full / erlang(Fraction(2), b)) for b in range(3)]
    assert world.price() == [expected, [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("slots", [1, 2, 3, 16, 100, 256])
@pytest.mark.parametrize("load", ["1/1000", "1/7", "1", "13", "15.2", "40", "250", "100000"])
@pytest.mark.parametrize("gain", [0, 1, 1000, 2**32])
def test_implied_cost_is_erlangs_formula_to_one_unit(slots, load, gain):
    fixed = int(Fraction(load) * 2**32)
    exact = Fraction(fixed, 2**32)
    price = _native.implied_cost(fixed, slots, gain, slots + 1).tolist()
    assert price[slots] == gain
    full = erlang(exact, slots)
    for busy in {0, 1, slots // 2, slots - 1} - {slots}:
        assert abs(price[busy] - gain * full / erlang(exact, busy)) <= 1


def test_nobody_wants_a_machine_whose_tasks_lose_nothing_elsewhere():
    for kind in KINDS:
        world = PriceWorld(kind, [2, 2], [(50, {0: 50, 1: 70})])
        world.occupy([0], [1])
        world.offer([1, 1, 0])
        assert not any(map(any, world.price()))


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_no_prices_before_a_task_is_offered(kind):
    world = PriceWorld(kind, [2, 2], [(100, {0: 0})], update_s=0.5)
    world.occupy([0, 1], [2, 2])
    prices = world.prices()
    assert prices.price.tolist() == [[0], [0]] and prices.unit.tolist() == [0]
    world.offer([1])
    assert world.prices(0.4) is prices
    assert any(map(any, world.price(0.5))) and world.prices(0.5).slots.tolist() == [2, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_that_ask_for_nothing_take_no_slot(kind):
    world = PriceWorld(kind, [2, 2], [(100, {0: 0})])
    world.offer([1, 1, 1], [[0], [0], [0]])
    assert world.price() == [[0], [0]]


@pytest.mark.parametrize("kind", KINDS)
def test_prices_of_a_period_are_one_object(kind):
    world = PriceWorld(kind, [4] * 3, [(100, {0: 0}), (100, {1: 0, 2: 0})], update_s=0.2)
    world.occupy([0, 1], [2, 3])
    world.offer([1, 2, 2])
    first = world.prices()
    assert world.estimator.operations > 0
    assert world.prices(0.199999) is first and world.estimator.operations == 0
    assert world.prices(0.2) is first  # nothing changed
    with pytest.raises(ValueError, match="read-only"):
        first.price[0, 0] = 1


def test_a_task_counts_once_however_often_it_is_offered():
    once = PriceWorld("demand", [4] * 2, [(100, {0: 0}), (100, {1: 0})])
    again = PriceWorld("demand", [4] * 2, [(100, {0: 0}), (100, {1: 0})])
    for world in (once, again):
        world.occupy([0], [3])
        world.offer([1, 2])
    again.offer_again([1, 1, 0, 1], [2, 2, 1, 2], [1, 1, 1, 1])
    assert once.price() == again.price()
    again.offer_again([1], [2], [1])
    assert once.price(1) == again.price(1)


def test_demand_is_forgotten_and_shares_stay_whole():
    """What was offered before, and the total, are forgotten alike: with one set offered its share
    is everything, and with another it moves over."""
    world = PriceWorld("demand", [4] * 2, [(100, {0: 0}), (100, {1: 0})], forget_s=50.0, pool=False)
    world.occupy([0], [4])
    world.offer([1] * 10)
    assert world.price() == [[50], [0]]  # 4 Erlang for 4 slots
    assert world.price(40) == [[50], [0]]
    world.offer([2] * 10)
    assert world.price(50) == [[21], [42]]  # e^-1 to 1: 1.076 and 2.924 Erlang


def demand_prices(calls, **options):
    """Prices of two machines with a set each, after `calls` of offered() with so many tasks of the
    one and of the other; eight of 16 slots are busy."""
    world = PriceWorld("demand", [4, 4, 8], [(100, {0: 0}), (100, {1: 0})], **options)
    world.occupy([2], [8])
    for first, second in calls:
        world.offer([1] * first + [2] * second)
    return [price for (price,) in world.price()]


def test_demands_that_differ_by_chance_are_taken_as_equal():
    # Demands of 3, 5 and 0, their mean is 8/3: a spread of 12.7, of which chance explains 8. What
    # remains is 0.37 of it: 2.79, 3.53 and 1.68 Erlang.
    few = [(1, 1)] * 3 + [(0, 1)] * 2
    assert demand_prices(few) == [41, 47, 17]
    assert demand_prices(few, pool=False) == [43, 56, 0]
    # Demands of 300, 500 and 0: chance explains 0.6 % of the spread.
    many = [(1, 1)] * 300 + [(0, 1)] * 200
    assert demand_prices(many) == [43, 55, 0]
    # Five calls with all of them at once: so many tasks of one set are one observation.
    assert demand_prices([(60, 100)] * 5) != demand_prices(many)


def test_what_tasks_with_sets_of_their_own_want_tells_little():
    """No machine is wanted more than others in the long run: the prices that the first hundred
    tasks make differ less if demands are pooled."""
    draws = np.random.default_rng(5)
    sets = [(1000, {int(m): 0 for m in draws.choice(30, 3, replace=False)}) for _ in range(100)]
    spread = {}
    for pool in (False, True):
        world = PriceWorld("implied", [8] * 30, sets, pool=pool)
        world.occupy(range(30), [7] * 30)
        for k in range(100):
            world.offer([k + 1])
        last_slot = world.prices().price[:, -1]
        spread[pool] = last_slot.max() - last_slot.min()
    assert spread[True] < spread[False] / 4


def test_forgetting_is_exponential():
    for elapsed, forget in ((1, 60), (500_000, 30_000_000), (10, 10), (100, 9), (29, 1)):
        exact = np.exp(-elapsed / forget)
        assert abs(kept(elapsed, forget) - exact * KEEP_ALL) < 2
    assert kept(0, 5) == KEEP_ALL and kept(10**12, 1) == 0


def test_small_moves_change_no_price():
    world = PriceWorld("implied", [16] * 2, [(1000, {0: 0}), (1000, {1: 0})], pool=False)
    world.occupy([0, 1], [12, 12])
    world.offer([1] * 1000 + [2] * 1000)
    first = world.prices()
    world.offer([1])
    assert world.prices(1) is first
    world.offer([1] * 50)  # 2.5 % more than before: more than 1/64 of the gain for some slots
    changed = world.prices(2)
    assert changed is not first
    world.offer([1] * 5)
    assert world.prices(3) is changed


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_is_a_typical_request(kind):
    world = PriceWorld(kind, [[8, 100], [8, 20], [1, 100]], [(100, {0: 0})], update_s=0.5)
    world.offer([1, 1, 1], [[2, 5], [2, 10], [3, 10]])
    prices = world.prices()
    assert prices.unit.tolist() == [2, 10]
    assert prices.slots.tolist() == [4, 2, 0]
    world.offer([1] * 20, [[4, 10]] * 20)
    prices = world.prices(1)
    assert prices.unit.tolist() == [4, 10] and prices.slots.tolist() == [2, 2, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_is_coarser_where_many_tasks_fit_a_machine(kind):
    world = PriceWorld(kind, [1_000_000, 1000], [(100, {0: 0})])
    world.offer([1], [[2]])
    prices = world.prices()
    assert prices.unit.tolist() == [2 * 1954]
    assert prices.slots.tolist() == [255, 0]
    assert prices.price.shape[1] <= 256
    world = PriceWorld(kind, [2**40], [(100, {0: 0})])  # more than units_in() counts
    world.offer([1], [[3]])
    assert 128 <= world.prices().slots[0] <= 256


def test_machines_that_are_down_are_not_busy():
    up = PriceWorld("implied", [4] * 3, [(1000, {0: 0})], pool=False)
    down = PriceWorld("implied", [4] * 4, [(1000, {0: 0})], pool=False)
    down.cell.set_machines(np.array([3], np.int32), np.array([False]), 0)
    down.view.apply(down.cell.delta_since(0, int(down.view.versions[0]), 0, False))
    for world in (up, down):
        world.occupy([1], [4])
        world.offer([1])
    assert down.price()[:3] == up.price()


def test_prices_do_not_know_the_tasks_to_come():
    """Two runs whose tasks are equal up to a time have equal prices up to then."""
    sets = [(100, {0: 0, 1: 0}), (300, {1: 20}), (200, {2: 0, 3: 5})]
    for kind in KINDS:
        worlds = [PriceWorld(kind, [4] * 4, sets, update_s=0.5) for _ in range(2)]
        draws = np.random.default_rng(3)
        for second in range(10):
            preference = draws.integers(0, 4, 20)
            for world in worlds:
                world.occupy([0, 1], [1, 1])
                world.offer(preference if second < 5 or world is worlds[0] else preference[:2])
            same = worlds[0].price(second) == worlds[1].price(second)
            assert same or second >= 5
        if kind not in ("occupancy", "membership"):
            assert not same


@pytest.mark.parametrize("kind", KINDS)
def test_costs_out_of_range_are_refused(kind):
    with pytest.raises(AgoraError, match=r"^preference set 2: elsewhere_cost: .* at most 2\^32 .*"):
        PriceWorld(kind, [1, 1], [(1, {0: 0}), (2**33, {1: 0})])
    with pytest.raises(AgoraError, match=r"^preference set 1: elsewhere_cost"):
        PriceWorld(kind, [1, 1], [(2**62, {0: -(2**62)})])


def test_the_widest_range_of_costs_and_slots_is_priced():
    for kind in KINDS:
        world = PriceWorld(kind, [2**40, 2**40], [(2**32, {0: 0}), (-(2**62), {1: 2**62})])
        world.occupy([0], [2**39])
        world.offer([1, 2, 1], [[2**20]] * 3)
        price = world.prices().price
        assert price.min() >= 0 and price.max() <= 2**32
        assert price.max() > 2**28 or kind == "fluid"  # nothing is scarce


@pytest.mark.parametrize(
    ("task", "preference", "message"),
    [
        ([0, -1], [1, 1], r"task\[1\]: expected 0 to 2\^30, got -1"),
        ([0, 2**30], [1, 1], r"task\[1\]: expected 0 to 2\^30, got 1073741824"),
        ([0, 1], [1, 2], r"preference\[1\]: there is no set 2"),
        ([0, 1], [1, -1], r"preference\[1\]: there is no set -1"),
    ],
)
def test_tasks_and_sets_that_do_not_exist_are_refused_whole(task, preference, message):
    world = PriceWorld("demand", [4], [(100, {0: 0})])
    with pytest.raises(ValueError, match=message):
        world.offer_again(task, preference, [1, 1])
    assert world.price() == [[0]]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("implied", {"update_s": 0}, "'implied', option 'update_s': .*greater than or equal"),
        ("implied", {"forget_s": -1.0}, "'implied', option 'forget_s': "),
        ("demand", {"forget_s": "long"}, "'demand', option 'forget_s': .*got 'long'"),
        ("demand", {"forget_s": float("nan")}, "'demand', option 'forget_s': "),
        ("occupancy", {"forget_s": 1.0}, "'occupancy' has no option 'forget_s'; .* update_s"),
        ("membership", {"update": 1.0}, "'membership' has no option 'update'"),
    ],
)
def test_wrong_options_are_named(kind, options, message):
    with pytest.raises(AgoraError, match=message):
        registry.get(kind).parse_options(options)
