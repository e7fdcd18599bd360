"""A user's policy in 30 lines, and what a policy is not allowed to ask for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from schedulers.flow.options import FlowOptions
from schedulers.flow.policies.interface import (
    AggregatorArcs,
    MachineLoad,
    Policy,
    PolicyError,
    TaskArcs,
    to_aggregator,
)
from schedulers.flow.scheduler import FlowScheduler
from schedulers.interface import SchedulerEnvironment
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from tests.flow_world import FlowWorld, slot_cell, tasks_of


class ServicesFirst(Policy):
    """
    T --0--> X --machine row--> M    low rows first
    T --100, services 1000--> U_j
    """

    aggregators = 1

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        machine = np.arange(len(load.room))
        return AggregatorArcs(np.zeros_like(machine), machine, machine, np.zeros_like(machine))

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        return TaskArcs(row, np.full(len(row), to_aggregator(0)), np.zeros_like(row))

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.where(tasks.task_class == 1, 1000, 100)


def world_with(policy: Policy) -> FlowWorld:
    spec: CellSpec = slot_cell(machines=6, slots=1, rack_size=3)
    offsets = Partitioning.by_topology(spec, 1).offsets
    environment = SchedulerEnvironment("flow", spec, offsets, PreferenceCatalog.empty())
    return FlowWorld(spec, FlowScheduler(policy, FlowOptions(certify_every=1), environment))


def test_a_policy_of_thirty_lines_schedules() -> None:
    world = world_with(ServicesFirst())
    tasks = tasks_of(np.arange(9))
    tasks.task_class[4:] = 1
    world.offer(tasks)
    first = world.plan()
    assert set(range(4, 9)) < set(first.task.tolist())
    world.commit(first)
    world.finish(world.running(0)[:3])
    world.offer(tasks_of(np.arange(20, 21)))
    freed = sorted(world.view.free[:, 0].nonzero()[0].tolist())
    second = world.plan()
    assert sorted(second.machine.tolist()) == freed[: len(second.task)]
    assert len(second.task) == 3


class _Negative(ServicesFirst):
    def machine_arc_capacity(self, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        return np.full(len(machine), -1)


class _Nowhere(ServicesFirst):
    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        return TaskArcs(row, np.full(len(row), 6), row)


class _NoSuchAggregator(ServicesFirst):
    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        return TaskArcs(row, np.full(len(row), to_aggregator(5)), row)


class _Fractions(ServicesFirst):
    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        return TaskArcs(row, row, row / 2)


class _NoSuchTask(ServicesFirst):
    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        return TaskArcs(row + 1, row, row)


class _Priceless(ServicesFirst):
    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), 1 << 60)


class _RoundInCircles(ServicesFirst):
    """X0 -> X1 -> X2 -> X1, and X2 to the machines."""

    aggregators = 3

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        arcs = {0: [to_aggregator(1)], 1: [to_aggregator(2)], 2: [0, 1, to_aggregator(1)]}
        tail = np.repeat(aggregator, [len(arcs[a]) for a in aggregator.tolist()])
        head = np.concatenate([arcs[a] for a in aggregator.tolist()])
        return AggregatorArcs(tail, head, np.ones_like(head), np.zeros_like(head))


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (_Negative, "_Negative: the arc from A0 to machine . has capacity -1"),
        (_Nowhere, "_Nowhere: an arc from a task leads to machine 6, which does not exist"),
        (_NoSuchAggregator, "_NoSuchAggregator: an arc from a task leads to aggregator 5"),
        (_RoundInCircles, "_RoundInCircles: the arcs between aggregators form a cycle: A[12] -> "),
        (_Fractions, "_Fractions: cost of task_arcs: expected int64, got float64"),
        (_NoSuchTask, "_NoSuchTask: an arc of task 2 of 2 that were asked about"),
        (_Priceless, "_Priceless: an arc out of a task costs 1152921504606846976"),
    ],
)
def test_bad_policies_are_refused_by_name_and_arc(policy: Callable[[], Policy], says: str) -> None:
    world = world_with(policy())
    world.offer(tasks_of(np.arange(2)))
    with pytest.raises(PolicyError, match=says):
        world.plan()


class _Narrow(ServicesFirst):
    """Columns of other integers than int64, as a catalog's machines are."""

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks), dtype=np.int32)
        return TaskArcs(row, row % 6, np.zeros(len(row), np.uint8))

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), 100, np.int16)


def test_costs_may_be_of_any_width() -> None:
    world = world_with(_Narrow())
    world.offer(tasks_of(np.arange(4)))
    assert sorted(world.plan().machine.tolist()) == [0, 1, 2, 3]
