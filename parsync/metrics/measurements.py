"""Gathers small batches of measurements into large ones: one Record per table and sample
interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import _native
from parsync.metrics.record import Record
from parsync.metrics.tables import SCHEMAS, Tables


class Measurements(_native.Measurements):  # type: ignore[misc] # compiled
    """Rows wait here until flush(), by column and in the dtypes of their table.

    Args:
        tables: Those that rows are added to; default: the tables that every run has.
    """

    def __init__(self, tables: Tables = SCHEMAS) -> None:
        super().__init__(
            {
                table: {name: np.dtype(dtype) for name, dtype in schema.dtypes.items()}
                for table, schema in tables.items()
            }
        )

    def add(self, table: str, rows: int, *columns: Any) -> None:
        """`rows` rows of `table`, columns in the order of its schema: arrays of integers or
        bools, or one number for all rows."""
        super().add(table, rows, columns)

    def flush(self) -> list[Record]:
        """All rows since the last flush, one Record per table that has any, in the order of
        the tables."""
        return [Record(table, columns) for table, columns in self.take()]

    def held(self) -> tuple[tuple[str, int, tuple[NDArray[Any], ...]], ...]:
        """The rows that wait, as (table, rows, columns) in the order of the tables: a checkpoint.
        They stay."""
        rows: tuple[tuple[str, int, tuple[NDArray[Any], ...]], ...] = super().held()
        return rows

    def restore(self, held: Iterable[tuple[str, int, tuple[NDArray[Any], ...]]]) -> None:
        """Replace the rows that wait by those that held() returned."""
        self.clear()
        for table, rows, columns in held:
            super().add(table, rows, tuple(columns))
