"""The queue of an agent that admits few jobs at a time (Omega section 3.4).

A job is admitted when its first task may be offered, and leaves when all of its tasks have ended or
were given up. Others wait in order of submission, before the agent's queue proper. Tasks of
admitted jobs that have to run again are never held back.
"""

from __future__ import annotations

import numpy as np

from parsync.core.queued_tasks import QueuedTasks
from parsync.metrics.tables import Waiting
from parsync.protocols.optimistic.pending_queue import PendingQueue, QueueExits
from parsync.protocols.optimistic.rounds import Round
from parsync.protocols.waiting_tasks import WaitingPart
from shared_state.tasks import Int64


class AdmittingQueue:
    """A PendingQueue that passes the tasks of admitted jobs on to another.

    Args:
        queue: The agent's queue proper.
        job: int64[tasks], the job of each task id.
        jobs_max: How many jobs are admitted at a time.
    """

    def __init__(self, queue: PendingQueue, job: Int64, jobs_max: int) -> None:
        self._queue = queue
        self._job = job
        self._jobs_max = jobs_max
        self._is_here = np.zeros(len(job), np.bool_)  # submitted to the agent, and not over
        self._tasks_of: dict[int, int] = {}  # by admitted job: those that are here
        self._held_back: dict[int, list[QueuedTasks]] = {}  # by job, in order of submission

    def has_new(self, now_us: int) -> bool:
        return self._queue.has_new(now_us)

    @property
    def has_waiting(self) -> bool:
        return self._queue.has_waiting

    def has_next(self, now_us: int, view_changed: bool) -> bool:
        return self._queue.has_next(now_us, view_changed)

    def add(self, work: QueuedTasks) -> None:
        jobs = self._job[work.task]
        for job in dict.fromkeys(jobs.tolist()):
            mine = work.take(jobs == job)
            if job in self._tasks_of or len(self._tasks_of) < self._jobs_max:
                self._admit(job, mine)
            else:
                self._held_back.setdefault(job, []).append(mine)

    def next_batch(self, now_us: int, view_changed: bool) -> int | None:
        return self._queue.next_batch(now_us, view_changed)

    def current(self) -> QueuedTasks:
        return self._queue.current()

    def take(self, limit: int | None) -> QueuedTasks:
        return self._queue.take(limit)

    def holder(self, now_us: int) -> Int64:
        return self._queue.holder(now_us)

    def waiting(self, now_us: int) -> list[WaitingPart]:
        held_back = (work.task for batches in self._held_back.values() for work in batches)
        return [
            *self._queue.waiting(now_us),
            *(WaitingPart(task, Waiting.JOB_NOT_ADMITTED) for task in held_back),
        ]

    def claimed_tasks(self, round_: Round) -> QueuedTasks:
        return self._queue.claimed_tasks(round_)

    def on_planned(self, round_: Round) -> QueueExits:
        return self._without_exits(self._queue.on_planned(round_))

    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits:
        return self._without_exits(self._queue.on_committed(round_, losers))

    def on_requeue_due(self, key: int) -> None:
        self._queue.on_requeue_due(key)

    def on_adopted(self, task: Int64) -> None:
        for job in np.unique(self._job[task]).tolist():
            self._enter(job, task[self._job[task] == job])

    def on_finished(self, task: Int64) -> bool:
        return self._leave(task)

    def _without_exits(self, exits: QueueExits) -> QueueExits:
        """Let the tasks that leave the queue leave their jobs, too."""
        self._leave(exits.too_large)
        self._leave(exits.abandoned)
        return exits

    def _admit(self, job: int, work: QueuedTasks) -> None:
        self._enter(job, work.task)
        self._queue.add(work)

    def _enter(self, job: int, task: Int64) -> None:
        new = task[~self._is_here[task]]
        self._is_here[new] = True
        self._tasks_of[job] = self._tasks_of.get(job, 0) + len(new)

    def _leave(self, task: Int64) -> bool:
        """Take in tasks that are over, and admit jobs in place of those that have ended. Return
        whether any were admitted."""
        task = task[self._is_here[task]]
        self._is_here[task] = False
        jobs, counts = np.unique(self._job[task], return_counts=True)
        for job, count in zip(jobs.tolist(), counts.tolist(), strict=True):
            self._tasks_of[job] -= count
            if not self._tasks_of[job]:
                del self._tasks_of[job]
        admitted = False
        while self._held_back and len(self._tasks_of) < self._jobs_max:
            job = next(iter(self._held_back))
            for work in self._held_back.pop(job):
                self._admit(job, work)
            admitted = True
        return admitted
