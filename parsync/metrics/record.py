"""The way of measurements from participants to whoever takes them.

A Record is a batch of rows of one table (tables.py). A participant gathers rows in Measurements and
hands them out as Records, once per sample interval. In virtual time GatheredRecords puts those of
all agents together. Accumulators (run_metrics.py) and Parquet files (parsync/runtime/records.py)
take them, and hold them back in a RecordBuffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import _native
from parsync.metrics.tables import SCHEMAS, Tables
from shared_state.errors import AgoraError

Columns = Mapping[str, Any]  # of a batch of rows: arrays, or lists of few numbers
Table = dict[str, NDArray[Any]]  # columns in the dtypes of their table


@dataclass(slots=True)
class Record:
    """One batch of measurements for the accumulators and the Parquet files: equal-length columns by
    name (see tables.py)."""

    table: str
    columns: dict[str, Any]


class Measurements(_native.Measurements):  # type: ignore[misc] # compiled
    """The rows that a participant measures, gathered into one Record per table and sample interval:
    they wait here until flush(), by column and in the dtypes of their table.

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


class GatheredRecords:
    """The Records of a sample interval, gathered so that whoever takes them gets one per table and
    interval, and not one per table, agent and interval. The rows of a table keep their order.

    Args:
        tables: Those of the run.
        on_record: Called with what has been gathered, by hand_out().

    Attributes:
        rows: What has been gathered.
    """

    def __init__(self, tables: Tables, on_record: Callable[[Record], None]) -> None:
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


class RecordBuffer:
    """Holds Record batches back by table, and hands them out as one once `rows` rows or `batches`
    batches have come together: numpy's cost is per call, and most batches are tiny.

    Keeps references, not copies: whoever records a column must not write to it afterwards.

    Args:
        tables: Those of the run.

    Raises:
        AgoraError: From add(), take() and drain(), naming the table: there is no such table, or the
            rows do not have its columns.
    """

    def __init__(self, rows: int, batches: int, tables: Tables = SCHEMAS) -> None:
        self._limit_rows = rows
        self._limit_batches = batches
        self._dtypes = {name: schema.dtypes for name, schema in tables.items()}
        self._first = {name: next(iter(dtypes)) for name, dtypes in self._dtypes.items()}
        self._held: dict[str, list[Columns]] = {name: [] for name in tables}
        self._rows = dict.fromkeys(tables, 0)

    def add(self, table: str, columns: Columns) -> Table | None:
        """Take one batch; all held rows of its table when it is time to, else None."""
        held = self._held.get(table)
        if held is None:
            raise AgoraError(f"table {table!r}: not a table of this run")
        first = columns.get(self._first[table])
        if first is None:
            raise AgoraError(f"table {table!r}: a batch has no column {self._first[table]!r}")
        held.append(columns)
        rows = self._rows[table] + len(first)
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
        if not rows:
            return None
        try:
            return concatenate(self._dtypes[table], held)
        except AgoraError as error:
            raise AgoraError(f"table {table!r}: {error}") from error

    def drain(self) -> Iterator[tuple[str, Table]]:
        """Take everything held, table by table in the order of the tables."""
        for name in self._held:
            rows = self.take(name)
            if rows is not None:
                yield name, rows


def concatenate(dtypes: Mapping[str, str], batches: Sequence[Columns]) -> Table:
    """One batch with the rows of all, in order, with the columns and dtypes given. Columns are
    arrays or, for batches of a few rows, lists. Raises AgoraError for a batch without one of the
    columns, and for columns of different lengths."""
    joined: Table = {}
    for name, dtype in dtypes.items():
        try:
            parts = [batch[name] for batch in batches]
        except KeyError as error:
            raise AgoraError(f"a batch of rows has no column {name!r}") from error
        if all(type(part) is list for part in parts):
            joined[name] = np.fromiter(chain.from_iterable(parts), dtype)
        else:
            joined[name] = np.concatenate(parts).astype(dtype, copy=False)
    if len({len(column) for column in joined.values()}) > 1:
        raise AgoraError(differing_lengths(joined))
    return joined


def differing_lengths(columns: Columns) -> str:
    """What is wrong with the columns of a table that are not of one length."""
    shown = ", ".join(f"{name} has {len(column)}" for name, column in columns.items())
    return f"its columns differ in length: {shown}"
