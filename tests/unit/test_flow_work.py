"""What the flow scheduler's rounds cost: the price of waiting, and the work that is counted."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.flow.scheduler import (
    WEIGHTS_PS,
    LoadSpreadingOptions,
    RoundWork,
    build_load_spreading,
)
from schedulers.interface import ChangeKind
from tests.flow_world import FlowWorld, catalog_of, slot_cell, tasks_of
from tests.unit.flow_schedulers import LOCAL, environment, quincy


def test_a_task_that_came_and_went_costs_nothing() -> None:
    spec = slot_cell(machines=4, slots=1, rack_size=4)
    world = FlowWorld(spec, quincy(spec))
    world.offer(tasks_of(np.arange(1)))
    plan = world.plan()
    world.tell(ChangeKind.REJECTED, plan.task, plan.machine, np.array([-1]))
    world.plan()
    # still the same node, waiting
    assert (world.scheduler.work.added, world.scheduler.work.removed) == (0, 0)


def test_waiting_price_steps_are_the_only_cost_changes_of_a_quiet_round() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    world = FlowWorld(spec, quincy(spec, wait_cost=3))
    world.rival_claims([0], first_task=100)
    world.sync()
    world.offer(tasks_of(np.arange(4), job=np.array([0, 0, 1, 1])))
    costs = []
    for _ in range(4):
        world.plan()
        costs.append(world.scheduler.graph.solver.cost)
        world.now_us += 1_000_000
    assert [b - a for a, b in pairwise(costs)] == [4 * 3] * 3


def test_waiting_grows_dearer_by_the_workloads_price_unless_the_options_state_another() -> None:
    spec = slot_cell(machines=1, slots=1, rack_size=1)
    priced = replace(catalog_of([LOCAL]), wait_cost=500, wait_quantum_us=20_000)
    tasks = tasks_of(np.arange(1), preference=1)
    for options, by_then in (
        ({}, 50 * 500),
        ({"wait_cost": 3}, 50 * 3),
        ({"wait_cost": 3, "wait_quantum_us": 1_000_000}, 3),
    ):
        graph = quincy(spec, priced, **options).graph
        assert (graph.wait_cost(tasks, 1_000_000) - graph.wait_cost(tasks, 0)).tolist() == [by_then]
    assert quincy(spec, priced)._policy.progress_price.cost == 25_000  # per second
    # whose costs are its own
    graph = build_load_spreading(LoadSpreadingOptions(), environment(spec, priced)).graph
    assert (graph.wait_cost(tasks, 1_000_000) - graph.wait_cost(tasks, 0)).tolist() == [1]


def test_counted_work_follows_what_a_round_does() -> None:
    spec = slot_cell(machines=40, slots=2, rack_size=8)
    world = FlowWorld(spec, quincy(spec, catalog_of([LOCAL])))
    world.offer(tasks_of(np.arange(60), preference=1))
    first = world.plan()
    work = world.scheduler.work
    solver = world.scheduler.graph.solver
    assert (work.joining, work.placing, work.waiting, work.machines) == (1, 1, 60, 40)
    assert 1 + 40 + 40 + work.added == solver.num_nodes + solver.num_arcs and work.removed == 0
    assert work.certified > 0 and work.scanned > 0 and work.augmented == 60
    world.commit(first)
    world.sync()
    quiet = world.plan()  # the tasks leave the graph, with their arcs
    work = world.scheduler.work
    assert (work.joining, work.placing, work.waiting, work.added) == (0, 0, 0, 0)
    assert work.removed >= 60 * 3
    world.plan()
    work = world.scheduler.work
    assert (work.added, work.removed, work.altered, work.scanned) == (0, 0, 0, 0)
    assert first.operations > quiet.operations > work.operations > 0


@pytest.mark.parametrize("count", [field.name for field in fields(RoundWork)])
def test_every_count_has_a_weight(count: str) -> None:
    idle = RoundWork(*[0] * len(fields(RoundWork)))
    assert idle.operations == 0
    assert (
        replace(idle, **{count: 10**9}).operations
        == 10**9 * getattr(WEIGHTS_PS, count) // PS_PER_OPERATION
        > 0
    )
