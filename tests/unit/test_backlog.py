"""What an agent was given and has not placed: nothing is lost, nothing is offered twice, the order
holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.protocols.optimistic.backlog import Aside, Backlog, OfferedBacklog, RetainedBacklog
from parsync.protocols.optimistic.choices import LoserPolicy
from parsync.protocols.optimistic.work import NO_WORK, Round, Work
from schedulers.interface import PartitionRanking, PendingReason, Plan

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


def batch(*task: int) -> Work:
    return Work.fresh(np.array(task, np.int64), 1)


def round_of(
    offered: Work, task: list[int], pending: list[int], reason: list[PendingReason]
) -> Round:
    return Round(
        1, 0, PartitionRanking.OPTIMISTIC, offered, len(offered), plan_of(task, pending, reason)
    )


def lose(backlog: Backlog, this: Round, lost: list[int]) -> Aside:
    """The round is over, its losers with one more attempt."""
    claimed = backlog.claimed(this)
    losers = Work(claimed.task, claimed.attempts + 1, claimed.first).take(
        np.isin(claimed.task, lost)
    )
    return backlog.over(this, losers)


def test_the_work_at_hand_goes_on_before_the_next_batch() -> None:
    backlog = OfferedBacklog(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX)
    backlog.add(batch(1, 2, 3))
    backlog.add(batch(7))
    assert backlog.begin(False) == 3
    this = round_of(backlog.offer(2), [2, 1], [], [])
    assert backlog.planned(this).retry == 0 and not this.starved
    assert lose(backlog, this, [1]).retry == 0
    assert backlog.begin(False) == 0, "the batch at hand goes on"
    again = backlog.offer(None)
    assert (again.task.tolist(), again.attempts.tolist()) == ([1, 3], [1, 0]), "the loser first"
    assert backlog.begin(False) == 1 and backlog.offer(None).task.tolist() == [7]
    assert backlog.begin(True) is None and not backlog.waiting


def test_requeued_tasks_rejoin_at_the_tail_until_they_are_spent() -> None:
    backlog = OfferedBacklog(LoserPolicy.REQUEUE, ATTEMPTS_MAX, ATTEMPTS_MAX)
    backlog.add(batch(1, 2))
    for attempt in range(1, ATTEMPTS_MAX + 1):
        assert backlog.begin(False) == 2
        this = round_of(backlog.offer(None), [1, 2], [], [])
        backlog.planned(this)
        aside = lose(backlog, this, [1, 2])
        assert backlog.begin(False) is None, "paused"
        if attempt < ATTEMPTS_MAX:
            backlog.rejoin(aside.retry)
    assert aside.spent.tolist() == [1, 2] and aside.retry == 0


def rounds_until_given_up(
    backlog: OfferedBacklog, claimed: list[int], lost: list[int], left: list[int]
) -> int:
    """How often a batch of tasks 1 to 3 is tried, if the first round goes as said and all later
    ones place nothing."""
    backlog.add(batch(1, 2, 3))
    for attempt in range(1, 50):
        assert backlog.begin(False), "rejoined in one piece"
        offered = backlog.offer(None)
        this = round_of(offered, claimed, left, [PendingReason.NO_ROOM] * len(left))
        aside = backlog.planned(this)
        assert aside.retry == 0, "those without room pause with the losers"
        aside = lose(backlog, this, lost)
        if not aside.retry:
            assert sorted(aside.spent.tolist()) == sorted(lost + left)
            return attempt
        backlog.rejoin(aside.retry)
        claimed, lost, left = [], [], sorted(lost + left)
    raise AssertionError("tried for ever")


def test_requeued_tasks_are_given_up_sooner_if_nothing_of_their_batch_was_ever_placed() -> None:
    """Omega's two limits. Rounds that found no room count as attempts, too."""
    backlog = OfferedBacklog(LoserPolicy.REQUEUE, 7, 4)
    assert rounds_until_given_up(backlog, [1, 2, 3], [1, 2, 3], []) == 4
    assert rounds_until_given_up(backlog, [], [], [1, 2, 3]) == 4
    assert rounds_until_given_up(backlog, [2], [2], [1, 3]) == 4
    assert rounds_until_given_up(backlog, [1, 2], [1], [3]) == 7, "task 2 got a place"
    assert (
        rounds_until_given_up(OfferedBacklog(LoserPolicy.REQUEUE, 3, 100), [], [], [1, 2, 3]) == 3
    )


@pytest.mark.parametrize(
    "backlog",
    [OfferedBacklog(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX), RetainedBacklog(True)],
)
def test_tasks_that_can_never_run_leave_the_backlog(backlog: Backlog) -> None:
    backlog.add(batch(4, 5))
    assert backlog.begin(False) == 2
    this = round_of(
        backlog.offer(None), [], [5, 4], [PendingReason.TOO_LARGE, PendingReason.NO_ROOM]
    )
    hopeless = [
        *backlog.planned(this).hopeless.tolist(),
        *backlog.over(this, NO_WORK).hopeless.tolist(),
    ]
    assert hopeless == [5]
    keeps = isinstance(backlog, RetainedBacklog)
    assert this.starved != keeps
    assert backlog.begin(True) is not None
    assert backlog.offer(None).task.tolist() == ([] if keeps else [4])


def test_a_scheduler_that_remembers_is_offered_new_tasks_and_losers_only() -> None:
    backlog = RetainedBacklog(True)
    backlog.add(batch(1, 2))
    backlog.add(batch(3))
    assert backlog.begin(False) == 3
    this = round_of(
        backlog.offer(None), [2], [1, 3], [PendingReason.NO_ROOM, PendingReason.PRICED_OUT]
    )
    backlog.planned(this)
    lose(backlog, this, [2])
    assert backlog.begin(False) == 1
    this = round_of(backlog.offer(None), [3, 2], [], [])  # 3 was offered in the round before
    backlog.planned(this)
    claimed = backlog.claimed(this)
    assert (claimed.task.tolist(), claimed.attempts.tolist()) == ([3, 2], [0, 1])
    lose(backlog, this, [])
    assert backlog.waiting and backlog.begin(False) is None, "1 waits with the scheduler"
    assert backlog.begin(True) == 1 and not len(backlog.offer(None))


def test_a_scheduler_that_remembers_may_have_several_rounds_under_way() -> None:
    """As it does not wait for outcomes: the second claims what the first left, before the first
    one's losers are known."""
    backlog = RetainedBacklog(False)
    backlog.add(batch(1, 2))
    backlog.add(batch(3, 4))
    assert backlog.begin(False) == 2
    first = round_of(backlog.offer(None), [1], [2], [PendingReason.NO_ROOM])
    backlog.planned(first)
    assert backlog.begin(False) == 2, "one batch at a time"
    second = round_of(backlog.offer(1), [2, 3], [], [])
    backlog.planned(second)
    lose(backlog, first, [1])
    lose(backlog, second, [2])
    assert backlog.begin(False) == 0, "losers and the rest of the batch at hand"
    again = backlog.offer(None)
    assert (again.task.tolist(), again.attempts.tolist()) == ([2, 1, 4], [1, 1, 0])
    assert not backlog.waiting and backlog.begin(True) is None


@pytest.mark.parametrize("losers", LoserPolicy)
def test_all_new_tasks_are_at_hand_but_a_requeued_batch_stays_by_itself(
    losers: LoserPolicy,
) -> None:
    backlog = OfferedBacklog(losers, ATTEMPTS_MAX, ATTEMPTS_MAX, whole_queue=True)
    backlog.add(batch(1, 2))
    backlog.add(batch(3))
    assert backlog.begin(False) == 3
    this = round_of(backlog.offer(None), [1, 2, 3], [], [])
    backlog.planned(this)
    aside = lose(backlog, this, [2])
    backlog.add(batch(4))
    if losers is LoserPolicy.REQUEUE:
        backlog.rejoin(aside.retry)
    backlog.add(batch(5))
    assert backlog.begin(False)
    requeued = losers is LoserPolicy.REQUEUE
    assert backlog.offer(None).task.tolist() == ([4, 5] if requeued else [2, 4, 5])
    assert backlog.begin(False) == (1 if requeued else None)


@given(st.data(), st.sampled_from(LoserPolicy), st.booleans())
def test_every_task_is_somewhere(
    data: st.DataObject, losers: LoserPolicy, whole_queue: bool
) -> None:
    backlog = OfferedBacklog(losers, ATTEMPTS_MAX, ATTEMPTS_MAX, whole_queue=whole_queue)
    given_tasks, gone, paused = 0, set[int](), list[int]()
    for _ in range(data.draw(st.integers(1, 12))):
        size = data.draw(st.integers(0, 5))
        if size:
            backlog.add(batch(*range(given_tasks, given_tasks + size)))
            given_tasks += size
        if backlog.begin(False) is None:
            continue
        offered = backlog.offer(data.draw(st.none() | st.integers(1, 4)))
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
        this = round_of(
            offered, [task for task, its in tasks.items() if its in "pl"], waiting, reason
        )
        for aside in (
            backlog.planned(this),
            lose(backlog, this, [task for task, its in tasks.items() if its == "l"]),
        ):
            gone |= {*aside.hopeless.tolist(), *aside.spent.tolist()}
            paused += [aside.retry] * (aside.retry != 0)
        gone |= {task for task, its in tasks.items() if its == "p"}
    for key in paused:
        backlog.rejoin(key)
    left: list[int] = []
    while backlog.begin(True) is not None:
        left += backlog.offer(None).task.tolist()
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
    backlogs: list[Backlog] = [
        OfferedBacklog(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX, gang),
        RetainedBacklog(False, gang),
    ]
    for backlog in backlogs:
        backlog.add(batch(*range(7)))
        backlog.begin(False)
        assert backlog.offer(limit).task.tolist() == offered


def test_a_gang_that_a_round_has_no_time_for_is_offered_whole() -> None:
    backlog = OfferedBacklog(LoserPolicy.BLOCK, ATTEMPTS_MAX, ATTEMPTS_MAX, np.array([7, 7, 7, -1]))
    backlog.add(batch(0, 1, 2, 3))
    backlog.begin(False)
    assert backlog.offer(1).task.tolist() == [0, 1, 2]
