"""The tables of a sweep for the terminal: one for each metric, a row for each combination."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.sweeps.labels import value_text
from experiments.sweeps.result import SweepSummary
from experiments.sweeps.wording import basis_sentence, interval_text, until_sentence
from parsync.metrics.quantity import Quantity

MOST_ROWS = 40


def metric_tables(summary: SweepSummary) -> Group:
    """The means of each metric with half their intervals, arms in columns; and what `until` came
    to. Of a long sweep the first rows."""
    notes = [basis_sentence(summary), until_sentence(summary)]
    if summary.partial:
        notes.insert(0, f"PARTIAL: {summary.partial}.")
    if len(summary.combinations) > MOST_ROWS:
        notes.append(f"The page has all {len(summary.combinations)} combinations.")
    tables = (_metric_table(summary, summary.quantity(key)) for key in summary.metrics)
    return Group(*tables, *(Text(note) for note in notes if note))


def _metric_table(summary: SweepSummary, metric: Quantity) -> Table:
    table = Table(title=f"{summary.name}: {metric.label}", title_justify="left")
    for parameter in summary.parameters:
        table.add_column(parameter.label, justify="right")
    table.add_column("seeds", justify="right")
    for name in summary.arms:
        table.add_column(Text(name), justify="right")
    for one in summary.combinations[:MOST_ROWS]:
        cells = [value_text(value) for value in one.values]
        cells += [str(len(one.seeds))]
        cells += [interval_text(metric, arm.figures[metric.key]) for arm in one.arms]
        table.add_row(*map(Text, cells))
    return table
