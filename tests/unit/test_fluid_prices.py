"""Prices that are means of dual prices of samples of the tasks offered."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from schedulers.prices.kinds import _Problem
from tests.fixtures.examples import examples
from tests.price_world import PriceWorld, catalog_of

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


def test_a_slot_that_everybody_lacks_is_worth_the_whole_gain():
    world = PriceWorld("fluid", [2, 4, 4], [(100, {0: 0})])
    world.occupy([1], [4])
    world.offer([1] * 10)  # in every sample four tasks want the two slots
    assert world.price() == [[100], [0], [0]]
    assert world.estimator.operations > 0


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


def test_an_idle_cell_has_no_prices():
    world = PriceWorld("fluid", [2, 4], [(100, {0: 0})])
    world.offer([1] * 10)
    assert world.price() == [[0], [0]]
