"""Batches of rows held back until there are enough of them: numpy's cost is per call, and most
Record batches are tiny."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.tables import TABLES

Columns = Mapping[str, Any]
Table = dict[str, NDArray[Any]]


def concatenate(table: str, batches: Sequence[Columns]) -> Table:
    """One batch with the rows of all, in order, in the dtypes of TABLES. Columns are arrays or, for
    batches of a few rows, lists."""
    joined: Table = {}
    for name, dtype in TABLES[table].items():
        parts = [batch[name] for batch in batches]
        if all(type(part) is list for part in parts):
            joined[name] = np.fromiter(chain.from_iterable(parts), dtype)
        else:
            joined[name] = np.concatenate(parts).astype(dtype, copy=False)
    return joined


class RecordBuffer:
    """Holds Record batches back by table, and hands them out as one once `rows` rows or `batches`
    batches have come together.

    Keeps references, not copies: whoever records a column must not write to it afterwards.
    """

    def __init__(self, rows: int, batches: int) -> None:
        self._limit_rows = rows
        self._limit_batches = batches
        self._held: dict[str, list[Columns]] = {name: [] for name in TABLES}
        self._rows = dict.fromkeys(TABLES, 0)

    def add(self, table: str, columns: Columns) -> Table | None:
        """Take one batch; all held rows of its table when it is time to, else None. Raises KeyError
        for an unknown table."""
        held = self._held[table]
        held.append(columns)
        rows = self._rows[table] + len(columns[_FIRST[table]])
        self._rows[table] = rows
        if rows < self._limit_rows and len(held) < self._limit_batches:
            return None
        return self.take(table)

    def take(self, table: str) -> Table | None:
        """All held rows of one table, or None if there are none."""
        held = self._held[table]
        rows = self._rows[table]
        self._held[table] = []
        self._rows[table] = 0
        return concatenate(table, held) if rows else None

    def drain(self) -> Iterator[tuple[str, Table]]:
        """Take everything held, table by table in the order of TABLES."""
        for name in TABLES:
            rows = self.take(name)
            if rows is not None:
                yield name, rows


_FIRST = {name: next(iter(columns)) for name, columns in TABLES.items()}
