"""The Parquet sink: what goes in comes out with what its columns mean, and what is not whole does
not look whole."""

from __future__ import annotations

import json
from enum import IntEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parsync.metrics.tables import NOT_KNOWN, SCHEMAS, TABLES
from parsync.runtime.records import (
    RecordSink,
    arrow_schema,
    merge_parts,
    read_records,
    record_files,
)
from parsync.schema import Column, TableSchema
from parsync.workload.tables import workload_schemas
from schedulers.interface import ChangeKind, PartitionRanking
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from shared_state.transaction import Reason
from tests.unit.record_factory import Recorded, random_records

UNITS = ("id", "us")


def write(sink: RecordSink, recorded: Recorded) -> None:
    for table, columns in recorded.batches:
        sink.add(table, columns)


def read(path: Path) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = pq.read_table(path).to_pylist()
    return rows


def test_rows_come_back_in_order_with_the_types_of_the_table(tmp_path: Path) -> None:
    recorded = random_records(1, 3, 4, 80, 1_000_000)
    with RecordSink(tmp_path) as sink:
        write(sink, recorded)
    assert merge_parts(tmp_path) == []
    for table in {name for name, _ in recorded.batches}:
        assert read(tmp_path / f"{table}.parquet") == recorded.rows(table)
        schema = pq.read_schema(tmp_path / f"{table}.parquet")
        assert {name: str(schema.field(name).type) for name in schema.names} == TABLES[table]
    assert not (tmp_path / "rounds.parquet").exists()  # no rows, no file


def test_rows_are_streamed_in_row_groups(tmp_path: Path) -> None:
    rows = 40_000
    batch = {name: np.arange(rows).astype(dtype) for name, dtype in TABLES["cell"].items()}
    with RecordSink(tmp_path) as sink:
        for _ in range(4):
            sink.add("cell", batch)
        assert (tmp_path / "cell.0.parquet.partial").stat().st_size > 0
    file = pq.ParquetFile(tmp_path / "cell.0.parquet")
    assert file.metadata.num_rows == 4 * rows
    assert file.num_row_groups >= 2


def test_parts_of_several_writers_are_merged_by_name(tmp_path: Path) -> None:
    parts = {
        name: random_records(seed, 3, 4, 40, 1_000_000)
        for seed, name in enumerate(("host-a", "host-b"))
    }
    for name, recorded in reversed(parts.items()):
        with RecordSink(tmp_path, name) as sink:
            write(sink, recorded)
    assert merge_parts(tmp_path) == []
    assert read(tmp_path / "tasks.parquet") == parts["host-a"].rows("tasks") + parts["host-b"].rows(
        "tasks"
    )
    assert [path.name for path in tmp_path.glob("tasks.*")] == ["tasks.parquet"]


def test_the_ends_of_every_dtype_come_back(tmp_path: Path) -> None:
    dtypes = ("int8", "int16", "int32", "int64", "uint32", "uint64", "float64")
    columns = {f"{unit}_{dtype}": Column(dtype, unit, "a") for dtype in dtypes for unit in UNITS}
    rows = {}
    for name, column in columns.items():
        limits = (np.finfo if column.dtype == "float64" else np.iinfo)(column.dtype)
        few = np.array([limits.max, limits.min, 0, limits.min, limits.max, 1], column.dtype)
        rows[name] = np.resize(few, 200)
    with RecordSink(tmp_path, tables={"ends": TableSchema("a row", columns)}) as sink:
        sink.add("ends", rows)
    found = pq.read_table(tmp_path / "ends.0.parquet")
    for name, expected in rows.items():
        assert np.array_equal(found[name].to_numpy(), expected), name


def test_parts_of_earlier_versions_are_merged_with_ours(tmp_path: Path) -> None:
    batch = {name: np.arange(5).astype(dtype) for name, dtype in TABLES["cell"].items()}
    earlier = pa.table(batch)
    assert earlier.schema.field("running").nullable
    pq.write_table(earlier, tmp_path / "cell.a.parquet", compression="zstd")
    with RecordSink(tmp_path, "b") as sink:
        sink.add("cell", batch)
    assert merge_parts(tmp_path) == []
    found = pq.read_table(tmp_path / "cell.parquet")
    assert found["at_us"].to_pylist() == 2 * list(range(5))
    tables = dict(read_records(record_files(tmp_path)))
    assert tables["cell"]["running"].dtype == np.int64


def test_columns_that_were_added_since_are_zero(tmp_path: Path) -> None:
    added = {"oversubscribed", "repaired", "held_back", "unrouted"}
    assert SCHEMAS["rounds"].added == added
    batch = {name: np.arange(1, 6).astype(dtype) for name, dtype in TABLES["rounds"].items()}
    earlier = {name: column for name, column in batch.items() if name not in added}
    pq.write_table(pa.table(earlier), tmp_path / "rounds.parquet")
    ((table, rows),) = read_records(record_files(tmp_path))
    assert table == "rounds" and list(rows) == list(batch)
    for name, column in rows.items():
        assert column.dtype == TABLES["rounds"][name]
        assert column.tolist() == ([0] * 5 if name in added else [1, 2, 3, 4, 5])


def test_a_column_that_was_always_there_is_missed(tmp_path: Path) -> None:
    batch = {name: np.arange(5).astype(dtype) for name, dtype in TABLES["rounds"].items()}
    del batch["solve_us"]
    pq.write_table(pa.table(batch), tmp_path / "rounds.parquet")
    with pytest.raises(AgoraError, match=r"rounds\.parquet: cannot read the records.*solve_us"):
        list(read_records(record_files(tmp_path)))


def test_a_writer_that_dies_leaves_files_marked_partial(tmp_path: Path) -> None:
    recorded = random_records(2, 3, 4, 40, 1_000_000)
    with RecordSink(tmp_path, "whole") as sink:
        write(sink, recorded)
    dead = RecordSink(tmp_path, "dead")
    write(dead, recorded)
    dead.flush()  # and never closed
    partial = merge_parts(tmp_path)
    assert "tasks.dead.parquet.partial" in partial
    assert read(tmp_path / "tasks.parquet") == recorded.rows("tasks")


def test_an_exception_leaves_readable_files_marked_partial(tmp_path: Path) -> None:
    recorded = random_records(3, 3, 4, 40, 1_000_000)
    sink = RecordSink(tmp_path)
    with pytest.raises(KeyboardInterrupt), sink:
        write(sink, recorded)
        raise KeyboardInterrupt
    assert not (tmp_path / "tasks.0.parquet").exists()
    assert read(tmp_path / "tasks.0.parquet.partial") == recorded.rows("tasks")
    sink.close()  # already finished: changes nothing
    assert not (tmp_path / "tasks.0.parquet").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_so_and_nothing_looks_whole(tmp_path: Path) -> None:
    (tmp_path / "cell.0.parquet.partial").symlink_to("/dev/full")
    sink = RecordSink(tmp_path)
    write(sink, random_records(4, 3, 4, 40, 1_000_000))
    with pytest.raises(
        AgoraError, match=r"cell\.0\.parquet: cannot write the records: .*[Nn]o space"
    ):
        sink.close()
    assert not list(tmp_path.glob("*.parquet"))


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    sink = RecordSink(tmp_path / "gone")
    write(sink, random_records(4, 3, 4, 40, 1_000_000))
    with pytest.raises(AgoraError, match="gone"):
        sink.close()


def test_an_unknown_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgoraError, match="nonsense"):
        RecordSink(tmp_path).add("nonsense", {})


WORKLOAD = workload_schemas(("cpu_ppm", "mem_ppm"), (4, 6))
EVERY = {**SCHEMAS, **{f"workload/{name}": schema for name, schema in WORKLOAD.items()}}
ENUMS: dict[tuple[str, str], type[IntEnum]] = {
    ("rejections", "reason"): Reason,
    ("commits", "ranking"): PartitionRanking,
    ("ends", "change"): ChangeKind,
    ("workload/tasks", "task_class"): TaskClass,
}


def metadata_of(path: Path) -> dict[str, dict[str, str]]:
    """By column, from the Arrow schema."""
    schema = pq.read_schema(path)
    return {
        name: {k.decode(): v.decode() for k, v in (schema.field(name).metadata or {}).items()}
        for name in schema.names
    }


@pytest.mark.parametrize("name", EVERY)
def test_every_column_is_explained(name: str) -> None:
    for column, said in EVERY[name].columns.items():
        assert said.meaning and said.unit and said.meaning[0].islower(), column
        assert np.dtype(said.dtype).kind == "i"
        if said.unit == "us":
            assert column.endswith("_us")
        if said.unit == "code":
            assert said.codes, column


@pytest.mark.parametrize(("table", "column"), ENUMS)
def test_codes_are_those_of_the_enums(table: str, column: str) -> None:
    codes = dict(EVERY[table].columns[column].codes)
    codes.pop(NOT_KNOWN, None)
    assert codes == {int(member): member.name.lower() for member in ENUMS[table, column]}


@pytest.mark.parametrize("name", EVERY)
def test_a_file_carries_what_its_columns_mean(name: str, tmp_path: Path) -> None:
    schema = arrow_schema(EVERY[name])
    pq.write_table(schema.empty_table(), tmp_path / "t.parquet")
    found = metadata_of(tmp_path / "t.parquet")
    assert list(found) == list(EVERY[name].columns)
    told = json.loads(pq.read_metadata(tmp_path / "t.parquet").metadata[b"columns"])
    for column, expected in EVERY[name].columns.items():
        said = found[column]
        assert (said["meaning"], said["unit"]) == (expected.meaning, expected.unit)
        codes = json.loads(said.get("codes", "{}"))
        assert {int(code): meaning for code, meaning in codes.items()} == expected.codes
        assert told[column]["meaning"] == expected.meaning
        assert told[column].get("codes", {}) == codes
    assert pq.read_metadata(tmp_path / "t.parquet").metadata[b"rows"].decode() == EVERY[name].rows


def test_merged_parts_and_unfinished_files_carry_it(tmp_path: Path) -> None:
    rows = {name: np.zeros(3, dtype) for name, dtype in TABLES["rejections"].items()}
    for part in ("a", "b"):
        with RecordSink(tmp_path, part) as sink:
            sink.add("rejections", rows)
    stopped = RecordSink(tmp_path, "c")
    stopped.add("rejections", rows)
    stopped.abandon()
    merge_parts(tmp_path)
    files = list(tmp_path.iterdir())
    assert {path.name for path in files} == {
        "rejections.parquet",
        "rejections.c.parquet.partial",
    }
    for path in files:
        assert json.loads(metadata_of(path)["reason"]["codes"])["1"] == "stale"


def test_names_in_any_script_survive(tmp_path: Path) -> None:
    table = TableSchema("one row", {"tâche": Column("int64", "id", "“ò”", {-1: "néant"})})
    pq.write_table(pa.table({"tâche": [1]}, arrow_schema(table)), tmp_path / "t.parquet")
    assert json.loads(metadata_of(tmp_path / "t.parquet")["tâche"]["codes"]) == {"-1": "néant"}
