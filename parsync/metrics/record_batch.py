"""A batch of measurements as metrics read it: the columns of a table, and what several metrics
derive from them, worked out once."""

from __future__ import annotations

from collections.abc import Callable
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
        self._derived: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column]

    def slot(self, column: str) -> NDArray[np.intp]:
        """The slot (run_frame.py) of each time in a column."""
        slots: NDArray[np.intp] = self.derived(column, lambda: self._run.slot_of(self[column]))
        return slots

    def derived(self, name: str, derive: Callable[[], Any]) -> Any:
        """What `derive` makes of this batch, made once."""
        found = self._derived.get(name)
        if found is None:
            found = self._derived[name] = derive()
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

    @cached_property
    def delay_us(self) -> Int64:
        """The delays of a batch of `tasks`: commit minus submission."""
        delay_us: Int64 = self["commit_us"] - self["submit_us"]
        return delay_us
