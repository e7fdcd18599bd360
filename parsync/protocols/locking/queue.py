"""The tasks of a locking agent that wait: what its next round is about, and what becomes of tasks
that a round did not place.

Tasks that were not placed come first in the next round, with the rest of their batch. Where others
go ahead of those without room, these take turns with the batches (SkippedUnits).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from parsync.core.head_of_line import SkippedUnits
from parsync.core.queued_tasks import NO_TASKS, QueuedTasks, split_batch
from parsync.metrics.tables import NOBODY, Waiting
from parsync.protocols.pending_queue import NO_EXITS, QueueExits, WaitingPart
from parsync.protocols.rounds import Round
from schedulers.interface import PendingReason
from shared_state.tasks import Int64


class LockingQueue:
    """A PendingQueue whose rounds each see other partitions, or a later state.

    Args:
        gang: The gang of each task id, int64[tasks]; None if no task has one.
        whole_queue: A round is about everything (Capability.PLANS_WHOLE_QUEUE).
        skipped: Keeps what found no room, where others go ahead; None: it holds them up.
    """

    def __init__(self, gang: Int64 | None, whole_queue: bool, skipped: SkippedUnits | None) -> None:
        self._gang, self._whole_queue, self._skipped = gang, whole_queue, skipped
        self._batches: deque[QueuedTasks] = deque()
        self._left = NO_TASKS  # what the rounds before have left of a batch
        self._place: int | None = None  # among those skipped, of the next round's tasks
        self._without_room: Int64 = NO_TASKS.task  # in the last round
        # what waits with a round for the outcome of its claims
        self._unplaced = NO_TASKS

    def turns(self, now_us: int) -> int:
        """After how many rounds without success everything that may be tried has been."""
        if self._skipped is None or self._skipped.holds(now_us):
            return 1
        return len(self._skipped) + len(self._batches) + 1

    def has_new(self, now_us: int) -> bool:
        return self._skipped is not None and not self._skipped.holds(now_us)

    @property
    def has_waiting(self) -> bool:
        return False  # each round may find room

    def has_next(self, now_us: int, view_changed: bool) -> bool:
        return self._has_batch or bool(self._skipped)

    @property
    def _has_batch(self) -> bool:
        """Whether there is a batch to begin, or the rest of one."""
        return len(self._batches) > 0 or len(self._left) > 0

    def add(self, work: QueuedTasks) -> None:
        self._batches.append(work)

    def next_batch(self, now_us: int, view_changed: bool) -> int | None:
        self._place = None
        if self._whole_queue:
            self._left = QueuedTasks.join([self._left, *self._batches])
            self._batches.clear()
            return len(self._left)
        if self._skipped is not None:
            self._skipped.on_view_changed()
            self._place = self._skipped.due(now_us, self._has_batch)
            if self._place is not None:
                return 0
            self._skipped.pass_on()
        if len(self._left):
            return 0
        self._left = self._batches.popleft()
        return len(self._left)

    def take(self, limit: int | None) -> QueuedTasks:
        if self._place is not None:
            assert self._skipped is not None, "places are among those skipped"
            return self._skipped.take(self._place, limit)
        tasks, self._left = split_batch(self._left, limit, self._gang)
        return tasks

    def holder(self, now_us: int) -> Int64:
        return self._without_room if self._skipped is None else self._skipped.holder(now_us)

    def waiting(self, now_us: int) -> list[WaitingPart]:
        why, ahead = Waiting.NOT_TRIED, NOBODY
        lacks = self._without_room if self._skipped is None else self._skipped.all_tasks()
        holder = self.holder(now_us)
        if len(holder):
            why, ahead = Waiting.BEHIND, int(holder[0])
        left = self._left.task[~np.isin(self._left.task, lacks)]
        return [
            WaitingPart(lacks, Waiting.NO_ROOM),
            WaitingPart(left, why, ahead),
            *(WaitingPart(work.task, why, ahead) for work in self._batches),
        ]

    def claimed_tasks(self, round_: Round) -> QueuedTasks:
        assert round_.plan is not None
        by_task = np.argsort(round_.offered.task, kind="stable")
        row = np.searchsorted(round_.offered.task, round_.plan.task, sorter=by_task)
        return round_.offered.take(by_task[row])

    def on_planned(self, round_: Round) -> QueueExits:
        plan = round_.plan
        assert plan is not None
        too_large = plan.pending[plan.pending_reason == PendingReason.TOO_LARGE]
        is_left = np.isin(round_.offered.task, plan.pending)
        is_left &= ~np.isin(round_.offered.task, too_large)
        left = round_.offered.take(is_left)
        self._without_room = left.task
        round_.blocked = len(left) > 0
        self._unplaced = left
        if self._skipped is not None and round_.blocked:
            self._skipped.on_no_room(round_.start_us, left)
            self._unplaced = NO_TASKS
        return QueueExits(too_large) if len(too_large) else NO_EXITS

    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits:
        unplaced = QueuedTasks.join([self._unplaced, losers])
        if len(losers):  # in the order in which they were offered
            by_task = np.argsort(round_.offered.task, kind="stable")
            row = np.searchsorted(round_.offered.task, unplaced.task, sorter=by_task)
            unplaced = unplaced.take(np.argsort(by_task[row], kind="stable"))
        self._left = QueuedTasks.join([unplaced, self._left])
        return NO_EXITS

    def on_adopted(self, task: Int64) -> None:
        """Nothing waits for tasks that run."""

    def on_finished(self, task: Int64) -> bool:
        return False
