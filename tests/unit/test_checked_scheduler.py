"""A scheduler that uses its buffers again does not change what it planned before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedulers import registry
from schedulers.checked import CheckedScheduler
from schedulers.greedy.base import GreedyScheduler, NoOptions, PlacementKind
from schedulers.interface import PartitionRanking, Plan, PlanContext, SchedulerEnvironment
from shared_state.tasks import PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView
from tests.unit.test_plan_check import Trial


class Buffered(GreedyScheduler):
    """Its plans lie in memory that it uses for the next one, too."""

    def __init__(self, _: NoOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(PlacementKind.RANDOM, environment)
        self.machine = np.zeros(100, np.int32)
        self.task = np.zeros(100, np.int64)

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        plan = super().plan(tasks, view, context)
        n = len(plan.task)
        self.machine[:n], self.task[:n] = plan.machine, plan.task
        return replace(plan, machine=self.machine[:n], task=self.task[:n])


def test_a_plan_stays_as_it_was_when_its_scheduler_uses_its_buffers_again() -> None:
    trial = Trial()
    table, view = trial.table, trial.view
    environment = SchedulerEnvironment(
        "mine", trial.spec, np.array([0, 3, 6]), PreferenceCatalog.empty()
    )
    spec = replace(registry.get("random"), kind="mine", build=Buffered)
    scheduler = CheckedScheduler.build(spec, NoOptions(), environment, table)
    order = np.arange(2, dtype=np.int32)
    plans = [
        scheduler.plan(
            table.take(np.arange(first, first + 3)),
            view,
            PlanContext(5, first, PartitionRanking.LATENCY_FIRST, order),
        )
        for first in (0, 3)
    ]
    assert [plan.task.tolist() for plan in plans] == [[0, 1, 2], [3, 4, 5]]
    columns = [column for plan in plans for column in (plan.task, plan.machine, plan.request)]
    assert not any(column.flags.writeable for column in columns)
