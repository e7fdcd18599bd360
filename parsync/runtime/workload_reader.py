"""A run's workload made again from its files (workload_files.py).

The files may be anybody's: every type, length and id is checked before it is used, and nothing in
them is code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from parsync.runtime.json_files import (
    digest_of,
    field_of,
    read_bytes,
    read_json,
)
from parsync.runtime.parquet_schema import arrow_schema
from parsync.runtime.workload_files import FORMAT, WORKLOAD_FILE
from parsync.workload.checks import validate
from parsync.workload.tables import (
    MAPREDUCE,
    NO_BATCH,
    NO_MACHINE,
    QUOTA_GROUP,
    capacity_column,
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
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch

_MOST_ROWS = 1 << 31
Columns = Mapping[str, NDArray[Any]]


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
