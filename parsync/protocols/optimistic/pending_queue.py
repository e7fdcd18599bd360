"""The tasks an agent was given and has not placed: what its next round is about, and what becomes
of tasks that a round did not place.

Two kinds, by who remembers the tasks that a plan leaves waiting: the agent, which offers them
again, or the scheduler (flow schedulers), which is then told about new tasks only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from parsync.core.head_of_line import PassedOver
from parsync.core.queued_tasks import NO_TASKS, QueuedTasks, split_batch
from parsync.metrics.tables import NOBODY, Waiting
from parsync.protocols.optimistic.choices import LoserPolicy
from parsync.protocols.optimistic.rounds import Round
from parsync.protocols.waiting_tasks import WaitingPart
from schedulers.interface import PendingReason, Plan
from shared_state.tasks import Int64


@dataclass(frozen=True, slots=True)
class QueueExits:
    """The tasks that leave the queue.

    Args:
        too_large: Tasks that can never be placed, int64[n].
        abandoned: Tasks given up after too many attempts, int64[n].
        retry: If not 0, the key by which tasks rejoin the queue after a pause.
    """

    too_large: Int64 = field(default_factory=lambda: NO_TASKS.task)
    abandoned: Int64 = field(default_factory=lambda: NO_TASKS.task)
    retry: int = 0


NO_EXITS = QueueExits()
_WAITING = {
    int(PendingReason.NO_ROOM): Waiting.NO_ROOM,
    int(PendingReason.PRICED_OUT): Waiting.PRICED_OUT,
    int(PendingReason.WAITS_FOR_PREFERRED): Waiting.WAITS_FOR_PREFERRED,
    int(PendingReason.SLOTS_TOO_DEAR): Waiting.SLOTS_TOO_DEAR,
    int(PendingReason.HELD_BACK): Waiting.HELD_BACK,
}


class PendingQueue(Protocol):
    def has_new(self, now_us: int) -> bool:
        """Are there tasks that the next round would offer even though others find no room?"""
        ...

    @property
    def has_waiting(self) -> bool:
        """Are there tasks that only a change of the view can help?"""
        ...

    def has_next(self, now_us: int, view_changed: bool) -> bool:
        """Is there anything to decide? next_batch() then has a batch.

        Args:
            now_us: The agent's time.
            view_changed: Whether those that wait may find what they did not find before.
        """
        ...

    def add(self, work: QueuedTasks) -> None:
        """Tasks that were submitted, or have to run again."""
        ...

    def next_batch(self, now_us: int, view_changed: bool) -> int | None:
        """Choose the batch of the next round.

        Returns:
            The size of a batch begun now; 0 if the current batch continues; None if there is
            nothing to decide.
        """
        ...

    def current(self) -> QueuedTasks:
        """The tasks of the current batch that take() can take, in order."""
        ...

    def take(self, limit: int | None) -> QueuedTasks:
        """Take at most `limit` tasks of the current batch."""
        ...

    def holder(self, now_us: int) -> Int64:
        """The tasks of the unit without room that holds the queue, int64[n]: those behind it are
        not tried. None if it is not held."""
        ...

    def waiting(self, now_us: int) -> list[WaitingPart]:
        """The tasks that wait, by why they do."""
        ...

    def claimed_tasks(self, round_: Round) -> QueuedTasks:
        """Attempts so far and firstness of the tasks that the round claimed, in the plan's
        order."""
        ...

    def on_planned(self, round_: Round) -> QueueExits:
        """The round is decided: put what its plan left waiting where it belongs, and mark the round
        if that was for lack of room."""
        ...

    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits:
        """The round is over: put the losers where they belong."""
        ...

    def on_requeue_due(self, key: int) -> None:
        """The pause of QueueExits.retry is over."""
        ...

    def on_adopted(self, task: Int64) -> None:
        """Take in tasks of the agent, int64[n], that ran before it began."""
        ...

    def on_finished(self, task: Int64) -> bool:
        """Take in tasks of the agent, int64[n], that ran to their end. Return whether there is
        more to decide now."""
        ...


class AgentQueue:
    """The queue of an agent that itself offers waiting tasks again. Batches are offered in order of
    submission; losers first (BLOCK), or after a pause at the tail (REQUEUE).

    Under REQUEUE, as in Omega's simulator, all that a round left without a place pauses together,
    until attempts_max rounds have done so, or attempts_max_unplaced if none placed a task of the
    batch.

    Args:
        gang: The gang of each task id, int64[tasks]; None if no task has one. No round parts a
            gang.
        whole_queue: All new tasks join the next round (Capability.PLANS_WHOLE_QUEUE), instead of
            one batch at a time; a requeued batch stays by itself, because its rounds are counted.
        passed: Keeps what a round left without room, while others go ahead. None: it holds up all
            that come after it. Not for REQUEUE or whole_queue.
    """

    def __init__(
        self,
        losers: LoserPolicy,
        attempts_max: int,
        attempts_max_unplaced: int,
        gang: Int64 | None = None,
        whole_queue: bool = False,
        passed: PassedOver | None = None,
    ) -> None:
        self._whole_queue = whole_queue
        self._gang = gang
        self._requeues = losers is LoserPolicy.REQUEUE
        self._attempts_max = attempts_max
        self._attempts_max_unplaced = min(attempts_max, attempts_max_unplaced)
        self._passed = passed
        self._place: int | None = None  # among those passed over, of the next round's tasks
        # beside those passed over: tasks whose claims were rejected, and since when they lack room
        self._losers: deque[tuple[QueuedTasks, int]] = deque()
        self._queue: deque[QueuedTasks] = deque()
        self._current = NO_TASKS
        self._without_room: Int64 = NO_TASKS.task  # of the current batch, in the last round
        self._paused: dict[int, QueuedTasks] = {}
        self._pauses = 0

    def has_new(self, now_us: int) -> bool:
        if self._passed is None:
            return self._has_new_batches()
        return self._has_more(now_us, self._passed)

    @property
    def has_waiting(self) -> bool:
        return self._passed is not None and len(self._passed) > 0

    def has_next(self, now_us: int, view_changed: bool) -> bool:
        if self._passed is None:
            return self._has_batch()
        return self._has_more(now_us, self._passed) or (view_changed and self._passed.has_to_offer)

    def add(self, work: QueuedTasks) -> None:
        self._queue.append(work)

    def next_batch(self, now_us: int, view_changed: bool) -> int | None:
        self._place = None
        passed = self._passed
        if passed is not None:
            if view_changed:
                passed.on_view_changed()
            if self._has_losers():
                return 0
            self._place = passed.due(now_us, self._has_batch())
            if self._place is not None:
                return 0
            if passed.holds(now_us):
                return None
        return self._begin_batch()

    def current(self) -> QueuedTasks:
        if self._losers:
            return self._losers[0][0]
        if self._passed is not None and self._place is not None:
            return self._passed.current(self._place)
        return self._current

    def take(self, limit: int | None) -> QueuedTasks:
        passed = self._passed
        if passed is None:
            offered, self._current = split_batch(self.current(), limit, self._gang)
        elif self._losers:
            losers, since_us = self._losers.popleft()
            offered, rest = split_batch(losers, limit, self._gang)
            if len(rest):
                self._losers.appendleft((rest, since_us))
            passed.try_again(since_us)
        elif self._place is not None:
            offered = passed.take(self._place, limit)
        else:
            offered, self._current = split_batch(self.current(), limit, self._gang)
            passed.pass_on()
        return offered

    def holder(self, now_us: int) -> Int64:
        if self._passed is not None:
            return self._passed.holder(now_us)
        return NO_TASKS.task if self._whole_queue else self._without_room

    def waiting(self, now_us: int) -> list[WaitingPart]:
        holder = self.holder(now_us)
        why, ahead = Waiting.NOT_TRIED, NOBODY
        if len(holder):
            why, ahead = Waiting.BEHIND, int(holder[0])
        lacks = self._without_room if self._passed is None else self._passed.all_tasks()
        current = self._current.task[~np.isin(self._current.task, lacks)]
        return [
            WaitingPart(lacks, Waiting.NO_ROOM),
            WaitingPart(current, why, ahead),
            *(WaitingPart(work.task, why, ahead) for work in self._queue),
            *(WaitingPart(work.task, Waiting.REJECTED) for work, _ in self._losers),
            *(WaitingPart(work.task, Waiting.PAUSED) for work in self._paused.values()),
        ]

    def _has_new_batches(self) -> bool:
        """Whether there are batches that join the next round."""
        return self._whole_queue and len(self._queue) > 0 and not self._queue[0].rounds

    def _has_batch(self) -> bool:
        """Whether a batch can be begun, or the current one continued."""
        return len(self._current) > 0 or len(self._queue) > 0

    def _has_losers(self) -> bool:
        """Whether there are tasks whose claims were rejected and that may be offered again."""
        return len(self._losers) > 0

    def _has_more(self, now_us: int, passed: PassedOver) -> bool:
        """Whether there is something to offer though the view has not changed."""
        if self._has_losers():
            return True
        has_batch = self._has_batch()
        if passed.due(now_us, has_batch) is not None:
            return True
        return has_batch and not passed.holds(now_us)

    def _begin_batch(self) -> int | None:
        """Continue the current batch or begin the next, as next_batch()."""
        if self._has_new_batches():
            new = [work for work in self._queue if not work.rounds]
            self._queue = deque(work for work in self._queue if work.rounds)
            self._current = QueuedTasks.join([self._current, *new])
            return len(self._current)
        if len(self._current):
            return 0
        if not self._queue:
            return None
        self._current = self._queue.popleft()
        return len(self._current)

    def claimed_tasks(self, round_: Round) -> QueuedTasks:
        assert round_.plan is not None
        claimed, offered = round_.plan.task, round_.offered
        if round_.in_full or (
            len(claimed) == len(offered) and np.array_equal(claimed, offered.task)
        ):
            return offered
        by_task = np.argsort(offered.task, kind="stable")
        return offered.take(by_task[np.searchsorted(offered.task[by_task], claimed)])

    def on_planned(self, round_: Round) -> QueueExits:
        plan = round_.plan
        assert plan is not None
        if self._passed is not None:
            round_.since_us = self._passed.since_us
        self._without_room = NO_TASKS.task
        if not len(plan.pending):
            return NO_EXITS
        too_large = plan.pending_reason == PendingReason.TOO_LARGE
        left = round_.offered.take(np.isin(round_.offered.task, plan.pending[~too_large]))
        if self._requeues:
            round_.left = left
            return QueueExits(plan.pending[too_large])
        round_.blocked = len(left) > 0
        if self._passed is None:
            self._current = QueuedTasks.join([left, self._current])
            self._without_room = left.task
        elif round_.blocked:
            self._passed.on_no_room(round_.start_us, left)
        return QueueExits(plan.pending[too_large])

    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits:
        if self._requeues:
            return self._requeue(round_, QueuedTasks.join([losers, round_.left]))
        if len(losers) and self._passed is not None:
            self._losers.append((losers, round_.since_us))
        elif len(losers):
            self._current = QueuedTasks.join([losers, self._current])
        return NO_EXITS

    def on_requeue_due(self, key: int) -> None:
        self._queue.append(self._paused.pop(key))

    def on_adopted(self, task: Int64) -> None:
        """Ignore them: they are not in the queue."""

    def on_finished(self, task: Int64) -> bool:
        return False

    def _requeue(self, round_: Round, unplaced: QueuedTasks) -> QueueExits:
        """The tasks that the round left without a place pause together, unless they have had their
        chances."""
        if not len(unplaced):
            return NO_EXITS
        plan = round_.plan
        assert plan is not None
        rounds = round_.offered.rounds + 1
        too_large = int(np.count_nonzero(plan.pending_reason == PendingReason.TOO_LARGE))
        some_placed = round_.offered.some_placed or len(unplaced) + too_large < len(round_.offered)
        if rounds >= (self._attempts_max if some_placed else self._attempts_max_unplaced):
            return QueueExits(abandoned=unplaced.task)
        self._pauses += 1
        self._paused[self._pauses] = QueuedTasks(
            unplaced.task, unplaced.attempts, unplaced.first, rounds, some_placed
        )
        return QueueExits(retry=self._pauses)


class SchedulerQueue:
    """The queue of an agent whose scheduler remembers the waiting tasks. The scheduler is offered
    new tasks and losers only, and is called whenever its view has changed.

    Args:
        whole_queue: All new tasks join the next round (Capability.PLANS_WHOLE_QUEUE), instead of
            one batch at a time.
        gang: As for AgentQueue.
    """

    def __init__(self, whole_queue: bool, gang: Int64 | None = None) -> None:
        self._whole_queue = whole_queue
        self._gang = gang
        self._new: deque[QueuedTasks] = deque()
        self._current = NO_TASKS
        # tasks left with the scheduler: attempts, first
        self._kept: dict[int, tuple[int, int]] = {}
        self._reason: dict[int, int] = {}  # why, a PendingReason, when they were offered

    def has_new(self, now_us: int) -> bool:
        return len(self._current) > 0 or len(self._new) > 0

    @property
    def has_waiting(self) -> bool:
        return len(self._kept) > 0

    def has_next(self, now_us: int, view_changed: bool) -> bool:
        return self.has_new(now_us) or (view_changed and len(self._kept) > 0)

    def add(self, work: QueuedTasks) -> None:
        self._new.append(work)

    def next_batch(self, now_us: int, view_changed: bool) -> int | None:
        if self._whole_queue:
            self._current = QueuedTasks.join([self._current, *self._new])
            self._new.clear()
        elif len(self._current):
            return 0
        elif self._new:
            self._current = self._new.popleft()
        if not len(self._current) and not (self._kept and view_changed):
            return None
        return max(1, len(self._current))

    def current(self) -> QueuedTasks:
        return self._current

    def take(self, limit: int | None) -> QueuedTasks:
        offered, self._current = split_batch(self._current, limit, self._gang)
        return offered

    def holder(self, now_us: int) -> Int64:
        return NO_TASKS.task

    def waiting(self, now_us: int) -> list[WaitingPart]:
        new = [self._current.task, *(work.task for work in self._new)]
        kept = np.array(sorted(self._kept), np.int64)
        reason = np.array([self._reason.get(task, 0) for task in kept.tolist()], np.int8)
        return [
            *(WaitingPart(kept[reason == code], why) for code, why in _WAITING.items()),
            *(WaitingPart(task, Waiting.NOT_TRIED) for task in new),
        ]

    def claimed_tasks(self, round_: Round) -> QueuedTasks:
        return round_.claimed

    def on_planned(self, round_: Round) -> QueueExits:
        plan, offered, kept = round_.plan, round_.offered, self._kept
        assert plan is not None
        if round_.in_full:
            round_.claimed = offered
            return NO_EXITS
        row = _rows(offered.task, plan.task)
        earlier = row < 0
        row[earlier] = 0
        claimed = offered.take(row) if len(offered) else QueuedTasks.new(plan.task, 0)
        claimed.task = plan.task
        pairs = np.array([kept.pop(task) for task in plan.task[earlier].tolist()], np.int64)
        claimed.attempts[earlier], claimed.first[earlier] = pairs.reshape(-1, 2).T
        round_.claimed = claimed
        self._reason |= zip(plan.pending.tolist(), plan.pending_reason.tolist(), strict=True)
        kept |= _by_task(offered.take(_rows(plan.task, offered.task) < 0))
        for task in _too_large(plan).tolist():
            kept.pop(task)
        return NO_EXITS

    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits:
        assert round_.plan is not None
        self._current = QueuedTasks.join([losers, self._current])
        return QueueExits(_too_large(round_.plan))

    def on_requeue_due(self, key: int) -> None:
        raise AssertionError(
            "losers of a scheduler that remembers what waits are offered again at once"
        )

    def on_adopted(self, task: Int64) -> None:
        """Ignore them: they are not in the queue."""

    def on_finished(self, task: Int64) -> bool:
        return False


def _rows(task: Int64, wanted: Int64) -> Int64:
    """int64[n]: the row of each wanted task in `task`, -1 if it is not there."""
    if not len(task):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(task, kind="stable")
    at = np.minimum(np.searchsorted(task, wanted, sorter=order), len(task) - 1)
    row = order[at]
    return np.where(task[row] == wanted, row, -1)


def _too_large(plan: Plan) -> Int64:
    too_large: Int64 = plan.pending[plan.pending_reason == PendingReason.TOO_LARGE]
    return too_large


def _by_task(work: QueuedTasks) -> dict[int, tuple[int, int]]:
    return dict(
        zip(
            work.task.tolist(),
            zip(work.attempts.tolist(), work.first.tolist(), strict=True),
            strict=True,
        )
    )
