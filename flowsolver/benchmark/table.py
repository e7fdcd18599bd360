"""The tables of a benchmark: the time of each solver on each graph, and how many times faster than
OR-tools it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from flowsolver.benchmark.cases import Series
from flowsolver.benchmark.results import BASELINE, Outcome, Result, explanation
from flowsolver.benchmark.run import time_text


def tables(series: Sequence[Series], results: Sequence[Result], limit_s: float) -> list[Group]:
    """A title and a table for each series that has results."""
    groups = []
    for each in series:
        mine = [result for result in results if result.figure == each.figure]
        if mine:
            what = explanation(mine, limit_s)
            groups.append(
                Group(
                    Text(f"{each.figure}: {each.title}", style="bold"),
                    _table(each, mine, limit_s),
                    Text(f"{what}\n" if what else "", style="dim"),
                )
            )
    return groups


def ratio_text(result: Result, baseline: Result | None, limit_s: float) -> str:
    """How many times faster than the baseline; a lower bound if the baseline was stopped at the
    limit.
    """
    if baseline is None or baseline is result or result.median_s is None:
        return ""
    if baseline.median_s is not None:
        return _times(baseline.median_s / result.median_s)
    return ">" + _times(limit_s / result.median_s) if baseline.outcome is Outcome.OVER_TIME else ""


def _times(ratio: float) -> str:
    return f"{ratio:.3g}x" if ratio < 100 else f"{ratio:,.0f}x"


def _table(series: Series, results: Sequence[Result], limit_s: float) -> Table:
    table = Table(header_style="bold")
    table.add_column(f"solver\n{series.axis}", no_wrap=True)
    cases = list(dict.fromkeys(result.case for result in results))
    labels = {case.title: case.label for case in series.cases}
    for case in cases:
        at = next(result for result in results if result.case == case)
        head = f"{at.position:,}" if series.ordered else labels[case]
        table.add_column(f"{head}\n{_arcs(at.arcs)}", justify="right", no_wrap=True)
    baselines = {r.case: r for r in results if r.solver == BASELINE}
    for solver, mode in dict.fromkeys((result.solver, result.mode) for result in results):
        row: list[Text] = []
        for case in cases:
            found = [r for r in results if (r.case, r.solver, r.mode) == (case, solver, mode)]
            row.append(_cell(found[0], baselines.get(case), limit_s) if found else Text(""))
        table.add_row(f"{solver}, {mode}" if series.incremental else solver, *row)
    return table


def _cell(result: Result, baseline: Result | None, limit_s: float) -> Text:
    if result.outcome is Outcome.OVER_TIME:
        return Text(f"> {limit_s:g} s", style="yellow")
    if result.median_s is None:
        return Text(
            str(result.outcome), style="dim" if result.outcome is Outcome.NOT_TRIED else "bold red"
        )
    return Text(f"{time_text(result.median_s)}\n{ratio_text(result, baseline, limit_s)}".rstrip())


def _arcs(count: int) -> str:
    return (
        f"{count} arcs"
        if count < 10_000
        else f"{count / 1000:.0f}k arcs"
        if count < 10**6
        else f"{count / 1e6:.2f}M arcs"
    )
