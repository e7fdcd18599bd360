"""Columns of CSV files, read fast. Errors name the file, the line and the column.

read_named_columns takes files with a header, read_columns gzipped files without one. pyarrow
parses; only when it refuses is the file walked row by row to find the line.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from shared_state.errors import AgoraError

LARGEST_NUMBER = 1e9  # thirty years in seconds

_UINT64_MAX = (1 << 64) - 1
_INT64_MAX = (1 << 63) - 1
_DIGITS = re.compile(rb"[0-9]+")
_FLOAT = re.compile(rb"[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read, as the functions below make it.

    Args:
        name: as errors and results call it, and as a header does.
        arrow, dtype: types to parse to and to return.
        absent: what an empty field reads as; None if fields must not be empty.
        expected: what a field may be, for errors.
        accepts: whether a field that is not empty may be read.
    """

    name: str
    arrow: pa.DataType
    dtype: type[np.generic]
    absent: int | float | None
    expected: str
    accepts: Callable[[bytes], bool]


def time_column(name: str) -> Column:
    """A column of microseconds, uint64. The mark of Google's trace for "after the end" is 2^63 - 1,
    and some copies round it up beyond an int64."""
    return Column(
        name,
        pa.uint64(),
        np.uint64,
        None,
        "a time in microseconds",
        lambda text: _integer(text, _UINT64_MAX),
    )


def integer_column(
    name: str, largest: int = _INT64_MAX, optional: bool = False, smallest: int = 0
) -> Column:
    """A column of integers in [smallest, largest], int64. An optional empty field reads as -1."""
    if largest < _INT64_MAX:
        expected = f"an integer in [{smallest}, {largest}]"
    else:
        expected = f"an integer of at least {smallest}" if smallest else "an integer"
    return Column(
        name,
        pa.int64(),
        np.int64,
        -1 if optional else None,
        expected,
        lambda text: _integer(text, largest) and int(text) >= smallest,
    )


def number_column(name: str, largest: float = LARGEST_NUMBER) -> Column:
    """A column of numbers in [0, largest], float64."""
    return Column(
        name,
        pa.float64(),
        np.float64,
        None,
        f"a number in [0, {largest:g}]",
        lambda text: _number(text, largest),
    )


def fraction_column(name: str) -> Column:
    """A column of numbers in [0, 1], float64. An empty field reads as NaN."""
    return Column(
        name,
        pa.float64(),
        np.float64,
        float("nan"),
        "a number in [0, 1]",
        partial(_number, largest=1.0),
    )


def _integer(text: bytes, largest: int) -> bool:
    return _DIGITS.fullmatch(text) is not None and int(text) <= largest


def _number(text: bytes, largest: float) -> bool:
    if _FLOAT.fullmatch(text) is None:
        return False
    try:
        return float(text) <= largest
    except ValueError:
        return False


def read_columns(path: Path, width: int, columns: dict[int, Column]) -> dict[str, NDArray[Any]]:
    """The named columns (by field position, from 0) of a file of `width` fields per row. Row i of
    the result is line i + 1.

    Raises AgoraError naming file and line if the file is missing, not gzip, truncated, empty, or a
    row has another number of fields or a field that its column does not take.
    """
    return _parsed(path, _decompressed(path), width, columns, first_line=1)


def read_named_columns(path: Path, columns: Sequence[Column]) -> dict[str, NDArray[Any]]:
    """The columns of a CSV file whose first line names them; gzipped if its name ends in .gz. Other
    columns are skipped. Row i of the result is line i + 2.

    Raises AgoraError naming file and line if the file is missing or empty, its header lacks a
    column or names it twice, or a row has another number of fields or a field that its column does
    not take.
    """
    text = _decompressed(path) if path.suffix == ".gz" else _read(path)
    header, _, rows = text.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    if not header.strip():
        raise AgoraError(f"{path}: expected a line with the names of the columns, got nothing")
    names = [name.strip() for name in header.decode("utf-8", "replace").split(",")]
    positions: dict[int, Column] = {}
    for column in columns:
        if names.count(column.name) != 1:
            found = "no column" if column.name not in names else "more than one column"
            raise AgoraError(
                f"{path}, line 1: {found} named {column.name}; "
                f"its columns: {', '.join(names)[:200]}"
            )
        positions[names.index(column.name)] = column
    return _parsed(path, rows, len(names), positions, first_line=2)


def _parsed(
    path: Path, text: bytes, width: int, columns: dict[int, Column], first_line: int
) -> dict[str, NDArray[Any]]:
    """The columns of rows that begin at a line. Raises AgoraError naming the line."""
    if not text:
        raise AgoraError(f"{path}: holds no rows")
    names = [
        columns[position].name if position in columns else f"unused {position}"
        for position in range(width)
    ]
    wanted = [columns[position] for position in sorted(columns)]
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text),
            read_options=pyarrow.csv.ReadOptions(column_names=names),
            parse_options=pyarrow.csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={column.name: column.arrow for column in wanted},
                include_columns=[column.name for column in wanted],
                null_values=[""],
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        error_of_line = _first_error(path, text, width, columns, first_line)
        raise error_of_line or AgoraError(f"{path}: not readable as CSV: {error}") from error
    result = {column.name: _to_numpy(table.column(column.name), column) for column in wanted}
    if _refused(result, table, wanted):
        error_of_line = _first_error(path, text, width, columns, first_line)
        if error_of_line is not None:
            raise error_of_line
    return result


def _to_numpy(chunks: pa.ChunkedArray, column: Column) -> NDArray[Any]:
    filled = chunks.fill_null(0 if column.absent is None else column.absent)
    return np.ascontiguousarray(filled.to_numpy(), dtype=column.dtype)


def _refused(result: dict[str, NDArray[Any]], table: pa.Table, wanted: list[Column]) -> bool:
    """Whether pyarrow may have parsed a field that its column does not accept. The rows are then
    checked one by one."""
    for column in wanted:
        chunks, values = table.column(column.name), result[column.name]
        if column.absent is None and chunks.null_count:
            return True
        present = values[np.asarray(chunks.is_valid())] if chunks.null_count else values
        if len(present) == 0:
            continue
        low, high = present.min(), present.max()
        if not column.accepts(repr(low.item()).encode()) or not column.accepts(
            repr(high.item()).encode()
        ):
            return True
    return False


def _first_error(
    path: Path, text: bytes, width: int, columns: dict[int, Column], first_line: int
) -> AgoraError | None:
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), start=first_line):
        fields = line.removesuffix(b"\r").split(b",")
        if len(fields) != width:
            return AgoraError(f"{path}, line {number}: expected {width} fields, got {len(fields)}")
        for position, column in columns.items():
            field = fields[position]
            if column.accepts(field) if field else column.absent is not None:
                continue
            shown = repr(field.decode("utf-8", "replace")[:40]) if field else "nothing"
            return AgoraError(
                f"{path}, line {number}, {column.name}: {shown}, expected {column.expected}"
            )
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AgoraError(f"{path}: {error.strerror or error}") from error


def _decompressed(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read()
    except FileNotFoundError:
        raise AgoraError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        line = _last_readable_line(path)
        raise AgoraError(
            f"{path}, line {line}: truncated or damaged gzip data ({error})"
        ) from error
    except OSError as error:
        raise AgoraError(f"{path}: {error.strerror or error}") from error


def _last_readable_line(path: Path) -> int:
    """1-based number of the line in which decompression fails."""
    newlines = 0
    with gzip.open(path) as file:
        try:
            while block := file.read1(1 << 16):
                newlines += block.count(b"\n")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            pass
    return newlines + 1
