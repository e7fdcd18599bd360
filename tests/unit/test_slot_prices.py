"""Estimators of slot prices: closed cases by hand, what counts and when, and what is refused.
Prices that are means of dual prices of samples, and of the potentials of a flow scheduler's rounds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, ValidationError
from scipy.optimize import linprog

from schedulers import _native
from schedulers.interface import SchedulerEnvironment
from schedulers.prices import registry
from schedulers.prices.interface import LearnsPotentials
from schedulers.prices.kinds import _Problem
from schedulers.prices.periodic import KEEP_ALL, kept
from schedulers.prices.registry import PriceOptions
from shared_state.errors import AgoraError
from tests.fixtures.examples import examples
from tests.price_world import PriceWorld, catalog_of, cell_of

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


@pytest.mark.parametrize("kind", KINDS)
def test_costs_out_of_range_are_refused(kind):
    with pytest.raises(AgoraError, match=r"^preference set 2: elsewhere_cost: .* at most 2\^32 .*"):
        PriceWorld(kind, [1, 1], [(1, {0: 0}), (2**33, {1: 0})])
    with pytest.raises(AgoraError, match=r"^preference set 1: elsewhere_cost"):
        PriceWorld(kind, [1, 1], [(2**62, {0: -(2**62)})])


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


MACHINES = 5
sets = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.dictionaries(st.integers(0, MACHINES - 1), st.integers(0, 9), max_size=MACHINES),
    ),
    min_size=1,
    max_size=5,
)


def least_cost(catalog, slots, tasks):
    """The least cost of placing so many tasks of each set, each on a listed machine or elsewhere:
    an independent linear program, machine by machine."""
    cost, rows, columns = [], [], []
    for k in range(catalog.sets):
        begin, end = catalog.machine_offsets[k : k + 2]
        for m, c in zip(catalog.machine[begin:end], catalog.machine_cost[begin:end], strict=True):
            cost.append(c), rows.append(k), columns.append(int(m))
        cost.append(catalog.elsewhere_cost[k]), rows.append(k), columns.append(-1)
    rows, columns = np.array(rows), np.array(columns)
    found = linprog(
        cost,
        A_eq=(rows == np.arange(catalog.sets)[:, None]).astype(float),
        b_eq=tasks,
        A_ub=(columns == np.arange(len(slots))[:, None]).astype(float),
        b_ub=slots,
    )
    assert found.status == 0
    return round(found.fun)


@examples(150)
@given(sets, st.lists(st.integers(0, 4), min_size=MACHINES, max_size=MACHINES), st.data())
def test_slots_are_worth_optimal_dual_prices(sets, slots, data):
    """The certificate: with these prices, what tasks cost at their cheapest places less what the
    slots are worth is the least cost. The second sample is solved from the first."""
    catalog, slots = catalog_of(sets), np.array(slots, np.int64)
    numbers = np.arange(catalog.sets, dtype=np.int32)
    problem = _Problem.make(catalog, numbers, slots)
    for _ in range(2):
        count = st.lists(st.integers(0, 6), min_size=len(numbers), max_size=len(numbers))
        tasks = np.array(data.draw(count), np.int64)
        worth = problem.worth(tasks)
        assert worth.min() >= 0 and (worth[slots == 0] == 0).all()
        total = -int(worth @ slots)
        for k in range(catalog.sets):
            begin, end = catalog.machine_offsets[k : k + 2]
            machine = catalog.machine[begin:end]
            machine, cost = machine[slots[machine] > 0], catalog.machine_cost[begin:end]
            cost = cost[slots[catalog.machine[begin:end]] > 0]
            places = [catalog.elsewhere_cost[k], *(cost + worth[machine])]
            total += int(tasks[k]) * int(min(places))
        assert total == least_cost(catalog, slots, tasks)


def test_machines_that_the_same_sets_list_at_the_same_costs_are_one_class():
    catalog = catalog_of([(100, {0: 0, 1: 0, 2: 5, 3: 0}), (100, {0: 0, 1: 0, 2: 0})])
    problem = _Problem.make(catalog, np.array([1, 2], np.int32), np.array([2] * 5))
    assert len(problem.class_node) == 3
    assert problem.class_of[0] == problem.class_of[1]


def test_a_slot_that_is_sometimes_short_has_a_price_between():
    world = PriceWorld("fluid", [8, 8, 8], [(1000, {0: 0}), (1000, {1: 0})], samples=1000)
    world.occupy([2, 1], [8, 8])
    world.offer([1] * 10 + [2] * 10 + [0] * 20)  # of 16 tasks four want each machine: few want nine
    [few], _, [none] = world.price()
    assert 0 < few < 100 and none == 0
    world = PriceWorld("fluid", [8, 8, 8], [(1000, {0: 0}), (1000, {1: 0})], samples=50)
    world.occupy([2, 1], [8, 8])
    world.offer([1] * 10 + [2] * 10)  # eight want each
    [zero], [one], _ = world.price()
    assert 200 < zero < 800 and 200 < one < 800


def test_the_problem_is_kept_while_the_same_sets_are_offered():
    sets = [(100, {0: 0}), (100, {1: 0}), (100, {2: 0})]
    world = PriceWorld("fluid", [2] * 3, sets)
    world.occupy([0], [2])
    world.offer([1, 2])
    world.prices()
    problem = world.estimator._problem
    world.offer([2, 1, 1])
    world.prices(2)
    assert world.estimator._problem is problem
    world.offer([3])
    world.prices(4)
    assert world.estimator._problem is not problem


def world_of(machines=3, **options):
    world = PriceWorld("potentials", [2] * machines, [(100, {0: 0})], **options)

    def learn(at_s, *machine, sink=1000):
        world.estimator.learn_potentials(np.array(machine, np.int64), sink, round(at_s * 1e6))

    return world, learn


def test_they_are_zero_until_a_round_was_worth_something():
    world, learn = world_of()
    before = world.prices()
    assert before.price.tolist() == [[0], [0], [0]]
    world.offer([1, 1, 1])
    assert world.prices(1) is before
    learn(2, 1000, 990, 0)  # no machine is above the sink
    assert world.prices(5) is before
    assert world.estimator.operations > 0


def test_they_are_means_over_time_not_over_rounds():
    world, learn = world_of(forget_s=1e5, update_s=10.0)
    learn(0, 1300, 1000, 900)
    learn(1, 1000, 1400, 1000)
    learn(3, 1000, 1000, 1000)
    learn(3.1, 1000, 1000, 1000)
    # machine 0: 300 for 1 s of 10; machine 1: 400 for 2 s
    assert world.price(10) == [[30], [80], [0]]


def test_old_rounds_are_forgotten_exponentially():
    world, learn = world_of(1, forget_s=10.0)
    learn(0, 1900)
    assert world.price(10) == [[900]]  # the mean is right from the first second
    learn(10, 1000)
    # 10 s of 900 and then 10 s of 0, weighted e^-1 to 1
    assert world.price(20)[0][0] == pytest.approx(900 / (1 + np.e), abs=1)
    assert world.price(400) == [[0]]


def test_the_highest_potentials_do_not_overflow():
    world, _ = world_of(2)
    top = np.array([2**62, -(2**62)], np.int64)
    for second in range(0, 4000, 400):
        world.estimator.learn_potentials(top, 0, second * 10**6)
        assert world.price(second + 1) == [[2**32], [0]]


class FlowLike(PriceOptions):
    model_config = ConfigDict(extra="forbid")
    has_potentials: ClassVar[bool] = True


def test_only_flow_schedulers_can_use_them():
    with pytest.raises(ValidationError, match="prices: 'potentials' needs a flow scheduler"):
        PriceOptions(prices="potentials")
    environment = SchedulerEnvironment(
        "tested", cell_of([1, 1]), np.array([0, 2]), catalog_of([(1, {0: 0})])
    )
    learner = FlowLike(prices="potentials").estimator(environment)
    assert isinstance(learner, LearnsPotentials)
    assert not isinstance(FlowLike(prices="implied").estimator(environment), LearnsPotentials)
    learner.learn_potentials(np.array([7, 3], np.int64), 2, 0)
    world, _ = world_of(2)
    assert learner.update(world.view, 10**6).price.tolist() == [[5], [1]]
