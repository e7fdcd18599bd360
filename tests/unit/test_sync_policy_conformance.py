"""check_sync_policy: every built-in policy passes, and each rule of the contract can fail."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parsync.protocols.optimistic import sync as sync_policies
from parsync.protocols.optimistic.sync import (
    LATEST_US,
    CheckedSyncPolicy,
    PeriodicSync,
    SyncContext,
    SyncFeedback,
    SyncPolicyBroken,
    SyncPolicySpec,
    SyncSchedule,
    check_gap,
    check_partitions,
    make_checked_policy,
)
from parsync.protocols.optimistic.sync_conformance import check_sync_policy
from schedulers.conformance import NonConformance
from shared_state.errors import AgoraError
from shared_state.random import Stream


class Single(PeriodicSync):
    """One partition every G/P, in turn: a policy that keeps the contract."""

    def __init__(self, options: Any, context: SyncContext) -> None:
        check_gap(context)
        self.context = context

    def due_us(self, k: int) -> Any:
        return k * self.context.gap_us // self.context.partitions

    def partitions(self, k: int) -> Any:
        return np.array([k % self.context.partitions], np.int32)


class Everything(Single):
    """Everything every G."""

    def due_us(self, k: int) -> Any:
        return k * self.context.gap_us

    def partitions(self, k: int) -> Any:
        return np.arange(self.context.partitions, dtype=np.int32)


class Learning(Single):
    """Refreshes the partition with the most conflicts, too, and all the rest in turn."""

    wants_feedback = True
    worst = 0

    def observe(self, feedback: SyncFeedback) -> None:
        self.worst = int(feedback.conflicts.argmax())

    def partitions(self, k: int) -> Any:
        return np.unique([k % self.context.partitions, self.worst]).astype(np.int32)


def of(base: type, **changes: Any) -> type:
    return type("Changed", (base,), changes)


def spec(make: Any) -> SyncPolicySpec:
    return SyncPolicySpec("mine", make)


@pytest.mark.parametrize("kind", sync_policies.kinds())
def test_the_built_in_policies_conform(kind: str) -> None:
    check_sync_policy(sync_policies.get(kind))


@pytest.mark.parametrize("policy", [Single, Everything, Learning])
def test_policies_that_keep_the_contract_conform(policy: type) -> None:
    check_sync_policy(spec(policy))


def test_random_numbers_from_its_own_stream_are_a_policy_s_to_use() -> None:
    class Shuffled(Single):
        def partitions(self, k: int) -> Any:
            """Each rotation in an order of its own."""
            rotation, place = divmod(k, self.context.partitions)
            draws = Stream(self.context.stream + rotation).integers(
                self.context.partitions, 1 << 40
            )
            return np.argsort(draws)[place : place + 1].astype(np.int32)

    check_sync_policy(spec(Shuffled))


counter = itertools.count()


class ChangesByItself(Everything):
    """Each policy of the process begins elsewhere."""

    def __init__(self, options: Any, context: SyncContext) -> None:
        super().__init__(options, context)
        self.first = next(counter)

    def partitions(self, k: int) -> Any:
        return np.roll(super().partitions(k), self.first)


class GloballyRandom(ChangesByItself):
    """Draws from numpy's own generator."""

    def __init__(self, options: Any, context: SyncContext) -> None:
        super().__init__(options, context)
        self.order = np.random.permutation(context.partitions).astype(np.int32)  # noqa: NPY002

    def partitions(self, k: int) -> Any:
        return np.roll(self.order, k)


class Twice(Single):
    """Pure as long as nobody asks twice."""

    asked = 0

    def partitions(self, k: int) -> Any:
        self.asked += 1
        return np.array([self.asked % self.context.partitions], np.int32)


class LaterAgain(Everything):
    asked = 0

    def due_us(self, k: int) -> Any:
        self.asked += 1
        return super().due_us(k) + (self.asked % 2 if self.context.gap_us > 1000 else 0)


class Accumulates(Single):
    """Counts what it was asked instead of computing from k."""

    next = 0

    def partitions(self, k: int) -> Any:
        if self.next != k:
            self.turn = getattr(self, "turn", 0) + 1
            self.next = k
        return np.array([self.turn % self.context.partitions], np.int32)


class SharedState(Learning):
    """All policies of the process learn in one place."""

    seen: list[int] = []  # noqa: RUF012

    def observe(self, feedback: SyncFeedback) -> None:
        self.seen.append(int(feedback.claims[0]))
        self.worst = sum(self.seen) % self.context.partitions


class OneArray(Single):
    def __init__(self, options: Any, context: SyncContext) -> None:
        super().__init__(options, context)
        self.array = np.zeros(1, np.int32)

    def partitions(self, k: int) -> Any:
        self.array[0] = k % self.context.partitions
        return self.array


class OnlyConflicts(Learning):
    """Forgets every partition without conflicts."""

    def partitions(self, k: int) -> Any:
        return np.array([self.worst], np.int32)


def ten_times_too_slow(self: Single, k: int) -> int:
    return 10 * k * self.context.gap_us


BROKEN: dict[str, tuple[type, str]] = {
    "times are ints": (of(Single, due_us=lambda s, k: k * 1e6), r"due_us: expected an int or None"),
    "times ascend": (
        of(Everything, due_us=lambda s, k: (k - k % 2) * s.context.gap_us),
        r"synchronisation 3: due_us: expected a time after \d+, that of 2, got",
    ),
    "times do not begin before the run": (
        of(Everything, due_us=lambda s, k: (k - 2) * s.context.gap_us),
        r"due_us\(1\): expected 0 or more, got -",
    ),
    "time goes on": (
        of(Single, due_us=lambda s, k: k),
        r"time stands still: \d+ synchronisations until \d+ us, expected at most 100 max\(N, P\)",
    ),
    "times are the same when asked twice": (
        LaterAgain,
        r"due_us\(\d+\): another answer when asked twice",
    ),
    "partitions are an array": (
        of(Single, partitions=lambda s, k: [k % s.context.partitions]),
        r"synchronisation 1: partitions: expected an int32 array, got a list, \[0\]",
    ),
    "partitions are int32": (
        of(Single, partitions=lambda s, k: np.arange(s.context.partitions)),
        r"partitions: expected int32\[n\], got int64\[1\]",
    ),
    "partitions are one row": (
        of(Single, partitions=lambda s, k: np.zeros((1, 1), np.int32)),
        r"partitions: expected int32\[n\], got int32\[1, 1\]",
    ),
    "partitions exist": (
        of(Single, partitions=lambda s, k: np.array([k], np.int32)),
        r"partitions: expected numbers below 1, got 1",
    ),
    "partitions are not negative": (
        of(Single, partitions=lambda s, k: np.array([-1], np.int32)),
        r"partitions: expected numbers below 1, got -1",
    ),
    "partitions appear once": (
        of(Single, partitions=lambda s, k: np.zeros(2, np.int32)),
        r"partitions: 0 appears twice",
    ),
    "partitions are the same when asked twice": (Twice, r"partitions\(1\): another answer when"),
    "arrays do not change": (OneArray, r"partitions\(\d+\): the array was changed afterwards"),
    "every partition is refreshed": (
        of(Single, partitions=lambda s, k: np.zeros(1, np.int32)),
        r"partition 1 is not refreshed from 0 to \d+ us: expected once in 4 gaps",
    ),
    "every partition is refreshed soon": (
        of(Everything, due_us=ten_times_too_slow),
        r"partition 0 is not refreshed from 0 to",
    ),
    "every partition is refreshed whatever the feedback": (
        OnlyConflicts,
        r"conflicts [a-z ]+: partition \d is not refreshed",
    ),
    "every partition is refreshed to the end": (
        of(Everything, due_us=lambda s, k: k * s.context.gap_us if k < 5 else None),
        r"partition 0 is not refreshed",
    ),
    "nothing periodic needs every attempt": (
        of(Single, due_us=lambda s, k: None),
        r"due_us\(1\): without periodic synchronisations, at_every_attempt must be true",
    ),
    "nothing periodic needs a time to look again": (
        of(Single, due_us=lambda s, k: None, at_every_attempt=True),
        r"and retry_us a time",
    ),
    "runs repeat": (GloballyRandom, r"in one run, .* in another|after a late start"),
    "policies keep no global state": (
        ChangesByItself,
        r"synchronisation 1: .* in one run, .* in another",
    ),
    "policies share no state": (SharedState, r"synchronisation \d+: .* in one run, .* in another"),
    "answers follow from k": (Accumulates, r"partitions\(\d+\): .* after a late start, not"),
    "flags are no methods": (
        of(Single, wants_feedback=lambda self: True),
        r"wants_feedback: expected True or False, got a method",
    ),
    "retry_us is a time": (of(Single, retry_us=0), r"retry_us: expected an int of 1 or more"),
    "no method raises": (
        of(Single, partitions=lambda s, k: 1 // 0),
        r"ZeroDivisionError: .* \(test_sync_policy_conformance\.py, line \d+\)$",
    ),
    "observe does not raise": (
        of(Learning, observe=lambda s, feedback: feedback.conflict),
        r"'SyncFeedback' object has no attribute 'conflict'",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_can_fail(rule: str) -> None:
    policy, message = BROKEN[rule]
    SharedState.seen.clear()
    with pytest.raises(NonConformance, match=rf"^mine, gap_us=\d+, .*{message}"):
        check_sync_policy(spec(policy))


def raising(error: Exception) -> Callable[[Any, SyncContext], Any]:
    def make(options: Any, context: SyncContext) -> Any:
        check_gap(context)
        if context.partitions < context.agents:
            raise error
        return Single(options, context)

    return make


def test_what_does_not_suit_is_refused_by_an_agora_error_only() -> None:
    with pytest.raises(NonConformance, match="make: expected an AgoraError, got ValueError: few"):
        check_sync_policy(spec(raising(ValueError("few"))))
    with pytest.raises(
        NonConformance, match="of one line that names gap_s, retry_s or partitions, got 'no'"
    ):
        check_sync_policy(spec(raising(AgoraError("no"))))
    check_sync_policy(spec(raising(AgoraError("partitions: too few"))))


def test_a_gap_that_leaves_no_time_has_to_be_refused() -> None:
    class Unchecked(Single):
        def __init__(self, options: Any, context: SyncContext) -> None:
            self.context = context

    with pytest.raises(NonConformance, match=r"gap_us=0, .*expected a time after"):
        check_sync_policy(spec(Unchecked))


def test_a_policy_that_suits_nothing_is_refused() -> None:
    def make(options: Any, context: SyncContext) -> Any:
        raise AgoraError("partitions: expected 1000")

    with pytest.raises(NonConformance, match="mine: refuses every context that was tried"):
        check_sync_policy(spec(make))


def test_the_bound_on_refreshes_can_be_one_of_the_policy_s_own() -> None:
    slow = spec(of(Everything, due_us=ten_times_too_slow))
    check_sync_policy(slow, refresh_gaps=10)
    with pytest.raises(NonConformance, match="expected once in 9 gaps"):
        check_sync_policy(slow, refresh_gaps=9)


def test_policies_that_need_as_many_partitions_as_agents_conform() -> None:
    def make(options: Any, context: SyncContext) -> Any:
        check_partitions("mine", context)
        return Single(options, context)

    check_sync_policy(spec(make))


def test_a_broken_answer_in_a_run_names_policy_scheduler_and_synchronisation() -> None:
    context = SyncContext(1000, 2, 0, 1, 0)
    policy = CheckedSyncPolicy(of(Single, partitions=lambda s, k: k)({}, context), "mine", "a-0", 2)
    assert policy.due_us(1) == 500
    with pytest.raises(SyncPolicyBroken) as broken:
        policy.partitions(1)
    assert str(broken.value) == (
        "sync policy 'mine' of scheduler 'a-0', synchronisation 1: partitions: expected an int32 "
        "array, got a int, 1"
    )


@pytest.mark.parametrize(
    ("latest", "rule"),
    [
        (lambda s, now_us: 2.5, "latest: expected an int or None, got a float, 2.5"),
        (lambda s, now_us: 1 << 63, f"latest: expected an int or None, got a int, {1 << 63}"),
        (lambda s, now_us: s.wrong, "AttributeError: 'Changed' object has no attribute 'wrong'"),
    ],
)
def test_a_wrong_number_of_the_latest_is_named(latest: Any, rule: str) -> None:
    policy = of(Everything, latest=latest)({}, SyncContext(1000, 2, 0, 1, 0))
    schedule = SyncSchedule(make_checked_policy(policy, "mine", "a-0", 2), 2)
    schedule.start(0)
    with pytest.raises(SyncPolicyBroken) as broken:
        schedule.on_due(1000, 1, 0, 0, lambda: np.zeros(2, np.int64))
    assert str(broken.value).startswith(
        f"sync policy 'mine' of scheduler 'a-0', synchronisation 1: {rule}"
    )


def test_numbers_of_numpy_tell_the_latest_too() -> None:
    policy = of(Everything, latest=lambda s, now_us: np.int64(now_us // 1000))
    context = SyncContext(1000, 2, 0, 1, 0)
    schedule = SyncSchedule(make_checked_policy(policy({}, context), "mine", "a-0", 2), 2)
    partitions, following = schedule.on_due(900_000, 1, 0, 0, lambda: np.zeros(2, np.int64))
    assert partitions.tolist() == [0, 1] and following == (901_000, 901)


def test_a_time_to_look_again_is_one_that_can_come() -> None:
    policy = of(Single, retry_us=LATEST_US)({}, SyncContext(1000, 2, 0, 1, 0))
    with pytest.raises(SyncPolicyBroken, match=f"retry_us: expected less than {LATEST_US}, got"):
        CheckedSyncPolicy(policy, "mine", "a-0", 2)
