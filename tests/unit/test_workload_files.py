"""A run's workload as files: what is read back is what was written, and files of anybody else are
refused with one line that names them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.workloads.google2011 import Google2011Options, load
from experiments.workloads.inspection import digest
from experiments.workloads.service_batch import SPEC as SERVICE_BATCH
from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.runtime.json_files import digest_of
from parsync.runtime.workload_files import (
    WORKLOAD_FILE,
    read_workload,
    workload_digest,
    write_workload,
)
from parsync.workload.workload import InitialPlacement, Workload
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from tests.fixtures.google2011_files import (
    ADD,
    FINISH,
    REMOVE,
    SCHEDULE,
    SECOND,
    SUBMIT,
    WINDOW,
    machine_row,
    task_row,
    write_trace,
)
from tests.fixtures.overloaded_cell import failing_workload
from tests.fixtures.pickles import MakesAFile

SMALL = SyntheticOptions(machines=40, phase_s=0.3, batch_tasks=7, machines_per_rack=8)
MIXED = SMALL.model_copy(
    update={
        "service_permille": 300,
        "gang_permille": 300,
        "rack_cost": 5,
        "slot_score_variance": 1.0,
        "no_preference_permille": 200,
    }
)


def trace_workload(folder: Path) -> Workload:
    """Two resources, tasks that run at the start, a machine that goes and one that comes later."""
    machines = [machine_row(0, 7 + k, ADD, 0.5, 0.5 + k / 20) for k in range(5)]
    machines += [
        machine_row(WINDOW + SECOND, 9, REMOVE),
        machine_row(WINDOW + 2 * SECOND, 20, ADD),
    ]
    rows = [task_row(0, 1, k, event, 7) for k in range(3) for event in (SUBMIT, SCHEDULE)]
    rows += [task_row(WINDOW + k * SECOND, 2 + k, 0, SUBMIT, priority=k) for k in range(1, 9)]
    rows += [task_row(WINDOW + 10 * SECOND, 1, k, FINISH, 7) for k in range(3)]
    trace = write_trace(folder / "trace", machines, rows)
    return load(Google2011Options(directory=trace, speedup=10, resources="requests"), seed=1)


def workload_of(name: str, folder: Path) -> Workload:
    if name == "trace":
        return trace_workload(folder)
    if name == "failing":
        return failing_workload()
    return generate(MIXED if name == "mixed" else SMALL, seed=2)


def assert_equal(one: Any, other: Any, path: str = "workload") -> None:
    if is_dataclass(one):
        for field in fields(one):
            name = field.name
            assert_equal(getattr(one, name), getattr(other, name), f"{path}.{name}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and np.array_equal(one, other), path
    else:
        assert one == other, path


@pytest.mark.parametrize("name", ["plain", "mixed", "failing", "trace"])
def test_a_workload_comes_back(name: str, tmp_path: Path) -> None:
    workload = workload_of(name, tmp_path)
    told = write_workload(tmp_path / "w", workload, [3])
    assert told == workload_digest(tmp_path / "w")
    back = read_workload(tmp_path / "w")
    assert_equal(workload, back)
    if name == "trace":
        assert len(back.initial.task) == 3 and len(back.machine_events.at_us) == 3
    else:
        assert digest(workload) == digest(back)  # columns of one value take no memory, as before


def test_tables_of_many_rows_are_written_in_stretches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parsync.runtime.workload_files._ROW_GROUP", 100)
    workload = generate(SMALL, seed=2)
    write_workload(tmp_path / "w", workload, [3])
    assert pq.ParquetFile(tmp_path / "w" / "tasks.parquet").num_row_groups == 3
    assert_equal(workload, read_workload(tmp_path / "w"))


def test_tasks_of_a_batch_out_of_order_are_refused(tmp_path: Path) -> None:
    workload = generate(SMALL, seed=2)
    turned = np.concatenate([workload.arrival_rows[6::-1], workload.arrival_rows[7:]])
    with pytest.raises(ValueError, match="arrival_rows: not ascending"):
        write_workload(tmp_path / "w", replace(workload, arrival_rows=turned), [3])


def column(folder: Path, table: str, name: str) -> np.ndarray:
    values: np.ndarray = pq.read_table(folder / f"{table}.parquet")[name].to_numpy()
    return values


def test_machines_tell_the_partition_in_every_arm(tmp_path: Path) -> None:
    workload = generate(SMALL, seed=2)
    write_workload(tmp_path / "one", workload, [5, 5])
    of_each = Partitioning.by_topology(workload.cell, 5).of_each()
    assert np.array_equal(column(tmp_path / "one", "machines", "partition"), of_each)
    write_workload(tmp_path / "two", workload, [5, 4])
    assert np.array_equal(column(tmp_path / "two", "machines", "partition_of_5"), of_each)
    schema = pq.read_schema(tmp_path / "two" / "machines.parquet")
    assert schema.field("partition_of_4").metadata[b"meaning"].endswith(b"arms with 4 partitions")
    assert "partition" not in schema.names


def test_tasks_tell_what_the_summary_counts(tmp_path: Path) -> None:
    workload = trace_workload(tmp_path)
    write_workload(tmp_path / "w", workload, [2])
    tasks = pq.read_table(tmp_path / "w" / "tasks.parquet").to_pylist()
    assert [task["initial_machine"] >= 0 for task in tasks] == [task["batch"] < 0 for task in tasks]
    assert {"request_cpu_ppm", "request_mem_ppm"} <= set(tasks[0])
    up = column(tmp_path / "w", "machines", "up_at_start")
    assert up.tolist() == [1] * 5 + [0]
    limit = column(tmp_path / "w", "machines", "limit_cpu_ppm")
    assert np.array_equal(limit, 2 * column(tmp_path / "w", "machines", "capacity_cpu_ppm"))


# --- files of anybody -----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_workload(tmp_path / "w", with_initial(generate(MIXED, seed=2)), [3])
    return tmp_path / "w"


def with_initial(workload: Workload) -> Workload:
    first = int(workload.arrival_offsets[1])
    return replace(
        workload,
        initial=InitialPlacement(workload.arrival_rows[:first], np.zeros(first, np.int32)),
        arrival_us=workload.arrival_us[1:],
        arrival_offsets=workload.arrival_offsets[1:] - first,
        arrival_rows=workload.arrival_rows[first:],
    )


def put(folder: Path, name: str, data: bytes) -> None:
    """A file whose digest is right: whoever wrote it wrote that, too."""
    (folder / name).write_bytes(data)
    content = json.loads((folder / WORKLOAD_FILE).read_text())
    content["files"][name] = digest_of(data)
    (folder / WORKLOAD_FILE).write_text(json.dumps(content))


def put_table(folder: Path, table: str, changed: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(changed, sink)
    put(folder, f"{table}.parquet", sink.getvalue().to_pybytes())


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


def with_value(name: str, row: int, value: int) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = table[name].to_numpy().copy()
        values[row] = value
        return with_column(table, name, pa.array(values))

    return change


TABLES: dict[str, tuple[str, Callable[[pa.Table], pa.Table], str]] = {
    "a column is missing": ("tasks", lambda t: t.drop_columns(["job"]), "column job is missing"),
    "a column is of another type": (
        "tasks",
        lambda t: with_column(t, "job", t["job"].cast(pa.string())),
        "column job: expected int64",
    ),
    "a column is narrower": (
        "machines",
        lambda t: with_column(t, "rack", t["rack"].cast(pa.int16())),
        "column rack: expected int32",
    ),
    "a column too many": (
        "phases",
        lambda t: t.append_column("more", t["phase"]),
        "expected the columns phase, start_us",
    ),
    "a column twice": (
        "phases",
        lambda t: t.append_column("phase", t["phase"]),
        "column phase: expected int32",
    ),
    "a value is missing": (
        "tasks",
        lambda t: with_column(t, "gang", pa.array([None] * len(t), pa.int64())),
        "gang",
    ),
    "a row is missing": ("tasks", lambda t: t.slice(1), "tasks.task"),
    "no rows": ("machines", lambda t: t.slice(0, 0), "not a workload"),
    "a task that is none": ("tasks", with_value("task", 3, 10**12), "tasks.task"),
    "a set that is none": ("tasks", with_value("preference", 3, 10**6), "tasks.preference"),
    "a class that is none": ("tasks", with_value("task_class", 3, 5), "tasks.task_class"),
    "a batch left out": ("tasks", with_value("batch", -1, 10**6), "tasks.batch"),
    "a machine that is none": (
        "tasks",
        with_value("initial_machine", 0, 40),
        "initial.machine: no such",
    ),
    "a task that runs and arrives": (
        "tasks",
        with_value("initial_machine", -1, 3),
        "exactly one of batch and initial_machine",
    ),
    "a request of nothing": ("tasks", with_value("request_slots", 3, 0), "tasks.request"),
    "a preferred machine that is none": (
        "preferred_machines",
        with_value("machine", 0, -1),
        "catalog.machine",
    ),
    "a set of machines that is none": (
        "preferred_machines",
        with_value("preference", -1, 1 << 30),
        "preferred_machines.preference: no such set",
    ),
    "a set before the first": (
        "preferred_racks",
        with_value("preference", 0, -5),
        "preferred_racks.preference: no such set",
    ),
    "sets without the first": (
        "preferences",
        with_value("preference", 0, 1),
        "preferences.preference",
    ),
    "a phase that is none": ("phases", with_value("phase", 0, 1), "phases.phase"),
    "phases with a gap": ("phases", with_value("start_us", 1, 7), "phases: a gap"),
    "a rack below 0": ("machines", with_value("rack", 0, -1), "rack"),
    "a capacity below 0": ("machines", with_value("capacity_slots", 0, -1), "cell.capacity"),
}


@pytest.mark.parametrize("fault", TABLES)
def test_a_table_that_is_none_of_ours_is_refused(folder: Path, fault: str) -> None:
    name, change, says = TABLES[fault]
    put_table(folder, name, change(pq.read_table(folder / f"{name}.parquet")))
    with pytest.raises(AgoraError) as caught:
        read_workload(folder)
    assert says in str(caught.value) and str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pickle", "npz", "empty", "torn"])
def test_a_file_that_is_no_parquet_is_refused(folder: Path, kind: str) -> None:
    payload = pickle.dumps(MakesAFile(folder / "executed"))
    data = {
        "pickle": payload,
        "npz": b"PK\x03\x04" + payload,
        "empty": b"",
        "torn": (folder / "tasks.parquet").read_bytes()[:-20],
    }[kind]
    put(folder, "tasks.parquet", data)
    with pytest.raises(AgoraError, match=r"tasks\.parquet: not readable as Parquet"):
        read_workload(folder)
    assert not (folder / "executed").exists()


def test_pickles_in_a_parquet_file_are_not_read(folder: Path) -> None:
    """Arrow keeps types written in Python as pickles in the schema; old versions loaded them."""
    table = pq.read_table(folder / "tasks.parquet")
    metadata = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(MakesAFile(folder / "executed")),
    }
    fields = [field.with_metadata(metadata) for field in table.schema]
    put_table(folder, "tasks", table.cast(pa.schema(fields)))
    workload = read_workload(folder)
    assert len(workload.tasks) == len(table)
    assert not (folder / "executed").exists()


def test_a_changed_table_is_told_by_its_digest(folder: Path) -> None:
    data = bytearray((folder / "tasks.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "tasks.parquet").write_bytes(data)
    with pytest.raises(AgoraError, match=r"tasks\.parquet: its digest is not that of workload"):
        read_workload(folder)


@pytest.mark.parametrize("name", ["tasks.parquet", "preferred_racks.parquet", WORKLOAD_FILE])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(AgoraError, match=f"{name}: cannot read it: No such file"):
        read_workload(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "field format: expected 1"),
        ({"dimensions": []}, "field dimensions"),
        ({"dimensions": ["slots", "slots"]}, "field dimensions"),
        ({"dimensions": [7]}, "field dimensions"),
        ({"dimensions": ["gpus"]}, "column capacity_gpus is missing"),
        ({"overcommit_permille": [1 << 70]}, "not a workload"),
        ({"overcommit_permille": [1000, 1000]}, "field dimensions"),
        ({"partitions": ["all"]}, "field partitions"),
        ({"partitions": [7, 8]}, "column partition_of_7 is missing"),
        ({"files": []}, "field files: expected an object"),
        ({"files": {}}, "its digest is not that of"),
        ({"end_us": "soon"}, "field end_us: expected a whole number"),
        ({"end_us": True}, "field end_us: expected a whole number"),
        ({"facts": 1}, "field facts: expected an object"),
        ({"wait_quantum_us": 0}, "wait_quantum_us"),
        ({"preferred_permille": 0}, "preferred_permille"),
    ],
)
def test_faults_of_its_json_file_are_named(folder: Path, change: dict[str, Any], says: str) -> None:
    content = json.loads((folder / WORKLOAD_FILE).read_text())
    (folder / WORKLOAD_FILE).write_text(json.dumps({**content, **change}))
    with pytest.raises(AgoraError) as caught:
        read_workload(folder)
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\xff"])
def test_what_is_no_json_is_refused(folder: Path, text: str) -> None:
    (folder / WORKLOAD_FILE).write_bytes(text.encode("latin-1"))
    with pytest.raises(AgoraError, match=WORKLOAD_FILE):
        read_workload(folder)


def with_mapreduce(folder: Path) -> Workload:
    options = {"machines": 50, "duration_s": 100.0, "mapreduce": {"workers": [3]}}
    workload = SERVICE_BATCH.make(SERVICE_BATCH.parse_options(options), 1)
    assert workload.mapreduce is not None and len(workload.mapreduce)
    write_workload(folder, workload, (1,))
    return workload


def test_mapreduce_jobs_come_back(tmp_path: Path) -> None:
    workload = with_mapreduce(tmp_path / "workload")
    assert_equal(read_workload(tmp_path / "workload"), workload)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("maps", 0, "mapreduce.maps: expected at least 1"),
        ("workers", 0, "mapreduce.workers: expected at least 1"),
        ("first_task", 1 << 40, "mapreduce.first_task: no such task"),
        ("first_task", 0, "mapreduce"),
        ("reduces", -1, "mapreduce.reduces: expected at least 0"),
    ],
)
def test_mapreduce_jobs_that_make_no_sense_are_refused(
    tmp_path: Path, name: str, value: int, says: str
) -> None:
    folder = tmp_path / "workload"
    with_mapreduce(folder)
    table = pq.read_table(folder / "mapreduce.parquet")
    put_table(folder, "mapreduce", with_value(name, table.num_rows - 1, value)(table))
    with pytest.raises(AgoraError, match=f"not a workload: {says}"):
        read_workload(folder)
