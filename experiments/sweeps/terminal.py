"""The tables of a sweep for the terminal: one for each metric, a row for each combination."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.report.fitted_table import FittedTable
from experiments.sweeps.labels import assignments, value_text
from experiments.sweeps.result import SweepSummary
from experiments.sweeps.wording import basis_sentence, interval_text, until_sentence
from parsync.metrics.quantity import Quantity

MOST_ROWS = 40
MOST_COLUMNS = 2  # of parameters; more would leave no room for the arms


def metric_tables(summary: SweepSummary) -> Group:
    """The means of each metric with half their intervals, arms in columns; and what `until` came
    to. Of a long sweep the first rows. Combinations of many parameters are numbered, and listed
    first."""
    notes = [basis_sentence(summary), until_sentence(summary)]
    if summary.partial:
        notes.insert(0, f"PARTIAL: {summary.partial}.")
    if len(summary.combinations) > MOST_ROWS:
        notes.append(f"The page has all {len(summary.combinations)} combinations.")
    tables = (_metric_table(summary, summary.quantity(key)) for key in summary.metrics)
    return Group(*_numbered(summary), *tables, *(Text(note) for note in notes if note))


def _are_numbered(summary: SweepSummary) -> bool:
    return len(summary.parameters) > MOST_COLUMNS


def _numbered(summary: SweepSummary) -> list[Text]:
    if not _are_numbered(summary):
        return []
    labels = [parameter.label for parameter in summary.parameters]
    shown = enumerate(summary.combinations[:MOST_ROWS], 1)
    return [Text(f"{number}: {assignments(labels, one.values)}") for number, one in shown]


def _metric_table(summary: SweepSummary, metric: Quantity) -> Table:
    table = FittedTable(
        title=Text(f"{summary.name}: {metric.label}"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
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
        cells += [text.replace(" ±", "\n±") for text in figures]  # two lines, as in other tables
        table.add_row(*(Text(cell, no_wrap=True) for cell in cells))
    return table
