"""Gathers small batches of measurements into large ones: one Record per table and sample interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.core.events import Record
from parsync.core.tables import TABLES


class Measurements:
    """Rows wait here until flush(). A column value may be an array or one number, which is repeated to the batch's length."""

    def __init__(self) -> None:
        self._batches: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}

    def add(self, table: str, rows: int, *columns: Any) -> None:
        """`rows` rows of `table`, columns in the order of TABLES[table]."""
        self._batches.setdefault(table, []).append((rows, columns))

    def flush(self) -> list[Record]:
        """All rows since the last flush, one Record per table, in order of first use."""
        records = [Record(table, self._join(table, batches)) for table, batches in self._batches.items()]
        self._batches = {}
        return records

    def held(self) -> tuple[tuple[str, int, tuple[NDArray[Any], ...]], ...]:
        """(table, rows, columns) of what waits, in order of first use; it goes on waiting. For a checkpoint, from which take_up() gets it."""
        return tuple(
            (table, sum(rows for rows, _ in batches), tuple(self._join(table, batches).values()))
            for table, batches in self._batches.items()
        )

    def take_up(self, held: Iterable[tuple[str, int, tuple[NDArray[Any], ...]]]) -> None:
        """What waits is what another one held."""
        self._batches = {table: [(rows, columns)] for table, rows, columns in held}

    @staticmethod
    def _join(table: str, batches: list[tuple[int, tuple[Any, ...]]]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        total = sum(rows for rows, _ in batches)
        for position, (name, dtype) in enumerate(TABLES[table].items()):
            column = np.empty(total, dtype)
            at = 0
            for rows, values in batches:
                column[at : at + rows] = values[position]
                at += rows
            columns[name] = column
        return columns
