"""Placements by price against an oracle that computes costs and prices of all rows at each pick."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schedulers.interface import PartitionQuality, PartitionRanking, PlanContext
from schedulers.prices.registry import PriceMode, PriceScope
from schedulers.units import units_in
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from tests.fixtures.examples import examples
from tests.greedy_world import catalog_of, tasks_of, view_of
from tests.priced_world import GivenPrices, greedy_with, rule
from tests.properties.test_greedy_oracle import Oracle, worlds

KINDS = ["random", "randomized_first_fit", "first_fit", "best_fit", "load_spreading"]
ELSEWHERE_COST = 100  # of catalog_of


class PricedOracle(Oracle):
    """Which rows a task may get by cost and price. `prices` and `options` are as the scheduler has
    them."""

    def __init__(self, prices, options, kind, spec, offsets, order, ranking, *world):
        quality = PartitionQuality.MEAN_WEIGHT  # the default of PlanContext
        super().__init__(kind, spec, offsets, order, ranking, quality, *world)
        self.prices, self.options = prices, options

    def price(self, row):
        units = int(units_in(self.free[row][None], self.prices.unit)[0])
        busy = int(self.prices.slots[row]) - units
        levels = self.prices.price.shape[1]
        return int(self.prices.price[row, min(max(busy, 0), levels - 1)])

    def value(self, cost, price):
        if self.options.price_mode is PriceMode.TIE:
            return (cost, price)
        return (1000 * cost + self.options.price_weight_permille * price,)

    def allowed(self, request, preference, listed_only=False):
        fit = ((self.free >= request) | (request == 0)).all(axis=1)
        fitting = set(np.flatnonzero(self.open() & fit).tolist())
        if self.ranking is PartitionRanking.LATENCY_FIRST:
            pools = [fitting & self.rows(p) for p in self.order]
        else:
            pools = [fitting]
        found = (self.cheapest(pool, preference, listed_only) for pool in pools)
        return next(filter(None, found), set())

    def cheapest(self, fitting, preference, listed_only):
        machines, racks = self.sets[preference]
        offers = []
        for cost in set(machines.values()):
            rows = {m for m, c in machines.items() if c == cost} & fitting
            priced = self.options.price_scope is PriceScope.ALL
            offers += self.offer(cost, rows, priced, self.of_level)
        if not listed_only:
            for cost in set(racks.values()):
                rows = {row for row in fitting if racks.get(int(self.spec.rack[row])) == cost}
                offers += self.offer(cost, rows, True, self.of_level)
            cost = 0 if preference == 0 else ELSEWHERE_COST
            offers += self.offer(cost, self.elsewhere(fitting), True, self.by_kind)
        best = min((value for value, _ in offers), default=None)
        return set().union(*(rows for value, rows in offers if value == best))

    def freshest(self, rows):
        return next(filter(None, (rows & self.rows(p) for p in self.order)), set())

    def elsewhere(self, fitting):
        if self.ranking is PartitionRanking.FRESHEST_PREFERRED:
            return self.freshest(fitting)
        if self.ranking is not PartitionRanking.QUALITY_FIRST or len(set(self.weights())) == 1:
            return fitting
        found = (fitting & self.rows(p) for p in self.by_quality())
        return next(filter(None, found), set())

    def offer(self, cost, rows, priced, by_kind):
        if not rows:
            return []
        if self.ranking is PartitionRanking.FRESHEST_PREFERRED:
            rows = self.freshest(rows)
        if not priced:
            return [(self.value(cost, 0), by_kind(rows))]
        lowest = min(map(self.price, rows))
        rows = {row for row in rows if self.price(row) == lowest}
        return [(self.value(cost, lowest), by_kind(rows))]


@st.composite
def prices_of(draw, machines, dimensions):
    levels = draw(st.integers(1, 4))
    highest = draw(st.sampled_from([1, 3, 200, 1 << 40]))
    price = draw(
        st.lists(
            st.lists(st.integers(0, highest), min_size=levels, max_size=levels).map(sorted),
            min_size=machines,
            max_size=machines,
        )
    )
    if highest > 200:  # few, and so far apart that they have different ranks
        price = [[p & ~((1 << 36) - 1) for p in row] for row in price]
    slots = draw(st.lists(st.integers(0, 6), min_size=machines, max_size=machines))
    unit = draw(st.lists(st.integers(0, 2), min_size=dimensions, max_size=dimensions))
    options = rule(
        draw(st.sampled_from(PriceMode)),
        draw(st.sampled_from([1, 500, 1000, 3000])),
        draw(st.sampled_from(PriceScope)),
    )
    return price, slots, unit, options


@examples(1500)
@given(
    kind=st.sampled_from(KINDS),
    ranking=st.sampled_from(PartitionRanking),
    data=st.data(),
    world=worlds(),
    stream=st.integers(0, 1000),
)
def test_every_pick_has_the_lowest_cost_and_price(kind, ranking, data, world, stream):
    spec, partitions, used, up, sets, tasks, order = world
    price, slots, unit, options = data.draw(prices_of(*spec.capacity.shape))
    preferred_first = data.draw(st.booleans())
    flags = st.lists(st.booleans(), min_size=len(tasks), max_size=len(tasks))
    waits = np.array(data.draw(flags))
    partitioning = Partitioning(np.arange(partitions + 1) * spec.machines // partitions)
    view = view_of(spec, partitioning, used, up)
    estimator = GivenPrices(price, slots, unit)
    scheduler = greedy_with(
        kind,
        spec,
        partitioning.offsets,
        catalog_of(*sets),
        estimator,
        options,
        preferred_first,
    )
    batch = tasks_of([t[0] for t in tasks], [t[1] for t in tasks], [t[2] for t in tasks])
    context = PlanContext(0, stream_key(1, "g", stream), ranking, np.array(order, np.int32))
    handle = scheduler.learn(batch.task, batch.preference, batch.request, view, context)
    before = view.free.copy()
    machine = scheduler.place(
        view, batch.request, batch.preference, batch.gang, context, waits, prices=handle
    ).machine
    assert np.array_equal(view.free, before)
    again = scheduler.place(
        view, batch.request, batch.preference, batch.gang, context, waits, prices=handle
    ).machine
    assert np.array_equal(machine, again)

    oracle = PricedOracle(
        estimator.prices,
        options,
        kind,
        spec,
        partitioning.offsets,
        order,
        ranking,
        sets,
        before.copy(),
        view.up,
    )
    placed = np.zeros(len(tasks), bool)

    def follow(members, listed_only):
        """Whether the members were placed, each where the oracle allows it."""
        if len(members) > 1 and (machine[members] < 0).any():
            # whether another choice would have held the gang whole is not asked
            assert (machine[members] < 0).all()
            return
        kept = oracle.free.copy()
        for member in members:
            only_listed = listed_only or bool(waits[member])
            allowed = oracle.allowed(batch.request[member], batch.preference[member], only_listed)
            if listed_only and machine[member] not in allowed:
                oracle.free = kept  # the second pass places it
                assert not allowed or len(members) > 1
                return
            assert machine[member] in (allowed or {-1})
            if machine[member] >= 0:
                oracle.free[machine[member]] -= batch.request[member]
        placed[members] = True

    for first_pass in (True, False) if preferred_first else (False,):
        done = set()
        for i in range(len(tasks)):
            members = [i]
            if batch.gang[i] >= 0:
                members = np.flatnonzero(batch.gang == batch.gang[i]).tolist()
            if i in done or placed[i]:
                continue
            done.update(members)
            lists = all(sets[p - 1][0] if p else False for p in batch.preference[members])
            if first_pass and not lists:
                continue
            follow(members, first_pass)
