"""Tasks that wait with an agent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.core._native import QueuedTasks, split_batch
from shared_state.tasks import Int64

__all__ = ["NO_TASKS", "DelegatedTasks", "QueuedTasks", "split_batch"]


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
