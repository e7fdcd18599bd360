"""Rows gathered for the tables, the log of an agent, which writes most of them, and how those of a
sample interval are handed out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.metrics.record import AgentLog, GatheredRecords, Measurements, Record
from parsync.metrics.tables import NOT_KNOWN, SCHEMAS, TABLES
from parsync.schema import Column, TableSchema
from schedulers.objective import placement_cost
from shared_state.tasks import NO_GANG, CellSpec, PreferenceCatalog, TaskBatch, TaskClass
from shared_state.transaction import CommitResult, Reason, is_conflict

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


class Claims:
    """Claims with made-up columns, and what became of them at NOW_US - 3."""

    def __init__(self, claims: list[tuple[int, int, Reason]]) -> None:
        n = len(claims)
        self.task = np.array([claim[0] for claim in claims], np.int64)
        self.machine = np.array([claim[1] for claim in claims], np.int32)
        self.reason = np.array([claim[2] for claim in claims], np.int8)
        self.attempts = np.arange(1, n + 1, dtype=np.int32)
        self.age_us = np.arange(n, dtype=np.int64) * 100
        self.rival = np.arange(n, dtype=np.int32)
        self.first = (np.arange(n) % 2).astype(np.int8)

    def log(self, log: AgentLog, **of_round: Any) -> tuple[tuple[int, ...], int, int]:
        none = np.zeros(0, np.int64)
        age_us, synced_us = self.age_us, NOW_US - 3 - self.age_us
        result = CommitResult(5, self.reason, none, self.rival, age_us, none, none)
        columns = (self.task, self.machine, synced_us, self.attempts, self.first)
        return log.commit(NOW_US, *columns, result, **of_round)


def agent_log() -> AgentLog:
    """The log of agent 7."""
    table = TaskBatch(
        np.arange(TASKS),
        JOB,
        np.ones((TASKS, 1), np.int64),
        np.zeros(TASKS, np.int32),
        SUBMIT_US,
        PREFERENCE,
        np.full(TASKS, NO_GANG),
        np.full(TASKS, TaskClass.BATCH, np.int8),
    )
    return AgentLog(7, CELL, table, CATALOG)


def rows_of(log: AgentLog) -> dict[str, dict[str, list[int]]]:
    return {
        record.table: {name: column.tolist() for name, column in record.columns.items()}
        for record in log.flush()
    }


CLAIMS = st.lists(
    st.tuples(
        st.integers(0, TASKS - 1), st.integers(0, MACHINES - 1), st.sampled_from(list(Reason))
    ),
    max_size=30,
)


@given(CLAIMS)
def test_a_commit_is_logged_claim_by_claim(drawn: list[tuple[int, int, Reason]]) -> None:
    log, claims = agent_log(), Claims(drawn)
    by_reason, first_commits, delay_us = claims.log(log)
    task, machine, reason, first = claims.task, claims.machine, claims.reason, claims.first
    won, lost = reason == Reason.ACCEPTED, reason != Reason.ACCEPTED
    assert by_reason == tuple(int((reason == kind).sum()) for kind in Reason)
    counted = won & (first == 1)
    assert first_commits == counted.sum() and delay_us == int(
        (NOW_US - SUBMIT_US[task[counted]]).sum()
    )
    cost, preferred = placement_cost(CATALOG, CELL.rack, PREFERENCE[task], machine)
    n = len(drawn)
    constant = np.full(n, 7), np.full(n, NOW_US)
    cell_us = constant[1] - 3
    expected = {
        "tasks": (
            task,
            JOB[task],
            constant[0],
            machine,
            SUBMIT_US[task],
            constant[1],
            cell_us,
            claims.attempts,
            first,
            PREFERENCE[task] > 0,
            preferred,
            cost,
            claims.age_us,
        ),
        "rejections": (
            task,
            constant[0],
            np.full(n, 5),
            machine,
            reason,
            claims.rival,
            claims.age_us,
            cell_us,
            constant[1],
        ),
    }
    rows = rows_of(log)
    for table, mask in (("tasks", won), ("rejections", lost)):
        assert (table in rows) == bool(mask.any())
        for (name, column), values in zip(
            rows.get(table, {}).items(), expected[table], strict=False
        ):
            assert column == values[mask].astype(np.int64).tolist(), name
    unknown = [NOT_KNOWN]
    count = {kind.name.lower(): n for kind, n in zip(Reason, by_reason, strict=True)}
    assert rows["commits"] == {
        "agent": [7],
        "sequence": [5],
        "start_us": unknown,
        "commit_us": [NOW_US],
        "decision_us": unknown,
        "ranking": unknown,
        "claims": [n],
        **{name: [claimed] for name, claimed in count.items()},
    }


@given(CLAIMS, st.lists(st.integers(0, TASKS - 1), max_size=30), st.integers(0, 2**40))
def test_attempts_are_logged_job_by_job(
    drawn: list[tuple[int, int, Reason]], left: list[int], decision_us: int
) -> None:
    log, claims = agent_log(), Claims(drawn)
    about = np.concatenate([claims.task, np.array(left, np.int64)])
    claims.log(log, start_us=20, decision_us=decision_us, ranking=2, tasks=about)
    task, won = claims.task, (claims.reason == Reason.ACCEPTED) & (claims.first == 1)
    conflict = is_conflict(claims.reason)
    jobs = sorted(set(JOB[about].tolist()))
    counts = [
        [int((JOB[some] == job).sum()) for job in jobs]
        for some in (about, task, task[won], task[conflict])
    ]
    expected = {
        "agent": [7] * len(jobs),
        "job": jobs,
        "start_us": [20] * len(jobs),
        "decision_us": [decision_us * tasks // len(about) for tasks in counts[0]],
        "tasks": counts[0],
        "claims": counts[1],
        "placed": counts[2],
        "conflicts": counts[3],
    }
    log.sample(NOW_US, 3, 4, False, 5)
    rows = rows_of(log)
    assert rows.get("job_attempts", {name: [] for name in expected}) == expected
    assert rows["agents"]["wasted_us"] == [decision_us if conflict.any() else 0]


def test_the_agent_log_refuses_what_does_not_exist() -> None:
    log = agent_log()
    for broken in ((TASKS, 0, 0), (0, MACHINES, 0), (0, 0, 8)):
        with pytest.raises(ValueError, match="there is no"):
            Claims([broken]).log(log)  # type: ignore[list-item]
    one = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="not about its job"):
        log.attempts(0, 1, one, one + TASKS - 1)
    with pytest.raises(ValueError, match="reason"):
        log.unplaceable(0, one, np.zeros(2, np.int8))
    assert log.flush() == []


EVERY_TABLE = {
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
    return GatheredRecords(EVERY_TABLE, taken.append)


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
