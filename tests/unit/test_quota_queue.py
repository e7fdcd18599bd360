"""The queue of an agent with quotas: what is offered fits the grants, by priority within a group,
and no group waits for another's room."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parsync.core.queued_tasks import QueuedTasks, SkippedUnits, UnitSizes
from parsync.core.quotas import TaskQuotas
from parsync.protocols.agent_quota import QuotaAccount
from parsync.protocols.pending_queue import (
    AgentQueue,
    LoserPolicy,
)
from parsync.protocols.rounds import Round
from schedulers.interface import PartitionRanking, PendingReason, Plan
from shared_state.tasks import PreferenceCatalog, TaskBatch
from tests.unit.agent_bench import make_table

TASKS = 100
GROUPS = np.arange(TASKS, dtype=np.int32) // 10 % 2  # 0..9: group 0, 10..19: group 1, ...
NONE = np.zeros(0, np.int64)


class World:
    """A queue and its account; requests are 1 unless the table says otherwise."""

    def __init__(
        self, *granted: int, table: TaskBatch | None = None, whole_queue: bool = False
    ) -> None:
        self.table = make_table(TASKS) if table is None else table
        self.account = QuotaAccount(TaskQuotas(2, GROUPS), self.table)
        gang = self.table.gang if (self.table.gang >= 0).any() else None
        self.queue = AgentQueue(
            LoserPolicy.BLOCK,
            9,
            9,
            gang,
            whole_queue,
            account=self.account,
            priority=self.table.priority,
        )
        self.grant(*granted)

    def grant(self, *granted: int) -> None:
        self.account.granted = np.array(granted, np.int64)[:, None]
        self.account.look()

    def add(self, *task: int) -> None:
        self.queue.add(QueuedTasks.new(np.array(task), 1))

    def offered(self, limit: int | None = None) -> list[int] | None:
        """The next round's tasks; None if there is no round."""
        assert self.queue.has_next(0, True) == (self.queue.next_batch(0, True) is not None)
        if self.queue.next_batch(0, True) is None:
            return None
        self.round = Round(0, 0, PartitionRanking.OPTIMISTIC, self.queue.take(limit), 1)
        return [int(task) for task in self.round.offered.task]

    def decide(self, placed: list[int], lost: list[int]) -> None:
        """The open round places some of its tasks and loses some of these."""
        offered = self.round.offered.task
        pending = offered[~np.isin(offered, placed)]
        claims = np.array(placed, np.int64)
        k = len(claims)
        reason = np.full(len(pending), PendingReason.NO_ROOM, np.int8)
        request = self.table.request[claims]
        self.round.plan = Plan(
            claims, np.zeros(k, np.int32), request, np.full(k, -1), NONE, pending, reason, 0, 0
        )
        self.queue.on_planned(self.round)
        claimed = self.queue.claimed_tasks(self.round)
        self.queue.on_committed(self.round, claimed.take(np.isin(claimed.task, lost)))


def test_no_more_is_offered_than_was_granted() -> None:
    world = World(3, 0)
    world.add(*range(10))
    assert world.offered() == [0, 1, 2]
    assert world.offered() is None
    assert world.account.held.tolist() == [[3], [0]] and world.account.waiting[0] == 7


def test_nothing_is_offered_before_the_first_grant() -> None:
    world = World(0, 0)
    world.add(0)
    assert world.offered() is None


def test_a_group_without_room_keeps_nobody_waiting() -> None:
    world = World(0, 5)
    world.add(0, 1)
    world.add(10, 11)
    assert world.offered() == [10, 11]


def test_a_batch_may_have_tasks_of_two_groups() -> None:
    world = World(1, 1)
    world.add(0, 10, 1, 11)
    assert world.offered() == [0]
    assert world.offered() == [10]
    world.grant(9, 9)
    assert (world.offered(), world.offered()) == ([11], [1])  # put back later, so before others


def test_the_group_that_waits_longest_is_next() -> None:
    world = World(9, 9)
    world.add(10, 11)
    world.add(0)
    world.add(12)
    assert [world.offered() for _ in range(3)] == [[10, 11], [0], [12]]


def test_high_priority_first_within_a_group() -> None:
    table = make_table(TASKS)
    table = replace(table, priority=(table.task % 10 // 5).astype(np.int32))  # 5..9 are higher
    world = World(9, 9, table=table)
    world.add(0, 1)
    world.add(2, 7)
    assert [world.offered() for _ in range(3)] == [[7], [0, 1], [2]]


def test_a_large_task_is_not_overtaken_within_its_group() -> None:
    table = make_table(TASKS)
    request = table.request.copy()
    request[1] = 4
    world = World(3, 9, table=replace(table, request=request))
    world.add(0, 1, 2)
    assert world.offered() == [0] and world.offered() is None
    world.grant(6, 0)
    assert world.offered() == [1, 2]


def test_a_gang_is_not_parted() -> None:
    table = make_table(TASKS)
    gang = np.where(table.task < 10, table.task // 4, -1)
    world = World(6, 9, table=replace(table, gang=gang))
    world.add(*range(8))
    assert world.offered() == [0, 1, 2, 3] and world.offered() is None
    world.grant(8, 0)
    assert world.offered() == [4, 5, 6, 7]


def test_losers_and_what_found_no_place_are_offered_again_within_the_grant() -> None:
    world = World(4, 0)
    world.add(0, 1, 2, 3)
    assert world.offered() == [0, 1, 2, 3]
    world.decide(placed=[0, 1], lost=[1])
    assert world.account.held[0] == 1 and world.account.waiting[0] == 3
    world.grant(2, 0)
    assert world.offered() == [1] and world.offered() is None
    world.grant(9, 0)
    assert world.offered() == [2, 3]


def test_room_of_ended_tasks_counts_from_the_next_look_on() -> None:
    world = World(1, 0)
    world.add(0, 1)
    world.offered()
    world.account.end(np.array([0]))
    assert world.offered() is None and world.account.held[0] == 0
    world.account.look()
    assert world.offered() == [1]


def test_all_new_tasks_join_a_round_about_the_whole_queue() -> None:
    world = World(3, 1, whole_queue=True)
    world.add(0, 1)
    world.add(10, 11)
    world.add(2, 3)
    assert world.queue.has_new(0)
    assert world.offered() == [0, 1, 10, 2]
    world.decide(placed=[], lost=[])
    assert not world.queue.has_new(0)  # what found no place is not new
    assert world.offered() == [0, 1, 10, 2]


def test_who_goes_back_into_line_costs_none_behind_its_turn() -> None:
    """Tasks 0, 10 and 11 lack room since 0, 5 and 5 us. In a new view 0 is tried again; then its
    group may hold nothing any more, and it is time for it to hold the queue."""
    table = make_table(TASKS)
    request = table.request.copy()
    request[[0, 10, 11], 0] = [3, 2, 1]
    table = replace(table, request=request)
    world = World(9, 9, table=table)
    skipped = SkippedUnits(UnitSizes(table, PreferenceCatalog.empty()), 10, None, world.account)
    world.queue = AgentQueue(
        LoserPolicy.BLOCK, 9, 9, skipped=skipped, account=world.account, priority=table.priority
    )

    def tried(now_us: int, view_changed: bool = False) -> list[int]:
        assert world.queue.next_batch(now_us, view_changed) is not None
        offered = world.queue.take(None)
        world.round = Round(0, now_us, PartitionRanking.OPTIMISTIC, offered, 1)
        world.decide(placed=[], lost=[])
        return [int(task) for task in offered.task]

    for task in (0, 10, 11):
        world.add(task)
    assert [tried(0), tried(5), tried(5), tried(9, True)] == [[0], [10], [11], [0]]
    world.grant(0, 9)
    assert [tried(12), tried(12)] == [[10], [11]]
    world.grant(9, 9)
    assert tried(13) == [0]


@given(st.data(), st.booleans())
def test_nothing_is_lost_and_the_account_adds_up(data: st.DataObject, whole_queue: bool) -> None:
    world = World(4, 4, whole_queue=whole_queue)
    new, placed = list(range(60)), []
    for _ in range(data.draw(st.integers(1, 12))):
        batch, new = new[: data.draw(st.integers(1, 15))], new
        new = new[len(batch) :]
        if batch:
            world.add(*batch)
        world.grant(data.draw(st.integers(0, 20)), data.draw(st.integers(0, 20)))
        before = world.account.held.copy()
        offered = world.offered(data.draw(st.none() | st.integers(1, 9)))
        if offered is None:
            continue
        grown = (world.account.held > before)[:, 0]
        assert (world.account.held <= world.account.granted)[grown].all()
        claims = [task for task in offered if data.draw(st.booleans())]
        lost = [task for task in claims if data.draw(st.booleans())]
        world.decide(claims, lost)
        placed += [task for task in claims if task not in lost]
        if placed and data.draw(st.booleans()):
            world.account.end(np.array([placed[0]]))
            world.account.adopt(np.array([placed[0]]))
        assert world.account.held.sum() == len(placed)
        assert world.account.waiting.sum() == 60 - len(new) - len(placed)
    world.grant(1000, 1000)
    while (offered := world.offered()) is not None:
        world.decide(offered, [])
        placed += offered
    assert sorted(placed + new) == list(range(60))
