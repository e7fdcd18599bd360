"""Tasks that wait with an agent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import NO_GANG, Int32, Int64


@dataclass(slots=True)
class QueuedTasks:
    """Tasks to decide on, in order.

    Args:
        task: Ids, int64[n].
        attempts: Claims made for each so far, int32[n].
        first: 1 unless the task ran before, int8[n].
        rounds: Of tasks that are requeued together: rounds that left them without a place.
        some_placed: Of such tasks: whether any round placed tasks that were submitted with them.
    """

    task: Int64
    attempts: Int32
    first: NDArray[np.int8]
    rounds: int = 0
    some_placed: bool = False

    def __len__(self) -> int:
        return len(self.task)

    def take(self, rows: np.ndarray | slice) -> QueuedTasks:
        """The tasks that a mask, row numbers or a slice selects."""
        return QueuedTasks(
            self.task[rows], self.attempts[rows], self.first[rows], self.rounds, self.some_placed
        )

    def split(self, count: int) -> tuple[QueuedTasks, QueuedTasks]:
        """The first `count` tasks and the rest."""
        if count >= len(self.task):
            return self, NO_TASKS
        return self.take(slice(0, count)), self.take(slice(count, None))

    @staticmethod
    def new(task: Int64, first: int) -> QueuedTasks:
        """Queued tasks that no claim was made for.

        Args:
            first: 1 if their next commit is their first, 0 if they ran before.
        """
        return QueuedTasks(task, np.zeros(len(task), np.int32), np.full(len(task), first, np.int8))

    @staticmethod
    def join(parts: list[QueuedTasks]) -> QueuedTasks:
        """All tasks of the parts, in order."""
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return NO_TASKS
        return QueuedTasks(
            np.concatenate([part.task for part in parts]),
            np.concatenate([part.attempts for part in parts]),
            np.concatenate([part.first for part in parts]),
        )


class DelegatedTasks:
    """Tasks of an agent whose machines another participant claims."""

    def __init__(self) -> None:
        self._tasks = NO_TASKS  # by ascending id

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, tasks: QueuedTasks) -> None:
        """Add tasks. One that is among them already is replaced."""
        self.take(tasks.task)
        joined = QueuedTasks.join([self._tasks, tasks])
        self._tasks = joined.take(np.argsort(joined.task, kind="stable"))

    def take(self, task: Int64) -> tuple[QueuedTasks, NDArray[np.bool_]]:
        """Take tasks out, by their ids.

        Returns:
            The tasks in the order asked for, and which of them were among these, bool[n]. The
            others are returned as new.
        """
        found = QueuedTasks.new(task, 1)
        row = np.searchsorted(self._tasks.task, task)
        known = row < len(self._tasks)
        known[known] = self._tasks.task[row[known]] == task[known]
        row = row[known]
        if len(row):
            found.attempts[known] = self._tasks.attempts[row]
            found.first[known] = self._tasks.first[row]
            kept = np.ones(len(self._tasks), np.bool_)
            kept[row] = False
            self._tasks = self._tasks.take(kept)
        return found, known


NO_TASKS = QueuedTasks.new(np.zeros(0, np.int64), 1)


def split_batch(
    work: QueuedTasks, limit: int | None, gang: Int64 | None
) -> tuple[QueuedTasks, QueuedTasks]:
    """The first `limit` tasks and the rest: fewer where that would part a gang (gang int64[tasks],
    of each task id), and more if the first gang is larger."""
    if limit is None or limit >= len(work):
        return work, NO_TASKS
    if gang is None:
        return work.split(limit)
    gang = gang[work.task]
    places = 1 + np.flatnonzero((gang[1:] != gang[:-1]) | (gang[1:] == NO_GANG))
    after = int(np.searchsorted(places, limit, side="right"))
    if after:
        return work.split(int(places[after - 1]))
    return work.split(int(places[0]) if len(places) else len(gang))
