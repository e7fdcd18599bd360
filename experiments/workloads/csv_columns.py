"""Columns of CSV files (RFC 4180), read fast. Errors name the file, the line and the column.

read_named_columns takes files with a header, read_columns files whose columns are known by their
position. Files may be compressed with gzip, whatever they are called; text is UTF-8, or UTF-16 with
a byte order mark. pyarrow parses; only when it refuses is the file walked row by row to find the
line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from shared_state.errors import AgoraError, printable

LARGEST_NUMBER = 1e9  # thirty years in seconds

_UINT64_MAX = (1 << 64) - 1
_INT64_MAX = (1 << 63) - 1
_DIGITS = re.compile(rb"[0-9]+")
_FLOAT = re.compile(rb"[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?")
_GZIP = b"\x1f\x8b"
_OTHER_FILES = {  # by how they begin
    b"BZh": "compressed with bzip2; unpack it first (bunzip2)",
    b"\xfd7zXZ": "compressed with xz; unpack it first (unxz)",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first (unzstd)",
    b"PK\x03\x04": "a zip archive or a spreadsheet; save the table as CSV",
}
_ENCODINGS = {  # by their byte order marks; those of UTF-32 begin with those of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read, as the functions below make it.

    Args:
        name: as errors and results call it, and as a header does.
        arrow: the type to parse to; numpy's of the same name is returned.
        absent: what an empty field reads as; None if fields must not be empty.
        expected: what a field may be, for errors.
        accepts: whether a field that is not empty may be read.
    """

    name: str
    arrow: pa.DataType
    absent: int | float | None
    expected: str
    accepts: Callable[[bytes], bool]


def time_column(name: str) -> Column:
    """A column of microseconds, uint64. The mark of Google's trace for "after the end" is 2^63 - 1,
    and some copies round it up beyond an int64."""
    return Column(
        name,
        pa.uint64(),
        None,
        "a time in microseconds",
        lambda text: _integer(text, _UINT64_MAX),
    )


def integer_column(
    name: str, largest: int = _INT64_MAX, optional: bool = False, smallest: int = 0
) -> Column:
    """A column of integers in [smallest, largest], int64. An optional empty field reads as -1."""
    expected = f"an integer in [{smallest}, {'2^63 - 1' if largest == _INT64_MAX else largest}]"
    return Column(
        name,
        pa.int64(),
        -1 if optional else None,
        expected,
        lambda text: _integer(text, largest) and int(text) >= smallest,
    )


def number_column(name: str, largest: float = LARGEST_NUMBER) -> Column:
    """A column of numbers in [0, largest], float64."""
    return Column(
        name,
        pa.float64(),
        None,
        f"a number in [0, {largest:g}]",
        lambda text: _number(text, largest),
    )


def fraction_column(name: str) -> Column:
    """A column of numbers in [0, 1], float64. An empty field reads as NaN."""
    return Column(
        name,
        pa.float64(),
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
    """The named columns (by field position, from 0) of a file of `width` fields per row. A first
    line of names in place of values is skipped.

    Raises AgoraError naming file and line if the file is missing, truncated, empty or no text, a
    row has another number of fields or a field that its column does not take, or the first line
    has the name of a column at another position.
    """
    text = _text(path)
    names, rows, lines = _first_record(path, text)
    if not _is_header(names, width, columns):
        return _parsed(path, text, width, columns, first_line=1)
    places = {_letters(name): position for position, name in enumerate(names)}
    for position, column in columns.items():
        place = places.get(_letters(column.name), position)
        if place != position:
            raise AgoraError(
                f"{path}, line 1: {column.name} is column {place + 1}, expected column "
                f"{position + 1}"
            )
    return _parsed(path, rows, width, columns, first_line=1 + lines)


def read_named_columns(path: Path, columns: Sequence[Column]) -> dict[str, NDArray[Any]]:
    """The columns of a CSV file whose first line names them. Other columns are skipped.

    Raises AgoraError naming file and line if the file is missing, truncated, empty or no text, its
    header lacks a column or names it twice, or a row has another number of fields or a field that
    its column does not take.
    """
    names, rows, lines = _first_record(path, _text(path))
    names = [name.strip() for name in names]
    if not any(names):
        raise AgoraError(f"{path}: expected a line with the names of the columns, got nothing")
    positions: dict[int, Column] = {}
    for column in columns:
        if names.count(column.name) != 1:
            found = "no column" if column.name not in names else "more than one column"
            raise AgoraError(
                f"{path}, line 1: {found} named {column.name}; "
                f"its columns: {', '.join(map(printable, names))[:200]}"
            )
        positions[names.index(column.name)] = column
    return _parsed(path, rows, len(names), positions, first_line=1 + lines)


def _first_record(path: Path, text: bytes) -> tuple[list[str], bytes, int]:
    """The fields of the first row, the text after it, and how many lines the row has."""
    lines = io.BytesIO(text)
    first, count = lines.readline(), 1
    while first.count(b'"') % 2 and (line := lines.readline()):  # a line break inside quotes
        first, count = first + line, count + 1
    try:
        record = next(_records(first), (1, [b""]))[1]
    except csv.Error as error:
        raise _no_csv(path, 1, error) from error
    return [field.decode("utf-8", "replace") for field in record], text[len(first) :], count


def _is_header(names: list[str], width: int, columns: dict[int, Column]) -> bool:
    """Whether a row has words where its columns take numbers."""
    return len(names) == width and all(
        re.match(r"[^\W\d_]", names[position].strip())
        for position, column in columns.items()
        if names[position] or column.absent is None
    )


def _letters(name: str) -> str:
    """A name as headers may spell it: "task index", "task_index" and "taskIndex" are the same."""
    return re.sub(r"[\W_]", "", name).lower()


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
    quoted = b'"' in text
    if quoted and not _is_quoted_well(text):
        error_of_line = _first_error(path, text, width, columns, first_line)
        if error_of_line is not None:
            raise error_of_line
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text),
            read_options=pyarrow.csv.ReadOptions(column_names=names),
            parse_options=pyarrow.csv.ParseOptions(
                quote_char='"' if quoted else False,
                newlines_in_values=quoted,
                ignore_empty_lines=False,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={column.name: column.arrow for column in wanted},
                include_columns=[column.name for column in wanted],
                null_values=[""],
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        error_of_line = _first_error(path, text, width, columns, first_line)
        raise error_of_line or AgoraError(
            f"{path}: not readable as CSV: {printable(str(error))}"
        ) from error
    result = {column.name: _to_numpy(table.column(column.name), column) for column in wanted}
    if _refused(result, table, wanted):
        error_of_line = _first_error(path, text, width, columns, first_line)
        if error_of_line is not None:
            raise error_of_line
    return result


def _to_numpy(chunks: pa.ChunkedArray, column: Column) -> NDArray[Any]:
    filled = chunks.fill_null(0 if column.absent is None else column.absent)
    return np.ascontiguousarray(filled.to_numpy(), dtype=column.arrow.to_pandas_dtype())


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
    number = first_line
    try:
        for lines, fields in _records(text):
            if len(fields) != width:
                return AgoraError(
                    f"{path}, line {number}: expected {width} fields, got {len(fields)}"
                )
            for position, column in columns.items():
                field = fields[position]
                if column.accepts(field) if field else column.absent is not None:
                    continue
                shown = repr(field.decode("utf-8", "replace")[:40]) if field else "nothing"
                return AgoraError(
                    f"{path}, line {number}, {column.name}: {shown}, expected {column.expected}"
                )
            number += lines
    except csv.Error as error:
        return _no_csv(path, number, error)
    return None


def _no_csv(path: Path, number: int, error: csv.Error) -> AgoraError:
    reason = "a quote that is not closed" if "end of data" in str(error) else str(error)
    return AgoraError(f"{path}, line {number}: not CSV: {reason}")


def _is_quoted_well(text: bytes) -> bool:
    """Whether quotes are as RFC 4180 has them. pyarrow is lenient: with a quote too many it takes
    several rows for one."""
    try:
        for _ in csv.reader(io.StringIO(text.decode("latin-1"), newline=""), strict=True):
            pass
    except csv.Error:
        return False
    return True


def _records(text: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """The rows as (number of lines, fields). An empty line is a row of one empty field.

    Raises csv.Error where quotes are not as RFC 4180 has them.
    """
    lines = io.StringIO(text.decode("latin-1"), newline="")  # a character for each byte
    reader = csv.reader(lines, strict=True)
    before = 0
    for record in reader:
        yield reader.line_num - before, [field.encode("latin-1") for field in record] or [b""]
        before = reader.line_num


def _text(path: Path) -> bytes:
    """The text of a file in UTF-8, without byte order mark and without empty lines at its end. Its
    lines end in a line feed."""
    data = _read(path)
    for beginning, what in _OTHER_FILES.items():
        if data.startswith(beginning):
            raise AgoraError(f"{path}: {what}")
    for mark, encoding in _ENCODINGS.items():
        if data.startswith(mark):
            try:
                data = data.decode(encoding).encode()
            except UnicodeError as error:
                raise AgoraError(f"{path}: not {encoding.upper()} text: {error}") from error
            break
    if b"\0" in data[:4096]:
        raise AgoraError(
            f"{path}: no text (it has zero bytes); save it as UTF-8, or as UTF-16 with a byte "
            "order mark"
        )
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    stripped = data.rstrip(b" \t\n")
    return data[: data.find(b"\n", len(stripped)) + 1] or data if stripped else b""


def _read(path: Path) -> bytes:
    """The bytes of a file, decompressed if it is compressed with gzip."""
    try:
        with path.open("rb") as file:
            compressed = path.suffix == ".gz" or file.read(len(_GZIP)) == _GZIP
        if not compressed:
            return path.read_bytes()
        with gzip.open(path) as unpacked:
            return unpacked.read()
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
