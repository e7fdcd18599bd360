"""The tables of a sweep for the terminal: one for each metric, a row for each combination."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.report.fitted_table import FittedTable
from experiments.studies.sweeps.result import SweepSummary
from experiments.studies.sweeps.sweep_file import assignments, value_text
from experiments.studies.sweeps.wording import (
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
    """The medians of each metric with their intervals, arms in columns; and what `until` came
    to. Of a long sweep the first rows. Combinations of many parameters are numbered, and listed
    first.

    With several baselines the differences to these are shown, too, unless the sweep is long."""
    notes = [basis_sentence(summary), summary.seeds_vary, until_sentence(summary)]
    if summary.partial:
        notes.insert(0, f"PARTIAL: {summary.partial}.")
    if len(summary.combinations) > MOST_ROWS:
        notes.append(f"The page has all {len(summary.combinations)} combinations.")
    metrics = [summary.quantity(key) for key in summary.metrics]
    below = [Text(note) for note in notes if note]
    is_long = len(summary.combinations) * len(summary.arms) > MOST_ROWS
    if len(baselines(summary)) > 1 and not is_long:
        return Group(*(_table_of_differences(summary, one) for one in metrics), *below)
    tables = [_table_of_medians(summary, one) for one in metrics]
    return Group(*_numbered(summary), *tables, *below)


def _are_numbered(summary: SweepSummary) -> bool:
    return len(summary.parameters) > MOST_COLUMNS


def _numbered(summary: SweepSummary) -> list[Text]:
    if not _are_numbered(summary):
        return []
    labels = [parameter.label for parameter in summary.parameters]
    shown = enumerate(summary.combinations[:MOST_ROWS], 1)
    return [Text(f"{number}: {assignments(labels, one.values)}") for number, one in shown]


def _table(summary: SweepSummary, metric: Quantity) -> Table:
    return FittedTable(
        title=Text(f"{summary.name}: {metric.label}"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )


def _table_of_differences(summary: SweepSummary, metric: Quantity) -> Table:
    """Arms in rows, the baselines in columns."""
    table = _table(summary, metric)
    table.add_column("arm")
    table.add_column("median", justify="right")
    compared = baselines(summary)
    for name in compared:
        table.add_column(Text(f"to {name}"), justify="right")
    labels = [parameter.label for parameter in summary.parameters]
    differ = len({len(one.seeds) for one in summary.combinations}) > 1
    for one in summary.combinations:
        seeds = f": {counted(len(one.seeds), 'seed')}" if differ else ""
        table.add_row(Text(f"{assignments(labels, one.values)}{seeds}", style="bold"))
        for arm in one.arms:
            median = interval_text(metric, arm.figures[metric.key]).replace(" (", "\n(")
            to = {its.baseline: difference_text(metric, its) for its in arm.comparisons}
            cells = [median, *(_on_two_lines(to.get(name, "")) for name in compared)]
            table.add_row(Text(arm.name), *(Text(cell, no_wrap=True) for cell in cells))
    return table


def _on_two_lines(difference: str) -> str:
    """A difference, and its interval below."""
    text = difference.removesuffix(": unsure)")
    if text != difference:
        text = text.replace(" (", " unsure (") + ")"
    return text.replace(" (", "\n(")


def _table_of_medians(summary: SweepSummary, metric: Quantity) -> Table:
    table = _table(summary, metric)
    labels = ["#"] if _are_numbered(summary) else [one.label for one in summary.parameters]
    table.add_column(", ".join(labels) or "as it is", justify="right")
    numbers = {len(one.seeds) for one in summary.combinations}
    if len(numbers) > 1:  # else a sentence below says how many
        table.add_column("seeds", justify="right")
    for name in summary.arms:
        table.add_column(Text(name), justify="right")
    for number, one in enumerate(summary.combinations[:MOST_ROWS], 1):
        values = [number] if _are_numbered(summary) else one.values
        cells = [", ".join(map(value_text, values))]
        cells += [str(len(one.seeds))] if len(numbers) > 1 else []
        figures = [interval_text(metric, arm.figures[metric.key]) for arm in one.arms]
        cells += [text.replace(" (", "\n(") for text in figures]  # two lines, as in other tables
        table.add_row(*(Text(cell, no_wrap=True) for cell in cells))
    return table
