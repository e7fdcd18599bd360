"""The measurements of an arm as they are on disk, whether its run came to its end or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from parsync.metrics.record_buffer import Table
from parsync.metrics.tables import SCHEMAS, Tables
from parsync.runtime.records import PARTIAL
from shared_state.errors import reading


def read_records(
    files: Mapping[str, Sequence[Path]], tables: Tables = SCHEMAS
) -> Iterator[tuple[str, Table]]:
    """Every row group of record_files, table by table. tables: those of the run. Raises AgoraError
    naming a file that cannot be read."""
    for table, paths in files.items():
        for path in paths:
            yield from ((table, rows) for rows in _row_groups(path, tables[table].dtypes))


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


def _row_groups(path: Path, dtypes: Mapping[str, str]) -> Iterator[Table]:
    names = list(dtypes)
    with reading(f"{path}: cannot read the records"), pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=names)
            yield {
                name: rows.column(name).to_numpy().astype(dtypes[name], copy=False)
                for name in names
            }
