"""Schedulers that offer to plan and claim in one step, those that do not, and those that inherit it
and plan otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from schedulers import registry
from schedulers.conformance import NonConformance, check_conformance
from schedulers.greedy.scheduler import GreedyOptions, GreedyScheduler, PlacementKind
from schedulers.interface import (
    Capability,
    ClaimedPlan,
    ContractBroken,
    PartitionRanking,
    Plan,
    PlanContext,
    SchedulerEnvironment,
)
from schedulers.registry import SchedulerSpec
from shared_state.tasks import Int64, TaskBatch
from shared_state.view import ClusterView
from tests.unit.test_checked_scheduler import ORDER, checked
from tests.unit.test_plan_check import HUGE, ROOM, Trial


class Planning:
    """A user's scheduler: each task goes to the first machine with room. It claims nothing."""

    called: list[str]

    def __init__(self, options: object, environment: SchedulerEnvironment) -> None:
        self.called = []
        MADE.append(self)

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        self.called.append("plan")
        return self.first_fit(tasks, view)

    def first_fit(self, tasks: TaskBatch, view: ClusterView) -> Plan:
        free = view.free.copy()
        machine = np.full(len(tasks), -1, np.int32)
        for row in np.flatnonzero(tasks.gang < 0):
            (fitting,) = np.nonzero((free >= tasks.request[row]).all(axis=1) & view.up)
            if len(fitting):
                machine[row] = fitting[0]
                free[fitting[0]] -= tasks.request[row]
        return Plan.from_machines(tasks, machine, operations=len(tasks) + 1)

    def observe(self, changes: object) -> None:
        pass


class Claiming(Planning):
    """The same scheduler, which offers to claim."""

    def plan_and_claim(
        self, table: TaskBatch, task: Int64, view: ClusterView, context: PlanContext
    ) -> ClaimedPlan:
        self.called.append("plan_and_claim")
        tasks = table.take(task)
        return ClaimedPlan.claim(self.first_fit(tasks, view), tasks, view)


class Inheriting(Claiming):
    """Plans otherwise: it places nothing."""

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        self.called.append("plan")
        return Plan.from_machines(tasks, np.full(len(tasks), -1, np.int32), operations=1)


MADE: list[Planning] = []


def claimed(trial: Trial, kind: Callable[..., Any], *capabilities: Capability) -> ClaimedPlan:
    """The plan of a new scheduler about the tasks 0 and 1, with its claims in the view."""
    scheduler = checked(trial, kind, *capabilities)
    context = PlanContext(5, 1, PartitionRanking.OPTIMISTIC, ORDER)
    return scheduler.plan_and_claim(np.array([0, 1]), trial.view, context)


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    MADE.clear()


def without_huge_tasks() -> Trial:
    trial = Trial()
    trial.table.request[HUGE] = 1
    return trial


@pytest.mark.parametrize(("kind", "call"), [(Planning, "plan"), (Claiming, "plan_and_claim")])
def test_the_step_that_a_scheduler_offers_is_the_one_that_is_called(kind: Any, call: str) -> None:
    for trial in (Trial(), without_huge_tasks()):
        plan, synced_us, _, in_full = claimed(trial, kind)
        assert MADE.pop().called == [call]
        assert plan.machine.tolist() == [0, 0] and synced_us.tolist() == [1, 1] and in_full
        assert plan.partitions_scanned == 2 * len(ORDER), "it states no number"
        assert trial.view.free[0].tolist() == [ROOM - 2, ROOM - 2]
        assert trial.view.claims_in_flight == 1


def test_an_inherited_step_is_not_called_as_the_subclass_may_plan_otherwise() -> None:
    trial = Trial()
    plan = claimed(trial, Inheriting).plan
    assert MADE[0].called == ["plan"] and plan.pending.tolist() == [0, 1]
    assert trial.view.free[0].tolist() == [ROOM, ROOM]


class Reversed(GreedyScheduler):
    """One of the greedy schedulers with other placements: the last machine with room."""

    def __init__(self, options: GreedyOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(PlacementKind.FIRST_FIT, environment)

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        machine = np.full(len(tasks), np.flatnonzero(view.up)[-1], np.int32)
        return Plan.from_machines(tasks, machine, operations=1)


class ReversedWithoutOwnClaims(Reversed):
    """A subclass of that."""


def test_a_subclass_of_the_greedy_scheduler_plans_as_it_says() -> None:
    for kind in (Reversed, ReversedWithoutOwnClaims):
        assert claimed(without_huge_tasks(), kind).plan.machine.tolist() == [2, 2]


def test_a_round_with_a_task_larger_than_every_machine_is_planned_in_steps() -> None:
    trial = Trial()
    scheduler = checked(trial, Claiming)
    context = PlanContext(5, 1, PartitionRanking.OPTIMISTIC, ORDER)
    plan = scheduler.plan_and_claim(np.array([0, HUGE]), trial.view, context).plan
    assert MADE[0].called == ["plan"] and plan.pending.tolist() == [HUGE]


@pytest.mark.parametrize("capability", [Capability.KEEPS_PENDING, Capability.EVICTS])
def test_kinds_whose_plans_are_followed_by_the_check_are_planned_in_steps(
    capability: Capability,
) -> None:
    claimed(Trial(), Claiming, capability)
    assert MADE[0].called == ["plan"]


def test_the_table_of_all_tasks_cannot_be_written_to() -> None:
    class Writing(Claiming):
        def plan_and_claim(self, table: TaskBatch, *others: Any) -> ClaimedPlan:
            table.request[0] = 0
            return super().plan_and_claim(table, *others)

    with pytest.raises(ContractBroken, match=r"plan_and_claim\(\) raised ValueError: .+read-only"):
        claimed(Trial(), Writing)


def test_a_step_that_claims_nothing_or_answers_with_something_else_is_told() -> None:
    class ClaimsNothing(Claiming):
        def plan_and_claim(self, table: TaskBatch, task: Int64, view: ClusterView, _: Any) -> Any:
            plan = self.first_fit(table.take(task), view)
            return ClaimedPlan(plan, view.synced_at(plan.machine), 0, True)

    class Plans(Claiming):
        def plan_and_claim(self, *arguments: Any) -> Any:
            return super().plan_and_claim(*arguments).plan

    for kind, rule in (
        (ClaimsNothing, r"expected the claims of one plan in the view"),
        (Plans, r"expected a ClaimedPlan, got Plan"),
    ):
        with pytest.raises(ContractBroken, match=rf"round 1: plan_and_claim\(\): {rule}"):
            claimed(Trial(), kind)


def spec_of(kind: Callable[..., Any]) -> SchedulerSpec:
    return SchedulerSpec("mine", GreedyOptions, kind, registry.get("random").default_decision)


@pytest.mark.parametrize("kind", [Planning, Claiming])
def test_both_forms_conform(kind: Callable[..., Any]) -> None:
    check_conformance(spec_of(kind))
    calls = {call for one in MADE for call in one.called}
    assert calls == ({"plan", "plan_and_claim"} if kind is Claiming else {"plan"})


class PlacesElsewhere(Claiming):
    def plan_and_claim(self, table: TaskBatch, task: Int64, view: ClusterView, _: Any) -> Any:
        tasks = table.take(task)
        nowhere = np.full(len(tasks), -1, np.int32)
        plan = Plan.from_machines(tasks, nowhere, operations=len(tasks) + 1)
        return ClaimedPlan.claim(plan, tasks, view)


class ClaimsLess(Claiming):
    def plan_and_claim(self, table: TaskBatch, task: Int64, view: ClusterView, _: Any) -> Any:
        plan = self.first_fit(table.take(task), view)
        ticket = view.claim(plan.machine[1:], plan.request[1:])
        return ClaimedPlan(plan, view.synced_at(plan.machine), ticket, False)


class SaysInFull(Claiming):
    def plan_and_claim(self, *arguments: Any) -> Any:
        return super().plan_and_claim(*arguments)._replace(in_full=True)


class SaysNow(Claiming):
    def plan_and_claim(self, *arguments: Any) -> Any:
        made = super().plan_and_claim(*arguments)
        return made._replace(synced_us=np.full_like(made.synced_us, 10**9))


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (PlacesElsewhere, r"plan\.task is a function of what the scheduler saw"),
        (ClaimsLess, "takes the plan's claims out of the view, and nothing else"),
        (SaysInFull, r"claimed\.in_full: expected False"),
        (SaysNow, r"claimed\.synced_us is when each claim's machine was synced"),
    ],
)
def test_a_step_that_does_not_do_what_planning_does_is_found_out(
    kind: Callable[..., Any], promise: str
) -> None:
    with pytest.raises(NonConformance, match=promise):
        check_conformance(spec_of(kind))
