"""Greedy schedulers that place by slot prices: large cells, conflicts, what estimators are told,
and bad input."""

import heapq

import numpy as np
import pytest

from schedulers import registry
from schedulers.interface import PartitionRanking, PlanContext, SchedulerEnvironment
from schedulers.prices.registry import PriceMode, PriceScope
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from tests.greedy_world import catalog_of, cell_of, tasks_of, view_of
from tests.priced_world import GivenPrices, greedy_with, rule
from tests.properties.test_priced_placement_oracle import KINDS, PricedOracle

RANKINGS = pytest.mark.parametrize("ranking", list(PartitionRanking))
MACHINES, SLOTS = 1_200, 3
OFFSETS = np.array([0, 300, 700, 1_200], np.int64)


class Cell:
    """A cell of three partitions and two sets: one lists 400 machines, one six racks."""

    def __init__(self, seed=1, scored=True):
        rng = np.random.default_rng(seed)
        score = rng.integers(1, 1_000, MACHINES) if scored else None
        self.spec = cell_of([SLOTS] * MACHINES, score, rack_size=40)
        listed = rng.choice(MACHINES, 400, replace=False)
        self.sets = [
            ({int(m): int(rng.integers(0, 2)) for m in listed}, {}),
            ({}, {int(r): 3 for r in rng.choice(30, 6, replace=False)}),
        ]
        self.catalog = catalog_of(*self.sets)
        self.view = view_of(self.spec, Partitioning(OFFSETS), rng.integers(0, SLOTS + 1, MACHINES))
        self.prices = GivenPrices(
            np.sort(rng.integers(0, 60, (MACHINES, SLOTS)), axis=1), [SLOTS] * MACHINES, [1]
        )

    def scheduler(self, kind, options=None):
        return greedy_with(kind, self.spec, OFFSETS, self.catalog, self.prices, options)

    def without_prices(self, kind):
        spec = registry.get(kind)
        environment = SchedulerEnvironment("plain", self.spec, OFFSETS, self.catalog)
        return spec.build(spec.parse_options({}), environment)


def context(ranking=PartitionRanking.OPTIMISTIC, stream=0):
    return PlanContext(0, stream, ranking, np.array([2, 0, 1], np.int32))


@RANKINGS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", list(PriceMode))
def test_picks_of_a_large_cell_have_the_lowest_cost_and_price(mode, kind, ranking):
    """Levels and partitions so large that their rows are kept by price. Some requests are too large
    for most machines."""
    for scope in PriceScope:
        cell = Cell()
        options = rule(mode, 1_500, scope)
        rng = np.random.default_rng(5)
        tasks = tasks_of(rng.integers(1, 4, 40), rng.integers(0, 3, 40))
        plan = cell.scheduler(kind, options).plan(tasks, cell.view, context(ranking))
        assert len(plan.task) == 40
        oracle = PricedOracle(
            cell.prices.prices,
            options,
            kind,
            cell.spec,
            OFFSETS,
            [2, 0, 1],
            ranking,
            cell.sets,
            cell.view.free.copy(),
            cell.view.up,
        )
        for i, machine in enumerate(plan.machine.tolist()):
            assert machine in oracle.allowed(tasks.request[i], tasks.preference[i])
            oracle.free[machine] -= tasks.request[i]


def scattered(rng, distinct):
    return rng.integers(0, distinct, 6_000)


PRICES_OF_6000 = {
    "equal": lambda rng: scattered(rng, 1),
    "few": lambda rng: scattered(rng, 3),
    "some": lambda rng: scattered(rng, 300),
    "many": lambda rng: scattered(rng, 20_000),
    "neighbours alike": lambda rng: np.arange(6_000) // 64 * 100 + scattered(rng, 40),
    "few cheap": lambda rng: np.where(rng.random(6_000) < 0.01, scattered(rng, 9), 9_000),
}


@pytest.mark.parametrize("prices", PRICES_OF_6000)
@pytest.mark.parametrize("kind", ["random", "first_fit", "randomized_first_fit"])
@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("ranking", [PartitionRanking.OPTIMISTIC, PartitionRanking.LATENCY_FIRST])
@pytest.mark.parametrize("preference", [0, 1])
def test_many_tasks_take_the_cheapest_slots_one_after_the_other(
    preference, ranking, levels, kind, prices
):
    """Long plans take many rows at once: each task still gets the lowest price there is, when it
    is its turn, whether prices rise with busy slots or not, and the next plan finds all as it was.
    First fit takes the first of these."""
    rng = np.random.default_rng(3)
    machines, offsets = 6_000, np.array([0, 3_000, 6_000], np.int64)
    spec = cell_of([SLOTS] * machines)
    listed = np.sort(rng.choice(machines, 2_500, replace=False))
    catalog = catalog_of(({int(m): 0 for m in listed}, {}))
    used = rng.integers(0, SLOTS + 1, machines)
    view = view_of(spec, Partitioning(offsets), used)
    first = PRICES_OF_6000[prices](rng)[:, None]
    price = first + np.cumsum(rng.integers(0, 50, (machines, levels)), axis=1)
    estimator = GivenPrices(price, [SLOTS] * machines, [1])
    scheduler = greedy_with(kind, spec, offsets, catalog, estimator)
    rows = listed if preference else np.arange(machines)
    if ranking is PartitionRanking.LATENCY_FIRST:
        rows = rows[rows >= 3_000]  # the freshest partition

    def price_at(row, busy):
        return int(price[row, min(busy, levels - 1)])

    for stream, count in enumerate((1, 900, 30, 900)):
        busy = used.copy()
        plan = scheduler.plan(
            tasks_of([1] * count, preference), view, context_of_two(ranking, stream)
        )
        assert len(plan.machine) == count
        open_slots = [(price_at(row, busy[row]), row) for row in rows if busy[row] < SLOTS]
        heapq.heapify(open_slots)
        for machine in plan.machine.tolist():
            assert machine in rows and busy[machine] < SLOTS
            while open_slots[0][0] != price_at(open_slots[0][1], busy[open_slots[0][1]]) or (
                busy[open_slots[0][1]] == SLOTS
            ):
                stale = heapq.heappop(open_slots)[1]
                if busy[stale] < SLOTS:
                    heapq.heappush(open_slots, (price_at(stale, busy[stale]), stale))
            assert price_at(machine, busy[machine]) == open_slots[0][0]
            if kind == "first_fit":
                assert machine == open_slots[0][1]
            busy[machine] += 1


def context_of_two(ranking, stream):
    return PlanContext(0, stream, ranking, np.array([1, 0], np.int32))


@RANKINGS
@pytest.mark.parametrize("preference", [0, 1])
def test_schedulers_with_equal_prices_spread_as_by_random(preference, ranking):
    """Eight schedulers with one view each, all alike. Of the machines that they choose about as
    many are chosen by one alone as without prices: a constant price for all must not send them to
    the same ones."""
    seen = {}
    for prices in (True, False):
        cell = Cell()
        cell.prices = GivenPrices(np.full((MACHINES, 1), 5), [SLOTS] * MACHINES, [1])
        scheduler = cell.scheduler("random") if prices else cell.without_prices("random")
        tasks = tasks_of([1] * 30, preference)
        distinct = [
            len(
                np.unique(
                    np.concatenate(
                        [
                            scheduler.plan(
                                tasks, cell.view, context(ranking, 100 * round_ + s)
                            ).machine
                            for s in range(8)
                        ]
                    )
                )
            )
            for round_ in range(100)
        ]
        seen[prices] = np.mean(distinct)
    assert seen[True] == pytest.approx(seen[False], rel=0.03)


def test_prices_too_large_for_their_ranks_keep_their_order():
    """Ranks have 15 bits; prices whose difference they hold are told apart."""
    spec = cell_of([1] * 6)
    prices = GivenPrices(np.array([[9], [2], [7], [1], [8], [3]]) << 40, [1] * 6, [1])
    view = view_of(spec, Partitioning(np.array([0, 6])))
    scheduler = greedy_with("random", spec, np.array([0, 6]), catalog_of(), prices)
    one = PlanContext(0, 3, PartitionRanking.OPTIMISTIC, np.zeros(1, np.int32))
    assert scheduler.plan(tasks_of([1] * 4), view, one).machine.tolist() == [3, 1, 5, 2]


@pytest.mark.parametrize("in_one_call", [True, False])
def test_the_estimator_is_offered_the_tasks_of_each_plan(in_one_call):
    cell = Cell()
    scheduler = cell.scheduler("random")
    tasks = tasks_of([1, 2, 3], [0, 1, 2])
    if in_one_call:
        ids = np.array([2, 0])
        scheduler.plan_and_claim(tasks, ids, cell.view, context())
    else:
        scheduler.plan(tasks.take(np.array([2, 0])), cell.view, context())
    assert cell.prices.offers == [([2, 0], [2, 0], [[3], [1]])]


def test_making_prices_is_counted_work():
    cell = Cell()
    scheduler = cell.scheduler("random")
    free = scheduler.plan(tasks_of([1]), cell.view, context()).operations
    cell.prices.operations = 1_000_000
    assert scheduler.plan(tasks_of([1]), cell.view, context()).operations == free + 1_000_000


@pytest.mark.parametrize("kind", KINDS)
def test_placing_by_price_is_counted_as_the_longer_work_that_it_is(kind):
    cell = Cell()
    tasks = tasks_of([1] * 60, 1)
    by_price = cell.scheduler(kind).plan(tasks, cell.view, context()).operations
    plain = cell.without_prices(kind).plan(tasks, cell.view, context()).operations
    assert plain < by_price < 3 * plain


class TestBadInput:
    def test_prices_that_fall_are_refused(self):
        cell = Cell()
        cell.prices = GivenPrices(np.tile([3, 4, 2], (MACHINES, 1)), [SLOTS] * MACHINES, [1])
        with pytest.raises(
            ValueError,
            match="price of machine 0 with 2 busy slots: expected 4 or more, got 2",
        ):
            cell.scheduler("random").plan(tasks_of([1]), cell.view, context())

    def test_negative_prices_are_refused(self):
        cell = Cell()
        cell.prices = GivenPrices(np.full((MACHINES, 1), -1), [SLOTS] * MACHINES, [1])
        with pytest.raises(ValueError, match="expected 0 or more, got -1"):
            cell.scheduler("random").plan(tasks_of([1]), cell.view, context())

    @pytest.mark.parametrize("change", ["machines", "unit"])
    def test_prices_of_another_cell_are_refused(self, change):
        cell = Cell()
        machines = 5 if change == "machines" else MACHINES
        unit = [1, 1] if change == "unit" else [1]
        cell.prices = GivenPrices(np.zeros((machines, 1)), [1] * machines, unit)
        with pytest.raises(ValueError, match="the prices are of another cell than the view"):
            cell.scheduler("random").plan(tasks_of([1]), cell.view, context())

    def test_weighted_sampling_refuses_prices(self):
        with pytest.raises(AgoraError, match=r"'prices': .* weighted_sampling draws"):
            registry.get("weighted_sampling").parse_options({"prices": "occupancy"})


@pytest.mark.parametrize("kind", ["random", "randomized_first_fit", "first_fit", "best_fit"])
def test_a_rack_whose_open_machines_became_fewer_is_filled_before_others(kind):
    """One request too large for every machine lies between the others: what is kept by price is
    made anew after it."""
    machines, in_rack = 400, 200
    spec = cell_of([1] * machines, rack_size=in_rack)
    catalog = catalog_of(({}, {0: 0}))
    offsets = np.array([0, machines])
    price = np.arange(1, machines + 1)[:, None]
    price[in_rack:] = 1
    prices = GivenPrices(price, [1] * machines, [1])
    view = view_of(spec, Partitioning(offsets), np.zeros(machines, np.int64))
    tasks = tasks_of([1] * 150 + [2] + [1] * 50, 1)
    plan = greedy_with(kind, spec, offsets, catalog, prices).plan(
        tasks, view, PlanContext(0, 0, PartitionRanking.OPTIMISTIC, np.array([0], np.int32))
    )
    assert plan.machine.tolist() == list(range(in_rack))
    assert plan.pending.tolist() == [150]
