"""The rules about tasks that stay with their scheduler, gangs and evictions, one plan at a time;
and what is no breach of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from schedulers.checked import PlanCheck
from schedulers.interface import Capability, ChangeKind, PendingReason, Plan, TaskChanges
from schedulers.running_tasks import MERGE_AT, OwnAllocations
from shared_state.partition import Partitioning
from shared_state.tasks import NO_GANG, CellSpec, TaskBatch
from shared_state.transaction import PartitionDelta
from shared_state.view import ClusterView

MACHINES, ROOM = 6, 4
HUGE = 20  # a task larger than every machine
GANGS = [NO_GANG] * 10 + [5, 5, 5, 8, 8, 8] + [NO_GANG] * 5
TOO_LARGE, NO_ROOM = PendingReason.TOO_LARGE, PendingReason.NO_ROOM


def table() -> TaskBatch:
    n = len(GANGS)
    request = np.ones((n, 2), np.int64)
    request[HUGE] = (1, ROOM + 1)
    return TaskBatch(
        np.arange(n),
        np.zeros(n, np.int64),
        request,
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        np.array(GANGS, np.int64),
        np.zeros(n, np.int8),
    )


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
        self.table = table()
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
            1,
            1,
        )
        before = self.view.free.copy()
        broken = self.check.broken_rule(
            plan, self.table.take(np.array(offered, np.int64)), self.view, 0
        )
        assert np.array_equal(before, self.view.free)
        return broken

    def tell(self, kind: ChangeKind, *placed: tuple[int, int, int]) -> None:
        """(task, machine, allocation) of each."""
        columns = np.array(placed, np.int64).reshape(-1, 3)
        task, machine, allocation = columns.T.copy()
        self.check.observe(TaskChanges(kind, 0, task, machine.astype(np.int32), allocation))


def is_told(rule: str | None, says: str) -> bool:
    return rule is not None and re.fullmatch(says, rule) is not None


# --- a scheduler that is offered again what it left waiting ---


def test_a_plan_that_keeps_the_rules() -> None:
    trial = Trial()
    assert trial.plan([0, 1, 2], {0: 0, 2: 0}, {1: NO_ROOM}) is None
    assert trial.plan([1, 3], {3: 2, 1: 2}) is None
    assert trial.plan([], {}) is None


def test_a_machine_that_was_never_synced() -> None:
    says = r"plan\.machine: task 0: machine 4 is down, or was never synced, in its view"
    assert is_told(Trial().plan([0], {0: 4}), says)


def test_room_is_counted_in_every_dimension_and_over_the_whole_plan() -> None:
    trial = Trial()
    trial.used[1] = (0, ROOM - 1)
    trial.sync()
    assert trial.plan([0, 1], {0: 1, 1: 0}) is None
    says = r"plan\.machine: task 2 asks machine 1 for \(1, 1\), its view shows \(3, 0\) free, .*"
    assert is_told(trial.plan([0, 1, 2], {0: 1, 1: 0, 2: 1}), says)


def test_too_large_is_for_the_platform_to_say() -> None:
    says = r"plan\.pending_reason: task 1 fits a machine of the cell, but is said to be TOO_LARGE.*"
    assert is_told(Trial().plan([0, 1], {0: 0}, {1: TOO_LARGE}), says)


@pytest.mark.parametrize("capabilities", [(), (Capability.KEEPS_PENDING,)])
def test_a_gang_is_claimed_whole_or_waits_whole(capabilities: tuple[Capability, ...]) -> None:
    whole, none = {10: 0, 11: 1, 12: 2}, dict.fromkeys((10, 11, 12), NO_ROOM)
    assert Trial(*capabilities).plan([10, 11, 12], whole) is None
    assert Trial(*capabilities).plan([10, 11, 12], {}, none) is None
    says = r"plan\.task: gang 5: 2 of its tasks are claimed, and others are left waiting"
    torn = Trial(*capabilities).plan(
        [10, 11, 12, 13, 14, 15], {13: 0, 14: 0, 15: 0, 10: 1, 12: 1}, {11: NO_ROOM}
    )
    assert is_told(torn, says)


def test_a_member_of_a_gang_that_runs_is_not_waited_for() -> None:
    """As after a commit that tore it, or a machine that failed."""
    trial = Trial()
    assert trial.plan([10, 11, 12], {10: 0, 11: 1, 12: 2}) is None
    assert trial.plan([11], {11: 0}) is None


# --- a scheduler that keeps what it left waiting ---


def test_what_was_left_waiting_may_be_claimed_later_and_once() -> None:
    trial = Trial(Capability.KEEPS_PENDING)
    assert trial.plan([0, 1, 2], {0: 0}, {1: NO_ROOM, 2: NO_ROOM}) is None
    assert trial.plan([3], {1: 0, 3: 1}) is None
    says = r"plan\.task: task 1 was not offered, or no longer waits"
    assert is_told(trial.plan([], {1: 2}), says)


@pytest.mark.parametrize("again", ["rejected", "offered", "both"])
def test_a_claim_that_was_rejected_may_be_made_again(again: str) -> None:
    trial = Trial(Capability.KEEPS_PENDING)
    assert trial.plan([0], {0: 0}) is None
    if again != "offered":
        trial.tell(ChangeKind.REJECTED, (0, 0, -1))
    assert trial.plan([] if again == "rejected" else [0], {0: 1}) is None


def test_a_task_that_turned_out_to_run_may_not_be_claimed() -> None:
    trial = Trial(Capability.KEEPS_PENDING)
    assert trial.plan([0, 10, 11, 12], {}, dict.fromkeys((0, 10, 11, 12), NO_ROOM)) is None
    trial.tell(ChangeKind.ADOPTED, (0, 0, 7), (10, 0, 8))
    assert trial.plan([], {11: 0, 12: 0}) is None  # nor is it missed in its gang
    assert is_told(trial.plan([], {0: 2}), r"plan\.task: task 0 was not offered, .*")


def test_pending_is_said_of_the_tasks_of_the_call() -> None:
    trial = Trial(Capability.KEEPS_PENDING)
    assert trial.plan([0], {}, {0: NO_ROOM}) is None
    says = r"plan\.pending: task 0 was not offered in this round"
    assert is_told(trial.plan([1], {1: 0}, {0: NO_ROOM}), says)
    trial = Trial(Capability.KEEPS_PENDING)
    says = r"plan\.pending: task 1 was offered, and is neither claimed nor pending"
    assert is_told(trial.plan([0, 1], {0: 0}), says)


def test_a_gang_that_came_in_parts_is_claimed_whole() -> None:
    trial = Trial(Capability.KEEPS_PENDING)
    assert trial.plan([10, 11], {}, {10: NO_ROOM, 11: NO_ROOM}) is None
    says = r"plan\.task: gang 5: 1 of its tasks are claimed, and others are left waiting"
    assert is_told(trial.plan([12], {12: 0}), says)


# --- a scheduler that evicts ---


def test_evictions_make_room_where_the_victim_ran() -> None:
    trial = Trial(Capability.EVICTS)
    trial.used[0] = ROOM
    trial.sync()
    trial.tell(ChangeKind.COMMITTED, (1, 0, 70), (2, 1, 71))
    assert trial.plan([0], {0: 0}, evict=[70]) is None
    says = r"plan\.machine: task 0 asks machine 0 for \(1, 1\), its view shows \(0, 0\) free"
    assert is_told(trial.plan([0], {0: 0}, evict=[71]), says)


@pytest.mark.parametrize("end", [ChangeKind.FINISHED, ChangeKind.EVICTED, ChangeKind.LOST])
def test_only_what_runs_may_be_evicted(end: ChangeKind) -> None:
    trial = Trial(Capability.EVICTS)
    trial.tell(ChangeKind.ADOPTED, (1, 0, 70), (2, 1, 71))
    assert trial.plan([], {}, evict=[70, 71]) is None
    trial.tell(end, (1, 0, 70))
    says = r"plan\.evict: allocation 70 is not one of its running tasks"
    assert is_told(trial.plan([], {}, evict=[71, 70]), says)
    assert is_told(trial.plan([], {}, evict=[71, 71]), r"plan\.evict: allocation 71 appears twice")
    assert is_told(
        trial.plan([], {}, evict=[99]), r"plan\.evict: allocation 99 is not one of its .*"
    )


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


@pytest.mark.parametrize(
    ("count", "got"),
    [
        (True, "True"),
        (-1, "-1"),
        (np.int32(-3), "-3"),
        (2.0, r"2\.0"),
        (float("nan"), "nan"),
        ("7", "'7'"),
        (None, "a NoneType"),
        (1 << 63, "9223372036854775808"),
        pytest.param(10**6000, "an integer of 19932 bits", id="huge"),
        ([1] * 9999, "a list"),
    ],
)
def test_counts_that_are_none(count: object, got: str) -> None:
    none, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    none8 = np.zeros(0, np.int8)
    trial = Trial()
    plan = Plan(none, none32, np.zeros((0, 2), np.int64), none, none, none, none8, count, 0)
    rule = trial.check.broken_rule(plan, trial.table.take(slice(0, 0)), trial.view, 0)
    assert is_told(rule, rf"plan\.operations: expected an integer from 0 to 2\^63 - 1, got {got}")


@pytest.mark.parametrize(
    ("at_us", "got"),
    [(5, "5"), (0, "0"), (7.5, "7.5"), (True, "True"), (1 << 63, "9223372036854775808")],
)
def test_a_time_to_call_again_is_in_the_future(at_us: object, got: str) -> None:
    none, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    trial = Trial()
    columns = (none, none32, np.zeros((0, 2), np.int64), none, none, none, np.zeros(0, np.int8))

    def rule_at(at_us: object) -> str | None:
        plan = Plan(*columns, 0, 0, retry_at_us=at_us)  # type: ignore[arg-type]
        return trial.check.broken_rule(plan, trial.table.take(slice(0, 0)), trial.view, 5)

    assert rule_at(6) is None and rule_at(None) is None
    expected = rf"plan\.retry_at_us: expected None or an int above 5 \(now_us\), got {got}"
    assert is_told(rule_at(at_us), expected)
