"""Columns of gzipped, headerless CSV files, read fast; what is wrong with a file is told by name
and line.

pyarrow parses; only when it refuses is the file walked row by row to find the line.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from shared_state.errors import AgoraError

_UINT64_MAX = (1 << 64) - 1
_INT64_MAX = (1 << 63) - 1
_DIGITS = re.compile(rb"[0-9]+")
_FLOAT = re.compile(rb"[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read. Kinds: see the makers below; `absent` stands for an empty field, None where
    one must be present."""

    name: str
    arrow: pa.DataType
    dtype: type[np.generic]
    absent: int | float | None
    expected: str
    accepts: Callable[[bytes], bool]


def time_column(name: str) -> Column:
    """Microseconds, uint64: the trace's "after the end" mark is 2^63 - 1, and some copies round it
    up beyond an int64."""
    return Column(
        name,
        pa.uint64(),
        np.uint64,
        None,
        "a time in microseconds",
        lambda text: _integer(text, _UINT64_MAX),
    )


def integer_column(name: str, largest: int = _INT64_MAX, optional: bool = False) -> Column:
    """An integer in [0, largest], int64; an empty field reads as -1 if optional."""
    expected = "an integer" if largest == _INT64_MAX else f"an integer in [0, {largest}]"
    return Column(
        name,
        pa.int64(),
        np.int64,
        -1 if optional else None,
        expected,
        lambda text: _integer(text, largest),
    )


def fraction_column(name: str) -> Column:
    """A number in [0, 1], float64; an empty field reads as NaN."""
    return Column(name, pa.float64(), np.float64, float("nan"), "a number in [0, 1]", _fraction)


def _integer(text: bytes, largest: int) -> bool:
    return _DIGITS.fullmatch(text) is not None and int(text) <= largest


def _fraction(text: bytes) -> bool:
    if _FLOAT.fullmatch(text) is None:
        return False
    try:
        return float(text) <= 1.0
    except ValueError:
        return False


def read_columns(path: Path, width: int, columns: dict[int, Column]) -> dict[str, NDArray[Any]]:
    """The named columns (by field position, from 0) of a file of `width` fields per row. Row i of
    the result is line i + 1.

    Raises AgoraError naming file and line if the file is missing, not gzip, truncated, empty, or a
    row has another number of fields or a field that its column does not take.
    """
    text = _decompress(path)
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
        fault = _first_fault(path, text, width, columns)
        raise fault or AgoraError(f"{path}: not readable as CSV: {error}") from error
    result = {column.name: _to_numpy(table.column(column.name), column) for column in wanted}
    if _refused(result, table, wanted):
        fault = _first_fault(path, text, width, columns)
        if fault is not None:
            raise fault
    return result


def _to_numpy(chunks: pa.ChunkedArray, column: Column) -> NDArray[Any]:
    filled = chunks.fill_null(0 if column.absent is None else column.absent)
    return np.ascontiguousarray(filled.to_numpy(), dtype=column.dtype)


def _refused(result: dict[str, NDArray[Any]], table: pa.Table, wanted: list[Column]) -> bool:
    """Whether some field that pyarrow took may not be taken: then the rows are walked with the
    exact rules."""
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


def _first_fault(
    path: Path, text: bytes, width: int, columns: dict[int, Column]
) -> AgoraError | None:
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), start=1):
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


def _decompress(path: Path) -> bytes:
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
