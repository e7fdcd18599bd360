"""Delay scheduling by the greedy kinds: a task waits for a preferred machine while its patience
lasts, takes one that gets room, takes any afterwards, and holds up no other. Patience is one time
for all, or by price: until waiting has cost what it saves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers import registry
from schedulers.greedy.scheduler import (
    LONGEST_US,
    GreedyScheduler,
    PatienceByPrice,
    PatientScheduler,
)
from schedulers.interface import (
    Capability,
    ChangeKind,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.prices.registry import PriceScope
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import TaskBatch
from tests.fixtures.examples import examples
from tests.greedy_world import catalog_of, cell_of, tasks_of, view_of
from tests.priced_world import GivenPrices, greedy_with, rule

PATIENCE_US = 1_000
MACHINES = 8
# Set 1 prefers machine 0, set 2 machines 1 and 2 and their rack, set 3 only a rack.
CATALOG = catalog_of(({0: 0}, {}), ({1: 0, 2: 5}, {0: 20}), ({}, {1: 20}))


class World:
    """One scheduler on a cell of machines of one slot, of which some are taken."""

    def __init__(
        self,
        kind: str = "random",
        taken: tuple[int, ...] = (),
        patience_us: int = PATIENCE_US,
        ranking: PartitionRanking = PartitionRanking.OPTIMISTIC,
        slots: int = 1,
    ) -> None:
        spec = cell_of([slots] * MACHINES)
        partitioning = Partitioning(np.array([0, 4, 8], np.int64))
        used = np.zeros(MACHINES, np.int64)
        used[list(taken)] = slots
        self.view = view_of(spec, partitioning, used)
        found = registry.get(kind)
        environment = SchedulerEnvironment("patient", spec, partitioning.offsets, CATALOG)
        options = found.parse_options({"patience_s": patience_us / 1e6})
        self.scheduler = found.build(options, environment)
        self.ranking = ranking

    def plan(self, now_us: int, tasks: TaskBatch | None = None) -> Plan:
        """A plan whose claims stay in the view."""
        batch = TaskBatch.empty(1) if tasks is None else tasks
        context = PlanContext(
            now_us, stream_key(1, "patient", now_us), self.ranking, np.array([1, 0], np.int32)
        )
        plan = self.scheduler.plan(batch, self.view, context)
        self.view.claim(plan.machine, plan.request)
        return plan

    def free(self, *machines: int) -> None:
        rows = np.array(machines, np.int32)
        self.view.released(rows, np.ones((len(rows), 1), np.int64), np.full(len(rows), 2))


def tasks(*preference: int, first: int = 0, submit_us: int = 0, gang: int = -1) -> TaskBatch:
    if not preference:
        return TaskBatch.empty(1)
    batch = tasks_of([1] * len(preference), np.array(preference, np.int32), gang)
    return replace(
        batch, task=batch.task + first, submit_us=np.full(len(preference), submit_us, np.int64)
    )


def placed(plan: Plan) -> dict[int, int]:
    return dict(zip(plan.task.tolist(), plan.machine.tolist(), strict=True))


def test_only_tasks_that_prefer_machines_wait() -> None:
    world = World(taken=(0, 1, 2, 4, 5, 6, 7))
    plan = world.plan(100, tasks(3))
    assert placed(plan) == {0: 3}, "set 3 lists racks only"
    full = World(taken=tuple(range(MACHINES)))
    plan = full.plan(100, tasks(3, 1, 0))
    no_room, waits = PendingReason.NO_ROOM, PendingReason.WAITS_FOR_PREFERRED
    assert plan.pending_reason.tolist() == [no_room, waits, no_room]


def test_a_task_that_turns_out_to_run_is_forgotten() -> None:
    world = World(taken=(0,))
    world.plan(100, tasks(1, 1))
    machine = np.zeros(1, np.int32)
    world.scheduler.observe(
        TaskChanges(ChangeKind.ADOPTED, 200, np.array([0]), machine, np.array([9]))
    )
    assert world.plan(PATIENCE_US).task.tolist() == [1]


def test_a_gang_waits_whole_until_the_patience_of_all_its_tasks_ends() -> None:
    world = World("preferred_first", taken=(0, 1, 2))
    world.plan(0, tasks(2, 2, gang=7))
    world.free(1)
    plan = world.plan(10)
    assert not len(plan.task), "one preferred machine is not enough for two"
    world.free(2)
    assert sorted(placed(world.plan(20)).values()) == [1, 2]
    late = World(taken=(0, 1, 2))
    late.plan(0, tasks(2, 2, gang=7))
    late.free(1)
    assert len(late.plan(PATIENCE_US).task) == 2


def test_preferred_machines_are_served_first_over_the_whole_queue() -> None:
    """In plain order task 0, which has no preference, may take machine 0 from task 1."""
    plain = [placed(World("random", (3, 4, 5, 6, 7), 0).plan(s, tasks(0, 1))) for s in range(60)]
    assert any(plan[1] != 0 for plan in plain)
    for now_us in range(60):
        world = World("preferred_first", (3, 4, 5, 6, 7), patience_us=0)
        plan = world.plan(now_us, tasks(0, 1, 1))
        assert placed(plan)[1] == 0, "of two that prefer it the first in the queue"
        assert len(plan.task) == 3


@pytest.mark.parametrize("kind", ["random", "first_fit", "load_spreading"])
def test_without_patience_a_kind_is_what_it_was(kind: str) -> None:
    found = registry.get(kind)
    options = found.parse_options({"patience_s": 0})
    assert type(World(kind, patience_us=0).scheduler) is GreedyScheduler
    assert found.with_options(options).capabilities == {Capability.IGNORES_CHANGES}


def test_work_follows_the_sets_that_may_be_served_not_the_tasks_that_wait() -> None:
    world = World(taken=tuple(range(MACHINES - 1)))
    world.plan(0, tasks(*[1, 2] * 500))
    world.plan(1)
    _, searches, looked_at, _, left = world.scheduler.work  # type: ignore[attr-defined]
    assert (searches, looked_at, left) == (0, 3, 1000)
    world.free(0)
    assert len(world.plan(2).task) == 1
    _, searches, looked_at, _, left = world.scheduler.work  # type: ignore[attr-defined]
    assert searches <= 2 and looked_at < 10 and left == 999


@examples(60)
@given(data=st.data(), kind=st.sampled_from(["random", "best_fit", "preferred_first"]))
@pytest.mark.parametrize("ranking", PartitionRanking)
def test_no_task_waits_longer_than_its_patience_where_there_is_room(
    ranking: PartitionRanking, data: st.DataObject, kind: str
) -> None:
    """Rounds at the times asked for, and at others. In each: a task that prefers machines takes one
    of them, or has no patience left; a task is left only where its rule allows it."""
    world = World(kind, ranking=ranking, slots=2)
    queue: dict[int, tuple[int, int]] = {}  # preference, submitted
    listed = {0: set(), 1: {0}, 2: {1, 2}, 3: set()}
    now_us, number, asked = 0, 0, None
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.integers(1, 700))
        now_us = min(now_us + step, asked) if asked is not None else now_us + step
        new = data.draw(st.lists(st.integers(0, 3), max_size=6))
        batch = tasks(*new, first=number, submit_us=now_us - data.draw(st.integers(0, 5)))
        queue |= {
            int(task): (preference, int(submitted))
            for task, preference, submitted in zip(
                batch.task, batch.preference, batch.submit_us, strict=True
            )
        }
        number += len(new)
        plan = world.plan(now_us, batch)
        for task, machine in placed(plan).items():
            preference, submitted = queue.pop(task)
            patient = bool(listed[preference]) and now_us < submitted + PATIENCE_US
            assert machine in listed[preference] or not patient
        room = {int(row) for row in np.flatnonzero(world.view.free[:, 0] > 0)}
        deadlines = []
        for preference, submitted in queue.values():
            if listed[preference] and now_us < submitted + PATIENCE_US:
                assert not room & listed[preference]
                deadlines.append(submitted + PATIENCE_US)
            else:
                assert not room
        asked = plan.retry_at_us
        assert asked == min(deadlines, default=None)
        busy = np.flatnonzero(world.view.free[:, 0] < 2)
        if len(busy) and data.draw(st.booleans()):
            world.free(int(data.draw(st.sampled_from(busy.tolist()))))


PRICED_MACHINES = 6
# Set 1 prefers machines 0 and 1, set 2 machine 2 and a rack, set 3 only a rack. Elsewhere costs
# 100.
PRICED_CATALOG = replace(
    catalog_of(({0: 20, 1: 30}, {}), ({2: 0}, {1: 40}), ({}, {1: 40})),
    wait_cost=3,
    wait_quantum_us=1_000,
)
FREE, LAST = 4, 50  # the price of the first slot of a machine, and of its second and last


class PricedWorld:
    """One patient scheduler. Machines 0 to 2 are full, others empty."""

    def __init__(self, options=None, longest_us=0, catalog=PRICED_CATALOG, price=None):
        offsets = np.array([0, PRICED_MACHINES], np.int64)
        spec = cell_of([2] * PRICED_MACHINES)
        self.view = view_of(spec, Partitioning(offsets), [2, 2, 2, 0, 0, 0])
        price = [[FREE, LAST]] * PRICED_MACHINES if price is None else price
        options = rule() if options is None else options
        greedy = greedy_with(
            "random",
            spec,
            offsets,
            catalog,
            GivenPrices(price, [2] * PRICED_MACHINES, [1]),
            options,
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
    return saved * PRICED_CATALOG.wait_quantum_us // PRICED_CATALOG.wait_cost


@pytest.mark.parametrize(
    ("preference", "saved"), [(1, 100 + FREE - (20 + LAST)), (2, 100 + FREE - (0 + LAST))]
)
def test_a_task_waits_until_waiting_has_cost_what_it_saves(preference, saved):
    world = PricedWorld()
    plan = world.plan(10, preference)
    assert plan.pending.tolist() == [0]
    assert plan.pending_reason.tolist() == [PendingReason.PRICED_OUT]
    assert plan.retry_at_us == waits_us(saved)
    assert not len(world.plan(waits_us(saved) - 1).task)
    assert world.plan(waits_us(saved)).machine[0] >= 3


def test_dear_slots_on_preferred_machines_are_not_waited_for():
    price = [[FREE, 200]] * 2 + [[FREE, LAST]] * 4
    plan = PricedWorld(price=price).plan(10, 1, 2)
    assert plan.task.tolist() == [0] and plan.pending.tolist() == [1]


def test_preferred_machines_without_prices_save_their_price_too():
    world = PricedWorld(rule(scope=PriceScope.ELSEWHERE))
    assert world.plan(0, 1).retry_at_us == waits_us(100 + FREE - 20)


def test_a_weight_counts():
    assert PricedWorld(rule(weight_permille=500)).plan(0, 1).retry_at_us == waits_us(
        100 + FREE // 2 - (20 + LAST // 2)
    )


def test_no_task_waits_longer_than_its_limit():
    assert PricedWorld(longest_us=1_000).plan(0, 1).retry_at_us == 1_000


@pytest.mark.parametrize(("cost", "expected_us"), [(0, LONGEST_US), (10**12, 0)])
def test_waiting_that_costs_nothing_or_very_much(cost, expected_us):
    catalog = replace(PRICED_CATALOG, wait_cost=cost)
    plan = PricedWorld(catalog=catalog).plan(0, 1)
    assert (plan.retry_at_us or 0) == expected_us
    assert len(plan.task) == (expected_us == 0)


def test_it_needs_prices():
    with pytest.raises(AgoraError, match="patience_by_price: needs prices"):
        registry.get("random").parse_options({"patience_by_price": True})
