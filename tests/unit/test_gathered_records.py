"""Measurements of a sample interval are handed out together, in order and unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parsync.metrics.record import GatheredRecords, Record
from parsync.metrics.tables import SCHEMAS
from parsync.schema import Column, TableSchema

TABLES = {
    **SCHEMAS,
    "prices": TableSchema("One row.", {"price": Column("float64", "plain", "what it costs")}),
}


def syncs(agent: int, rows: int) -> Record:
    dtypes = SCHEMAS["syncs"].dtypes
    columns: dict[str, Any] = {
        name: np.arange(rows).astype(dtype) for name, dtype in dtypes.items()
    }
    return Record("syncs", {**columns, "agent": np.full(rows, agent, np.int32)})


@pytest.fixture
def taken() -> list[Record]:
    return []


@pytest.fixture
def records(taken: list[Record]) -> GatheredRecords:
    return GatheredRecords(TABLES, taken.append)


def test_rows_are_gathered_by_table_until_they_are_handed_out(
    records: GatheredRecords, taken: list[Record]
) -> None:
    for agent, rows in ((3, 2), (1, 0), (2, 1)):
        records.take(syncs(agent, rows))
    assert not taken
    records.hand_out()
    assert [record.table for record in taken] == ["syncs"]
    columns = taken[0].columns
    assert columns["agent"].tolist() == [3, 3, 2]
    assert {name: str(column.dtype) for name, column in columns.items()} == SCHEMAS["syncs"].dtypes
    records.hand_out()
    assert len(taken) == 1


@pytest.mark.parametrize(
    "record",
    [
        Record("prices", {"price": np.array([0.5])}),
        Record("syncs", {name: [1] for name in SCHEMAS["syncs"].dtypes}),
        Record("no such table", {}),
        Record("syncs", {"agent": np.zeros(1, np.int32)}),
        Record("syncs", {**syncs(1, 2).columns, "rows": np.zeros(1)}),
    ],
    ids=["floats", "lists", "unknown table", "missing columns", "columns of two lengths"],
)
def test_what_cannot_be_gathered_is_handed_on_after_what_waits(
    records: GatheredRecords, taken: list[Record], record: Record
) -> None:
    records.take(syncs(7, 1))
    records.take(record)
    assert taken[0].columns["agent"].tolist() == [7]
    assert taken[1] is record and len(taken) == 2
