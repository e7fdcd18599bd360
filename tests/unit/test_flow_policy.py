"""A user's policy in 30 lines, and what a policy is not allowed to ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from schedulers.flow.options import FlowOptions
from schedulers.flow.policies.interface import (
    MAX_COST,
    AggregatorArcs,
    MachineLoad,
    ObservedCell,
    Policy,
    PolicyError,
    TaskArcs,
    TimePrice,
    to_aggregator,
)
from schedulers.flow.scheduler import FlowScheduler
from schedulers.interface import SchedulerEnvironment
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from tests.flow_world import FlowWorld, cell_of, environment, slot_cell, tasks_of


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


class _RoundInCirclesLater(_RoundInCircles):
    """X1 -> X2 at first, and X2 -> X1 from the second round on."""

    rounds = 0

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        self.rounds += 1

    def stale_aggregators(self) -> Int64:
        return np.array([2])

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        arcs = super().aggregator_arcs(aggregator, load)
        back = (arcs.tail == 2) & (arcs.head < 0) & (self.rounds < 2)
        columns = (arcs.tail, arcs.head, arcs.cost, arcs.level)
        return AggregatorArcs(*(column[~back] for column in columns))


class _NegativeBetween(ServicesFirst):
    aggregators = 2

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        head = np.where(aggregator == 0, to_aggregator(1), 0)
        zero = np.zeros_like(head)
        return AggregatorArcs(aggregator, head, zero, zero, zero - 3)

    def aggregator_name(self, aggregator: int) -> str:
        return "XY"[aggregator]


class _Costly(ServicesFirst):
    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64:
        return np.full(len(machine), -(1 << 41))


class _DearToWait(ServicesFirst):
    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return tasks.task << 41


class _Beyond(ServicesFirst):
    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        arcs = super().aggregator_arcs(aggregator, load)
        return AggregatorArcs(arcs.tail, arcs.head + 1, arcs.cost, arcs.level)


class _Stranger(ServicesFirst):
    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        arcs = super().aggregator_arcs(aggregator, load)
        return AggregatorArcs(arcs.tail + 4, arcs.head, arcs.cost, arcs.level)


class _TwiceTheSame(ServicesFirst):
    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        zero = np.zeros(2, np.int64)
        return AggregatorArcs(zero, zero + 3, zero, zero)

    def stale_aggregators(self) -> Int64:
        return np.array([0])


class _StaleUnknown(ServicesFirst):
    def stale_aggregators(self) -> Int64:
        return np.array([0, 1])


class _StaleTasks(ServicesFirst):
    def stale_tasks(self) -> Int64:
        return np.array([7])


class _Shrinks(ServicesFirst):
    def observe(self, cell: ObservedCell, now_us: int) -> None:
        self.aggregators = 0


class _GrowsUnannounced(ServicesFirst):
    def observe(self, cell: ObservedCell, now_us: int) -> None:
        self.aggregators = 2


class _TooFew(ServicesFirst):
    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.zeros(len(tasks) + 1, np.int64)


class _Ragged(ServicesFirst):
    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        arcs = super().task_arcs(tasks)
        return TaskArcs(arcs.row, arcs.head, arcs.cost[1:])


class _AList(ServicesFirst):
    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        cost: Any = [1] * len(tasks)
        return cost


class _NegativeGroup(ServicesFirst):
    def waiting_group(self, tasks: TaskBatch) -> Int64:
        return tasks.task - 1


class _CheapGroup(ServicesFirst):
    def group_wait_cost(self, group: Int64) -> Int64:
        return group - 1


class _Bounded(ServicesFirst):
    """lower, upper: of every group."""

    def __init__(self, lower: int, upper: int) -> None:
        self.lower, self.upper = lower, upper

    def waiting_bounds(
        self, group: Int64, tasks: Int64, load: MachineLoad
    ) -> tuple[Int64, Int64] | None:
        return np.full(len(group), self.lower), np.full(len(group), self.upper)


class _Patient(_Bounded):
    patience_us = 1


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (_RoundInCirclesLater, "_RoundInCirclesLater: the arcs between aggregators form a cycle: "),
        (_NegativeBetween, "_NegativeBetween: the arc from X to Y has capacity -3"),
        (_Costly, "_Costly: the arc from A0 to machine . costs -2199023255552; expected"),
        (_Stranger, "aggregator_arcs: an arc out of aggregator 4, which was not asked about"),
        (_TwiceTheSame, "aggregator_arcs: two arcs of level 0 lead from A0 to machine 3"),
        (
            _StaleUnknown,
            "_StaleUnknown: stale_aggregators: aggregator 1 does not exist; there are 1",
        ),
        (_StaleTasks, "_StaleTasks: stale_tasks: task 7 was never in the graph"),
        (_Shrinks, "_Shrinks: aggregators: expected 1 or more, as before, got 0"),
        (_GrowsUnannounced, "aggregators: expected 1, as before, got 2; .* has grows = True"),
        (_TooFew, "_TooFew: unscheduled_cost: expected 2 numbers, got 3"),
        (_Ragged, "task_arcs: columns of different lengths: row 2, head 2, cost 1"),
        (_AList, r"unscheduled_cost: expected an array int64\[k\], got list"),
        (_NegativeGroup, "_NegativeGroup: waiting_group: expected numbers of 0 or more, got -1"),
        (_CheapGroup, "group_wait_cost: waiting in group 0 costs -1; expected 0 to"),
        (
            lambda: _Bounded(3, 4),
            "_Bounded: waiting_bounds: of the 2 tasks of group 0 at least 3 have to wait, and at "
            "most 4 may",
        ),
        (
            lambda: _Bounded(2, 1),
            "of the 2 tasks of group 0 at least 2 have to wait, and at most 1",
        ),
        (lambda: _Patient(0, 1), "waiting_bounds: expected no bounds beside patience_us"),
        (_Negative, "_Negative: the arc from A0 to machine . has capacity -1"),
        (_Nowhere, "_Nowhere: an arc from task 0 leads to machine 6, which does not exist"),
        (_NoSuchAggregator, "_NoSuchAggregator: an arc from task 0 leads to aggregator 5"),
        (_RoundInCircles, "_RoundInCircles: the arcs between aggregators form a cycle: A[12] -> "),
        (_Fractions, "_Fractions: cost of task_arcs: expected int64, got float64"),
        (_NoSuchTask, "_NoSuchTask: an arc of row 2, but 2 tasks were asked about"),
        (_Priceless, "_Priceless: the arc from task 0 to where it waits costs 1152921504606846976"),
        (_DearToWait, "_DearToWait: the arc from task 1 to where it waits costs 2199023255552"),
        (_Beyond, "_Beyond: an arc from A0 leads to machine 6, which does not exist"),
    ],
)
def test_bad_policies_are_refused_by_name_and_arc(policy: Callable[[], Policy], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        world = world_with(policy())
        world.offer(tasks_of(np.arange(2)))
        world.plan()
        world.plan()


class _Ages(ServicesFirst):
    def __init__(self, wait: int, progress: int = 0) -> None:
        self.wait_price, self.progress_price = TimePrice(wait, 10), TimePrice(progress, 10)


@pytest.mark.parametrize("cost", [MAX_COST >> 8, 1 << 62])
def test_a_price_of_waiting_that_leaves_the_range_is_refused_with_the_arc(cost: int) -> None:
    """Not a quantum too early, and also where the product overflows into the range."""
    lasts = MAX_COST // cost  # quanta
    for later in (lasts + 1, lasts + 4):
        world = world_with(_Ages(cost))
        world.offer(tasks_of(np.arange(30), job=np.full(30, 4)))
        world.plan()
        world.now_us = 10 * lasts
        world.plan()
        world.now_us = 10 * later
        says = r"_Ages: the arc from where tasks of group 4 wait to the sink costs \d+; expected"
        with pytest.raises(PolicyError, match=says):
            world.plan()


def test_a_price_of_progress_that_leaves_the_range_is_refused() -> None:
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    options = FlowOptions(certify_every=1, preemption=True)
    world = FlowWorld(spec, FlowScheduler(_Ages(0, MAX_COST >> 4), options, environment(spec)))
    world.offer(tasks_of(np.arange(1)))
    world.now_us = 169
    world.plan()
    world.now_us = 170
    with pytest.raises(PolicyError, match=r"_Ages: by the price of progress, .* machine 0 first"):
        world.plan()


@pytest.mark.parametrize("preemption", [False, True])
@pytest.mark.parametrize(("wait", "progress"), [(8, 0), (5, 3), (3, 5), (9, 0), (5, 4), (4, 5)])
def test_prices_that_leave_the_range_before_the_workload_ends_are_refused_at_once(
    wait: int, progress: int, preemption: bool
) -> None:
    """MAX_COST is 8 of these units in 100 us; without preemption progress has no price."""
    unit = MAX_COST // 80
    spec = slot_cell(machines=2, slots=1, rack_size=1)
    given = replace(environment(spec), end_us=109)
    policy, options = _Ages(wait * unit, progress * unit), FlowOptions(preemption=preemption)
    if wait + progress * preemption <= 8:
        FlowScheduler(policy, options, given)
        return
    change = "lower the price of progress" if progress > wait else "lower wait_cost or"
    with pytest.raises(AgoraError, match=f"_Ages: waiting costs {wait * unit} for .*; {change}"):
        FlowScheduler(policy, options, given)


def test_bounds_that_no_flow_meets_are_refused_with_the_group() -> None:
    """Six machines of one slot hold six tasks: of nine at least three wait."""
    for upper, possible in ((3, True), (2, False)):
        world = world_with(_Bounded(0, upper))
        world.offer(tasks_of(np.arange(9), job=np.repeat([7, 8], [8, 1])))
        if possible:
            assert len(world.plan().task) == 6
            continue
        world = world_with(_Bounded(0, 1))
        world.offer(tasks_of(np.arange(9), job=np.repeat([7, 8], [8, 1])))
        says = (
            r"_Bounded: waiting_bounds: there is no room for the tasks that may not wait "
            r"\(group 7: 8 tasks, of which at most 1 may wait\)"
        )
        with pytest.raises(PolicyError, match=says):
            world.plan()


def test_tasks_that_have_to_wait_are_not_placed_singly_either() -> None:
    """Of tasks of two sizes, the flow places what a typical one needs; singles take the rest."""
    spec = cell_of(np.array([[8, 8]]))
    request = np.array([[1, 1], [1, 1], [2, 1], [2, 2], [2, 1], [1, 1]])
    placed = []
    for lower in (0, 4):
        policy, options = _Bounded(lower, 9), FlowOptions(certify_every=1)
        world = FlowWorld(spec, FlowScheduler(policy, options, environment(spec)))
        world.offer(tasks_of(np.arange(6), request=request))
        plan = world.plan()
        placed.append((len(plan.task), plan.stats["repaired"]))
    assert placed[0][0] == 5 and placed[0][1] > 0 and placed[1][0] == 2


def test_as_many_tasks_wait_as_have_to() -> None:
    world = world_with(_Bounded(2, 9))
    world.offer(tasks_of(np.arange(6), job=np.repeat([7, 8], 3)))
    plan = world.plan()
    assert len(plan.task) == 2 and len(np.unique(plan.task // 3)) == 2


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
