"""All metrics of a run, fed with its measurements: one definition of every figure, for the live
line, the summary and the report.

Submissions, delays and quality belong to the window of the task's submission, so that a task that
waits into the next phase is charged to the phase that made it wait. Transactions, claims, conflicts
and throughput belong to the window in which the answer came.

Cost. Native code adds up a batch as it comes (metric.py): about 2 us per batch and 0.1 us per
task. Only batches that are kept, or that a metric folds in Python, are held back and put together
(record.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from parsync.metrics import registry
from parsync.metrics.live_line import LiveLine, LiveSums, Snapshot
from parsync.metrics.metric import (
    KeptRows,
    Metric,
    NativeMetric,
    RecordBatch,
    Rows,
    Scope,
    TableFold,
)
from parsync.metrics.quantity import Quantity
from parsync.metrics.record import Columns, RecordBuffer, Table
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.tables import SCHEMAS, Tables
from schedulers.entry_points import raised
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

_HELD_ROWS = 1 << 14
_HELD_BATCHES = 1 << 10
_TIME_OF = {  # when the rows of a table happened
    "submissions": "submit_us",
    "tasks": "commit_us",
    "commits": "commit_us",
    "ends": "end_us",
    "cell": "at_us",
    "agents": "at_us",
    "rounds": "at_us",
}

M = TypeVar("M", bound=Metric)


@dataclass(frozen=True, slots=True)
class _TablePlan:
    """What becomes of the rows of a table.

    Attributes:
        fold: What native code adds up of them, if anything.
        in_python: They are put together for metrics that fold in Python, or to be looked at where
            native code does not.
    """

    fold: TableFold | None
    in_python: bool


class RunMetrics:
    """Adds up the Record batches of one arm of a run, or of one of its actors. Parts recorded by
    several actors with equal arguments are combined with merge().

    Args:
        run: What all metrics know of the run. close() takes its placement values away.
        kinds: The metrics; default: all that are registered. Those that do not apply are left out.
        tables: Those of the run: the tables of every run, and those of its protocols.

    Raises:
        AgoraError: For a registered metric that cannot be used or made, or that reads a table of
            another protocol than the run's. From add() and flush(): naming a table of which rows
            are not. From add(), flush(), merge(): naming a metric whose code failed; it is left
            out from then on.
    """

    def __init__(
        self, run: RunFrame, kinds: Sequence[type[Metric]] | None = None, tables: Tables = SCHEMAS
    ) -> None:
        self.run = run
        every = tuple(
            kind for kind in (registry.metrics() if kinds is None else kinds) if kind.applies(run)
        )
        for kind in every:
            registry.check_tables(kind, tables)
        self.tables = tables
        self.metrics: dict[str, Metric] = {kind.kind: self._made(kind) for kind in every}
        self._check_names("series", {name: of.series() for name, of in self.metrics.items()})
        self._check_names("sum", {name: of.count for name, of in self.metrics.items()})
        self._kept: dict[str, list[Table]] = {}
        drawn = {"actors", "quota_use", "quota_shares"}  # though no metric is made of them
        self.keep(sorted({table for kind in every for table in kind.keeps} | drawn))
        # how far the run was seen without its commits, and the time of the last commit
        self._seen_us, self._commit_us = np.zeros((2, 1), np.int64)
        self._live = LiveLine(run.agents)
        self._held = RecordBuffer(_HELD_ROWS, _HELD_BATCHES, tables)
        self._plans: dict[str, _TablePlan] = {}  # by table, made when its first rows come

    def __getstate__(self) -> dict[str, Any]:
        # native folds change the arrays of this object; a copy makes its own
        return {**self.__dict__, "_plans": {}}

    @property
    def last_us(self) -> int:
        """How far the run was seen: what had not happened by then took longer."""
        return max(int(self._seen_us[0]), self.last_commit_us)

    @property
    def last_commit_us(self) -> int:
        return int(self._commit_us[0])

    def _made(self, kind: type[Metric]) -> Metric:
        try:
            return kind(self.run)
        except Exception as error:  # of somebody else's code
            raise AgoraError(f"metric {kind.kind!r}: __init__: {raised(error, kind)}") from error

    @staticmethod
    def _check_names(what: str, of_metrics: Mapping[str, Iterable[str]]) -> None:
        """Raise AgoraError if two metrics have something of one name."""
        owner: dict[str, str] = {}
        for name, keys in of_metrics.items():
            for key in keys:
                if owner.setdefault(key, name) != name:
                    raise AgoraError(
                        f"metric {name!r}: {what} {key!r} already belongs to metric {owner[key]!r}"
                    )

    def get(self, kind: type[M]) -> M:
        """The metric of this class. KeyError if it is not among them."""
        metric = self.metrics[kind.kind]
        assert isinstance(metric, kind)
        return metric

    def keep(self, tables: Iterable[str]) -> None:
        """Keep the rows of these tables from now on."""
        for table in tables:
            self._kept.setdefault(table, [])

    @property
    def count(self) -> dict[str, Int64]:
        """The sums of all metrics by agent and slot, int64[agents, slots], by name."""
        return {
            name: metric.count[name] for metric in self.metrics.values() for name in metric.count
        }

    def add(self, table: str, columns: Columns) -> None:
        """One Record batch: equal-length columns of a table of the run. The arrays are kept for a
        while and must not change."""
        plan = self._plans.get(table) or self._plan_of(table)
        if plan.fold is not None:
            plan.fold.fold(columns)
        if not (plan.in_python or table in self._kept):
            return
        rows = self._held.add(table, columns)
        if rows is not None:
            self._fold(table, rows)

    def flush(self) -> None:
        """Add up what is held back. Reading a figure of this object is preceded by it."""
        first: AgoraError | None = None
        for table, rows in self._held.drain():
            try:
                self._fold(table, rows)
            except AgoraError as error:
                first = first or error
        if first is not None:
            raise first

    def close(self) -> None:
        """Flush, and drop the tables that placement values rest on, so that they are not sent to
        another process. Nothing may be added afterwards."""
        self.flush()
        self.run.values = ()

    def snapshot(self, at_us: int, agents: Iterable[int] | None = None) -> Snapshot:
        """The live line of `agents` (default all) since the last call."""
        self.flush()
        chosen = range(self.run.agents) if agents is None else agents
        return self._live.take(at_us, chosen, self._live_sums())

    def _live_sums(self) -> list[tuple[Quantity, LiveSums]]:
        """What metrics add to the live line. AgoraError naming a metric whose code fails."""
        found: list[tuple[Quantity, LiveSums]] = []
        for name, metric in list(self.metrics.items()):
            try:
                sums = metric.live()
                known = {quantity.key: quantity for quantity in metric.run_quantities()}
                found += [(known[key], column) for key, column in sums.items()]
            except Exception as error:
                raise self._failed(name, "live", error) from error
        return found

    def merge(self, other: RunMetrics) -> None:
        """Add what another object, made with equal arguments, recorded."""
        if not self.run.same_run(other.run):
            raise ValueError("metrics: only parts of the same run can be merged")
        self.flush()
        other.flush()
        for name, metric in list(self.metrics.items()):
            theirs = other.metrics.get(name)
            if theirs is None:  # it failed there
                del self.metrics[name]
                continue
            try:
                metric.merge(theirs)
            except Exception as error:
                raise self._failed(name, "merge", error) from error
        for mine, others in ((self._seen_us, other._seen_us), (self._commit_us, other._commit_us)):
            np.maximum(mine, others, out=mine)
        for table, parts in self._kept.items():
            parts.extend(other._kept[table])

    def kept(self) -> dict[str, KeptRows]:
        """The rows of the tables that metrics keep."""
        return {table: KeptRows(self.samples(table), self.run) for table in self._kept}

    def samples(self, table: str) -> Table:
        """All rows of a kept table, by time, then agent; {} if there are none."""
        self.flush()
        parts = self._kept[table]
        if not parts:
            return {}
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        agent = joined.get("agent", np.zeros(len(joined["at_us"]), np.int32))
        order = np.lexsort((agent, joined["at_us"]))
        return {name: column[order] for name, column in joined.items()}

    def scope(
        self,
        agents: Iterable[int] | None = None,
        slots: Iterable[int] | None = None,
        kept: dict[str, KeptRows] | None = None,
    ) -> Scope:
        """The scope of some agents (default all) over some slots (default the windows of all
        phases)."""
        return Scope(
            self.run,
            tuple(range(self.run.agents) if agents is None else agents),
            tuple(range(len(self.run.phases)) if slots is None else slots),
            self.last_us,
            self.kept() if kept is None else kept,
        )

    def _plan_of(self, table: str) -> _TablePlan:
        schema = self.tables.get(table)
        if schema is None:
            raise AgoraError(f"table {table!r}: not a table of this run")
        fold = TableFold(table, schema.dtypes, self.run)
        self._see(fold.rows)
        self._live.add_up(fold.rows)
        for metric in self.metrics.values():
            if isinstance(metric, NativeMetric) and table in metric.reads:
                metric.add_up(fold.rows)
        in_python = any(metric.folds(table) for metric in self.metrics.values())
        plan = _TablePlan(fold if fold.adds_up else None, in_python or not fold.adds_up)
        self._plans[table] = plan
        return plan

    def _see(self, rows: Rows) -> None:
        column = _TIME_OF.get(rows.table)
        if column is None:
            return
        seen = rows.where(rows["due"] == 0) if rows.table == "ends" else rows
        kept_us = self._commit_us if rows.table == "tasks" else self._seen_us
        seen.largest(kept_us, (0,), rows[column])

    def _fold(self, table: str, rows: Table) -> None:
        batch = RecordBatch(table, rows, self.run)
        if table in self._kept:
            self._kept[table].append(rows)
        first: AgoraError | None = None
        for name, metric in list(self.metrics.items()):
            if metric.folds(table):
                try:
                    metric.fold(batch)
                except Exception as error:  # of somebody else's code: the others go on
                    first = first or self._failed(name, "fold", error)
        if first is not None:
            raise first

    def _failed(self, name: str, call: str, error: Exception) -> AgoraError:
        metric = self.metrics.pop(name)
        failed = AgoraError(f"metric {name!r}: {call}: {raised(error, metric)}")
        failed.__cause__ = error
        return failed
