"""The contract of a metric: one class that reads tables of measurements, adds them up, and declares
the figures it makes of them.

A new metric is one file with such a class and one line: in BUILT_IN of parsync/metrics/registry.py,
or in another package's metadata (entry points `agora.metrics`). Its figures then stand in
summary.json, in the report's tables and its data dictionary, and can be compared by
`experiments.studies.compare`, and the report draws its plots; docs/add_a_metric.md shows one.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.counters import Counters, TimeSeries
from parsync.metrics.figures import Figures
from parsync.metrics.quantity import Quantity, Unit, quantities_of
from parsync.metrics.record import Table
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.table_fold import Rows
from parsync.metrics.tables import Tables
from shared_state.tasks import Int64

TableColumns = Mapping[str, Sequence[str]]  # columns by table

NEGLIGIBLE = 0.001  # of the tasks or jobs: so few may be missing from a mean


class RecordBatch:
    """Measurements as metrics that fold in Python read them: rows of one table, as equal-length
    columns, batch["agent"], and what several metrics derive from them, worked out once. The columns
    are shared with other metrics and must not be written to."""

    def __init__(self, table: str, columns: Table, run: RunFrame) -> None:
        self.table = table
        self._columns = columns
        self._run = run
        self._slots: dict[str, Int64] = {}

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column]

    def slot(self, column: str) -> Int64:
        """The slot (run_frame.py) of each time in a column."""
        found = self._slots.get(column)
        if found is None:
            found = self._slots[column] = self._run.slot_of(self[column])
        return found

    def where(self, rows: NDArray[np.bool_]) -> RecordBatch:
        """The rows that a mask selects."""
        if rows.all():
            return self
        return RecordBatch(
            self.table, {name: column[rows] for name, column in self._columns.items()}, self._run
        )

    @cached_property
    def first_commits(self) -> RecordBatch:
        """The first commits of a batch of `tasks`. A task that was evicted or lost its machine is
        committed again."""
        return self.where(self["first"] == 1)


class KeptRows:
    """All rows of a table of samples, by time, then agent, with the slot of each row's time."""

    def __init__(self, columns: Table, run: RunFrame) -> None:
        self._columns = columns
        at_us = columns.get("at_us", np.zeros(0, np.int64))
        self.slot = run.slot_of(at_us)

    def __len__(self) -> int:
        return len(self.slot)

    def __contains__(self, column: str) -> bool:
        return column in self._columns

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column] if self._columns else np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a set of figures is about: some agents over some slots.

    Attributes:
        last_us: How far the run was seen; what had not happened by then took longer.
        kept: The rows of the tables that metrics keep.
    """

    run: RunFrame
    agents: tuple[int, ...]
    slots: tuple[int, ...]
    last_us: int
    kept: Mapping[str, KeptRows]
    _cells: tuple[NDArray[Any], ...] = field(init=False, repr=False, compare=False)
    _inside: dict[str, NDArray[np.bool_]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cells", np.ix_(self.agents, self.slots))
        object.__setattr__(self, "_inside", {})

    def sum(self, counts: NDArray[Any]) -> int:
        """The sum of counts, int64[agents, slots], over the scope."""
        return int(counts[self._cells].sum())

    def rows(self, table: str) -> tuple[KeptRows, NDArray[np.bool_]]:
        """All rows of a kept table, and which of them are within the scope."""
        rows = self.kept[table]
        if table not in self._inside:
            inside = np.isin(rows.slot, self.slots)
            if "agent" in rows:
                inside &= np.isin(rows["agent"], self.agents)
            self._inside[table] = inside
        return rows, self._inside[table].copy()  # a metric may choose among them further


@dataclass(frozen=True, slots=True)
class OverTime:
    """A figure of the report that is drawn of two series of a metric: part / whole at each moment,
    of the median scheduler, and a band among all schedulers.

    Attributes:
        title: Its heading.
        part, whole: Names of series (Metric.series).
        unit: How the quotient is written.
        axis: What stands at the axis, such as "Claims in conflict".
        caption: What is drawn.
        look_for: What to look for in it.
        up_to_all: The axis of a share ends at 100 %, whatever its values.
    """

    title: str
    part: str
    whole: str
    unit: Unit
    axis: str
    caption: str
    look_for: str = ""
    up_to_all: bool = False


class MetricClass(ABCMeta):
    """What every metric's class is an instance of."""


class Metric(metaclass=MetricClass):
    """A sum over the measurements of one run, and the figures made of it.

    A run has one object of each metric, or one in each actor; these are merged at the end. So sums
    must not depend on how rows are batched or which object got them, and objects are pickled.

    Attributes:
        kind: The name of the metric.
        description: One sentence.
        figures_model: Its figures, each declared with quantity() or a plain field.
        reads: The columns it reads, by table (parsync.metrics.tables has their meanings).
        keeps: The columns of the tables `cell`, `agents` and `rounds` that it needs row by row when
            figures are made; Scope.rows gives them.
        tables: The schemas of the tables that it reads and that a protocol brings
            (ProtocolSpec.tables). Those with a column `at_us` may be kept, too. An arm without that
            protocol has no rows of them.
        plots: The figures that the report draws of its series.
        count: Sums by agent and slot; a metric may replace it.
        timeline: Sums by agent and time, from which series come; a metric may replace it.
    """

    kind: ClassVar[str]
    description: ClassVar[str]
    figures_model: ClassVar[type[Figures]]
    reads: ClassVar[TableColumns] = {}
    keeps: ClassVar[TableColumns] = {}
    tables: ClassVar[Tables] = {}
    plots: ClassVar[Sequence[OverTime]] = ()

    def __init__(self, run: RunFrame) -> None:
        self.run = run
        self.count = Counters((), run)
        self.timeline = TimeSeries((), run.agents, run.bucket_us)

    def fold(self, batch: RecordBatch) -> None:
        """Add up a batch of a table of `reads`. Called about once per 16,000 rows."""

    def folds(self, table: str) -> bool:
        """Whether fold() is to be called with the rows of a table."""
        return table in self.reads

    def merge(self, other: Self) -> None:
        """Add what another object of the same run has added up. Here: its `count` and its
        `timeline`."""
        self.count.merge(other.count)
        self.timeline.merge(other.timeline)

    @abstractmethod
    def figures(self, scope: Scope) -> Figures:
        """The figures of a scope. Called when all rows are added up, once per scope."""

    def lower_bounds(self, scope: Scope, figures: Any) -> Mapping[str, float | None]:
        """Figures that leave out what did not get there, by their keys, with it charged until the
        run was last seen. A figure with a bound is compared by it, and is not ranked beside
        figures without one."""
        return {}

    def live(self) -> Mapping[str, tuple[Int64, Int64]]:
        """Sums since the start that the terminal's live table makes a column of, by the key of a
        quantity: int64[agents] of a part and of its whole. The column shows part / whole of each
        scheduler since the table was last drawn. Called about twice a second."""
        return {}

    def series(self) -> Mapping[str, Int64]:
        """Counts over time that plots are drawn from, by names that are unique among all metrics:
        int64[agents, buckets of run.bucket_us]."""
        return self.timeline.by_name()

    def arrays(self, scope: Scope) -> Mapping[str, NDArray[Any]]:
        """Other arrays that plots are drawn from.

        Args:
            scope: All agents and all windows.
        """
        return {}

    def run_quantities(self) -> list[Quantity]:
        """The quantities among its figures of this run. They are those of the class, unless the
        run brings more."""
        return self.quantities()

    @classmethod
    def quantities(cls) -> list[Quantity]:
        """The quantities among its figures."""
        return quantities_of(cls.figures_model, cls.kind)


class NativeMetric(Metric):
    """A metric that declares what is added up of each row, and leaves it to native code."""

    @abstractmethod
    def add_up(self, rows: Rows) -> None:
        """Declare what is added up of the rows of a table of `reads`. Called once for each of them
        before rows come, and again for every copy of this object."""

    def folds(self, table: str) -> bool:
        return False


def ratio(part: float, whole: float) -> float | None:
    """The quotient part / whole; None where there is no whole."""
    return part / whole if whole else None


def is_incomplete(missing: int, total: int) -> bool:
    """Whether more than a negligible share is missing."""
    return missing > NEGLIGIBLE * total
