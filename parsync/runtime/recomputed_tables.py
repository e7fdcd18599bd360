"""The tables of an arm as its replay makes them again, beside those that the run left.

A replay repeats the measurements, too: every Record that its participants make. They are written
into a folder of their own, as the run wrote its tables, and compared row by row. Some rows cannot
be made again: those whose values are measured by the clock, and those of processes that were
killed, whose own records are removed at the end of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parsync.metrics.record import Table
from parsync.metrics.tables import Tables
from parsync.runtime.assembly import Assembly
from parsync.runtime.records import arrow_schema, read_records
from parsync.schema import TableSchema
from shared_state.errors import AgoraError

MEASURED = "measured by the clock"
KILLED = "in part computed from the logs of a killed process"
AT_THE_END = "their last rows were made at the end, by the clock"
_TOLERANCE = 1e-9  # relative, of columns of floats, whose sums differ with the processor


@dataclass(frozen=True, slots=True)
class RecomputedTables:
    """What a replay measured.

    Attributes:
        assembly: Of the arm.
        directory: The folder with the tables that were made again.
        not_made: Why a table was not, by its name.
        lost_agents: Agents whose rows were not made again, in all tables but `of_others`.
        of_others: The tables that no agent writes to.
    """

    assembly: Assembly
    directory: Path
    not_made: Mapping[str, str]
    lost_agents: Set[int] = frozenset()
    of_others: Set[str] = frozenset()

    @property
    def tables(self) -> Tables:
        """The schemas of the arm's tables, by name."""
        return self.assembly.tables

    def leaves_out(self, table: str) -> Set[int]:
        """The agents of whom the table has rows that were not made again."""
        return frozenset() if table in self.of_others else self.lost_agents


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that is not what it should be, and how, in a phrase."""

    path: Path
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """What became of the comparison.

    Attributes:
        equal: The tables that have the rows of the replay.
        rows: How many.
        differences: One for each other table.
    """

    equal: tuple[str, ...]
    rows: int
    differences: tuple[Difference, ...]


def compare_tables(folder: Path, made: RecomputedTables) -> ComparedTables:
    """Compare the tables that an arm left with those that its replay made.

    Args:
        folder: Of the arm.
        made: The replay's.
    """
    equal, rows = [], 0
    differences = []
    for table, schema in made.tables.items():
        path, again = folder / f"{table}.parquet", made.directory / f"{table}.parquet"
        if table in made.not_made or not (path.exists() or again.exists()):
            continue
        try:
            expected = _rows_in(again)
            text = (
                _difference(path, again, schema, made.leaves_out(table))
                if path.exists()
                else f"is missing: {expected:,} rows"
            )
        except (OSError, pa.ArrowException) as error:
            text = f"cannot be read: {' '.join(str(error).split())}"
        if text:
            differences.append(Difference(path, text))
        else:
            equal.append(table)
            rows += expected
    return ComparedTables(tuple(equal), rows, tuple(differences))


def all_rows(folder: Path, made: RecomputedTables) -> Iterator[tuple[str, Table]]:
    """The rows that an arm's figures rest on: those of the replay, and from the tables that the arm
    left those that were not made again. Raises AgoraError naming a table that cannot be read."""
    for table, schema in made.tables.items():
        path, again = folder / f"{table}.parquet", made.directory / f"{table}.parquet"
        lost = made.leaves_out(table) if "agent" in schema.dtypes else frozenset()
        if again.exists() and table not in made.not_made:
            yield from read_records({table: [again]}, made.tables)
        if (table in made.not_made or lost) and path.exists():
            for _, rows in _readable(table, path, made.tables):
                kept = rows if table in made.not_made else _of(rows, lost, True)
                if len(next(iter(kept.values()))):
                    yield table, kept


def _readable(table: str, path: Path, tables: Tables) -> Iterator[tuple[str, Table]]:
    try:
        yield from read_records({table: [path]}, tables)
    except pa.ArrowException as error:
        raise AgoraError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error


def _rows_in(path: Path) -> int:
    if not path.exists():
        return 0
    with pq.ParquetFile(path) as file:
        return int(file.metadata.num_rows)


def _difference(path: Path, again: Path, schema: TableSchema, lost: Set[int]) -> str:
    """How a table differs from the one that was made again; "" if it does not."""
    with pq.ParquetFile(path) as file:
        wrong = _wrong_columns(file.schema_arrow, schema)
    if wrong:
        return wrong
    left_out = lost if "agent" in schema.dtypes else frozenset()
    found, expected = _chunks(path, schema, left_out), _chunks(again, schema, frozenset())
    row = 0
    for got, right in _aligned(found, expected):
        if isinstance(got, int) or isinstance(right, int):
            return f"expected {row + _length(right):,} rows, got {row + _length(got):,}"
        differs = _first(got, right)
        if differs is not None:
            place, column = differs
            return (
                f"row {row + place}, column {column}: expected {right[column][place]}, "
                f"got {got[column][place]}"
            )
        row += _length(got)
    return ""


def _wrong_columns(found: Any, schema: TableSchema) -> str:
    expected = {field.name: field.type for field in arrow_schema(schema)}
    got = {field.name: field.type for field in found}
    for name, kind in expected.items():
        if name not in got:
            return f"column {name} is missing"
        if got[name] != kind:
            return f"column {name}: expected {kind}, got {got[name]}"
    return next(
        (f"column {name} is not one of the table" for name in got if name not in expected), ""
    )


def _chunks(path: Path, schema: TableSchema, left_out: Set[int]) -> Iterator[Table]:
    if not path.exists():
        return
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            read = file.read_row_group(group, columns=list(schema.dtypes))
            rows: Table = {}
            for name in schema.dtypes:
                column = read.column(name)
                if column.null_count:
                    raise pa.ArrowInvalid(f"column {name} has empty fields")
                rows[name] = column.to_numpy()
            yield _of(rows, left_out, False) if left_out else rows


def _of(rows: Table, agents: Set[int], wanted: bool) -> Table:
    """The rows of these agents, or those of all others."""
    mask = np.isin(rows["agent"], list(agents)) == wanted
    return {name: column[mask] for name, column in rows.items()}


def _aligned(
    left: Iterator[Table], right: Iterator[Table]
) -> Iterator[tuple[Table | int, Table | int]]:
    """Chunks of equal length of both, in order; at the end, if one has more rows, 0 in place of the
    other and how many rows there are more."""
    one: Table | None = None
    other: Table | None = None
    while True:
        one = _more(one, left)
        other = _more(other, right)
        if one is None or other is None:
            break
        n = min(_length(one), _length(other))
        yield _part(one, 0, n), _part(other, 0, n)
        one, other = _part(one, n, None), _part(other, n, None)
    if one is not None or other is not None:
        yield _rest(one, left), _rest(other, right)


def _more(held: Table | None, chunks: Iterator[Table]) -> Table | None:
    while held is None or not _length(held):
        held = next(chunks, None)
        if held is None:
            return None
    return held


def _rest(held: Table | None, chunks: Iterator[Table]) -> int:
    return (0 if held is None else _length(held)) + sum(map(_length, chunks))


def _part(rows: Table, start: int, end: int | None) -> Table:
    return {name: column[start:end] for name, column in rows.items()}


def _length(rows: Table | int) -> int:
    return rows if isinstance(rows, int) else len(next(iter(rows.values())))


def _first(got: Table, right: Table) -> tuple[int, str] | None:
    """The first row that differs, and its first column that does; None if none does."""
    found: tuple[int, str] | None = None
    for name, column in right.items():
        equal = (
            np.isclose(got[name], column, _TOLERANCE, 0.0, equal_nan=True)
            if column.dtype.kind == "f"
            else got[name] == column
        )
        if not equal.all():
            row = int(np.argmin(equal))
            if found is None or row < found[0]:
                found = row, name
    return found


def measured_only(tables: Tables) -> dict[str, str]:
    """Why the tables whose values are measured by the clock are not made again, by name."""
    return {name: MEASURED for name, schema in tables.items() if schema.measured}


def last_sample_us(folder: Path, agents: Sequence[int]) -> int | None:
    """The time of the last row of these agents in the table `agents`, which they write at their
    end; None if there is none, or the table cannot be read."""
    path = folder / "agents.parquet"
    last_us: int | None = None
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, columns=["at_us", "agent"])
                mask = np.isin(rows.column("agent").to_numpy(), agents)
                at_us = rows.column("at_us").to_numpy()[mask]
                if len(at_us):
                    last_us = max(int(at_us.max()), -1 if last_us is None else last_us)
    except (OSError, KeyError, pa.ArrowException):
        return None
    return last_us
