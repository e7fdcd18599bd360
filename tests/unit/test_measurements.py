"""Rows gathered for the tables, and the commit log that writes most of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.metrics._native import CommitLog
from parsync.metrics.measurements import Measurements
from parsync.metrics.tables import TABLES
from schedulers.objective import native_columns, placement_cost
from shared_state.tasks import CellSpec, PreferenceCatalog
from shared_state.transaction import Reason

MACHINES, TASKS, NOW_US = 6, 40, 5_000
CELL = CellSpec(
    ("slots",),
    np.ones((MACHINES, 1), np.int64),
    np.array([0, 0, 0, 1, 1, 1], np.int32),
    np.zeros(MACHINES, np.int64),
    np.array([1000], np.int64),
)
# Set 1 prefers machines 1 and 4 (cost 3 and 5) and rack 0 (cost 7); elsewhere 11.
CATALOG = PreferenceCatalog(
    np.array([0, 0, 2], np.int64),
    np.array([1, 4], np.int32),
    np.array([3, 5], np.int64),
    np.array([0, 0, 1], np.int64),
    np.array([0], np.int32),
    np.array([7], np.int64),
    np.array([0, 11], np.int64),
    np.array([0, 100], np.int64),
)
JOB = np.arange(TASKS, dtype=np.int64) // 3
SUBMIT_US = np.arange(TASKS, dtype=np.int64) * 10
PREFERENCE = (np.arange(TASKS) % 2).astype(np.int32)


def flushed(records: Measurements) -> dict[str, dict[str, Any]]:
    return {record.table: record.columns for record in records.flush()}


def test_rows_come_out_in_order_in_the_dtypes_of_their_table() -> None:
    records = Measurements()
    records.add(
        "syncs",
        2,
        3,
        np.array([5, -6], np.int64),
        7,
        np.array([True, False]),
        np.array([1, 2, 3, 4], np.int32)[::2],
    )
    records.add("cell", 1, 9, -1, 2**40, 0)
    records.add("syncs", 1, 4, np.array([8], np.uint8), 2**50, 1, 2)
    rows = flushed(records)
    assert list(rows) == ["syncs", "cell"]
    assert {name: column.tolist() for name, column in rows["syncs"].items()} == {
        "agent": [3, 3, 4],
        "partition": [5, -6, 8],
        "at_us": [7, 7, 2**50],
        "age_us": [1, 0, 1],
        "rows": [1, 3, 2],
    }
    for table, columns in rows.items():
        assert {name: column.dtype.name for name, column in columns.items()} == TABLES[table]
    assert records.flush() == []


@pytest.mark.parametrize(
    "columns",
    [
        (1, 2, 3, 4),
        (1, 2, 3, 4, np.zeros(3, np.int32)),
        (1, 2, 3, 4, np.zeros(2)),
        (1, 2, 3, 4, 2**63),
        (1, 2, 3, 4, "5"),
    ],
    ids=["too few", "another length", "floats", "too large", "no number"],
)
def test_rows_that_do_not_fit_their_table_are_refused_whole(columns: tuple[Any, ...]) -> None:
    records = Measurements()
    records.add("syncs", 1, 1, 2, 3, 4, 5)
    with pytest.raises((ValueError, OverflowError, BufferError, TypeError)):
        records.add("syncs", 2, *columns)
    assert [len(column) for column in flushed(records)["syncs"].values()] == [1] * 5


def test_what_is_held_can_be_taken_up_by_another() -> None:
    one, other = Measurements(), Measurements()
    one.add("cell", 2, np.array([1, 2]), 3, 4, 5)
    other.add("syncs", 1, 0, 0, 0, 0, 0)
    other.restore(one.held())
    for records in (one, other):
        rows = flushed(records)
        assert list(rows) == ["cell"] and rows["cell"]["at_us"].tolist() == [1, 2]


@given(
    st.lists(
        st.tuples(
            st.integers(0, TASKS - 1), st.integers(0, MACHINES - 1), st.sampled_from(list(Reason))
        ),
        max_size=30,
    )
)
def test_a_commit_is_logged_claim_by_claim(claims: list[tuple[int, int, Reason]]) -> None:
    records = Measurements()
    log = CommitLog(
        7,
        JOB,
        SUBMIT_US,
        PREFERENCE,
        native_columns(CATALOG, CELL),
        records.buffer("tasks"),
        records.buffer("rejections"),
    )
    n = len(claims)
    task = np.array([claim[0] for claim in claims], np.int64)
    machine = np.array([claim[1] for claim in claims], np.int32)
    reason = np.array([claim[2] for claim in claims], np.int8)
    attempts, age_us, rival = (
        np.arange(1, n + 1, dtype=np.int32),
        np.arange(n, dtype=np.int64) * 100,
        np.arange(n, dtype=np.int32),
    )
    first = (np.arange(n) % 2).astype(np.int8)
    by_reason, first_commits, delay_us = log.add(
        NOW_US, 5, NOW_US - 3, task, machine, attempts, first, reason, rival, age_us
    )
    won, lost = reason == Reason.ACCEPTED, reason != Reason.ACCEPTED
    assert by_reason == tuple(int((reason == kind).sum()) for kind in Reason)
    counted = won & (first == 1)
    assert first_commits == counted.sum() and delay_us == int(
        (NOW_US - SUBMIT_US[task[counted]]).sum()
    )
    cost, preferred = placement_cost(CATALOG, CELL.rack, PREFERENCE[task], machine)
    constant = np.full(n, 7), np.full(n, NOW_US)
    expected = {
        "tasks": (
            task,
            JOB[task],
            constant[0],
            machine,
            SUBMIT_US[task],
            constant[1],
            constant[1] - 3,
            attempts,
            first,
            PREFERENCE[task] > 0,
            preferred,
            cost,
            age_us,
        ),
        "rejections": (
            task,
            constant[0],
            np.full(n, 5),
            machine,
            reason,
            rival,
            age_us,
            constant[1] - 3,
            constant[1],
        ),
    }
    rows = flushed(records)
    for table, mask in (("tasks", won), ("rejections", lost)):
        assert (table in rows) == bool(mask.any())
        for (name, column), values in zip(
            rows.get(table, {}).items(), expected[table], strict=False
        ):
            assert column.tolist() == values[mask].astype(np.int64).tolist(), name


def test_the_commit_log_refuses_what_does_not_exist_and_other_tables() -> None:
    records = Measurements()
    catalog = native_columns(CATALOG, CELL)
    tasks, rejections = records.buffer("tasks"), records.buffer("rejections")
    log = CommitLog(7, JOB, SUBMIT_US, PREFERENCE, catalog, tasks, rejections)
    one32, one64, one8 = np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int8)
    for task, machine, reason in (
        (one64 + TASKS, one32, one8),
        (one64, one32 + MACHINES, one8),
        (one64, one32, one8 + 7),
    ):
        with pytest.raises(ValueError, match="there is no"):
            log.add(NOW_US, 5, NOW_US, task, machine, one32, one8, reason, one32, one64)
    assert records.flush() == []
    with pytest.raises(ValueError, match="tasks: its columns"):
        CommitLog(7, JOB, SUBMIT_US, PREFERENCE, catalog, rejections, rejections)
    with pytest.raises(ValueError, match="submit_us"):
        CommitLog(7, JOB, SUBMIT_US[1:], PREFERENCE, catalog, tasks, rejections)
