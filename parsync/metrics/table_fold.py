"""What metrics add up of the rows of a table, declared with columns and carried out by native code
in one pass over each batch (native/table_fold.hpp).

A metric declares it once per table (NativeMetric.counts), as if it had all the rows at hand:

    firsts = rows.first_commits
    firsts.add(self.count["cost"], (firsts["agent"], firsts.slot("submit_us")), firsts["cost"])

Nothing is computed then: the columns are names for what native code will work out of every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import _native
from parsync.metrics._native import Binary
from parsync.metrics.counters import TimeSeries
from parsync.metrics.record import Columns, differing_lengths
from parsync.metrics.run_frame import RunFrame
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

_EVERY_ROW = 0  # table_fold.hpp: Rows::kAll


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
        return self._new(self._native.place_of(self.number, ids))

    def _with(self, what: Binary, other: ColumnValue | int) -> ColumnValue:
        return self._new(self._native.binary(what, self.number, self._constant(other).number))

    def _constant(self, value: ColumnValue | int) -> ColumnValue:
        if isinstance(value, ColumnValue):
            return value
        return self._new(self._native.constant(int(value)))

    def _new(self, number: int) -> ColumnValue:
        return ColumnValue(self._native, number)


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
