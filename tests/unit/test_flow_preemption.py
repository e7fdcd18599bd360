"""Preemption and migration by the flow scheduler."""

from __future__ import annotations

import numpy as np

from tests.flow_world import FLOW, FlowWorld, catalog_of, slot_cell, tasks_of
from tests.unit.flow_schedulers import placed, quincy


def test_without_preemption_running_tasks_stay() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    catalog = catalog_of(
        [{"elsewhere": 10, "unscheduled": 20}, {"elsewhere": 10, "unscheduled": 2000}]
    )
    world = FlowWorld(spec, quincy(spec, catalog))
    world.offer(tasks_of(np.arange(1), preference=1))
    world.commit(world.plan())
    world.offer(tasks_of(np.array([1]), preference=2))
    plan = world.plan()
    assert len(plan.task) == len(plan.evict) == 0


def test_preemption_weighs_the_work_done_against_who_waits() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    # Going on costs 9 - seconds done, waiting 21 + seconds waited: a rival at 51 - 10 beats it by
    # 29.
    catalog = catalog_of(
        [{"elsewhere": 10, "unscheduled": 20}, {"elsewhere": 10, "unscheduled": 50}]
    )
    for worked_s, evicts in ((0, True), (25, True), (35, False)):
        world = FlowWorld(spec, quincy(spec, catalog, preemption=True, wait_cost=0))
        world.offer(tasks_of(np.arange(1), preference=1))
        world.commit(world.plan())
        victim = world.running(FLOW)
        world.now_us += worked_s * 1_000_000
        world.offer(tasks_of(np.array([1]), preference=2))
        plan = world.plan()
        assert plan.evict.tolist() == (victim.tolist() if evicts else [])
        assert plan.task.tolist() == ([1] if evicts else [])
        if evicts:
            assert world.commit(plan).accepted.all()
            assert world.cell.used[0, 0] == 1


def test_nobody_is_preempted_for_a_claim_that_is_not_made() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    catalog = catalog_of(
        [{"elsewhere": 10, "unscheduled": 20}, {"elsewhere": 10, "unscheduled": 500}]
    )
    world = FlowWorld(spec, quincy(spec, catalog, preemption=True))
    world.offer(tasks_of(np.arange(1), preference=1))
    world.commit(world.plan())
    world.offer(tasks_of(np.array([1, 2]), preference=2, gang=3))
    plan = world.plan()
    assert plan.stats["held_back"] == 1  # the flow gives one of the gang the slot, which is no use
    assert len(plan.evict) == len(plan.task) == 0


def test_migration_moves_a_task_to_a_better_machine_that_came_free() -> None:
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    catalog = catalog_of([{"machine": {0: 0}, "elsewhere": 10, "unscheduled": 50}])
    world = FlowWorld(spec, quincy(spec, catalog, preemption=True))
    world.rival_claims([0], first_task=100)
    world.sync()
    task = tasks_of(np.arange(1), preference=1)
    world.offer(task)
    world.commit(world.plan())
    assert len(world.plan().evict) == 0
    world.finish(world.running(1))
    world.sync()
    plan = world.plan()
    assert plan.evict.tolist() == world.running(FLOW).tolist()
    world.commit(plan)
    world.sync()
    world.offer(task)
    assert placed(world.plan()) == {0: 0}
