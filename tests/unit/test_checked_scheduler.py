"""What the platform does around a scheduler: plans stay as they were, tasks too large for every
machine are not offered, and partitions are counted where a plan states no number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from schedulers import registry
from schedulers.checked import CheckedScheduler
from schedulers.greedy.scheduler import GreedyOptions, GreedyScheduler, PlacementKind
from schedulers.interface import (
    Capability,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
)
from schedulers.unplaceable import UnplaceableUnits
from shared_state.tasks import PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView
from tests.greedy_world import cell_of, tasks_of
from tests.unit.test_plan_check import HUGE, MACHINES, ROOM, Trial


class Buffered(GreedyScheduler):
    """Its plans lie in memory that it uses for the next one, too."""

    def __init__(self, _: GreedyOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(PlacementKind.RANDOM, environment)
        self.machine = np.zeros(100, np.int32)
        self.task = np.zeros(100, np.int64)

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        plan = super().plan(tasks, view, context)
        n = len(plan.task)
        self.machine[:n], self.task[:n] = plan.machine, plan.task
        return replace(plan, machine=self.machine[:n], task=self.task[:n])


class Recording(GreedyScheduler):
    """Keeps the tasks that it is offered, and states no number of partitions."""

    offered: list[list[int]]

    def __init__(self, _: GreedyOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(PlacementKind.RANDOM, environment)
        self.offered = []
        RECORDINGS.append(self)

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        self.offered.append(tasks.task.tolist())
        return replace(super().plan(tasks, view, context), partitions_scanned=None)


RECORDINGS: list[Recording] = []
ORDER = np.arange(2, dtype=np.int32)


def checked(
    trial: Trial, build: type[GreedyScheduler], *capabilities: Capability
) -> CheckedScheduler:
    environment = SchedulerEnvironment(
        "mine", trial.spec, np.array([0, 3, 6]), PreferenceCatalog.empty()
    )
    spec = replace(
        registry.get("random"), kind="mine", build=build, capabilities=frozenset(capabilities)
    )
    return CheckedScheduler.build(spec, GreedyOptions(), environment, trial.table)


def plan_of(
    scheduler: CheckedScheduler,
    trial: Trial,
    *tasks: int,
    ranking: PartitionRanking = PartitionRanking.OPTIMISTIC,
) -> Plan:
    batch = trial.table.take(np.array(tasks, np.int64))
    return scheduler.plan(batch, trial.view, PlanContext(5, 1, ranking, ORDER))


@pytest.mark.parametrize("capabilities", [(), (Capability.KEEPS_PENDING,)])
def test_tasks_too_large_for_every_machine_are_pending_without_being_offered(
    capabilities: tuple[Capability, ...],
) -> None:
    trial = Trial()
    trial.table.request[11] = (ROOM + 1, 1)  # of the gang of tasks 10 to 12
    scheduler = checked(trial, Recording, *capabilities)
    plan = plan_of(scheduler, trial, 0, HUGE, 10, 1, 11, 12)
    assert sorted(plan.task.tolist()) == [0, 1]
    assert dict(
        zip(plan.pending.tolist(), plan.pending_reason.tolist(), strict=True)
    ) == dict.fromkeys((HUGE, 10, 11, 12), PendingReason.TOO_LARGE)
    plan = plan_of(scheduler, trial, HUGE)
    assert plan.pending.tolist() == [HUGE] and not len(plan.task)
    keeps = Capability.KEEPS_PENDING in capabilities
    assert RECORDINGS[-1].offered == [[0, 1], *([[]] if keeps else [])]


def test_a_task_as_large_as_no_single_machine_in_any_dimension_is_too_large() -> None:
    """Another machine reaches it in each dimension."""
    cell = cell_of([[8, 0], [4, 1]])
    tasks = tasks_of([[8, 0], [8, 1], [9, 0], [0, 1]])
    found = UnplaceableUnits.by_size(tasks, cell)
    assert found is not None and (found.task_us == 0).tolist() == [False, True, True, False]
    assert UnplaceableUnits.by_size(tasks.take(np.array([0, 3])), cell) is None
    assert UnplaceableUnits.by_size(tasks.take(slice(0, 0)), cell) is None


def test_partitions_are_counted_for_a_plan_that_states_no_number() -> None:
    trial = Trial()
    each = checked(trial, Recording)
    for ranking in PartitionRanking:
        assert plan_of(each, trial, 0, 1, 2, HUGE, ranking=ranking).partitions_scanned == 3 * 2
    keeps = checked(trial, Recording, Capability.KEEPS_PENDING)
    full = np.full((MACHINES // 2, 2), ROOM)
    trial.used[:] = full
    trial.sync()
    assert plan_of(keeps, trial, 0, 1).partitions_scanned == 2 * 2
    plan = plan_of(keeps, trial, 2)
    assert plan.partitions_scanned == 2, "the two kept from the round before are free"
    assert keeps.tasks_considered(plan) == 3


def test_a_plan_stays_as_it_was_when_its_scheduler_uses_its_buffers_again() -> None:
    trial = Trial()
    table, view = trial.table, trial.view
    scheduler = checked(trial, Buffered)
    plans = [
        scheduler.plan(
            table.take(np.arange(first, first + 3)),
            view,
            PlanContext(5, first, PartitionRanking.LATENCY_FIRST, ORDER),
        )
        for first in (0, 3)
    ]
    assert [plan.task.tolist() for plan in plans] == [[0, 1, 2], [3, 4, 5]]
    columns = [column for plan in plans for column in (plan.task, plan.machine, plan.request)]
    assert not any(column.flags.writeable for column in columns)
