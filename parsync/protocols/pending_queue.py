"""The tasks an agent was given and has not placed: what its next round is about, and what becomes
of tasks that a round did not place.

Two kinds, by who remembers the tasks that a plan leaves waiting: the agent, which offers them
again, or the scheduler (flow schedulers), which is then told about new tasks only. The states of a
task are drawn in `parsync/protocols/native/pending_queue.hpp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from parsync.core.queued_tasks import QueuedTasks, SkippedUnits
from parsync.metrics.record import AgentLog
from parsync.metrics.tables import NOBODY, NOT_LOOKED_AT, Waiting
from parsync.protocols import _native
from parsync.protocols._native import NO_EXITS, QueueExits
from parsync.protocols.agent_quota import QuotaAccount
from parsync.protocols.rounds import Round
from shared_state.tasks import CellSpec, Int32, Int64, TaskBatch
from shared_state.view import ClusterView

__all__ = [
    "NO_EXITS",
    "AgentQueue",
    "LoserPolicy",
    "PendingQueue",
    "QueueExits",
    "SchedulerQueue",
    "WaitingPart",
    "record_waiting",
]


class WaitingPart(NamedTuple):
    """Tasks, int64[n], that wait for one reason, behind one task (NOBODY: behind none)."""

    task: Int64
    why: Waiting
    ahead: int = NOBODY


class LoserPolicy(IntEnum):
    """What becomes of rejected claims: re-decided at once while the next batch waits (ParSync), or
    back to the queue's tail after a pause (Omega)."""

    BLOCK = 0
    REQUEUE = 1


class PendingQueue(Protocol):
    """What an agent asks of its queue, whatever its protocol."""

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

    def on_adopted(self, task: Int64) -> None:
        """Take in tasks of the agent, int64[n], that ran before it began."""
        ...

    def on_finished(self, task: Int64) -> bool:
        """Take in tasks of the agent, int64[n], that ran to their end. Return whether there is
        more to decide now."""
        ...


class AgentQueue(_native.AgentQueue):
    """The queue of an agent that itself offers waiting tasks again. Batches are offered in order of
    submission; losers first (BLOCK), or after a pause at the tail (REQUEUE).

    Under REQUEUE, as in Omega's simulator, all that a round left without a place pauses together,
    until attempts_max rounds have done so, or attempts_max_unplaced if none placed a task of the
    batch.

    With an account, the tasks of a quota group are offered only while its grant has room for them.
    Each group has a line of its own. Within it tasks of higher priority come first, and among
    equals those submitted first. Among groups with room, the batch submitted first is next. So one
    group's tasks never wait for another group to get room.

    Args:
        gang: The gang of each task id, int64[tasks]; None if no task has one. No round parts a
            gang.
        whole_queue: All new tasks join the next round (Capability.PLANS_WHOLE_QUEUE), instead of
            one batch at a time; a requeued batch stays by itself, because its rounds are counted.
        skipped: Keeps what a round left without room, while others go ahead. None: it holds up all
            that come after it. Not for REQUEUE or whole_queue.
        account: Of the agent's quota, or of the limit that its scheduler sets itself. The queue
            enters what becomes of its tasks until they are committed.
        priority: int32[tasks], by task id; None if all are alike. Only with an account.
        is_own_limit: The account is that of a scheduler's own limit, which does not change: what is
            held back waits for own tasks to end.
    """

    def __init__(
        self,
        losers: LoserPolicy,
        attempts_max: int,
        attempts_max_unplaced: int,
        gang: Int64 | None = None,
        whole_queue: bool = False,
        skipped: SkippedUnits | None = None,
        account: QuotaAccount | None = None,
        priority: Int32 | None = None,
        is_own_limit: bool = False,
    ) -> None:
        super().__init__(
            losers is LoserPolicy.REQUEUE,
            attempts_max,
            attempts_max_unplaced,
            gang,
            whole_queue,
            skipped,
            account,
            priority,
            is_own_limit,
        )

    def waiting(self, now_us: int) -> list[WaitingPart]:
        return _waiting(self, now_us)


class SchedulerQueue(_native.SchedulerQueue):
    """The queue of an agent whose scheduler remembers the waiting tasks. The scheduler is offered
    new tasks and losers only, and is called whenever its view has changed.

    Args:
        whole_queue: All new tasks join the next round (Capability.PLANS_WHOLE_QUEUE), instead of
            one batch at a time.
        gang: As for AgentQueue.
    """

    def __init__(self, whole_queue: bool, gang: Int64 | None = None) -> None:
        super().__init__(whole_queue, gang)

    def waiting(self, now_us: int) -> list[WaitingPart]:
        return _waiting(self, now_us)


def _waiting(queue: _native.PendingQueue, now_us: int) -> list[WaitingPart]:
    return [
        WaitingPart(task, Waiting(why), ahead) for task, why, ahead in queue.waiting_tasks(now_us)
    ]


# So many different requests are looked at in the view; who waits with others is not told which
# resource is short.
MOST_REQUESTS = 1000


def record_waiting(
    log: AgentLog,
    parts: Iterable[WaitingPart],
    table: TaskBatch,
    cell: CellSpec,
    view: ClusterView,
    unseen: NDArray[np.bool_],
) -> None:
    """Record the tasks that wait, and what those without room lack in the view as it stands.

    Args:
        log: The agent's.
        parts: The tasks.
        table: Every task of the run (row = id).
        cell: The cell.
        view: The agent's.
        unseen: bool[M], the machines that the agent may not use.
    """
    for part in parts:
        n = len(part.task)
        if not n:
            continue
        request = table.request[part.task]
        resource, machines = np.full(n, NOT_LOOKED_AT, np.int32), np.zeros(n, np.int64)
        hidden = np.zeros(n, np.int64)
        if part.why is Waiting.NO_ROOM:
            distinct, place = np.unique(request, axis=0, return_inverse=True)
            place = place.ravel()
            for number, one in enumerate(distinct[:MOST_REQUESTS]):
                rows = place == number
                resource[rows], machines[rows] = _short_of(one, view)
                hidden[rows] = np.count_nonzero((cell.limit[unseen] >= one).all(axis=1))
        log.waiting(part.task, part.why, part.ahead, resource, machines, hidden)


def _short_of(request: Int64, view: ClusterView) -> tuple[int, int]:
    """The resource that keeps a task, by its request int64[R], from most machines that have enough
    of every other, and how many these are. NOBODY and how many machines have room for it, if some
    have. If all lack more than one, the resource that most of them lack, and 0."""
    up = view.up
    lacks = ((view.free < request) & (request > 0))[up]
    count = lacks.sum(axis=1)
    roomy = int(np.count_nonzero(count == 0))
    if roomy:
        return NOBODY, roomy
    one = lacks[count == 1].sum(axis=0)
    if one.any():
        return int(one.argmax()), int(one.max())
    return int(lacks.sum(axis=0).argmax()), 0
