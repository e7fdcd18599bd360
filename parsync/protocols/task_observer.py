"""What an agent's scheduler learns of its tasks after planning: outcomes of claims, and ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.core.events import TasksAdopted, TasksEnded
from schedulers.checked import CheckedScheduler
from schedulers.interface import ChangeKind, Plan, TaskChanges
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, Reason, Transaction

# numpy compares with plain numbers three times as fast as with enums
_ACCEPTED, _DUPLICATE = int(Reason.ACCEPTED), int(Reason.DUPLICATE)


class TaskObserver:
    """Passes changes of tasks on to one scheduler, as Scheduler.observe describes.

    Args:
        scheduler: The scheduler.
        observes: Whether it is told of changes at all.
    """

    def __init__(self, scheduler: CheckedScheduler, observes: bool) -> None:
        self._scheduler = scheduler
        self._observes = observes

    def on_adopted(self, now_us: int, event: TasksAdopted) -> None:
        """Tasks run already, without a claim of the scheduler."""
        self._observe(ChangeKind.ADOPTED, now_us, event.task, event.machine, event.allocation)

    def on_ended(self, now_us: int, event: TasksEnded) -> ChangeKind:
        """Allocations ended. Return how."""
        change = ChangeKind(event.change)
        self._observe(change, now_us, event.task, event.machine, event.allocation)
        return change

    def on_outcome(
        self, now_us: int, claims: Plan | Transaction, result: CommitResult, count: int
    ) -> NDArray[np.bool_] | None:
        """The cell answered the claims of a plan.

        Args:
            claims: The plan, or its transaction.
            count: The number of accepted claims.

        Returns:
            The rejected claims, bool[k], without duplicates; None if all were accepted.
        """
        if count == len(claims.task):
            self._observe(
                ChangeKind.COMMITTED, now_us, claims.task, claims.machine, result.allocation
            )
            return None
        accepted = result.reason == _ACCEPTED
        rejected: NDArray[np.bool_] = ~accepted & (result.reason != _DUPLICATE)
        if not self._observes:
            return rejected
        for kind, rows in ((ChangeKind.REJECTED, rejected), (ChangeKind.COMMITTED, accepted)):
            if count or kind is ChangeKind.REJECTED:
                self._observe(
                    kind, now_us, claims.task[rows], claims.machine[rows], result.allocation[rows]
                )
        return rejected

    def _observe(
        self, kind: ChangeKind, now_us: int, task: Int64, machine: Int32, allocation: Int64
    ) -> None:
        if self._observes:
            self._scheduler.observe(TaskChanges(kind, now_us, task, machine, allocation))
