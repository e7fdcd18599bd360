"""The tables of a sweep for the terminal: one for each metric, a row for each combination."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.sweeps.labels import assignments, value_text
from experiments.sweeps.result import SweepSummary
from experiments.sweeps.wording import (
    baselines,
    basis_sentence,
    difference_text,
    interval_text,
    until_sentence,
)
from parsync.metrics.quantity import Quantity, counted

MOST_ROWS = 40
MOST_COLUMNS = 2  # of parameters; more would leave no room for the arms


def metric_tables(summary: SweepSummary) -> Group:
    """The means of each metric with half their intervals, arms in columns; and what `until` came
    to. Of a long sweep the first rows. Combinations of many parameters are numbered, and listed
    first.

    With several baselines the differences to these are shown, too, unless the sweep is long."""
    notes = [basis_sentence(summary), until_sentence(summary)]
    if summary.partial:
        notes.insert(0, f"PARTIAL: {summary.partial}.")
    if len(summary.combinations) > MOST_ROWS:
        notes.append(f"The page has all {len(summary.combinations)} combinations.")
    metrics = [summary.quantity(key) for key in summary.metrics]
    below = [Text(note) for note in notes if note]
    is_long = len(summary.combinations) * len(summary.arms) > MOST_ROWS
    if len(baselines(summary)) > 1 and not is_long:
        return Group(*(_table_of_differences(summary, one) for one in metrics), *below)
    tables = [_table_of_means(summary, one) for one in metrics]
    return Group(*_numbered(summary), *tables, *below)


def _are_numbered(summary: SweepSummary) -> bool:
    return len(summary.parameters) > MOST_COLUMNS


def _numbered(summary: SweepSummary) -> list[Text]:
    if not _are_numbered(summary):
        return []
    labels = [parameter.label for parameter in summary.parameters]
    shown = enumerate(summary.combinations[:MOST_ROWS], 1)
    return [Text(f"{number}: {assignments(labels, one.values)}") for number, one in shown]


def _table_of_differences(summary: SweepSummary, metric: Quantity) -> Table:
    table = Table(title=f"{summary.name}: {metric.label}", title_justify="left")
    for label in ("arm", "mean", "difference", "to"):
        table.add_column(label)
    labels = [parameter.label for parameter in summary.parameters]
    differ = len({len(one.seeds) for one in summary.combinations}) > 1
    for one in summary.combinations:
        seeds = f": {counted(len(one.seeds), 'seed')}" if differ else ""
        table.add_row(Text(f"{assignments(labels, one.values)}{seeds}", style="bold"))
        for arm in one.arms:
            mean = interval_text(metric, arm.figures[metric.key])
            rows = [(difference_text(metric, its), its.baseline) for its in arm.comparisons]
            table.add_row(*map(Text, [arm.name, mean, *(rows[0] if rows else ())]))
            for row in rows[1:]:
                table.add_row("", "", *map(Text, row))
        table.add_section()
    return table


def _table_of_means(summary: SweepSummary, metric: Quantity) -> Table:
    table = Table(title=f"{summary.name}: {metric.label}", title_justify="left")
    for label in ["#"] if _are_numbered(summary) else [one.label for one in summary.parameters]:
        table.add_column(label, justify="right")
    table.add_column("seeds", justify="right")
    for name in summary.arms:
        table.add_column(Text(name), justify="right")
    for number, one in enumerate(summary.combinations[:MOST_ROWS], 1):
        values = [number] if _are_numbered(summary) else one.values
        cells = [value_text(value) for value in values]
        cells += [str(len(one.seeds))]
        cells += [interval_text(metric, arm.figures[metric.key]) for arm in one.arms]
        table.add_row(*map(Text, cells))
    return table
