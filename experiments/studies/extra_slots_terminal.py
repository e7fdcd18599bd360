"""Extra slots over one axis for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group
from rich.text import Text

from experiments.analysis.statistics import Interval
from experiments.report.fitted_table import FittedTable

_NONE = "no answer"


def extra_slots_table(
    axis: str,
    lines: Mapping[str, Mapping[float, Interval]],
    title: str,
    reasons: Sequence[str],
) -> Group:
    """A row for each value of the axis, and a column for each line; below it, why some are empty.

    Args:
        axis: Its label.
        lines: By label: S_extra by the value of the axis; without estimate if there is no answer.
        title: What is searched, in a sentence.
        reasons: A line for each point without an answer.
    """
    table = FittedTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(axis, min_width=len(axis), justify="right")
    for label in lines:
        table.add_column(label, justify="right")
    for value in next(iter(lines.values())):
        table.add_row(f"{value:,g}", *(_cell(found[value]) for found in lines.values()))
    return Group(Text(title), table, *(Text(reason) for reason in reasons))


def _cell(found: Interval) -> str:
    if found.estimate is None:
        return _NONE
    if found.low is None or found.high is None or found.low == found.high:
        return f"{found.estimate:,.0f}"
    return f"{found.estimate:,.0f}\n{found.low:,.0f}–{found.high:,.0f}"
