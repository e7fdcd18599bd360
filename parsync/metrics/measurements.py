"""Gathers small batches of measurements into large ones: one Record per table and sample
interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics._native import RowBuffer
from parsync.metrics.record import Record
from parsync.metrics.tables import SCHEMAS, Tables


class Measurements:
    """Rows wait here until flush(), by column and in the dtypes of their table.

    Args:
        tables: Those that rows are added to; default: the tables that every run has.
    """

    def __init__(self, tables: Tables = SCHEMAS) -> None:
        self._dtypes = {
            table: tuple((name, np.dtype(dtype)) for name, dtype in schema.dtypes.items())
            for table, schema in tables.items()
        }
        self._buffers = {
            table: RowBuffer([dtype.itemsize for _, dtype in columns])
            for table, columns in self._dtypes.items()
        }

    def buffer(self, table: str) -> RowBuffer:
        """The memory in which the rows of a table wait, for native code that adds to them."""
        return self._buffers[table]

    def add(self, table: str, rows: int, *columns: Any) -> None:
        """`rows` rows of `table`, columns in the order of its schema: arrays of integers or
        bools, or one number for all rows."""
        self._buffers[table].add(rows, columns)

    def flush(self) -> list[Record]:
        """All rows since the last flush, one Record per table that has any, in the order of
        the tables."""
        records: list[Record] = []
        for table, buffer in self._buffers.items():
            if len(buffer):
                records.append(Record(table, self._read(table, buffer)))
                buffer.clear()
        return records

    def held(self) -> tuple[tuple[str, int, tuple[NDArray[Any], ...]], ...]:
        """The rows that wait, as (table, rows, columns) in the order of the tables: a checkpoint.
        They stay."""
        return tuple(
            (table, len(buffer), tuple(self._read(table, buffer).values()))
            for table, buffer in self._buffers.items()
            if len(buffer)
        )

    def restore(self, held: Iterable[tuple[str, int, tuple[NDArray[Any], ...]]]) -> None:
        """Replace the rows that wait by those that held() returned."""
        for buffer in self._buffers.values():
            buffer.clear()
        for table, rows, columns in held:
            self._buffers[table].add(rows, tuple(columns))

    def _read(self, table: str, buffer: RowBuffer) -> dict[str, NDArray[Any]]:
        return {
            name: array if array.dtype is dtype else array.view(dtype)
            for (name, dtype), array in zip(self._dtypes[table], buffer.arrays(), strict=True)
        }
