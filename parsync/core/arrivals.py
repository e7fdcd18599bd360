"""The source of tasks and machine events: an open-loop participant that never waits for the cell.

It is native (native/arrivals.cpp).
"""

from __future__ import annotations

import numpy as np

from parsync.core import _native
from parsync.metrics.record import Measurements, Record
from shared_state.tasks import Int32, Int64, TaskBatch


class ArrivalSource(_native.ArrivalSource):
    """Submits batch b (rows arrival_rows[offsets[b]:offsets[b+1]]) to agent_of_batch[b] at
    arrival_us[b], and machine changes at their times.

    Args:
        table: Every task (row = id).
        arrival_us: int64[B], ascending.
        machine_at_us, machine, machine_up: The machine changes: int64[k] ascending, int32[k],
            bool[k].
    """

    def __init__(
        self,
        table: TaskBatch,
        arrival_us: Int64,
        arrival_offsets: Int64,
        arrival_rows: Int64,
        agent_of_batch: Int32,
        machine_at_us: Int64,
        machine: Int32,
        machine_up: np.ndarray,
    ) -> None:
        self._records = Measurements()
        prefers = np.concatenate([[0], np.cumsum(table.preference[arrival_rows] > 0)])
        super().__init__(
            arrival_us,
            arrival_offsets,
            arrival_rows,
            agent_of_batch,
            table.job[arrival_rows[arrival_offsets[:-1]]],
            np.diff(prefers[arrival_offsets]),
            machine_at_us,
            machine,
            machine_up,
            self._records,
        )

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        return self._records.flush()
