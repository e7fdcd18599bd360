"""The tables of a benchmark: time of each solver on each graph, and how many times faster than OR-tools."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from flowsolver.benchmark.cases import Series
from flowsolver.benchmark.results import Outcome, Result
from flowsolver.benchmark.run import time_text

_YARDSTICK = "ortools"


def tables(series: Sequence[Series], results: Sequence[Result], limit_s: float) -> list[Table]:
    return [_table(each, [r for r in results if r.figure == each.figure], limit_s) for each in series]


def ratio_text(result: Result, yardstick: Result | None, limit_s: float) -> str:
    """How many times faster than the yardstick; a bound if that was stopped at the limit."""
    if yardstick is None or yardstick is result or result.median_s is None:
        return ""
    if yardstick.median_s is not None:
        return f"{yardstick.median_s / result.median_s:.3g}x"
    return f">{limit_s / result.median_s:.3g}x" if yardstick.outcome is Outcome.OVER_TIME else ""


def _table(series: Series, results: Sequence[Result], limit_s: float) -> Table:
    table = Table(title=f"{series.figure}: {series.title}", title_justify="left", header_style="bold")
    table.add_column("solver \\ " + series.axis)
    cases = list(dict.fromkeys(result.case for result in results))
    for case in cases:
        at = next(result for result in results if result.case == case)
        head = f"{at.position:,}" if not series.incremental else case.split(",")[0]
        table.add_column(f"{head}\n{at.arcs:,} arcs", justify="right")
    yardsticks = {r.case: r for r in results if r.solver == _YARDSTICK}
    for solver, mode in dict.fromkeys((result.solver, result.mode) for result in results):
        row: list[Text] = []
        for case in cases:
            found = [r for r in results if (r.case, r.solver, r.mode) == (case, solver, mode)]
            row.append(_cell(found[0], yardsticks.get(case), limit_s) if found else Text(""))
        table.add_row(f"{solver}, {mode}" if series.incremental else solver, *row)
    return table


def _cell(result: Result, yardstick: Result | None, limit_s: float) -> Text:
    if result.outcome is Outcome.OVER_TIME:
        return Text(f"> {limit_s:g} s", style="yellow")
    if result.median_s is None:
        return Text(str(result.outcome), style="dim" if result.outcome is Outcome.NOT_TRIED else "bold red")
    return Text(f"{time_text(result.median_s)}\n{ratio_text(result, yardstick, limit_s)}".rstrip())
