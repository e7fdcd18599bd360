"""What a scheduler keeps of prices from plan to plan depends on view and prices, not on history: a
scheduler that has followed a view for long plans as one that sees it for the first time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers.interface import PartitionRanking, PlanContext
from schedulers.prices.interface import SlotPrices
from shared_state.partition import Partitioning
from shared_state.transaction import PartitionDelta
from tests.fixtures.examples import examples
from tests.greedy_world import catalog_of, cell_of, tasks_of, view_of
from tests.priced_world import GivenPrices, greedy_with

MACHINES, SLOTS = 400, 3
OFFSETS = np.array([0, 150, 400], np.int64)
SETS = (
    (dict.fromkeys(range(0, 400, 2), 0), {}),
    ({m: m % 2 for m in range(60, 360)}, {3: 3}),
    ({5: 0, 9: 0}, {7: 3}),
)


class Follower:
    """A view that changes, and a scheduler that plans on it."""

    def __init__(self, kind, seed):
        self.rng = np.random.default_rng(seed)
        self.kind = kind
        self.spec = cell_of([SLOTS] * MACHINES)
        self.catalog = catalog_of(*SETS)
        self.used = self.rng.integers(0, SLOTS + 1, (MACHINES, 1))
        self.view = view_of(self.spec, Partitioning(OFFSETS), self.used)
        self.version = [1, 1]
        self.tickets = []
        self.estimator = self.new_prices()
        self.scheduler = self.new_scheduler(self.estimator)

    def new_prices(self):
        price = np.sort(self.rng.integers(0, 30, (MACHINES, SLOTS)), axis=1)
        return GivenPrices(price, [SLOTS] * MACHINES, [1])

    def new_scheduler(self, estimator):
        return greedy_with(self.kind, self.spec, OFFSETS, self.catalog, estimator)

    def sync(self, rows):
        p = int(self.rng.integers(2))
        first, end = OFFSETS[p], OFFSETS[p + 1]
        row = np.sort(self.rng.choice(end - first, min(rows, end - first), replace=False))
        machine = first + row
        self.used[machine] = self.rng.integers(0, SLOTS + 1, (len(row), 1))
        up = self.rng.random(len(row)) < 0.9
        self.version[p] += 1
        version = self.version[p]
        self.view.apply(
            PartitionDelta(
                p,
                version - 1,
                version,
                version,
                row.astype(np.uint32),
                self.used[machine],
                up,
                None,
            )
        )

    def start_again(self):
        self.view.reset()
        for p in range(2):
            row = np.arange(OFFSETS[p + 1] - OFFSETS[p], dtype=np.uint32)
            used, up = self.used[OFFSETS[p] : OFFSETS[p + 1]], np.ones(len(row), bool)
            version = self.version[p]
            self.view.apply(PartitionDelta(p, 0, version, version, row, used, up, None))

    def claim(self, plan):
        self.tickets.append((self.view.claim(plan.machine, plan.request), len(plan.task)))

    def settle(self, withdraw):
        if not self.tickets:
            return
        ticket, claims = self.tickets.pop()
        if withdraw:
            self.view.withdraw(ticket)
        else:
            reason = self.rng.integers(0, 2, claims).astype(np.int8)
            self.view.settle(ticket, reason, np.full(claims, 1000, np.int64))

    def free(self):
        machine = self.rng.integers(0, MACHINES, 5).astype(np.int32)
        self.view.released(machine, np.ones((5, 1), np.int64), np.full(5, 1000))

    def reprice(self, few):
        new = self.new_prices().prices
        price = self.estimator.prices.price.copy()
        rows = self.rng.choice(MACHINES, 3 if few else MACHINES, replace=False)
        price[rows] = new.price[rows]
        unit = new.unit if few else np.array([int(self.rng.integers(1, 3))])
        self.estimator.prices = SlotPrices(price, new.slots, unit)


STEPS = st.sampled_from(
    ["sync few", "sync many", "claim", "settle", "withdraw", "free", "few prices", "all", "reset"]
)


@pytest.mark.parametrize("kind", ["random", "first_fit", "load_spreading"])
@examples(40)
@given(seed=st.integers(0, 2**32), steps=st.lists(STEPS, min_size=1, max_size=12))
def test_a_scheduler_that_followed_a_view_plans_as_a_new_one(kind, seed, steps):
    world = Follower(kind, seed)
    for number, step in enumerate(steps):
        tasks = tasks_of(
            world.rng.integers(1, 3, 30),
            world.rng.integers(0, 4, 30),
            world.rng.choice([-1, -1, -1, 7], 30),
        )
        ranking = PartitionRanking(int(world.rng.integers(len(PartitionRanking))))
        context = PlanContext(0, number, ranking, np.array([1, 0], np.int32))
        plan = world.scheduler.plan(tasks, world.view, context)
        new = world.new_scheduler(world.estimator).plan(tasks, world.view, context)
        assert plan.task.tolist() == new.task.tolist()
        assert plan.machine.tolist() == new.machine.tolist()
        assert plan.operations == new.operations
        match step:
            case "sync few" | "sync many":
                world.sync(3 if step == "sync few" else 120)
            case "claim":
                world.claim(plan)
            case "settle" | "withdraw":
                world.settle(step == "withdraw")
            case "free":
                world.free()
            case "few prices" | "all":
                world.reprice(step == "few prices")
            case "reset":
                world.start_again()
