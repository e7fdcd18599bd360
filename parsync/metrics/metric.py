"""The contract of a metric: one class that reads tables of measurements, adds them up, and declares
the figures it makes of them; and what it is given for that.

A new metric is one file with such a class and one line: in BUILT_IN of parsync/metrics/registry.py,
or in another package's metadata (entry points `agora.metrics`). Its figures then stand in
summary.json, in the report's tables and its data dictionary, and can be compared by
`experiments.studies.compare`, and the report draws its plots; docs/add_a_metric.md shows one.

A NativeMetric declares what is added up of the rows of a table as if it had all of them at hand:

    firsts = rows.first_commits
    firsts.add(self.count["cost"], (firsts["agent"], firsts.slot("submit_us")), firsts["cost"])

Nothing is computed then: the columns are names for what native code will work out of every batch,
in one pass (native/table_fold.hpp).
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import _native
from parsync.metrics._native import Binary
from parsync.metrics.quantity import Figures, Quantity, Unit, quantities_of
from parsync.metrics.record import Columns, Table, differing_lengths
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.tables import CONFLICT_COLUMNS, Tables
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

TableColumns = Mapping[str, Sequence[str]]  # columns by table
Merges = Mapping[str, np.ufunc]  # how attributes are merged, by name

NEGLIGIBLE = 0.001  # of the tasks or jobs: so few may be missing from a mean


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
        merges: Further attributes that objects add up in, by name, each with how two of it are
            merged: the ufunc of an array, such as numpy.add.
        count: Sums by agent and slot, of names that no other metric has; a metric may replace it.
        timeline: Sums by agent and time, from which series come; a metric may replace it.
    """

    kind: ClassVar[str]
    description: ClassVar[str]
    figures_model: ClassVar[type[Figures]]
    reads: ClassVar[TableColumns] = {}
    keeps: ClassVar[TableColumns] = {}
    tables: ClassVar[Tables] = {}
    plots: ClassVar[Sequence[OverTime]] = ()
    merges: ClassVar[Merges] = {}

    def __init__(self, run: RunFrame) -> None:
        self.run = run
        self.count = Counters((), run)
        self.timeline = TimeSeries((), run.agents, run.bucket_us)

    @classmethod
    def applies(cls, run: RunFrame) -> bool:
        """Whether a run has figures of this metric. If not, no object is made of it."""
        return True

    def fold(self, batch: RecordBatch) -> None:
        """Add up a batch of a table of `reads`. Called about once per 16,000 rows."""

    def folds(self, table: str) -> bool:
        """Whether fold() is to be called with the rows of a table."""
        return table in self.reads

    def merge(self, other: Self) -> None:
        """Add what another object of the same run has added up. Here: its `count`, its `timeline`
        and what `merges` names."""
        self.count.merge(other.count)
        self.timeline.merge(other.timeline)
        for name, ufunc in self.merges.items():
            mine = getattr(self, name)
            ufunc(mine, getattr(other, name), out=mine)

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


class Counters:
    """Named sums, int64[agents, slots] each: counters["claims"]."""

    def __init__(self, names: Sequence[str], run: RunFrame) -> None:
        self._counts = {name: np.zeros((run.agents, run.slots), np.int64) for name in names}

    def __getitem__(self, name: str) -> Int64:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def add(
        self, name: str, agent: NDArray[Any], slot: Int64, weight: NDArray[Any] | int = 1
    ) -> None:
        """Add one, or a weight per row, to the counts of agents and slots."""
        add_at(self._counts[name], agent, slot, weight)

    def merge(self, other: Counters) -> None:
        for name, counts in self._counts.items():
            counts += other._counts[name]


class TimeSeries:
    """Named counts by agent and time bucket, int64[agents, buckets] each; grows with time."""

    def __init__(self, names: Sequence[str], rows: int, bucket_us: int) -> None:
        self.names = tuple(names)
        self.bucket_us = bucket_us
        self.counts = np.zeros((len(names), rows, 64), np.int64)

    def add(
        self, name: str, row: NDArray[Any], at_us: Int64, weight: NDArray[Any] | None = None
    ) -> None:
        """Add one, or a weight per row, to the counts of agents at their times."""
        if not len(row):
            return
        bucket = np.maximum(at_us, 0) // self.bucket_us
        self.reach(int(bucket.max()) + 1)
        counts = self.counts[self.names.index(name)]
        add_at(counts, row, bucket, 1 if weight is None else weight)

    def merge(self, other: TimeSeries) -> None:
        self.reach(other.counts.shape[2])
        self.counts[:, :, : other.counts.shape[2]] += other.counts

    def by_name(self) -> dict[str, Int64]:
        """The counts of each name."""
        return dict(zip(self.names, self.counts, strict=True))

    def reach(self, buckets: int) -> None:
        """Make room for so many buckets, in another array than before."""
        missing = buckets - self.counts.shape[2]
        if missing > 0:
            grown = max(missing, self.counts.shape[2])
            self.counts = np.concatenate(
                [self.counts, np.zeros((*self.counts.shape[:2], grown), np.int64)], axis=2
            )


def add_at(
    matrix: NDArray[Any], row: NDArray[Any], column: NDArray[Any], weight: NDArray[Any] | int
) -> None:
    """Add a weight at each place (row, column) of a contiguous matrix; places may repeat.

    numpy adds at places that one number names five times as fast as at those that two name.
    """
    place = row * np.int64(matrix.shape[1]) + column
    np.add.at(matrix.reshape(-1), place, weight)


class ColumnValue:
    """One int64 for every row: a column, or what is worked out of columns. Masks, from
    comparisons, are 1 and 0."""

    __hash__ = object.__hash__

    def __init__(self, native: _native.TableFold, number: int) -> None:
        self._native = native
        self.number = number

    def __add__(self, other: ColumnValue | int) -> ColumnValue:
        return self._with(Binary.ADD, other)

    def __sub__(self, other: ColumnValue | int) -> ColumnValue:
        return self._with(Binary.SUBTRACT, other)

    def __mul__(self, other: ColumnValue | int) -> ColumnValue:
        return self._with(Binary.MULTIPLY, other)

    def __neg__(self) -> ColumnValue:
        return self._constant(0) - self

    def __floordiv__(self, divisor: int) -> ColumnValue:
        return self._new(self._native.divide(self.number, divisor))

    def __eq__(self, other: ColumnValue | int) -> ColumnValue:  # type: ignore[override]
        return self._with(Binary.EQUAL, other)

    def __ne__(self, other: ColumnValue | int) -> ColumnValue:  # type: ignore[override]
        return ~(self == other)

    def __lt__(self, other: ColumnValue | int) -> ColumnValue:
        return self._with(Binary.LESS, other)

    def __ge__(self, other: ColumnValue | int) -> ColumnValue:
        return ~(self < other)

    def __gt__(self, other: int) -> ColumnValue:
        return self._constant(other) < self

    def __and__(self, other: ColumnValue) -> ColumnValue:
        return self._with(Binary.AND, other)

    def __or__(self, other: ColumnValue) -> ColumnValue:
        return self._with(Binary.OR, other)

    def __invert__(self) -> ColumnValue:
        """The other rows, of a mask."""
        return self == 0

    def is_one_of(self, values: Sequence[int]) -> ColumnValue:
        """Which rows have one of at least one value."""
        found = self == values[0]
        for value in values[1:]:
            found |= self == value
        return found

    def is_within(self, lowest: int, highest: int) -> ColumnValue:
        """Which rows have at least `lowest` and at most `highest`."""
        return (self >= lowest) & (self < highest + 1)

    def clip(self, lowest: int, highest: int) -> ColumnValue:
        """As numpy.clip."""
        return self._new(self._native.clamp(self.number, lowest, highest))

    def choose(self, yes: ColumnValue | int, no: ColumnValue | int) -> ColumnValue:
        """Of a mask, as numpy.where: yes or no."""
        yes, no = self._constant(yes), self._constant(no)
        return self._new(self._native.choose(self.number, yes.number, no.number))

    def histogram_bucket(self) -> ColumnValue:
        """The bucket of histogram.py."""
        return self._new(self._native.histogram_bucket(self.number))

    def place_among(self, ids: Int64) -> ColumnValue:
        """The place of each among ascending ids, -1 if it is none of them."""
        # a copy: what actors share cannot be written, which native code wants of every array
        return self._new(self._native.place_of(self.number, np.array(ids)))

    def _with(self, what: Binary, other: ColumnValue | int) -> ColumnValue:
        return self._new(self._native.binary(what, self.number, self._constant(other).number))

    def _constant(self, value: ColumnValue | int) -> ColumnValue:
        if isinstance(value, ColumnValue):
            return value
        return self._new(self._native.constant(int(value)))

    def _new(self, number: int) -> ColumnValue:
        return ColumnValue(self._native, number)


_EVERY_ROW = 0  # table_fold.hpp: Rows::kAll
Place = tuple[ColumnValue | int, ...]


class Rows:
    """The rows of a table, or some of them, of which a metric declares what is added up.

    Arrays that rows are added to must stay the same objects: metrics change them in place. A place
    is an index for each dimension of the array, such as (agent, slot).

    Raises:
        AgoraError: From TableFold.fold(), for an index that is out of bounds.
    """

    def __init__(self, fold: TableFold, number: int = _EVERY_ROW) -> None:
        self._fold = fold
        self._native = fold.native
        self._number = number
        self.table = fold.table

    def __getitem__(self, column: str) -> ColumnValue:
        return ColumnValue(self._native, self._native.column(self._fold.number_of(column)))

    def slot(self, column: str) -> ColumnValue:
        """The slot (run_frame.py) of each time in a column."""
        return ColumnValue(self._native, self._native.slot(self[column].number))

    def where(self, mask: ColumnValue) -> Rows:
        """The rows that a mask selects."""
        return Rows(self._fold, self._native.where(self._number, mask.number))

    @property
    def first_commits(self) -> Rows:
        """The first commits of rows of `tasks`. A task that was evicted or lost its machine is
        committed again."""
        return self.where(self["first"] == 1)

    @property
    def claims_in_conflict(self) -> ColumnValue:
        """Of rows of `commits`, how many of their claims met a conflict."""
        first, *others = (self[name] for name in CONFLICT_COLUMNS)
        return sum(others, first)

    def take(self, table: NDArray[Any], index: ColumnValue, name: str) -> ColumnValue:
        """table[index], as the table is now; 0 for rows that are not selected.

        Args:
            name: Of the index, for errors.
        """
        copied = np.array(table, np.int64)
        return ColumnValue(
            self._native, self._native.gather(self._number, copied, index.number, name)
        )

    def add(self, sums: NDArray[Any], place: Place, weight: ColumnValue | int = 1) -> None:
        """Add one, or a weight, to int64 sums."""
        self._native.add(self._number, self._place(sums, place), sums, self._value(weight))

    def count(self, rows: Int64) -> None:
        """Add the number of rows to an array int64[1]."""
        self._native.count_rows(self._number, rows)

    def add_squares(self, sums: NDArray[Any], place: Place, value: ColumnValue) -> None:
        """Add the square of a value to float64 sums."""
        self._native.add_squares(self._number, self._place(sums, place), sums, value.number)

    def add_over_time(
        self,
        series: TimeSeries,
        name: str,
        row: ColumnValue,
        at_us: ColumnValue,
        weight: ColumnValue | int = 1,
    ) -> None:
        """Add one, or a weight, to the counts of a name, in the bucket of a time."""
        bucket = at_us.clip(0, np.iinfo(np.int64).max) // series.bucket_us
        place = self._native.place_in(self._number, series, row.number, bucket.number)
        number = series.names.index(name)
        self._native.add_in(self._number, place, series, number, self._value(weight))

    def largest(self, kept: Int64, place: Place, value: ColumnValue) -> None:
        """Keep the largest value of each place, int64."""
        self._native.largest(self._number, self._place(kept, place), kept, value.number)

    def smallest(self, kept: Int64, place: Place, value: ColumnValue) -> None:
        """Keep the smallest value of each place, int64."""
        self._native.smallest(self._number, self._place(kept, place), kept, value.number)

    def store(self, kept: NDArray[Any], place: Place, value: ColumnValue | int) -> None:
        """Keep the last value of each place, in integers of any width or bools."""
        self._native.store(self._number, self._place(kept, place), kept, self._value(value))

    def store_earliest(
        self,
        kept_us: Int64,
        place: Place,
        at_us: ColumnValue,
        beside: Sequence[tuple[NDArray[Any], ColumnValue]],
    ) -> None:
        """Keep the smallest time of each place, and other values of the last row that has it."""
        number = self._place(kept_us, place)
        values = [(kept, value.number) for kept, value in beside]
        self._native.earliest(self._number, number, kept_us, at_us.number, values)

    def call(self, function: Callable[..., None], *values: ColumnValue) -> None:
        """Call a function with the values of the rows, int64[n] each, n > 0. For rows that are few:
        a batch is handed over in several parts."""
        self._native.call(self._number, function, [value.number for value in values])

    def _value(self, value: ColumnValue | int) -> int:
        if isinstance(value, ColumnValue):
            return value.number
        return self._native.constant(int(value))

    def _place(self, kept: NDArray[Any], place: Place) -> int:
        indices = [self._value(index) for index in place]
        names = [self._fold.name_of(index) for index in indices]
        return self._native.place(self._number, indices, list(kept.shape), names)


class TableFold:
    """What is added up of the rows of one table of a run.

    Attributes:
        rows: All rows of the table, of which metrics declare it.
    """

    def __init__(self, table: str, dtypes: Mapping[str, str], run: RunFrame) -> None:
        self.table = table
        self._names = list(dtypes)
        self.native = _native.TableFold(self._names, run.edges)
        self._known: dict[int, str] = {}
        self.rows = Rows(self)

    def number_of(self, column: str) -> int:
        number = self._names.index(column)
        self._known[self.native.column(number)] = column
        return number

    def name_of(self, value: int) -> str:
        """What an index is called in errors: its column's name where it is one."""
        return self._known.get(value, "an index")

    @property
    def adds_up(self) -> bool:
        """Whether anything is declared."""
        return self.native.has_sinks()

    def fold(self, columns: Columns) -> None:
        """Add up a batch: equal-length columns, arrays of integers or lists. They are not kept.
        Raises AgoraError naming the table for rows that are not of it."""
        try:
            is_added_up = self.native.fold(dict(columns))
        except (ArithmeticError, BufferError, IndexError, TypeError, ValueError) as error:
            raise AgoraError(f"table {self.table!r}: {error}") from error
        if not is_added_up:
            raise AgoraError(f"table {self.table!r}: {self._what_is_wrong(columns)}")

    def _what_is_wrong(self, columns: Columns) -> str:
        for name in self._names:
            if name not in columns:
                return f"a batch of rows has no column {name!r}"
        return differing_lengths({name: columns[name] for name in self._names})
