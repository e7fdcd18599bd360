"""A table for the terminal that never cuts off a figure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table

_UNLIMITED = 100_000  # columns of characters


class FittedTable(Table):
    """A table whose last columns go into further tables below, where the console is too narrow.

    Every table begins with the first column, which may be wrapped at any place. Headers are wrapped
    between words, other cells not at all. The title is above the first table, the caption below
    the last one.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        first, *others = self.columns
        widths = [_least_width(console, options, column) for column in others]
        parts: list[list[int]] = [[]]
        for index in range(len(others)):
            longer = [*parts[-1], index]
            table = self._part(first, [others[i] for i in longer], [widths[i] for i in longer])
            if parts[-1] and _measured(console, options, table).minimum > options.max_width:
                longer = [index]
                parts.append(longer)
            parts[-1] = longer
        for number, part in enumerate(parts):
            columns = [others[i] for i in part]
            table = self._part(first, columns, [None] * len(part))
            if _measured(console, options, table).maximum > options.max_width:
                table = self._part(first, columns, [widths[i] for i in part])
            table.title = self.title if number == 0 else None
            table.caption = self.caption if number == len(parts) - 1 else None
            yield table

    def _part(
        self, first: Column, columns: Sequence[Column], widths: Sequence[int | None]
    ) -> Table:
        table = Table(
            title_justify=self.title_justify,
            caption_justify=self.caption_justify,
            box=self.box,
            padding=self.padding,
            pad_edge=self.pad_edge,
            min_width=self.min_width,
        )
        table.add_column(first.header, min_width=first.min_width, justify=first.justify)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column.header, justify=column.justify, width=width)
        for cells in zip(first.cells, *(column.cells for column in columns), strict=True):
            table.add_row(*cells)
        return table


def _least_width(console: Console, options: ConsoleOptions, column: Column) -> int:
    """The width of a column whose header is wrapped between words, and no other cell."""
    cells = [Measurement.get(console, options, cell).maximum for cell in column.cells]
    return max([Measurement.get(console, options, column.header).minimum, *cells])


def _measured(console: Console, options: ConsoleOptions, table: Table) -> Measurement:
    """The least and the natural width of a table, whatever the console's is."""
    return Measurement.get(console, options.update(width=_UNLIMITED), table)
