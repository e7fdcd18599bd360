"""The queue of an agent whose arm has quota groups: it offers the tasks of a group only while the
group's grant has room for them.

Each group has a line of its own. Within it tasks of higher priority come first, and among equals
those submitted first. Among groups with room, the batch submitted first is next. So one group's
tasks never wait for another group to get room.

A round keeps the grant as it stands when the tasks are offered. What it claims was within it.
"""

from __future__ import annotations

import heapq

import numpy as np

from parsync.core.head_of_line import PassedOver
from parsync.core.queued_tasks import NO_TASKS, QueuedTasks
from parsync.core.quota_account import QuotaAccount
from parsync.metrics.tables import Waiting
from parsync.protocols.optimistic.choices import LoserPolicy
from parsync.protocols.optimistic.pending_queue import AgentQueue, QueueExits
from parsync.protocols.optimistic.rounds import Round
from parsync.protocols.waiting_tasks import WaitingPart
from shared_state.tasks import Int32, Int64

_Entry = tuple[int, int, QueuedTasks]  # -priority, number, tasks of one group and priority


class QuotaQueue(AgentQueue):
    """An AgentQueue with a line for each quota group.

    Args:
        account: Of the agent. The queue enters what becomes of its tasks until they are committed.
        priority: int32[n], by task id.
        losers, attempts_max, attempts_max_unplaced, gang, whole_queue, passed: As for AgentQueue.
    """

    def __init__(
        self,
        account: QuotaAccount,
        priority: Int32,
        losers: LoserPolicy,
        attempts_max: int,
        attempts_max_unplaced: int,
        gang: Int64 | None = None,
        whole_queue: bool = False,
        passed: PassedOver | None = None,
    ) -> None:
        super().__init__(losers, attempts_max, attempts_max_unplaced, gang, whole_queue, passed)
        self._account = account
        self._priority = priority
        self._lines: list[list[_Entry]] = [[] for _ in range(account.groups)]
        self._last = 0  # number given to a batch; numbers ascend
        self._first = 0  # number given to one that is put back; these descend

    def add(self, work: QueuedTasks) -> None:
        self._account.submit(work.task)
        self._append(work)

    def next_batch(self, now_us: int, view_changed: bool) -> int | None:
        while self._passed is not None and (held := self._passed.release(now_us)) is not None:
            self._put_back(held)
        return super().next_batch(now_us, view_changed)

    def waiting(self, now_us: int) -> list[WaitingPart]:
        parts = super().waiting(now_us)
        holder = self.holder(now_us)
        for line in self._lines:
            ordered = [work.task for _, _, work in sorted(line, key=lambda entry: entry[:2])]
            if not ordered:
                continue
            task = np.concatenate(ordered)
            if not self._account.has_room(task, NO_TASKS.task):
                parts.append(WaitingPart(task, Waiting.QUOTA))
            elif len(holder):
                parts.append(WaitingPart(task, Waiting.BEHIND, int(holder[0])))
            else:
                parts.append(WaitingPart(task, Waiting.NOT_TRIED))
        return parts

    def current(self) -> QueuedTasks:
        if self._losers or self._place is not None:
            return super().current()
        self._current = self._within_quota(self._current)
        return self._current

    def take(self, limit: int | None) -> QueuedTasks:
        offered = super().take(limit)
        self._account.offer(offered.task)
        return offered

    def on_planned(self, round_: Round) -> QueueExits:
        assert round_.plan is not None, "the round is decided"
        self._account.withdraw(round_.plan.pending)
        exits = super().on_planned(round_)
        self._account.drop(exits.too_large)
        return exits

    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits:
        self._account.withdraw(losers.task)
        exits = super().on_committed(round_, losers)
        self._account.drop(exits.abandoned)
        return exits

    def on_requeue_due(self, key: int) -> None:
        self._append(self._paused.pop(key))

    def _has_new_batches(self) -> bool:
        return self._whole_queue and any(not head[2].rounds for head in self._heads_after_current())

    def _has_batch(self) -> bool:
        return self._may_continue() or len(self._heads()) > 0

    def _has_losers(self) -> bool:
        while self._losers:
            losers, since_us = self._losers.popleft()
            losers = self._within_quota(losers)
            if len(losers):
                self._losers.appendleft((losers, since_us))
                return True
        return False

    def _begin_batch(self) -> int | None:
        if self._has_new_batches():
            self._current = QueuedTasks.join([self._current, *self._take_new()])
            return len(self._current)
        if self._may_continue():
            return 0
        heads = self._heads()
        if not heads:
            return None
        self._put_back(self._current)
        group = self._account.of_task[min(heads, key=lambda head: head[1])[2].task[0]]
        self._current = heapq.heappop(self._lines[group])[2]
        return len(self._current)

    def _within_quota(self, work: QueuedTasks) -> QueuedTasks:
        """The tasks that may be offered now; the others are put back into their lines."""
        fits = self._account.within(work.task)
        if fits.all():
            return work
        self._put_back(work.take(~fits))
        return work.take(fits)

    def _may_continue(self) -> bool:
        """Whether a task of the current batch may be offered."""
        return len(self._current) > 0 and bool(self._account.within(self._current.task).any())

    def _heads(self, before: Int64 = NO_TASKS.task) -> list[_Entry]:
        """The first batch of each group that has room for the batch's first task, besides the tasks
        `before`, int64[n]."""
        heads = (line[0] for line in self._lines if line)
        return [head for head in heads if self._account.has_room(head[2].task, before)]

    def _heads_after_current(self) -> list[_Entry]:
        """As _heads, besides the current batch: what is left of that found no place, and others of
        its group that wait only for quota would find none either."""
        return self._heads(self._current.task)

    def _take_new(self) -> list[QueuedTasks]:
        """Take all batches of groups with room that were not requeued, in order. What there turns
        out to be no room for, take() puts back."""
        taken: list[_Entry] = []
        for head in self._heads_after_current():
            line = self._lines[self._account.of_task[head[2].task[0]]]
            while line and not line[0][2].rounds:
                taken.append(heapq.heappop(line))
        return [work for _, _, work in sorted(taken, key=lambda entry: entry[1])]

    def _append(self, work: QueuedTasks) -> None:
        self._last += 1
        self._insert(work, self._last)

    def _put_back(self, work: QueuedTasks) -> None:
        self._first -= 1
        self._insert(work, self._first)

    def _insert(self, work: QueuedTasks, number: int) -> None:
        """Put tasks into the lines of their groups. Those of one priority stay in their order."""
        if not len(work):
            return
        priority, group = self._priority[work.task], self._account.of_task[work.task]
        for level in np.unique(priority)[::-1].tolist():
            for present in np.unique(group[priority == level]).tolist():
                rows = np.flatnonzero((priority == level) & (group == present))
                entry = (-level, number, work.take(rows))
                heapq.heappush(self._lines[present], entry)
