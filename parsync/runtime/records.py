"""Record batches to Parquet and back: every actor of a run streams its own parts, merged into one
file per table at the end.

A part is written as `<table>.<part>.parquet.partial` and renamed on close, so a file without
`.partial` is whole. What a crashed actor left behind has no footer and is not readable as Parquet;
merge_parts reports it by name instead of dropping it silently.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parsync.metrics.record import Columns, RecordBuffer, Table
from parsync.metrics.tables import SCHEMAS, Tables
from parsync.schema import Column, TableSchema
from shared_state.errors import AgoraError, reading

PARTIAL = ".partial"
_ROW_GROUP = 1 << 16
_HELD_BATCHES = 1 << 13  # of few rows each; bounds what a burst of tiny batches holds


class RecordSink:
    """Streams Record batches to `directory`, one file per table that got any rows, in row groups of
    about 64K rows (lz4).

    An exception inside a `with` of it leaves the files marked partial.

    Args:
        directory: An existing directory.
        part: This writer's name among several, e.g. an actor's.
        tables: Those of the run.

    Raises:
        AgoraError: Names the file when the disk is full or the file cannot be written; the files
            then stay marked partial. Names the table of rows that are not those of a table of the
            run.
    """

    def __init__(self, directory: Path, part: str = "0", tables: Tables = SCHEMAS) -> None:
        self._directory = directory
        self._part = part
        self._tables = tables
        self._held = RecordBuffer(_ROW_GROUP, _HELD_BATCHES, tables)
        self._writers: dict[str, Any] = {}
        self._closed = False

    def add(self, table: str, columns: Columns) -> None:
        """One Record batch. The columns are kept for a while and must not change."""
        rows = self._held.add(table, columns)
        if rows is not None:
            self._write(table, rows)

    def flush(self) -> None:
        """Hand everything held to the operating system, as (perhaps small) row groups."""
        for table, rows in self._held.drain():
            self._write(table, rows)

    def close(self) -> None:
        """Write what is held, finish the files and give them their names. Idempotent."""
        self._finish(whole=True)

    def abandon(self) -> None:
        """Finish the files but leave them marked partial: the run did not get to its end. They are
        readable as Parquet. Idempotent."""
        self._finish(whole=False)

    def _finish(self, whole: bool) -> None:
        if self._closed:
            return
        self._closed = True
        # one file that cannot be finished does not keep the others from it
        with ExitStack() as every:
            try:
                self.flush()
            except AgoraError:
                whole = False
                raise
            finally:
                for table, writer in self._writers.items():
                    every.callback(self._finish_table, table, writer, whole)

    def _finish_table(self, table: str, writer: Any, whole: bool) -> None:
        path = self._path(table)
        with _explained(path):
            writer.close()
            if whole:
                path.with_name(path.name + PARTIAL).replace(path)

    def __enter__(self) -> RecordSink:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _path(self, table: str) -> Path:
        return self._directory / f"{table}.{self._part}.parquet"

    def _write(self, table: str, rows: Table) -> None:
        path = self._path(table)
        with _explained(path):
            if table not in self._writers:
                unfinished = path.with_name(path.name + PARTIAL)
                self._writers[table] = _open_writer(unfinished, self._tables[table])
            writer = self._writers[table]
            writer.write_table(arrow_table(writer.schema, rows), row_group_size=_ROW_GROUP)


def merge_parts(directory: Path, tables: Tables = SCHEMAS) -> list[str]:
    """Join the parts of each table into `<table>.parquet` and remove them; memory: one row group at
    a time.

    Returns the names of the files that are marked partial, which stay as they are. Parts are taken
    in the order of their names. tables: those of the run.
    """
    for table, schema in tables.items():
        parts = sorted(path for path in directory.glob(f"{table}.*.parquet"))
        if not parts:
            continue
        whole = directory / f"{table}.parquet"
        unfinished = whole.with_name(whole.name + PARTIAL)
        with _explained(whole):
            if len(parts) == 1:
                parts[0].replace(whole)
                continue
            with _open_writer(unfinished, schema) as writer:
                for part in parts:
                    with pq.ParquetFile(part) as file:
                        for group in range(file.num_row_groups):
                            rows = file.read_row_group(group)
                            # parts of earlier versions have nullable columns
                            writer.write_table(rows.cast(writer.schema))
            unfinished.replace(whole)
            for part in parts:
                part.unlink()
    return sorted(path.name for path in directory.glob(f"*{PARTIAL}"))


def remove_parts(directory: Path, part: str) -> None:
    """Remove what a writer left, whole or not."""
    for path in directory.glob(f"*.{part}.parquet*"):
        path.unlink()


def read_records(
    files: Mapping[str, Sequence[Path]], tables: Tables = SCHEMAS
) -> Iterator[tuple[str, Table]]:
    """Every row group of record_files, table by table. tables: those of the run. Raises AgoraError
    naming a file that cannot be read."""
    for table, paths in files.items():
        for path in paths:
            yield from ((table, rows) for rows in _row_groups(path, tables[table]))


def record_files(directory: Path, tables: Tables = SCHEMAS) -> dict[str, list[Path]]:
    """The Parquet files in the folder of an arm by table: one, or the parts of it. tables: those
    of the run. Raises AgoraError naming a file that was not closed: without its end a Parquet file
    cannot be read."""
    files: dict[str, list[Path]] = {}
    for table in tables:
        joined = directory / f"{table}.parquet"
        # parts are removed once they are joined, and joined anew by whoever finds both
        paths = [joined] if joined.exists() else sorted(directory.glob(f"{table}.*.parquet"))
        if not joined.exists():
            paths += sorted(directory.glob(f"{table}.*.parquet{PARTIAL}"))
        if paths:
            files[table] = paths
    for path in (path for paths in files.values() for path in paths):
        with reading(f"{path}: not closed, or damaged: it cannot be read"):
            pq.ParquetFile(path).close()
    return files


def _row_groups(path: Path, schema: TableSchema) -> Iterator[Table]:
    dtypes = schema.dtypes
    with reading(f"{path}: cannot read the records"), pq.ParquetFile(path) as file:
        lacking = schema.added.difference(file.schema_arrow.names)
        names = [name for name in dtypes if name not in lacking]
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=names)
            read = {name: rows.column(name).to_numpy() for name in names}
            zeros = dict.fromkeys(lacking, np.zeros(rows.num_rows, np.int64))
            yield {
                name: (zeros if name in lacking else read)[name].astype(dtype, copy=False)
                for name, dtype in dtypes.items()
            }


def arrow_table(schema: Any, columns: Columns, rows: slice = slice(None)) -> Any:
    """Rows of the columns as a table, on the arrays' own memory where it is contiguous: pa.table
    would look whether they are pandas', and import it for that."""
    arrays = []
    for field in schema:
        dtype = field.type.to_pandas_dtype()
        values = np.ascontiguousarray(columns[field.name][rows], dtype)
        arrays.append(pa.Array.from_buffers(field.type, len(values), [None, pa.py_buffer(values)]))
    return pa.Table.from_arrays(arrays, schema=schema)


def _open_writer(path: Path, schema: TableSchema) -> Any:
    """Open a writer.

    What costs least to write, and makes smaller files than zstd alone: ids as differences to the
    row before, which hardly repeat and are near each other; everything else plain, as lz4 finds its
    repetitions. Nearly every column outgrows a dictionary, and nothing reads statistics.
    """
    ids = {
        name: "DELTA_BINARY_PACKED"
        for name, column in schema.columns.items()
        if column.unit == "id" and np.dtype(column.dtype).kind in "iu"
    }
    return pq.ParquetWriter(
        path,
        arrow_schema(schema),
        compression="lz4",
        column_encoding=ids or None,
        use_dictionary=False,
        write_statistics=False,
    )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise AgoraError(f"{path}: cannot write the records: {reason}") from error
    except pa.ArrowException as error:
        raise AgoraError(f"{path}: cannot write the records: {error}") from error


def arrow_schema(table: TableSchema) -> Any:
    """The schema of a table's files. No column is nullable: no value is ever missing, and what
    would mark the missing ones took a quarter of the writing time."""
    described = {name: _described(column) for name, column in table.columns.items()}
    fields = [
        pa.field(
            name,
            pa.from_numpy_dtype(column.dtype),
            False,
            {key: value if type(value) is str else _json(value) for key, value in metadata.items()},
        )
        for (name, column), metadata in zip(table.columns.items(), described.values(), strict=True)
    ]
    return pa.schema(fields, {"rows": table.rows, "columns": _json(described)})


def _described(column: Column) -> dict[str, Any]:
    metadata: dict[str, Any] = {"meaning": column.meaning, "unit": column.unit}
    if column.codes:
        metadata["codes"] = {str(code): name for code, name in column.codes.items()}
    return metadata


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
