"""A run's workload as files, for replays and for readers of the data: written, and made again.

The folder holds Parquet tables (parsync/workload/tables.py) and workload.json, which has the rest:
names, prices, the end, and the digest of each table. workload.json is written last, so a folder
without it is incomplete.

The files may be anybody's: when they are read, every type, length and id is checked before it is
used, and nothing in them is code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from parsync.runtime.json_files import digest_of, field_of, read_bytes, read_json, write_json
from parsync.runtime.records import arrow_schema
from parsync.workload.checks import check_order, validate
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
from parsync.workload.workload import (
    InitialPlacement,
    MachineEvents,
    Phase,
    QuotaMembership,
    Workload,
)
from schedulers.mapreduce.jobs import MapReduceJobs
from shared_state.cell import MAX_DIMENSIONS
from shared_state.errors import AgoraError, reading
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch

WORKLOAD_DIR = "workload"
WORKLOAD_FILE = "workload.json"
FORMAT = 1

_MOST_ROWS = 1 << 31
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


def read_workload(directory: Path) -> Workload:
    """The workload in a folder of write_workload. AgoraError naming the file that is missing,
    damaged, or does not hold what it should."""
    path = directory / WORKLOAD_FILE
    content = read_json(path, FORMAT)
    dimensions = _list_of(path, content, "dimensions", str)
    permille = _list_of(path, content, "overcommit_permille", int)
    partitions = _list_of(path, content, "partitions", int)
    quota_groups: list[str] = []
    if "quota_groups" in content:
        quota_groups = _list_of(path, content, "quota_groups", str)
    if not 1 <= len(set(dimensions)) == len(dimensions) == len(permille) <= MAX_DIMENSIONS:
        raise AgoraError(
            f"{path}: field dimensions: expected 1 to {MAX_DIMENSIONS} names and as many factors"
        )
    digests = field_of(path, content, "files", dict)
    has_mapreduce = f"{MAPREDUCE}.parquet" in digests

    def table(name: str) -> Columns:
        file = directory / f"{name}.parquet"
        return _read_table(file, arrow_schema(schemas[name]), digests.get(file.name))

    try:
        schemas = workload_schemas(dimensions, partitions, quota_groups, has_mapreduce)
        workload = _workload(path, content, dimensions, permille, quota_groups, table)
        if has_mapreduce:
            workload = replace(workload, mapreduce=MapReduceJobs(**table(MAPREDUCE)))
        validate(workload)
    except (ValueError, OverflowError) as error:
        raise AgoraError(f"{directory}: not a workload: {error}") from error
    return workload


def _read_table(path: Path, schema: Any, digest: object) -> Columns:
    data = read_bytes(path)
    if digest_of(data) != digest:
        raise AgoraError(f"{path}: its digest is not that of {WORKLOAD_FILE}: damaged or changed")
    with reading(f"{path}: not readable as Parquet"):
        file = pq.ParquetFile(pa.BufferReader(data))
        found = file.schema_arrow
        if (found.names, found.types) != (schema.names, schema.types):
            raise AgoraError(f"{path}: {_difference(schema, found)}")
        if file.metadata.num_rows > _MOST_ROWS:
            raise AgoraError(f"{path}: expected at most {_MOST_ROWS} rows")
        table = file.read(use_threads=False)
        table.validate(full=True)
        for name in schema.names:
            if table.column(name).null_count:
                raise AgoraError(f"{path}: column {name}: a value is missing")
        columns = {name: table.column(name).to_numpy() for name in schema.names}
    return columns


def _difference(expected: Any, found: Any) -> str:
    for column in expected:
        if column.name not in found.names:
            return f"column {column.name} is missing"
        place = found.get_all_field_indices(column.name)
        if len(place) > 1 or found.field(place[0]).type != column.type:
            return f"column {column.name}: expected {column.type}"
    return f"expected the columns {', '.join(expected.names)}, in this order"


def _workload(
    path: Path,
    content: Mapping[str, Any],
    dimensions: Sequence[str],
    permille: Sequence[int],
    quota_groups: Sequence[str],
    table: Callable[[str], Columns],
) -> Workload:
    """The workload of these columns. Raises ValueError for columns that do not fit together."""
    machines = table("machines")
    capacity = np.stack([machines[capacity_column(name)] for name in dimensions], axis=1)
    cell = CellSpec(
        tuple(dimensions),
        capacity,
        machines["rack"],
        machines["slot_score"],
        np.array(permille, np.int64),
    )
    columns = table("tasks")
    n = len(columns["task"])
    request = np.stack([_compact(columns[request_column(name)]) for name in dimensions], axis=1)
    tasks = TaskBatch(
        task=columns["task"],
        job=columns["job"],
        request=np.broadcast_to(request[:1], (n, len(dimensions)))
        if _all_alike(request)
        else request,
        priority=_compact(columns["priority"]),
        submit_us=columns["submit_us"],
        preference=columns["preference"],
        gang=_compact(columns["gang"]),
        task_class=_compact(columns["task_class"]),
    )
    runs = columns["batch"] == NO_BATCH
    if ((columns["initial_machine"] == NO_MACHINE) == runs).any():
        raise ValueError("tasks: expected exactly one of batch and initial_machine to be -1")
    initial, arriving = np.flatnonzero(runs), np.flatnonzero(~runs)
    order = np.argsort(columns["batch"][arriving], kind="stable")
    arrival_rows = arriving[order].astype(np.int64)
    batch = columns["batch"][arrival_rows]
    starts = np.flatnonzero(np.diff(batch, prepend=-1))
    if not np.array_equal(batch[starts], np.arange(len(starts))):
        raise ValueError("tasks.batch: expected every number from 0 on")
    events, phases = table("machine_events"), table("phases")
    if ((events["up"] != 0) & (events["up"] != 1)).any():
        raise ValueError("machine_events.up: expected 0 or 1")
    if not np.array_equal(phases["phase"], np.arange(len(phases["phase"]))):
        raise ValueError("phases.phase: expected 0, 1, 2, ... in order")
    return Workload(
        name=field_of(path, content, "name", str),
        cell=cell,
        catalog=_catalog(path, content, table),
        tasks=tasks,
        duration_us=columns["duration_us"],
        preferred_permille=field_of(path, content, "preferred_permille", int),
        arrival_us=tasks.submit_us[arrival_rows[starts]],
        arrival_offsets=np.append(starts, len(arrival_rows)).astype(np.int64),
        arrival_rows=arrival_rows,
        initial=InitialPlacement(initial.astype(np.int64), columns["initial_machine"][initial]),
        machine_events=MachineEvents(
            events["at_us"], events["machine"], events["up"].astype(np.bool_)
        ),
        phases=tuple(
            Phase(*row)
            for row in zip(
                *(phases[name].tolist() for name in ("start_us", "end_us", "load_percent")),
                strict=True,
            )
        ),
        end_us=field_of(path, content, "end_us", int),
        facts=field_of(path, content, "facts", dict),
        quotas=QuotaMembership(tuple(quota_groups), columns[QUOTA_GROUP]) if quota_groups else None,
    )


def _catalog(
    path: Path, content: Mapping[str, Any], table: Callable[[str], Columns]
) -> PreferenceCatalog:
    sets = table("preferences")
    count = len(sets["preference"])
    if not count or not np.array_equal(sets["preference"], np.arange(count)):
        raise ValueError("preferences.preference: expected 0, 1, 2, ... in order")
    machines, racks = table("preferred_machines"), table("preferred_racks")
    return PreferenceCatalog(
        _offsets("preferred_machines", machines["preference"], count),
        machines["machine"],
        machines["cost"],
        _offsets("preferred_racks", racks["preference"], count),
        racks["rack"],
        racks["cost"],
        sets["elsewhere_cost"],
        sets["unscheduled_cost"],
        field_of(path, content, "wait_cost", int),
        field_of(path, content, "wait_quantum_us", int),
    )


def _offsets(table: str, of_row: NDArray[Any], sets: int) -> Int64:
    """The offsets int64[sets + 1] of rows by set. Raises ValueError unless the sets ascend in [0,
    sets)."""
    if len(of_row) and not (of_row[0] >= 0 and of_row[-1] < sets and (np.diff(of_row) >= 0).all()):
        raise ValueError(f"{table}.preference: no such set, or not ascending")
    return np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=sets))]).astype(np.int64)


def _list_of(path: Path, content: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    values = field_of(path, content, name, list)
    if not values or any(type(value) is not kind for value in values):
        raise AgoraError(f"{path}: field {name}: expected a list of {kind.__name__}")
    return values


def _all_alike(values: NDArray[Any]) -> bool:
    return len(values) > 0 and bool((values == values[:1]).all())


def _compact(values: NDArray[Any]) -> NDArray[Any]:
    """A column whose values are all alike as one value that takes no memory."""
    return np.broadcast_to(values[0], len(values)) if _all_alike(values) else values
