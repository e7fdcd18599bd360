"""Writing a run's workload as files, for replays and for readers of the data.

The folder holds Parquet tables (parsync/workload/tables.py) and workload.json, which has the rest:
names, prices, the end, and the digest of each table. workload.json is written last, so a folder
without it is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from parsync.runtime.json_files import digest_of, read_bytes, write_json
from parsync.runtime.parquet_schema import arrow_schema
from parsync.workload.checks import check_order
from parsync.workload.tables import (
    MAPREDUCE,
    NO_BATCH,
    NO_MACHINE,
    QUOTA_GROUP,
    capacity_column,
    limit_column,
    partition_column,
    request_column,
    workload_schemas,
)
from parsync.workload.workload import Phase, Workload
from schedulers.mapreduce.jobs import MapReduceJobs
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import Int32, Int64

WORKLOAD_DIR = "workload"
WORKLOAD_FILE = "workload.json"
FORMAT = 1

_ROW_GROUP = 1 << 20
_ROWS_AT_ONCE = 1 << 16
# Ascending ids and random run times are packed as differences, after which there is nothing left to
# compress; what repeats is left to the compression, which costs less.
_PACKED = frozenset({"task", "duration_us", "machine"})

Columns = Mapping[str, NDArray[Any]]


def write_workload(directory: Path, workload: Workload, partitions: Sequence[int]) -> str:
    """Create the folder `directory` and write the workload into it.

    Args:
        directory: Must not exist.
        workload: The workload.
        partitions: The numbers of partitions of the run's arms. Each number gets a column of the
            machines' table if they differ.

    Returns:
        The digest of workload.json.

    Raises:
        ValueError: Tasks are not in order (parsync.workload.checks.check_order).
        AgoraError: A file cannot be written; the message names it.
    """
    check_order(workload)
    counts = sorted(set(partitions))
    quota_groups = () if workload.quotas is None else workload.quotas.names
    has_mapreduce = workload.mapreduce is not None
    schemas = workload_schemas(workload.cell.dimensions, counts, quota_groups, has_mapreduce)
    try:
        directory.mkdir(parents=True)
    except OSError as error:
        raise AgoraError(f"{directory}: cannot create it: {error.strerror}") from error
    files: dict[str, str] = {}
    for name, columns in _tables(workload, counts):
        path = directory / f"{name}.parquet"
        files[path.name] = _write_table(path, arrow_schema(schemas[name]), columns)
    catalog = workload.catalog
    content: dict[str, Any] = {
        "format": FORMAT,
        "name": workload.name,
        "dimensions": list(workload.cell.dimensions),
        "overcommit_permille": workload.cell.overcommit_permille.tolist(),
        "preferred_permille": workload.preferred_permille,
        "wait_cost": catalog.wait_cost,
        "wait_quantum_us": catalog.wait_quantum_us,
        "end_us": workload.end_us,
        "partitions": counts,
        "facts": dict(workload.facts),
        "files": files,
    }
    if quota_groups:  # without, the file is as before there were any
        content["quota_groups"] = list(quota_groups)
    return write_json(directory / WORKLOAD_FILE, content)


def workload_digest(directory: Path) -> str:
    """The digest of the workload.json in a folder of write_workload. AgoraError naming the file."""
    return digest_of(read_bytes(directory / WORKLOAD_FILE))


def _tables(workload: Workload, partitions: Sequence[int]) -> Iterator[tuple[str, Columns]]:
    """Every table, as (name, columns by name in any order)."""
    catalog, events, phases = workload.catalog, workload.machine_events, workload.phases
    yield "tasks", _task_columns(workload)
    yield "machines", _machine_columns(workload, partitions)
    yield (
        "machine_events",
        {"at_us": events.at_us, "machine": events.machine, "up": events.up.astype(np.int8)},
    )
    yield (
        "phases",
        {
            "phase": np.arange(len(phases), dtype=np.int32),
            "start_us": np.array([phase.start_us for phase in phases], np.int64),
            "end_us": np.array([phase.end_us for phase in phases], np.int64),
            "load_percent": np.array([phase.load_percent for phase in phases], np.int64),
        },
    )
    sets = np.arange(catalog.sets, dtype=np.int32)
    yield (
        "preferences",
        {
            "preference": sets,
            "elsewhere_cost": catalog.elsewhere_cost,
            "unscheduled_cost": catalog.unscheduled_cost,
        },
    )
    yield (
        "preferred_machines",
        {
            "preference": np.repeat(sets, np.diff(catalog.machine_offsets)),
            "machine": catalog.machine,
            "cost": catalog.machine_cost,
        },
    )
    yield (
        "preferred_racks",
        {
            "preference": np.repeat(sets, np.diff(catalog.rack_offsets)),
            "rack": catalog.rack,
            "cost": catalog.rack_cost,
        },
    )
    if workload.mapreduce is not None:
        yield (
            MAPREDUCE,
            {
                name: getattr(workload.mapreduce, name)
                for name in MapReduceJobs.__dataclass_fields__
            },
        )


def _task_columns(workload: Workload) -> Columns:
    tasks, initial = workload.tasks, workload.initial
    rows = _as_slice(workload.arrival_rows)
    sizes = np.diff(workload.arrival_offsets)
    batch = np.full(len(tasks), NO_BATCH, np.int32)
    batch[rows] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    machine = np.full(len(tasks), NO_MACHINE, np.int32)
    machine[initial.task] = initial.machine
    phase = np.empty(len(tasks), np.int32)
    phase[rows] = np.repeat(_phase_at(workload.phases, workload.arrival_us), sizes)
    phase[initial.task] = _phase_at(workload.phases, tasks.submit_us[initial.task])
    return {
        "task": tasks.task,
        "job": tasks.job,
        "submit_us": tasks.submit_us,
        "phase": phase,
        "batch": batch,
        "initial_machine": machine,
        **{
            request_column(name): tasks.request[:, place]
            for place, name in enumerate(workload.cell.dimensions)
        },
        "gang": tasks.gang,
        "task_class": tasks.task_class,
        "priority": tasks.priority,
        "preference": tasks.preference,
        "duration_us": workload.duration_us,
        **({} if workload.quotas is None else {QUOTA_GROUP: workload.quotas.group}),
    }


def _as_slice(rows: Int64) -> Int64 | slice:
    """Consecutive rows as a slice, which numpy copies faster."""
    if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return slice(int(rows[0]), int(rows[0]) + len(rows))
    return rows


def _phase_at(phases: Sequence[Phase], at_us: Int64) -> Int32:
    """The phase of each time; the last phase for later times."""
    ends_us = np.array([phase.end_us for phase in phases[:-1]], np.int64)
    return np.searchsorted(ends_us, at_us, side="right").astype(np.int32)


def _machine_columns(workload: Workload, partitions: Sequence[int]) -> Columns:
    cell, events = workload.cell, workload.machine_events
    up = np.ones(cell.machines, np.int8)
    up[events.machine[(events.at_us == 0) & ~events.up]] = 0
    limit = cell.limit
    return {
        "machine": np.arange(cell.machines, dtype=np.int32),
        "rack": cell.rack,
        **{
            partition_column(count, partitions): Partitioning.by_topology(cell, count).of_each()
            for count in partitions
        },
        **{capacity_column(name): cell.capacity[:, k] for k, name in enumerate(cell.dimensions)},
        **{limit_column(name): limit[:, k] for k, name in enumerate(cell.dimensions)},
        "slot_score": cell.slot_score,
        "up_at_start": up,
    }


def _write_table(path: Path, schema: Any, columns: Columns) -> str:
    """Write a table, and return the digest of its file. The file is built in memory: it takes some
    bytes per task."""
    rows = len(next(iter(columns.values())))
    packed = {name: "DELTA_BINARY_PACKED" for name in schema.names if name in _PACKED}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        schema,
        compression={name: "none" if name in packed else "lz4" for name in schema.names},
        use_dictionary=False,
        write_statistics=False,
        column_encoding=packed or None,
        write_batch_size=_ROWS_AT_ONCE,
    ) as writer:
        for first in range(0, rows, _ROW_GROUP):
            stretch = slice(first, min(first + _ROW_GROUP, rows))
            writer.write_table(_arrow_table(schema, columns, stretch), _ROW_GROUP)
    data = sink.getvalue()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise AgoraError(f"{path}: cannot write it: {error.strerror}") from error
    return digest_of(data)


def _arrow_table(schema: Any, columns: Columns, stretch: slice) -> Any:
    """Rows of the columns as a table, without a copy where the memory is contiguous."""
    arrays = []
    for column in schema:
        dtype = column.type.to_pandas_dtype()
        values = np.ascontiguousarray(columns[column.name][stretch], dtype)
        arrays.append(pa.Array.from_buffers(column.type, len(values), [None, pa.py_buffer(values)]))
    return pa.Table.from_arrays(arrays, schema=schema)
