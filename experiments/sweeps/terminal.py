"""The table of a sweep for the terminal: its metric, a row for each combination."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.sweeps.labels import value_text
from experiments.sweeps.result import SweepSummary
from experiments.sweeps.wording import basis_sentence, interval_text, until_sentence

MOST_ROWS = 40


def metric_table(summary: SweepSummary) -> Group:
    """The means of the metric with half their intervals, arms in columns; and what `until` came
    to. Of a long sweep the first rows."""
    metric = summary.quantity(summary.metric)
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
    notes = [basis_sentence(summary), until_sentence(summary)]
    if summary.partial:
        notes.insert(0, f"PARTIAL: {summary.partial}.")
    if len(summary.combinations) > MOST_ROWS:
        notes.append(f"The page has all {len(summary.combinations)} combinations.")
    return Group(table, *(Text(note) for note in notes if note))
