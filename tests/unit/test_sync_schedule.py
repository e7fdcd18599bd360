"""When an agent synchronises, with timers on time and late, and what its policy is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parsync.protocols import _native
from parsync.protocols.optimistic.sync import (
    CheckedSyncPolicy,
    PeriodicSync,
    SyncContext,
    SyncFeedback,
    SyncSchedule,
    make_sync_policy,
)

GAP_US = 100
PARTITIONS = 4


class Scripted(PeriodicSync):
    """Partition k mod P every GAP_US, `count` times; keeps what it is asked and told."""

    def __init__(self, wants_feedback: bool = False, count: int | None = None) -> None:
        self.feedback: list[SyncFeedback] = []
        self.calls: list[str] = []
        self.count = count
        self._wants_feedback = wants_feedback

    @property
    def wants_feedback(self) -> bool:
        return self._wants_feedback

    def due_us(self, k: int) -> int | None:
        self.calls.append(f"due {k}")
        return None if self.count is not None and k > self.count else k * GAP_US

    def partitions(self, k: int) -> Any:
        self.calls.append(f"partitions {k}")
        return np.array([k % PARTITIONS], np.int32)

    def observe(self, feedback: SyncFeedback) -> None:
        self.calls.append("observe")
        self.feedback.append(feedback)


def scheduled(policy: Scripted) -> SyncSchedule:
    """The schedule of an agent with a policy of a user's."""
    checked = CheckedSyncPolicy(policy, "scripted", "agent-0", PARTITIONS)
    return SyncSchedule(checked, PARTITIONS)


def due(schedule: SyncSchedule, now_us: int, k: int) -> tuple[list[int], tuple[int, int] | None]:
    """The partitions of the k-th synchronisation, and (time, k) of the next."""
    partitions, following = schedule.on_due(
        now_us, k, delay_us=7, queued=11, load=lambda: np.array([500, 0])
    )
    assert partitions.dtype == np.int32
    return partitions.tolist(), following


def columns(feedback: SyncFeedback) -> list[list[int]]:
    return [
        column.tolist() for column in (feedback.claims, feedback.conflicts, feedback.rows_changed)
    ]


@pytest.mark.parametrize(
    ("start_us", "first"), [(0, (100, 1)), (99, (100, 1)), (100, (200, 2)), (350, (400, 4))]
)
def test_the_first_timer_is_the_first_that_is_still_to_come(
    start_us: int, first: tuple[int, int]
) -> None:
    schedule = scheduled(Scripted())
    assert schedule.start(start_us) == first
    assert schedule.next_us == first[0]


def test_each_timer_sets_the_next_and_none_follows_the_last() -> None:
    schedule = scheduled(Scripted(count=2))
    assert schedule.start(0) == (100, 1)
    assert due(schedule, 100, 1) == ([1], (200, 2))
    assert schedule.next_us == 200
    assert due(schedule, 200, 2) == ([2], None)
    assert schedule.next_us is None
    assert scheduled(Scripted(count=0)).start(0) is None


@pytest.mark.parametrize(
    ("now_us", "partitions", "following"),
    [
        (199, [1], (200, 2)),
        (200, [1, 2], (300, 3)),  # the next one is due at this very time
        (299, [1, 2], (300, 3)),
        (410, [0, 1, 2, 3], (500, 5)),
        (1000, [0, 1, 2, 3], (1100, 11)),  # each partition once, however often it was due
    ],
)
def test_a_late_timer_does_all_that_is_due_together(
    now_us: int, partitions: list[int], following: tuple[int, int]
) -> None:
    schedule = scheduled(Scripted())
    schedule.start(0)
    assert due(schedule, now_us, 1) == (partitions, following)
    assert schedule.next_us == following[0]


def test_a_late_timer_after_the_last_one_stops() -> None:
    schedule = scheduled(Scripted(count=3))
    schedule.start(0)
    assert due(schedule, 1000, 1) == ([1, 2, 3], None)


def test_a_punctual_policy_keeps_its_order_of_refreshing() -> None:
    class Backwards(Scripted):
        def partitions(self, k: int) -> Any:
            return np.array([3, 1, 2], np.int32)

    schedule = scheduled(Backwards())
    schedule.start(0)
    assert due(schedule, 100, 1)[0] == [3, 1, 2]


def test_feedback_sums_claims_conflicts_and_changed_rows_by_partition() -> None:
    policy = Scripted(wants_feedback=True)
    schedule = scheduled(policy)
    schedule.start(0)
    schedule.on_committed(np.array([0, 0, 2], np.int32), np.array([True, False, True]))
    schedule.on_committed(np.array([2, 2, 1], np.int32), np.array([True, False, False]))
    schedule.on_committed(np.array([], np.int32), np.array([], bool))
    for partition, rows in ((3, 5), (0, 1), (3, 2)):
        schedule.rows_changed[partition] += rows
    due(schedule, 130, 1)
    (feedback,) = policy.feedback
    assert columns(feedback) == [[2, 1, 3, 0], [1, 0, 2, 0], [1, 0, 0, 7]]
    assert all(
        column.dtype == np.int64
        for column in (feedback.claims, feedback.conflicts, feedback.rows_changed)
    )
    assert (feedback.now_us, feedback.delay_us, feedback.queued) == (130, 7, 11)


def test_feedback_begins_anew_after_each_time_and_what_was_given_stays() -> None:
    policy = Scripted(wants_feedback=True)
    schedule = scheduled(policy)
    schedule.start(0)
    schedule.on_committed(np.array([1], np.int32), np.array([True]))
    schedule.rows_changed[2] += 9
    due(schedule, 100, 1)
    schedule.on_committed(np.array([3], np.int32), np.array([False]))
    due(schedule, 200, 2)
    due(schedule, 300, 3)
    first, second, third = map(columns, policy.feedback)
    assert first == [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 9, 0]]
    assert second == [[0, 0, 0, 1], [0] * 4, [0] * 4]
    assert third == [[0] * 4] * 3


def test_feedback_comes_before_the_questions_and_once_when_late() -> None:
    policy = Scripted(wants_feedback=True)
    schedule = scheduled(policy)
    schedule.start(0)
    policy.calls.clear()
    due(schedule, 250, 1)
    assert policy.calls == ["observe", "partitions 1", "due 2", "partitions 2", "due 3"]
    assert policy.feedback[0].now_us == 250


def test_a_policy_without_feedback_is_told_nothing() -> None:
    policy = Scripted()
    schedule = scheduled(policy)
    schedule.start(0)
    schedule.on_committed(np.array([1], np.int32), np.array([True]))
    schedule.rows_changed[2] += 9
    due(schedule, 100, 1)
    assert policy.feedback == [] and "observe" not in policy.calls


# as SyncSchedule::kMostTogether; parsync_sync_schedule.cpp says where it counts
MOST_TOGETHER = 256
PERIODIC_KINDS = ("state_aligned", "state_staggered", "diff_block", "same_block", "diff_single")


@pytest.mark.parametrize("kind", PERIODIC_KINDS)
@pytest.mark.parametrize("missed", [MOST_TOGETHER, MOST_TOGETHER + 1, 10_000_000_000])
def test_after_many_left_out_everything_is_refreshed_and_the_times_stay(
    kind: str, missed: int
) -> None:
    """However many there are, the policy is asked for a few hundred at most."""
    context = SyncContext(gap_us=700_001, partitions=7, index=2, agents=3, stream=0)
    policy = make_sync_policy(kind, {}, context)
    schedule = SyncSchedule(policy, context.partitions)
    schedule.start(0)
    now_us = policy.due_us(1 + missed)
    assert now_us is not None
    partitions, following = schedule.on_due(now_us, 1, 0, 0, lambda: np.zeros(7, np.int64))
    assert sorted(partitions.tolist()) == list(range(7))
    assert following == (policy.due_us(missed + 2), missed + 2)
    assert following[0] == schedule.next_us


@pytest.mark.parametrize("kind", PERIODIC_KINDS)
def test_the_latest_synchronisation_is_the_last_that_is_due(kind: str) -> None:
    context = SyncContext(gap_us=1_007, partitions=10, index=1, agents=3, stream=0)
    policy = make_sync_policy(kind, {}, context)
    assert isinstance(policy, _native.SyncPolicy)
    for now_us in (2_000, *range(5_000, 8_000, 7), 10**15):
        latest = policy.latest(now_us)
        assert latest is not None
        due_us, next_us = policy.due_us(latest), policy.due_us(latest + 1)
        assert due_us is not None and next_us is not None and due_us <= now_us < next_us
