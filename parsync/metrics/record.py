"""The way of measurements from participants to whoever takes them.

A Record is a batch of rows of one table (tables.py). A participant gathers rows in Measurements, an
agent in its AgentLog, and hands them out as Records, once per sample interval. In virtual time
GatheredRecords puts those of all agents together. Accumulators (run_metrics.py) and Parquet files
(parsync/runtime/records.py) take them, and hold them back in a RecordBuffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import _native
from parsync.metrics.tables import NOT_KNOWN, SCHEMAS, TABLES, Tables, Waiting
from schedulers.interface import Plan
from schedulers.objective import native_columns
from schedulers.unplaceable import Unplaceable
from shared_state.errors import AgoraError
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import CommitResult

Columns = Mapping[str, Any]  # of a batch of rows: arrays, or lists of few numbers
Table = dict[str, NDArray[Any]]  # columns in the dtypes of their table


@dataclass(slots=True)
class Record:
    """One batch of measurements for the accumulators and the Parquet files: equal-length columns by
    name (see tables.py)."""

    table: str
    columns: dict[str, Any]


class Measurements(_native.Measurements):  # type: ignore[misc] # compiled
    """The rows that a participant measures, gathered into one Record per table and sample interval:
    they wait here until flush(), by column and in the dtypes of their table.

    Args:
        tables: Those that rows are added to; default: the tables that every run has.
    """

    def __init__(self, tables: Tables = SCHEMAS) -> None:
        super().__init__(
            {
                table: {name: np.dtype(dtype) for name, dtype in schema.dtypes.items()}
                for table, schema in tables.items()
            }
        )

    def add(self, table: str, rows: int, *columns: Any) -> None:
        """`rows` rows of `table`, columns in the order of its schema: arrays of integers or
        bools, or one number for all rows."""
        super().add(table, rows, columns)

    def flush(self) -> list[Record]:
        """All rows since the last flush, one Record per table that has any, in the order of
        the tables."""
        return [Record(table, columns) for table, columns in self.take()]

    def held(self) -> tuple[tuple[str, int, tuple[NDArray[Any], ...]], ...]:
        """The rows that wait, as (table, rows, columns) in the order of the tables: a checkpoint.
        They stay."""
        rows: tuple[tuple[str, int, tuple[NDArray[Any], ...]], ...] = super().held()
        return rows

    def restore(self, held: Iterable[tuple[str, int, tuple[NDArray[Any], ...]]]) -> None:
        """Replace the rows that wait by those that held() returned."""
        self.clear()
        for table, rows, columns in held:
            super().add(table, rows, tuple(columns))


ROUND_COLUMNS = tuple(TABLES["rounds"])[2:]

NO_TASKS = np.zeros(0, np.int64)


def round_figures(plan: Plan) -> list[int] | None:
    """The figures that a flow scheduler's plan has, as columns of the table `rounds` after time
    and agent; None for other plans."""
    return [int(plan.stats.get(column, 0)) for column in ROUND_COLUMNS] if plan.stats else None


class AgentLog(_native.AgentLog):  # type: ignore[misc] # compiled
    """Measurements of agent `agent`; see tables.py for what each column means. They wait in
    `records` until they are handed out.

    Calls raise ValueError, and have added nothing, for tasks, machines or reasons that do not exist
    and for columns of another length or dtype.

    Args:
        agent: Its address.
        cell, table, catalog: The run's.
        tables: Those that `records` has: of every run, and of the agent's protocol if it writes
            some of its own.
    """

    def __init__(
        self,
        agent: int,
        cell: CellSpec,
        table: TaskBatch,
        catalog: PreferenceCatalog,
        tables: Tables = SCHEMAS,
    ) -> None:
        self.records = Measurements(tables)
        super().__init__(
            agent,
            np.ascontiguousarray(table.job, np.int64),
            np.ascontiguousarray(table.submit_us, np.int64),
            np.ascontiguousarray(table.preference, np.int32),
            native_columns(catalog, cell),
            self.records,
        )

    def flush(self) -> list[Record]:
        """Everything since the last flush."""
        return self.records.flush()

    def sync(self, now_us: int, partition: int, age_us: int, rows: int) -> None:
        """A partition of the view was refreshed, which had been of that age: so many rows."""
        super().sync(now_us, partition, age_us, rows)

    def round(self, now_us: int, plan: Plan, decision_us: int) -> None:
        """A decision round: its decision time, and the figures that a flow scheduler's plan has."""
        self.decided(decision_us)
        figures = round_figures(plan)
        if figures is not None:
            super().round(now_us, figures)

    def decided(self, decision_us: int) -> None:
        """The decision time of a round, which makes the agent busy."""
        super().decided(decision_us)

    def attempts(
        self,
        start_us: int,
        decision_us: int,
        task: Int64,
        claimed: Int64 = NO_TASKS,
        placed: Int64 = NO_TASKS,
        conflicted: Int64 = NO_TASKS,
    ) -> None:
        """The scheduling attempts of a round that is over: one for each job that it was about.

        Args:
            start_us, decision_us: When the round began, and its decision time, or NOT_KNOWN.
            task: int64[n], the tasks that it was about.
            claimed, placed, conflicted: int64[k] each, those of them that it claimed, that it
                committed for the first time, and whose claims met a conflict.
        """
        super().attempts(start_us, decision_us, task, claimed, placed, conflicted)

    def unplaceable(self, now_us: int, task: Int64, reason: NDArray[np.int8] | Unplaceable) -> None:
        """Tasks that are not tried again, and why: an Unplaceable for each, int8[n], or for all."""
        super().unplaceable(now_us, task, reason)

    def hold(self, task: int, from_us: int, until_us: int, behind: int) -> None:
        """A task held the queue for that time, with so many others behind it at most."""
        super().hold(task, from_us, until_us, behind)

    def waiting(
        self, task: Int64, why: Waiting, ahead: int, resource: Int32, machines: Int64, unseen: Int64
    ) -> None:
        """Tasks that still wait as the run ends, int64[n], and why; columns as in the table
        `waiting`, [n] each."""
        super().waiting(task, int(why), ahead, resource, machines, unseen)

    def sample(
        self, now_us: int, queued: int, average_us: int, latency_first: bool, staleness_us: int
    ) -> None:
        """The agent as it is at the end of a sample interval; columns as in the table `agents`."""
        super().sample(now_us, queued, average_us, latency_first, staleness_us)

    def commit(
        self,
        at_us: int,
        task: Int64,
        machine: Int32,
        synced_us: Int64,
        attempts: Int32,
        first: NDArray[np.int8],
        result: CommitResult,
        start_us: int = NOT_KNOWN,
        decision_us: int = NOT_KNOWN,
        ranking: int = NOT_KNOWN,
        tasks: Int64 | None = None,
    ) -> tuple[tuple[int, ...], int, int]:
        """One transaction, its committed tasks and its rejected claims.

        Args:
            at_us: When the agent learned of the outcome, or the cell's time if it never did.
            task, machine: The claims, int64[n] and int32[n].
            synced_us: The cell's time of the state that each was planned on, int64[n].
            attempts: Claims made for each task, this one included, int32[n].
            first: 1 unless the task ran before, int8[n].
            result: The cell's answer.
            start_us, decision_us, ranking: Of the decision round; NOT_KNOWN for a transaction that
                is recovered from the cell's log.
            tasks: int64[m], those that the round was about; None where there was no round.

        Returns:
            How many claims had each Reason, how many tasks were committed for the first time, and
            the sum of these tasks' delays in us.
        """
        sums: tuple[tuple[int, ...], int, int] = super().commit(
            at_us,
            result.sequence,
            task,
            machine,
            synced_us,
            attempts,
            first,
            result.reason,
            result.rival,
            result.age_us,
            start_us,
            decision_us,
            ranking,
            tasks,
        )
        return sums


class GatheredRecords:
    """The Records of a sample interval, gathered so that whoever takes them gets one per table and
    interval, and not one per table, agent and interval. The rows of a table keep their order.

    Args:
        tables: Those of the run.
        on_record: Called with what has been gathered, by hand_out().

    Attributes:
        rows: What has been gathered.
    """

    def __init__(self, tables: Tables, on_record: Callable[[Record], None]) -> None:
        self._columns = {
            name: list(schema.dtypes)
            for name, schema in tables.items()
            if all(np.dtype(dtype).kind == "i" for dtype in schema.dtypes.values())
        }
        self.rows = Measurements({name: tables[name] for name in self._columns})
        self._on_record = on_record

    def take(self, record: Record) -> None:
        """Take a Record. One that is not of arrays of integers, as its table has them, is handed on
        at once, after those that wait."""
        columns = record.columns
        if self._columns.get(record.table) == list(columns):
            count = len(next(iter(columns.values())))
            try:
                self.rows.add(record.table, count, *columns.values())
            except (TypeError, ValueError, BufferError):
                pass  # who takes it says what is wrong with it
            else:
                return
        self.hand_out()
        self._on_record(record)

    def hand_out(self) -> None:
        """Hand out what has been gathered, a Record per table."""
        for record in self.rows.flush():
            self._on_record(record)


class RecordBuffer:
    """Holds Record batches back by table, and hands them out as one once `rows` rows or `batches`
    batches have come together: numpy's cost is per call, and most batches are tiny.

    Keeps references, not copies: whoever records a column must not write to it afterwards.

    Args:
        tables: Those of the run.

    Raises:
        AgoraError: From add(), take() and drain(), naming the table: there is no such table, or the
            rows do not have its columns.
    """

    def __init__(self, rows: int, batches: int, tables: Tables = SCHEMAS) -> None:
        self._limit_rows = rows
        self._limit_batches = batches
        self._dtypes = {name: schema.dtypes for name, schema in tables.items()}
        self._first = {name: next(iter(dtypes)) for name, dtypes in self._dtypes.items()}
        self._held: dict[str, list[Columns]] = {name: [] for name in tables}
        self._rows = dict.fromkeys(tables, 0)

    def add(self, table: str, columns: Columns) -> Table | None:
        """Take one batch; all held rows of its table when it is time to, else None."""
        held = self._held.get(table)
        if held is None:
            raise AgoraError(f"table {table!r}: not a table of this run")
        first = columns.get(self._first[table])
        if first is None:
            raise AgoraError(f"table {table!r}: a batch has no column {self._first[table]!r}")
        held.append(columns)
        rows = self._rows[table] + len(first)
        self._rows[table] = rows
        if rows < self._limit_rows and len(held) < self._limit_batches:
            return None
        return self.take(table)

    def take(self, table: str) -> Table | None:
        """All held rows of one table, or None if there are none."""
        held = self._held[table]
        rows = self._rows[table]
        self._held[table] = []
        self._rows[table] = 0
        if not rows:
            return None
        try:
            return concatenate(self._dtypes[table], held)
        except AgoraError as error:
            raise AgoraError(f"table {table!r}: {error}") from error

    def drain(self) -> Iterator[tuple[str, Table]]:
        """Take everything held, table by table in the order of the tables."""
        for name in self._held:
            rows = self.take(name)
            if rows is not None:
                yield name, rows


def concatenate(dtypes: Mapping[str, str], batches: Sequence[Columns]) -> Table:
    """One batch with the rows of all, in order, with the columns and dtypes given. Columns are
    arrays or, for batches of a few rows, lists. Raises AgoraError for a batch without one of the
    columns, and for columns of different lengths."""
    joined: Table = {}
    for name, dtype in dtypes.items():
        try:
            parts = [batch[name] for batch in batches]
        except KeyError as error:
            raise AgoraError(f"a batch of rows has no column {name!r}") from error
        if all(type(part) is list for part in parts):
            joined[name] = np.fromiter(chain.from_iterable(parts), dtype)
        else:
            joined[name] = np.concatenate(parts).astype(dtype, copy=False)
    if len({len(column) for column in joined.values()}) > 1:
        raise AgoraError(differing_lengths(joined))
    return joined


def differing_lengths(columns: Columns) -> str:
    """What is wrong with the columns of a table that are not of one length."""
    shown = ", ".join(f"{name} has {len(column)}" for name, column in columns.items())
    return f"its columns differ in length: {shown}"
