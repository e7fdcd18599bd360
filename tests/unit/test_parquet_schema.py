"""Parquet files say what their columns mean: in the schema, and for readers of other kinds in the
file's own metadata."""

from __future__ import annotations

import json
from enum import IntEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parsync.metrics.tables import NOT_KNOWN, SCHEMAS, TABLES, Column, TableSchema
from parsync.runtime.records import RecordSink, arrow_schema, merge_parts
from parsync.workload.tables import workload_schemas
from schedulers.interface import ChangeKind, PartitionRanking
from shared_state.tasks import TaskClass
from shared_state.transaction import Reason

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
