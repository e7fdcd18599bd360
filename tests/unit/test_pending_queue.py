"""What an agent was given and has not placed: nothing is lost, nothing is offered twice, the order
holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.core.queued_tasks import NO_TASKS, QueuedTasks, SkippedUnits, UnitSizes
from parsync.protocols.pending_queue import (
    AgentQueue,
    LoserPolicy,
    PendingQueue,
    QueueExits,
    SchedulerQueue,
)
from parsync.protocols.rounds import Round
from schedulers.interface import PartitionRanking, PendingReason, Plan
from shared_state.tasks import PreferenceCatalog
from tests.unit.agent_bench import make_table

NONE = np.zeros(0, np.int64)
ATTEMPTS_MAX = 3


def plan_of(task: list[int], pending: list[int], reason: list[PendingReason]) -> Plan:
    k = len(task)
    return Plan(
        np.array(task, np.int64),
        np.zeros(k, np.int32),
        np.ones((k, 1), np.int64),
        np.full(k, -1),
        NONE,
        np.array(pending, np.int64),
        np.array(reason, np.int8),
        0,
        0,
    )


def batch(*task: int) -> QueuedTasks:
    return QueuedTasks.new(np.array(task, np.int64), 1)


def round_of(
    offered: QueuedTasks, task: list[int], pending: list[int], reason: list[PendingReason]
) -> Round:
    return Round(
        1, 0, PartitionRanking.OPTIMISTIC, offered, len(offered), plan_of(task, pending, reason)
    )


def lose(backlog: PendingQueue, round_: Round, lost: list[int]) -> QueueExits:
    """The round is over, its losers with one more attempt."""
    claimed = backlog.claimed_tasks(round_)
    losers = QueuedTasks(claimed.task, claimed.attempts + 1, claimed.first).take(
        np.isin(claimed.task, lost)
    )
    return backlog.on_committed(round_, losers)


def test_the_work_at_hand_goes_on_before_the_next_batch() -> None:
    backlog = AgentQueue(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX)
    backlog.add(batch(1, 2, 3))
    backlog.add(batch(7))
    assert backlog.next_batch(0, False) == 3
    round_ = round_of(backlog.take(2), [2, 1], [], [])
    assert backlog.on_planned(round_).retry == 0 and not round_.blocked
    assert lose(backlog, round_, [1]).retry == 0
    assert backlog.next_batch(0, False) == 0, "the batch at hand goes on"
    again = backlog.take(None)
    assert (again.task.tolist(), again.attempts.tolist()) == ([1, 3], [1, 0]), "the loser first"
    assert backlog.next_batch(0, False) == 1 and backlog.take(None).task.tolist() == [7]
    assert backlog.next_batch(0, True) is None and not backlog.has_waiting


def test_requeued_tasks_rejoin_at_the_tail_until_they_are_spent() -> None:
    backlog = AgentQueue(LoserPolicy.REQUEUE, ATTEMPTS_MAX, ATTEMPTS_MAX)
    backlog.add(batch(1, 2))
    for attempt in range(1, ATTEMPTS_MAX + 1):
        assert backlog.next_batch(0, False) == 2
        round_ = round_of(backlog.take(None), [1, 2], [], [])
        backlog.on_planned(round_)
        exits = lose(backlog, round_, [1, 2])
        assert backlog.next_batch(0, False) is None, "paused"
        if attempt < ATTEMPTS_MAX:
            backlog.on_requeue_due(exits.retry)
    assert exits.abandoned.tolist() == [1, 2] and exits.retry == 0


def rounds_until_given_up(
    backlog: AgentQueue, claimed: list[int], lost: list[int], left: list[int]
) -> int:
    """How often a batch of tasks 1 to 3 is tried, if the first round goes as said and all later
    ones place nothing."""
    backlog.add(batch(1, 2, 3))
    for attempt in range(1, 50):
        assert backlog.next_batch(0, False), "rejoined in one piece"
        offered = backlog.take(None)
        round_ = round_of(offered, claimed, left, [PendingReason.NO_ROOM] * len(left))
        exits = backlog.on_planned(round_)
        assert exits.retry == 0, "those without room pause with the losers"
        exits = lose(backlog, round_, lost)
        if not exits.retry:
            assert sorted(exits.abandoned.tolist()) == sorted(lost + left)
            return attempt
        backlog.on_requeue_due(exits.retry)
        claimed, lost, left = [], [], sorted(lost + left)
    raise AssertionError("tried for ever")


def test_requeued_tasks_are_given_up_sooner_if_nothing_of_their_batch_was_ever_placed() -> None:
    """Omega's two limits. Rounds that found no room count as attempts, too."""
    backlog = AgentQueue(LoserPolicy.REQUEUE, 7, 4)
    assert rounds_until_given_up(backlog, [1, 2, 3], [1, 2, 3], []) == 4
    assert rounds_until_given_up(backlog, [], [], [1, 2, 3]) == 4
    assert rounds_until_given_up(backlog, [2], [2], [1, 3]) == 4
    assert rounds_until_given_up(backlog, [1, 2], [1], [3]) == 7, "task 2 got a place"
    assert rounds_until_given_up(AgentQueue(LoserPolicy.REQUEUE, 3, 100), [], [], [1, 2, 3]) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: AgentQueue(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX),
        lambda: SchedulerQueue(True),
    ],
)
def test_tasks_that_can_never_run_leave_the_backlog(make: Callable[[], PendingQueue]) -> None:
    backlog = make()
    backlog.add(batch(4, 5))
    assert backlog.next_batch(0, False) == 2
    round_ = round_of(
        backlog.take(None), [], [5, 4], [PendingReason.TOO_LARGE, PendingReason.NO_ROOM]
    )
    too_large = [
        *backlog.on_planned(round_).too_large.tolist(),
        *backlog.on_committed(round_, NO_TASKS).too_large.tolist(),
    ]
    assert too_large == [5]
    keeps = isinstance(backlog, SchedulerQueue)
    assert round_.blocked != keeps
    assert backlog.next_batch(0, True) is not None
    assert backlog.take(None).task.tolist() == ([] if keeps else [4])


def test_a_scheduler_that_remembers_is_offered_new_tasks_and_losers_only() -> None:
    backlog = SchedulerQueue(True)
    backlog.add(batch(1, 2))
    backlog.add(batch(3))
    assert backlog.next_batch(0, False) == 3
    round_ = round_of(
        backlog.take(None), [2], [1, 3], [PendingReason.NO_ROOM, PendingReason.PRICED_OUT]
    )
    backlog.on_planned(round_)
    lose(backlog, round_, [2])
    assert backlog.next_batch(0, False) == 1
    round_ = round_of(backlog.take(None), [3, 2], [], [])  # 3 was offered in the round before
    backlog.on_planned(round_)
    claimed = backlog.claimed_tasks(round_)
    assert (claimed.task.tolist(), claimed.attempts.tolist()) == ([3, 2], [0, 1])
    lose(backlog, round_, [])
    assert backlog.has_waiting and backlog.next_batch(0, False) is None, (
        "1 waits with the scheduler"
    )
    assert backlog.next_batch(0, True) == 1 and not len(backlog.take(None))


def test_a_scheduler_that_remembers_may_have_several_rounds_under_way() -> None:
    """As it does not wait for outcomes: the second claims what the first left, before the first
    one's losers are known."""
    backlog = SchedulerQueue(False)
    backlog.add(batch(1, 2))
    backlog.add(batch(3, 4))
    assert backlog.next_batch(0, False) == 2
    first = round_of(backlog.take(None), [1], [2], [PendingReason.NO_ROOM])
    backlog.on_planned(first)
    assert backlog.next_batch(0, False) == 2, "one batch at a time"
    second = round_of(backlog.take(1), [2, 3], [], [])
    backlog.on_planned(second)
    lose(backlog, first, [1])
    lose(backlog, second, [2])
    assert backlog.next_batch(0, False) == 0, "losers and the rest of the batch at hand"
    again = backlog.take(None)
    assert (again.task.tolist(), again.attempts.tolist()) == ([2, 1, 4], [1, 1, 0])
    assert not backlog.has_waiting and backlog.next_batch(0, True) is None


@pytest.mark.parametrize("losers", LoserPolicy)
def test_all_new_tasks_are_at_hand_but_a_requeued_batch_stays_by_itself(
    losers: LoserPolicy,
) -> None:
    backlog = AgentQueue(losers, ATTEMPTS_MAX, ATTEMPTS_MAX, whole_queue=True)
    backlog.add(batch(1, 2))
    backlog.add(batch(3))
    assert backlog.next_batch(0, False) == 3
    round_ = round_of(backlog.take(None), [1, 2, 3], [], [])
    backlog.on_planned(round_)
    exits = lose(backlog, round_, [2])
    backlog.add(batch(4))
    if losers is LoserPolicy.REQUEUE:
        backlog.on_requeue_due(exits.retry)
    backlog.add(batch(5))
    assert backlog.next_batch(0, False)
    requeued = losers is LoserPolicy.REQUEUE
    assert backlog.take(None).task.tolist() == ([4, 5] if requeued else [2, 4, 5])
    assert backlog.next_batch(0, False) == (1 if requeued else None)


def skipped_units(head_of_line_us: int | None) -> SkippedUnits:
    """For tasks of three sizes in turn."""
    table = make_table(60)
    table.request[:, 0] = 1 + np.arange(60) % 3
    return SkippedUnits(UnitSizes(table, PreferenceCatalog.empty()), head_of_line_us, None)


@st.composite
def queues(draw: st.DrawFn) -> AgentQueue:
    losers, whole_queue = draw(st.sampled_from(LoserPolicy)), draw(st.booleans())
    skipped = None
    if losers is LoserPolicy.BLOCK and not whole_queue and draw(st.booleans()):
        skipped = skipped_units(draw(st.none() | st.integers(1, 8)))
    return AgentQueue(losers, ATTEMPTS_MAX, ATTEMPTS_MAX, whole_queue=whole_queue, skipped=skipped)


@given(st.data(), queues())
def test_every_task_is_somewhere(data: st.DataObject, backlog: AgentQueue) -> None:
    given_tasks, gone, paused = 0, set[int](), list[int]()
    for now_us in range(data.draw(st.integers(1, 12))):
        size = data.draw(st.integers(0, 5))
        if size:
            backlog.add(batch(*range(given_tasks, given_tasks + size)))
            given_tasks += size
        changed = data.draw(st.booleans())
        has_next = backlog.has_next(now_us, changed)
        begun = backlog.next_batch(now_us, changed)
        assert has_next == (begun is not None)
        if begun is None:
            continue
        offered = backlog.take(data.draw(st.none() | st.integers(1, 4)))
        assert len(offered)
        fate = data.draw(
            st.lists(st.sampled_from("plwh"), min_size=len(offered), max_size=len(offered))
        )
        tasks = dict(zip(offered.task.tolist(), fate, strict=True))
        assert gone.isdisjoint(tasks), "what has been placed is never offered again"
        waiting = [task for task, its in tasks.items() if its in "wh"]
        reason = [
            PendingReason.TOO_LARGE if tasks[task] == "h" else PendingReason.NO_ROOM
            for task in waiting
        ]
        round_ = round_of(
            offered, [task for task, its in tasks.items() if its in "pl"], waiting, reason
        )
        round_.start_us = now_us
        for exits in (
            backlog.on_planned(round_),
            lose(backlog, round_, [task for task, its in tasks.items() if its == "l"]),
        ):
            gone |= {*exits.too_large.tolist(), *exits.abandoned.tolist()}
            paused += [exits.retry] * (exits.retry != 0)
        gone |= {task for task, its in tasks.items() if its == "p"}
    for key in paused:
        backlog.on_requeue_due(key)
    left: list[int] = []
    while backlog.next_batch(0, True) is not None:
        left += backlog.take(None).task.tolist()
    assert sorted([*gone, *left]) == list(range(given_tasks))


@pytest.mark.parametrize(
    ("limit", "offered"),
    [
        (1, [0]),
        (2, [0]),
        (3, [0]),
        (4, [0, 1, 2, 3]),
        (5, [0, 1, 2, 3, 4]),
        (6, [0, 1, 2, 3, 4]),
        (99, [*range(7)]),
    ],
)
def test_no_round_parts_a_gang(limit: int, offered: list[int]) -> None:
    gang = np.array([-1, 7, 7, 7, -1, 8, 8])
    backlogs: list[PendingQueue] = [
        AgentQueue(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX, gang),
        SchedulerQueue(False, gang),
    ]
    for backlog in backlogs:
        backlog.add(batch(*range(7)))
        backlog.next_batch(0, False)
        assert backlog.take(limit).task.tolist() == offered


def test_a_gang_that_a_round_has_no_time_for_is_offered_whole() -> None:
    backlog = AgentQueue(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX, np.array([7, 7, 7, -1]))
    backlog.add(batch(0, 1, 2, 3))
    backlog.next_batch(0, False)
    assert backlog.take(1).task.tolist() == [0, 1, 2]


def offer(
    backlog: AgentQueue, now_us: int, without_room: set[int], view_changed: bool = False
) -> list[int] | None:
    """The tasks of the next round, which leaves these without room; None if there is no round."""
    if backlog.next_batch(now_us, view_changed) is None:
        return None
    offered = backlog.take(None)
    tasks = offered.task.tolist()
    left = [task for task in tasks if task in without_room]
    placed = [task for task in tasks if task not in without_room]
    round_ = round_of(offered, placed, left, [PendingReason.NO_ROOM] * len(left))
    round_.start_us = now_us
    backlog.on_planned(round_)
    lose(backlog, round_, [])
    return tasks


def passing(head_of_line_us: int | None) -> AgentQueue:
    """With a task each of size 2, 1, 3, 2 and 1 behind each other: 1, 0, 2, 4 and 3."""
    skipped = skipped_units(head_of_line_us)
    backlog = AgentQueue(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX, skipped=skipped)
    for task in (1, 0, 2, 4, 3):
        backlog.add(batch(task))
    return backlog


def test_a_task_without_room_lets_those_that_fit_go_ahead() -> None:
    backlog = passing(None)
    assert [offer(backlog, 0, {1, 2, 4}) for _ in range(6)] == [[1], [0], [2], [4], [3], None]
    # in the order in which they lacked room; one at least as large as another is not tried
    assert offer(backlog, 1, {1, 2, 4}, view_changed=True) == [1]
    assert offer(backlog, 1, {1, 2, 4}) is None
    assert offer(backlog, 2, {2}, view_changed=True) == [1]
    assert [offer(backlog, 2, {2}) for _ in range(3)] == [[2], [4], None]


def test_a_task_that_has_waited_long_enough_holds_the_queue() -> None:
    backlog = passing(10)
    assert offer(backlog, 5, {1}) == [1]
    assert offer(backlog, 14, set()) == [0] and backlog.has_new(14)
    assert not backlog.has_new(15)
    assert offer(backlog, 15, set()) is None
    assert offer(backlog, 16, {1}, view_changed=True) == [1]
    assert offer(backlog, 16, set()) is None
    assert offer(backlog, 17, set(), view_changed=True) == [1]
    assert [offer(backlog, 17, set()) for _ in range(4)] == [[2], [4], [3], None]


def test_a_claim_that_is_rejected_does_not_begin_the_wait_anew() -> None:
    backlog = passing(10)
    assert offer(backlog, 5, {1}) == [1]
    assert backlog.next_batch(14, True) == 0
    round_ = round_of(backlog.take(None), [1], [], [])
    backlog.on_planned(round_)
    lose(backlog, round_, [1])
    assert offer(backlog, 14, {1}) == [1], "losers come first"
    assert backlog.has_new(14) and not backlog.has_new(15)


def test_a_batch_behind_is_tried_after_each_turn_however_often_the_view_changes() -> None:
    backlog = passing(None)
    tried = [offer(backlog, 0, {1, 0, 2, 4, 3}, view_changed=True) for _ in range(20)]
    firsts = [tried.index([task]) for task in (1, 0, 2, 4, 3)]
    assert firsts == sorted(firsts)
