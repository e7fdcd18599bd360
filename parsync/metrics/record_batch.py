"""A batch of measurements as metrics that fold in Python read it: the columns of a table, and what
several metrics derive from them, worked out once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.record_buffer import Table
from parsync.metrics.run_frame import RunFrame
from shared_state.tasks import Int64


class RecordBatch:
    """Rows of one table of parsync.metrics.tables, as equal-length columns: batch["agent"]. The
    columns are shared with other metrics and must not be written to."""

    def __init__(self, table: str, columns: Table, run: RunFrame) -> None:
        self.table = table
        self._columns = columns
        self._run = run
        self._slots: dict[str, Int64] = {}

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column]

    def slot(self, column: str) -> Int64:
        """The slot (run_frame.py) of each time in a column."""
        found = self._slots.get(column)
        if found is None:
            found = self._slots[column] = self._run.slot_of(self[column])
        return found

    def where(self, rows: NDArray[np.bool_]) -> RecordBatch:
        """The rows that a mask selects."""
        if rows.all():
            return self
        return RecordBatch(
            self.table, {name: column[rows] for name, column in self._columns.items()}, self._run
        )

    @cached_property
    def first_commits(self) -> RecordBatch:
        """The first commits of a batch of `tasks`. A task that was evicted or lost its machine is
        committed again."""
        return self.where(self["first"] == 1)
