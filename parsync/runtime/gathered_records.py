"""Gathers the measurements of a sample interval, so that whoever takes them gets one Record per
table and interval, and not one per table, agent and interval."""

from __future__ import annotations

import numpy as np

from parsync.metrics.record import Measurements, Record
from parsync.metrics.tables import Tables
from parsync.runtime.effects import RecordListener


class GatheredRecords:
    """Records that wait for the end of a sample interval.

    The rows of a table keep their order.

    Args:
        tables: Those of the run.
        on_record: Called with what has been gathered, by hand_out().

    Attributes:
        rows: What has been gathered.
    """

    def __init__(self, tables: Tables, on_record: RecordListener) -> None:
        self._columns = {
            name: list(schema.dtypes)
            for name, schema in tables.items()
            if all(np.dtype(dtype).kind == "i" for dtype in schema.dtypes.values())
        }
        self.rows = Measurements({name: tables[name] for name in self._columns})
        self._on_record = on_record

    def take(self, record: Record) -> None:
        """Take a Record. One that is not of arrays of integers, as its table has them, is handed on
        at once, after those that wait."""
        columns = record.columns
        if self._columns.get(record.table) == list(columns):
            count = len(next(iter(columns.values())))
            try:
                self.rows.add(record.table, count, *columns.values())
            except (TypeError, ValueError, BufferError):
                pass  # who takes it says what is wrong with it
            else:
                return
        self.hand_out()
        self._on_record(record)

    def hand_out(self) -> None:
        """Hand out what has been gathered, a Record per table."""
        for record in self.rows.flush():
            self._on_record(record)
