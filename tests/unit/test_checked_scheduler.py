"""A scheduler as its agent calls it: the rules that a plan can break, plans that stay as they were,
tasks that are not offered, partitions that are counted, and planning and claiming in one step."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from schedulers import registry
from schedulers.checked import CheckedScheduler, PlanCheck
from schedulers.conformance import NonConformance, check_conformance
from schedulers.greedy.scheduler import GreedyOptions, GreedyScheduler, PlacementKind
from schedulers.interface import (
    Capability,
    ChangeKind,
    ClaimedPlan,
    ContractBroken,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.registry import SchedulerSpec
from schedulers.running_tasks import MERGE_AT, OwnAllocations
from schedulers.unplaceable import UnplaceableUnits
from shared_state.partition import Partitioning
from shared_state.tasks import NO_GANG, CellSpec, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import PartitionDelta
from shared_state.view import ClusterView
from tests.greedy_world import cell_of, tasks_of

MACHINES, ROOM, NOW_US = 6, 4, 5
HUGE = 20  # a task larger than every machine
GANGS = [NO_GANG] * 10 + [5, 5, 5, 8, 8, 8] + [NO_GANG] * 5
TOO_LARGE, NO_ROOM = PendingReason.TOO_LARGE, PendingReason.NO_ROOM


class Trial:
    """One scheduler's plans on a cell of MACHINES times ROOM in two dimensions; the second of its
    two partitions was never synced."""

    def __init__(self, *capabilities: Capability) -> None:
        self.spec = CellSpec(
            ("cpu", "memory"),
            np.full((MACHINES, 2), ROOM, np.int64),
            np.zeros(MACHINES, np.int32),
            np.zeros(MACHINES, np.int64),
            np.full(2, 1000, np.int64),
        )
        half = MACHINES // 2
        self.view = ClusterView(self.spec, Partitioning(np.array([0, half, MACHINES])))
        self.used = np.zeros((half, 2), np.int64)
        self.versions = 0
        self.sync()
        n = len(GANGS)
        self.table = tasks_of(np.ones((n, 2)), gang=GANGS)
        self.table.request[HUGE] = (1, ROOM + 1)
        self.check = PlanCheck(self.table, frozenset(capabilities))

    def sync(self) -> None:
        self.versions += 1
        half = MACHINES // 2
        rows = np.arange(half, dtype=np.uint16)
        up = np.ones(half, bool)
        self.view.apply(
            PartitionDelta(0, 0, self.versions, self.versions, rows, self.used, up, None)
        )

    def plan(
        self,
        offered: Sequence[int],
        claims: dict[int, int],
        pending: dict[int, int] | None = None,
        evict: Sequence[int] = (),
        **figures: Any,
    ) -> str | None:
        """The rule broken by claims {task: machine} and pending {task: reason}."""
        task = np.array(list(claims), np.int64)
        left = pending or {}
        plan = Plan(
            task,
            np.array(list(claims.values()), np.int32),
            np.ascontiguousarray(self.table.request[task]),
            self.table.gang[task],
            np.array(evict, np.int64),
            np.array(list(left), np.int64),
            np.array(list(left.values()), np.int8),
            **{"operations": 1, "partitions_scanned": 1, **figures},
        )
        before = self.view.free.copy()
        broken = self.check.broken_rule(
            plan, self.table.take(np.array(offered, np.int64)), self.view, NOW_US
        )
        assert np.array_equal(before, self.view.free)
        return broken

    def tell(self, kind: ChangeKind, *placed: tuple[int, int, int]) -> None:
        """(task, machine, allocation) of each."""
        columns = np.array(placed, np.int64).reshape(-1, 3)
        task, machine, allocation = columns.T.copy()
        self.check.observe(TaskChanges(kind, 0, task, machine.astype(np.int32), allocation))


def says(rule: str | None, expected: str | None) -> bool:
    return rule is None if expected is None else re.fullmatch(expected, rule or "") is not None


KEEPS, EVICTS = Capability.KEEPS_PENDING, Capability.EVICTS
GANG = (10, 11, 12)
# Plans one after the other, each with the rule that it breaks: (offered, {task: machine},
# {task: reason}, rule).
HISTORIES: dict[str, tuple[tuple[Capability, ...], list[tuple[Any, ...]]]] = {
    "rules kept": (
        (),
        [
            ([0, 1, 2], {0: 0, 2: 0}, {1: NO_ROOM}, None),
            ([1, 3], {3: 2, 1: 2}, {}, None),
            ([], {}, {}, None),
        ],
    ),
    "never synced": (
        (),
        [([0], {0: 4}, {}, "plan.machine: task 0: machine 4 is down, or was never synced, .*")],
    ),
    "fits, but is said to be too large": (
        (),
        [
            (
                [0, 1],
                {0: 0},
                {1: TOO_LARGE},
                "plan.pending_reason: task 1 fits a machine of the cell, but .* TOO_LARGE.*",
            )
        ],
    ),
    **{
        f"a gang, {'kept' if capabilities else 'offered again'}": (
            capabilities,
            [
                (GANG, {}, dict.fromkeys(GANG, NO_ROOM), None),
                (
                    [*GANG, 13, 14, 15],
                    {13: 0, 14: 0, 15: 0, 10: 1, 12: 1},
                    {11: NO_ROOM},
                    "plan.task: gang 5: 2 of its tasks are claimed, and others are left waiting",
                ),
            ],
        )
        for capabilities in ((), (KEEPS,))
    },
    "a whole gang, of which one runs no longer": (
        (),
        [(GANG, {10: 0, 11: 1, 12: 2}, {}, None), ([11], {11: 0}, {}, None)],
    ),
    "claimed later, and twice": (
        (KEEPS,),
        [
            ([0, 1, 2], {0: 0}, {1: NO_ROOM, 2: NO_ROOM}, None),
            ([3], {1: 0, 3: 1}, {}, None),
            ([], {1: 2}, {}, "plan.task: task 1 was not offered, or no longer waits"),
        ],
    ),
    "pending, but of an earlier call": (
        (KEEPS,),
        [
            ([0], {}, {0: NO_ROOM}, None),
            ([1], {1: 0}, {0: NO_ROOM}, "plan.pending: task 0 was not offered in this round"),
        ],
    ),
    "forgotten": (
        (KEEPS,),
        [([0, 1], {0: 0}, {}, "plan.pending: task 1 was offered, and is neither claimed nor .*")],
    ),
    "a gang that came in parts": (
        (KEEPS,),
        [
            ([10, 11], {}, {10: NO_ROOM, 11: NO_ROOM}, None),
            ([12], {12: 0}, {}, "plan.task: gang 5: 1 of its tasks are claimed, .* left waiting"),
        ],
    ),
    "offered again": ((KEEPS,), [([0], {0: 0}, {}, None), ([0], {0: 1}, {}, None)]),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_the_rules_about_tasks(history: str) -> None:
    capabilities, plans = HISTORIES[history]
    trial = Trial(*capabilities)
    for offered, claims, pending, rule in plans:
        assert says(trial.plan(offered, claims, pending), rule)


def test_room_is_counted_in_every_dimension_and_over_the_whole_plan() -> None:
    trial = Trial()
    trial.used[1] = (0, ROOM - 1)
    trial.sync()
    assert trial.plan([0, 1], {0: 1, 1: 0}) is None
    rule = r"plan\.machine: task 2 asks machine 1 for \(1, 1\), its view shows \(3, 0\) free, .*"
    assert says(trial.plan([0, 1, 2], {0: 1, 1: 0, 2: 1}), rule)


def test_what_it_is_told_decides_which_tasks_may_be_claimed() -> None:
    trial = Trial(KEEPS)
    assert trial.plan([0, *GANG, 1], {1: 0}, dict.fromkeys((0, *GANG), NO_ROOM)) is None
    trial.tell(ChangeKind.REJECTED, (1, 0, -1))
    assert trial.plan([], {1: 1}) is None
    trial.tell(ChangeKind.ADOPTED, (0, 0, 7), (10, 0, 8))
    assert trial.plan([], {11: 0, 12: 0}) is None  # task 10 runs, and is not missed in its gang
    assert says(trial.plan([], {0: 2}), r"plan\.task: task 0 was not offered, .*")


@pytest.mark.parametrize("end", [ChangeKind.FINISHED, ChangeKind.EVICTED, ChangeKind.LOST])
def test_what_runs_may_be_evicted_and_makes_room_where_it_ran(end: ChangeKind) -> None:
    trial = Trial(EVICTS)
    trial.used[0] = ROOM
    trial.sync()
    trial.tell(ChangeKind.COMMITTED, (1, 0, 70))
    trial.tell(ChangeKind.ADOPTED, (2, 1, 71))
    assert trial.plan([0], {0: 0}, evict=[70, 71]) is None
    rule = r"plan\.machine: task 0 asks machine 0 for \(1, 1\), its view shows \(0, 0\) free"
    assert says(trial.plan([0], {0: 0}, evict=[71]), rule)
    trial.tell(end, (1, 0, 70))
    for evict, rule in (
        ([71, 70], "allocation 70 is not one of its running tasks"),
        ([99], "allocation 99 is not one of its running tasks"),
        ([71, 71], "allocation 71 appears twice"),
    ):
        assert says(trial.plan([], {}, evict=evict), rf"plan\.evict: {rule}")


COUNT = r"plan\.operations: expected an integer from 0 to 2\^63 - 1"
RETRY = r"plan\.retry_at_us: expected None or an int above 5 \(now_us\)"


@pytest.mark.parametrize(
    ("figures", "rule"),
    [
        ({"operations": True}, f"{COUNT}, got True"),
        ({"operations": -1}, f"{COUNT}, got -1"),
        ({"operations": np.int32(-3)}, f"{COUNT}, got -3"),
        ({"operations": 2.0}, rf"{COUNT}, got 2\.0"),
        ({"operations": float("nan")}, f"{COUNT}, got nan"),
        ({"operations": "7"}, f"{COUNT}, got '7'"),
        ({"operations": None}, f"{COUNT}, got a NoneType"),
        ({"operations": 1 << 63}, f"{COUNT}, got 9223372036854775808"),
        pytest.param({"operations": 10**6000}, f"{COUNT}, got an integer of 19932 bits", id="huge"),
        ({"operations": [1] * 9999}, f"{COUNT}, got a list"),
        ({"retry_at_us": 5}, f"{RETRY}, got 5"),
        ({"retry_at_us": 0}, f"{RETRY}, got 0"),
        ({"retry_at_us": 7.5}, rf"{RETRY}, got 7\.5"),
        ({"retry_at_us": True}, f"{RETRY}, got True"),
        ({"retry_at_us": 1 << 63}, f"{RETRY}, got 9223372036854775808"),
        ({"retry_at_us": 6}, None),
        ({"retry_at_us": None}, None),
    ],
)
def test_figures_are_counts_and_a_time_to_call_again_is_in_the_future(
    figures: dict[str, Any], rule: str | None
) -> None:
    assert says(Trial().plan([], {}, **figures), rule)


def test_own_allocations_are_those_added_and_not_removed() -> None:
    """Against a dictionary, over more changes than are kept unsorted."""
    random = np.random.default_rng(5)
    own, known, ids = OwnAllocations(), {}, 0
    for _ in range(60):
        n = int(random.integers(0, MERGE_AT // 8))
        added = random.permutation(np.arange(ids, ids + n))
        ids += n
        own.add(added, added * 3, (added % 7).astype(np.int32))
        known |= {allocation: (allocation * 3, allocation % 7) for allocation in added.tolist()}
        gone = random.choice(np.arange(-9, ids), size=min(ids, n // 2), replace=False)
        own.remove(gone)
        for allocation in gone.tolist():
            known.pop(allocation, None)
    asked = np.arange(ids + 10)
    held, task, machine = own.find(asked)
    assert asked[held].tolist() == sorted(known)
    assert list(zip(task.tolist(), machine.tolist(), strict=True)) == [
        known[allocation] for allocation in sorted(known)
    ]


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


@pytest.mark.parametrize(("kind", "call"), [(Planning, "plan"), (Claiming, "plan_and_claim")])
def test_the_step_that_a_scheduler_offers_is_the_one_that_is_called(kind: Any, call: str) -> None:
    for huge in (ROOM + 1, 1):
        trial = Trial()
        trial.table.request[HUGE, 1] = huge
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


def test_a_subclass_of_the_greedy_scheduler_plans_as_it_says() -> None:
    for kind in (Reversed, type("Further", (Reversed,), {})):
        trial = Trial()
        trial.table.request[HUGE] = 1
        assert claimed(trial, kind).plan.machine.tolist() == [2, 2]


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


def stepping(step: Callable[..., Any]) -> type[Claiming]:
    """A kind whose step is `step(scheduler, table, task, view, context)`."""
    return type("Stepping", (Claiming,), {"plan_and_claim": step})


def claims_nothing(self: Claiming, table: TaskBatch, task: Int64, view: ClusterView, _: Any) -> Any:
    plan = self.first_fit(table.take(task), view)
    return ClaimedPlan(plan, view.synced_at(plan.machine), 0, True)


def claims_less(self: Claiming, table: TaskBatch, task: Int64, view: ClusterView, _: Any) -> Any:
    plan = self.first_fit(table.take(task), view)
    ticket = view.claim(plan.machine[1:], plan.request[1:])
    return ClaimedPlan(plan, view.synced_at(plan.machine), ticket, False)


def places_elsewhere(_: Any, table: TaskBatch, task: Int64, view: ClusterView, __: Any) -> Any:
    tasks = table.take(task)
    plan = Plan.from_machines(tasks, np.full(len(tasks), -1, np.int32), operations=len(tasks) + 1)
    return ClaimedPlan.claim(plan, tasks, view)


def writes(self: Claiming, table: TaskBatch, *others: Any) -> Any:
    table.request[0] = 0


def changed(change: Callable[[ClaimedPlan], Any]) -> Callable[..., Any]:
    return lambda self, *given: change(Claiming.plan_and_claim(self, *given))


@pytest.mark.parametrize(
    ("step", "rule"),
    [
        (writes, r"plan_and_claim\(\) raised ValueError: .+read-only"),
        (
            claims_nothing,
            r"round 1: plan_and_claim\(\): expected the claims of one plan in the view",
        ),
        (
            changed(lambda made: made.plan),
            r"round 1: plan_and_claim\(\): expected a ClaimedPlan, got Plan",
        ),
    ],
)
def test_a_step_that_breaks_a_rule_is_told(step: Callable[..., Any], rule: str) -> None:
    with pytest.raises(ContractBroken, match=rule):
        claimed(Trial(), stepping(step))


@pytest.mark.parametrize(
    ("step", "promise"),
    [
        (places_elsewhere, r"plan\.task is a function of what the scheduler saw"),
        (claims_less, "takes the plan's claims out of the view, and nothing else"),
        (
            changed(lambda made: made._replace(in_full=True)),
            r"claimed\.in_full: expected False",
        ),
        (
            changed(lambda made: made._replace(synced_us=made.synced_us + 10**9)),
            r"claimed\.synced_us is when each claim's machine was synced",
        ),
    ],
)
def test_a_step_that_does_not_do_what_planning_does_is_found_out(
    step: Callable[..., Any], promise: str
) -> None:
    with pytest.raises(NonConformance, match=promise):
        check_conformance(spec_of(stepping(step)))


def spec_of(kind: Callable[..., Any]) -> SchedulerSpec:
    return SchedulerSpec("mine", GreedyOptions, kind, registry.get("random").default_decision)


@pytest.mark.parametrize("kind", [Planning, Claiming])
def test_both_forms_conform(kind: Callable[..., Any]) -> None:
    check_conformance(spec_of(kind))
    calls = {call for one in MADE for call in one.called}
    assert calls == ({"plan", "plan_and_claim"} if kind is Claiming else {"plan"})
