"""Tasks that wait with an agent, and what happens behind those for which there was no room.

A unit is a task, or a gang. At first the units behind it that fit go ahead. Once it has lacked room
for head_of_line_s it holds the queue: nothing behind it is tried until it is placed. So small tasks
do not wait long for a large one, and the large one does not starve.

The time counts from the round that first found no room for the unit. It goes on while the unit's
claims are rejected, and starts again if the agent is restarted.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer

from parsync.core import _native
from parsync.core._native import QueuedTasks, SkippedUnits, split_batch
from shared_state.tasks import Int64, PreferenceCatalog, TaskBatch

__all__ = [
    "DEFAULT_S",
    "HEAD_OF_LINE",
    "LONGEST_S",
    "NO_TASKS",
    "DelegatedTasks",
    "HeadOfLineSeconds",
    "QueuedTasks",
    "SkippedUnits",
    "UnitSizes",
    "head_of_line_us",
    "split_batch",
]


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


LONGEST_S = 1e6
DEFAULT_S = 10.0
_NEVER = "inf"  # in configurations and in the files of a run, which have no infinite numbers


def _read(value: Any) -> Any:
    return math.inf if value == _NEVER else value


def _in_range(value: float) -> float:
    if value > LONGEST_S and value != math.inf:
        raise ValueError(f"expected 0 to {LONGEST_S:g}, or inf")
    return value


def _written(value: float) -> float | str:
    return _NEVER if value == math.inf else value


HeadOfLineSeconds = Annotated[
    float,
    Field(ge=0, allow_inf_nan=True),
    BeforeValidator(_read),
    PlainSerializer(_written),
]
HEAD_OF_LINE = (
    "how long, in seconds, tasks behind a task or gang without room may go ahead if they fit; then"
    " that one holds the queue until it is placed; 0: strict order; inf: it never holds the queue"
)


def head_of_line_us(seconds: float) -> int | None:
    """The option in microseconds; None: a unit never holds the queue."""
    return None if seconds == math.inf else round(seconds * 1e6)


class UnitSizes(_native.UnitSizes):
    """How large the units of a run are, to know which cannot fit where others did not.

    Args:
        table: Every task (row = id).
        catalog: The preference sets, among them constraints.
    """

    def __init__(self, table: TaskBatch, catalog: PreferenceCatalog) -> None:
        resources = table.request.shape[1]
        super().__init__(
            table.request, resources, table.gang, table.preference, catalog.elsewhere_cost
        )
