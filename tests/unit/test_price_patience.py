"""Patience by price: a task waits for its preferred machines until that has cost what it saves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from schedulers import registry
from schedulers.greedy.scheduler import LONGEST_US, PatienceByPrice, PatientScheduler
from schedulers.interface import PartitionRanking, PendingReason, PlanContext, SchedulerEnvironment
from schedulers.prices.registry import PriceScope
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import TaskBatch
from tests.greedy_world import catalog_of, cell_of, tasks_of, view_of
from tests.priced_world import GivenPrices, greedy_with, rule

MACHINES = 6
# Set 1 prefers machines 0 and 1, set 2 machine 2 and a rack, set 3 only a rack. Elsewhere costs
# 100.
CATALOG = replace(
    catalog_of(({0: 20, 1: 30}, {}), ({2: 0}, {1: 40}), ({}, {1: 40})),
    wait_cost=3,
    wait_quantum_us=1_000,
)
FREE, LAST = 4, 50  # the price of the first slot of a machine, and of its second and last


class World:
    """One patient scheduler. Machines 0 to 2 are full, others empty."""

    def __init__(self, options=None, longest_us=0, catalog=CATALOG, price=None):
        offsets = np.array([0, MACHINES], np.int64)
        spec = cell_of([2] * MACHINES)
        self.view = view_of(spec, Partitioning(offsets), [2, 2, 2, 0, 0, 0])
        price = [[FREE, LAST]] * MACHINES if price is None else price
        options = rule() if options is None else options
        greedy = greedy_with(
            "random", spec, offsets, catalog, GivenPrices(price, [2] * MACHINES, [1]), options
        )
        self.scheduler = PatientScheduler(
            greedy,
            SchedulerEnvironment("patient", spec, offsets, catalog),
            PatienceByPrice(options, catalog, longest_us),
        )

    def plan(self, now_us, *preference):
        context = PlanContext(now_us, now_us, PartitionRanking.OPTIMISTIC, np.zeros(1, np.int32))
        tasks = tasks_of([1] * len(preference), preference) if preference else TaskBatch.empty(1)
        return self.scheduler.plan(tasks, self.view, context)


def waits_us(saved):
    """How long it takes until waiting has cost so much."""
    return saved * CATALOG.wait_quantum_us // CATALOG.wait_cost


@pytest.mark.parametrize(
    ("preference", "saved"), [(1, 100 + FREE - (20 + LAST)), (2, 100 + FREE - (0 + LAST))]
)
def test_a_task_waits_until_waiting_has_cost_what_it_saves(preference, saved):
    world = World()
    plan = world.plan(10, preference)
    assert plan.pending.tolist() == [0]
    assert plan.pending_reason.tolist() == [PendingReason.PRICED_OUT]
    assert plan.retry_at_us == waits_us(saved)
    assert not len(world.plan(waits_us(saved) - 1).task)
    assert world.plan(waits_us(saved)).machine[0] >= 3


def test_dear_slots_on_preferred_machines_are_not_waited_for():
    price = [[FREE, 200]] * 2 + [[FREE, LAST]] * 4
    plan = World(price=price).plan(10, 1, 2)
    assert plan.task.tolist() == [0] and plan.pending.tolist() == [1]


def test_preferred_machines_without_prices_save_their_price_too():
    world = World(rule(scope=PriceScope.ELSEWHERE))
    assert world.plan(0, 1).retry_at_us == waits_us(100 + FREE - 20)


def test_a_weight_counts():
    assert World(rule(weight_permille=500)).plan(0, 1).retry_at_us == waits_us(
        100 + FREE // 2 - (20 + LAST // 2)
    )


def test_no_task_waits_longer_than_its_limit():
    assert World(longest_us=1_000).plan(0, 1).retry_at_us == 1_000


@pytest.mark.parametrize(("cost", "expected_us"), [(0, LONGEST_US), (10**12, 0)])
def test_waiting_that_costs_nothing_or_very_much(cost, expected_us):
    catalog = replace(CATALOG, wait_cost=cost)
    plan = World(catalog=catalog).plan(0, 1)
    assert (plan.retry_at_us or 0) == expected_us
    assert len(plan.task) == (expected_us == 0)


def test_tasks_that_prefer_no_machine_do_not_wait():
    plan = World().plan(10, 0, 3)
    assert plan.task.tolist() == [0, 1]


def test_a_preferred_machine_that_gets_room_is_taken():
    world = World()
    world.plan(10, 1)
    world.view.released(np.array([1], np.int32), np.ones((1, 1), np.int64), np.array([9]))
    assert world.plan(20).machine.tolist() == [1]


def test_it_needs_prices():
    with pytest.raises(AgoraError, match="patience_by_price: needs prices"):
        registry.get("random").parse_options({"patience_by_price": True})
