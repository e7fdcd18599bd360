"""A check of metrics that anyone can run on theirs: check_metric(MyMetric)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import registry
from parsync.metrics.metric import KeptRows, Metric, NativeMetric, RecordBatch, TableFold
from parsync.metrics.run_frame import RunFrame, TaskPreferences
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import scope_figures
from parsync.metrics.tables import SCHEMAS, Tables
from parsync.workload.workload import NOT_IN_GANG, Phase, TaskGangs
from schedulers.conformance import NonConformance
from schedulers.entry_points import raised
from shared_state.tasks import Int64

AGENTS, PARTITIONS, TASKS = 3, 4, 240
END_US = 3_000_000
_COUNTS = ("tasks", "claims", "machines")  # units of columns with small counts

Batch = tuple[str, dict[str, NDArray[Any]]]


def check_metric(kind: type[Metric]) -> None:
    """Check a metric on made-up measurements of a run of three agents.

    Its class declares what it must; it reads no column that it did not declare; the same rows give
    the same figures however they are batched, split over several objects, merged and pickled; the
    figures are those of its model and can be written as JSON, also when nothing was recorded.

    Raises:
        NonConformance: Naming the first promise that is broken.
    """
    wrong = registry.wrong_declaration(kind)
    if wrong:
        raise NonConformance(f"metric {getattr(kind, 'kind', kind.__name__)!r}: {wrong}")
    records = made_up_records(np.random.default_rng(1), {**SCHEMAS, **kind.tables})
    whole = _figures(kind, [records])
    _check_json(kind, whole)
    _check_json(kind, _figures(kind, [[]]))
    rows = [
        (table, {n: c[i : i + 1] for n, c in columns.items()})
        for table, columns in records
        for i in range(len(next(iter(columns.values()))))
    ]
    for what, parts in (
        ("row by row", [rows]),
        ("in two objects that are merged", [rows[::2], rows[1::2]]),
        ("in three objects that are merged", [rows[2::3], rows[::3], rows[1::3]]),
    ):
        found = _figures(kind, parts)
        for name, value in whole.items():
            if found[name] != value:
                raise _broken(
                    kind, f"figure {name!r} is {value} of all rows at once and {found[name]} {what}"
                )


def made_up_records(random: np.random.Generator, tables: Tables = SCHEMAS) -> list[Batch]:
    """Rows of every table with values that their columns may have, the tasks' in agreement with
    their submissions."""
    job = np.arange(TASKS) // 4
    agent = (job % AGENTS).astype(np.int32)
    submit_us = np.sort(random.integers(0, END_US // 60, TASKS // 4))[job] * 60
    records: list[Batch] = []
    for table, schema in tables.items():
        columns: dict[str, NDArray[Any]] = {}
        for name, column in schema.columns.items():
            if column.codes and column.unit == "code":
                values = random.choice([code for code in column.codes if code >= 0], TASKS)
            elif name.endswith("_us"):
                values = random.integers(0, END_US, TASKS)
            elif name == "partition":
                values = random.integers(0, PARTITIONS, TASKS)
            elif column.unit in _COUNTS:
                values = random.integers(0, 5, TASKS)
            else:
                values = random.integers(0, AGENTS, TASKS)
            columns[name] = np.asarray(values)
        fixed: dict[str, NDArray[Any]] = {
            "task": np.arange(TASKS),
            "job": job,
            "agent": agent,
            "submit_us": submit_us,
        }
        if "at_us" in columns:
            columns["at_us"] = np.sort(columns["at_us"])
        columns |= {name: column for name, column in fixed.items() if name in columns}
        if table == "tasks":
            columns["commit_us"] = submit_us + random.integers(1, 100_000, TASKS)
            columns["first"] = np.ones(TASKS, np.int8)
        records.append((table, {n: c.astype(schema.dtypes[n]) for n, c in columns.items()}))
    return records


class _DeclaredColumns(RecordBatch):
    """A batch that refuses columns which the metric did not declare."""

    def __init__(self, batch: Batch, run: RunFrame, kind: type[Metric]) -> None:
        table, columns = batch
        declared = {*kind.reads.get(table, ()), *kind.keeps.get(table, ())}
        super().__init__(table, {n: c for n, c in columns.items() if n in declared}, run)
        self._kind = kind

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self._columns:
            raise _undeclared(self._kind, self.table, column)
        return super().__getitem__(column)


class _DeclaredTable(TableFold):
    """What a metric adds up of a table, which refuses columns that the metric did not declare."""

    def __init__(self, table: str, run: RunMetrics, kind: type[Metric]) -> None:
        self._kind = kind
        super().__init__(table, run.tables[table].dtypes, run.run)

    def number_of(self, column: str) -> int:
        if column not in self._kind.reads[self.table]:
            raise _undeclared(self._kind, self.table, column)
        return super().number_of(column)


class _DeclaredRows(KeptRows):
    """Kept rows that refuse columns which the metric did not declare."""

    def __init__(self, table: str, rows: KeptRows, kind: type[Metric]) -> None:
        self._rows, self._table, self._kind = rows, table, kind
        self.slot = rows.slot

    def __contains__(self, column: str) -> bool:
        return column in self._rows

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in (*self._kind.keeps.get(self._table, ()), "agent"):
            raise _undeclared(self._kind, self._table, column)
        return self._rows[column]


def _figures(kind: type[Metric], parts: Sequence[Sequence[Batch]]) -> dict[str, Any]:
    """The figures of all agents and windows, and of each agent, by name."""
    submit_us = np.zeros(TASKS, np.int64)
    for table, columns in (batch for part in parts for batch in part):
        if table == "tasks":
            submit_us[columns["task"]] = columns["submit_us"]
    preferences = TaskPreferences((np.arange(TASKS) % 2).astype(np.int32), submit_us)
    made: list[Metric] = []
    frames: list[RunMetrics] = []
    for part in parts:
        run = RunMetrics(
            RunFrame(
                [Phase(0, END_US // 2, 90), Phase(END_US // 2, END_US, 90)],
                AGENTS,
                partitions=PARTITIONS,
                settle_us=1000,
                job_of=np.arange(TASKS) // 4,
                services=np.arange(TASKS) // 4 % 3 == 0,
                preferences=preferences,
                gangs=_made_up_gangs(submit_us),
            ),
            kinds=(),
            tables={**SCHEMAS, **kind.tables},
        )
        run.keep(kind.keeps)
        metric = kind(run.run)
        folds = _declared_folds(kind, metric, run)
        for batch in part:
            run.add(*batch)
            if batch[0] in folds:
                folds[batch[0]].fold(batch[1])
            elif metric.folds(batch[0]):
                _guarded(
                    kind,
                    "fold",
                    lambda m=metric, b=batch, r=run: m.fold(_DeclaredColumns(b, r.run, kind)),
                )
        run.flush()
        made.append(_guarded(kind, "pickle", lambda m=metric: _sent(m)))
        frames.append(run)
    whole, run = made[0], frames[0]
    for metric, frame in zip(made[1:], frames[1:], strict=True):
        _guarded(kind, "merge", lambda m=metric: whole.merge(m))
        run.merge(frame)
    kept: dict[str, KeptRows] = {
        table: _DeclaredRows(table, rows, kind) for table, rows in run.kept().items()
    }
    _check_live(kind, whole)
    series = _guarded(kind, "series", whole.series)
    for plot in kind.plots:
        for name in (plot.part, plot.whole):
            if name not in series:
                raise _broken(kind, f"plots: {name!r} is not a series of this metric")
    found: dict[str, Any] = {
        f"{name} over time, agent {agent}": int(counts[agent].sum())
        for name, counts in series.items()
        for agent in range(AGENTS)
    }
    for place, agents in (("", None), *((f"agents[{a}].", [a]) for a in range(AGENTS))):
        scope = run.scope(agents, None, kept)
        figures, bounds = _guarded(kind, "figures", lambda s=scope: scope_figures(whole, s))
        found |= {f"{place}{name}": value for name, value in figures.items()}
        found |= {f"{place}at_least.{name}": value for name, value in bounds.items()}
    return found


def _declared_folds(
    kind: type[Metric], metric: Metric, run: RunMetrics
) -> dict[str, _DeclaredTable]:
    """What native code adds up for a metric, by table."""
    if not isinstance(metric, NativeMetric):
        return {}
    folds = {table: _DeclaredTable(table, run, kind) for table in kind.reads}
    for fold in folds.values():
        _guarded(kind, "add_up", lambda f=fold: metric.add_up(f.rows))
    return folds


def _made_up_gangs(submit_us: Int64) -> TaskGangs:
    """Every second job is a gang."""
    job = np.arange(TASKS) // 4
    first = np.arange(0, TASKS, 8)
    place = np.where(job % 2, NOT_IN_GANG, job // 2).astype(np.int32)
    return TaskGangs(place, np.full(len(first), 4), submit_us[first], job[first])


def _sent(metric: Metric) -> Metric:
    """The metric as another process gets it."""
    received: Metric = ForkingPickler.loads(ForkingPickler.dumps(metric))
    return received


def _check_live(kind: type[Metric], metric: Metric) -> None:
    keys = {quantity.key for quantity in metric.run_quantities()}
    for key, columns in _guarded(kind, "live", metric.live).items():
        if key not in keys:
            raise _broken(kind, f"live: {key!r} is no quantity among its figures")
        if len(columns) != 2 or any(np.shape(column) != (AGENTS,) for column in columns):
            raise _broken(kind, f"live: {key!r}: expected two sums by agent, int64[agents] each")


def _guarded(kind: type[Metric], call: str, run: Any) -> Any:
    try:
        return run()
    except NonConformance:
        raise
    except Exception as error:
        raise _broken(kind, f"{call}: {raised(error, kind)}") from error


def _check_json(kind: type[Metric], figures: dict[str, Any]) -> None:
    for name, value in figures.items():
        if not isinstance(value, int | float | None):
            raise _broken(kind, f"figure {name!r}: expected a number or None, got {value!r}")
    try:
        json.dumps(figures, allow_nan=False)
    except ValueError as error:
        raise _broken(kind, f"figures cannot be written as JSON: {error}") from error


def _undeclared(kind: type[Metric], table: str, column: str) -> NonConformance:
    return _broken(kind, f"reads column {column!r} of table {table!r}, which it does not declare")


def _broken(kind: type[Metric], promise: str) -> NonConformance:
    return NonConformance(f"metric {kind.kind!r}: {promise}")
