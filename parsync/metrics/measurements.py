"""Gathers small batches of measurements into large ones: one Record per table and sample
interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics._native import RowBuffer
from parsync.metrics.record import Record
from parsync.metrics.tables import TABLES

_DTYPES = {
    table: tuple((name, np.dtype(dtype)) for name, dtype in columns.items())
    for table, columns in TABLES.items()
}


class Measurements:
    """Rows wait here until flush(), by column and in the dtypes of TABLES."""

    def __init__(self) -> None:
        self._buffers = {
            table: RowBuffer([dtype.itemsize for _, dtype in columns])
            for table, columns in _DTYPES.items()
        }

    def buffer(self, table: str) -> RowBuffer:
        """The memory in which the rows of a table wait, for native code that adds to them."""
        return self._buffers[table]

    def add(self, table: str, rows: int, *columns: Any) -> None:
        """`rows` rows of `table`, columns in the order of TABLES[table]: arrays of integers or
        bools, or one number for all rows."""
        self._buffers[table].add(rows, columns)

    def flush(self) -> list[Record]:
        """All rows since the last flush, one Record per table that has any, in the order of
        TABLES."""
        records: list[Record] = []
        for table, buffer in self._buffers.items():
            if len(buffer):
                records.append(Record(table, _read(table, buffer)))
                buffer.clear()
        return records

    def held(self) -> tuple[tuple[str, int, tuple[NDArray[Any], ...]], ...]:
        """The rows that wait, as (table, rows, columns) in the order of TABLES, for a checkpoint.
        They stay."""
        return tuple(
            (table, len(buffer), tuple(_read(table, buffer).values()))
            for table, buffer in self._buffers.items()
            if len(buffer)
        )

    def take_up(self, held: Iterable[tuple[str, int, tuple[NDArray[Any], ...]]]) -> None:
        """What waits is what another one held."""
        for buffer in self._buffers.values():
            buffer.clear()
        for table, rows, columns in held:
            self._buffers[table].add(rows, tuple(columns))


def _read(table: str, buffer: RowBuffer) -> dict[str, NDArray[Any]]:
    rows = len(buffer)
    columns = {name: np.empty(rows, dtype) for name, dtype in _DTYPES[table]}
    buffer.read(tuple(columns.values()))
    return columns
