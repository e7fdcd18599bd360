"""A frontier for the terminal: the dominated area of every architecture."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from experiments.analysis.frontier_model import FrontierSummary
from experiments.analysis.statistics import interval_in_words
from experiments.report.fitted_table import FittedTable
from experiments.report.terminal import short_range
from experiments.studies.frontiers.wording import (
    answers,
    area_text,
    best_of_condition,
    box_text,
    condition_text,
    pair_text,
    pairs_of,
    sets_of,
    spread_text,
)
from parsync.metrics.quantity import counted


def frontier_table(summary: FrontierSummary) -> Group:
    """A table for each set of architectures that may be ranked: a row for each, a column for each
    condition, or for each pair of figures if there is one condition."""
    pairs = pairs_of(summary)
    many = len(summary.conditions) > 1
    columns = [
        (place, pair)
        for place in range(len(summary.conditions))
        for pair in (pairs[:1] if many else pairs)
    ]
    what = f": {pair_text(summary, *pairs[0])}" if many and pairs else ""
    title = Text(
        f"Dominated area in per cent of the box{what}; median of "
        f"{counted(len(summary.seeds), 'paired seed')}, {interval_in_words(len(summary.seeds))}"
    )
    if summary.partial:
        title.append(f"\nPARTIAL: {summary.partial}")
    parts: list[RenderableType] = [title]
    for text, members in sets_of(summary):
        table = FittedTable(
            title=Text(text),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            min_width=60,
        )
        table.add_column("Architecture", min_width=12)
        for place, pair in columns:
            head = condition_text(summary.conditions[place]) if many else pair_text(summary, *pair)
            table.add_column(head, justify="right")
        for index in members:
            cells = []
            for place, pair in columns:
                area = summary.area_of(index, place, *pair)
                best = best_of_condition(summary, place, members, pair)
                is_best = best is not None and best.best == index
                is_tied = best is not None and index in best.tied
                style = "bold green" if is_best else "green" if is_tied else ""
                cell = Text(area_text(area) + (" ★" if is_best else ""), style=style, no_wrap=True)
                if spread := spread_text(area):
                    cell.append(f"\n{short_range(area_text(area), spread)}", style="dim")
                cells.append(cell)
            table.add_row(Text(summary.architectures[index].name), *cells)
        parts.append(table)
    legend = "★ largest area of its clock class, green: not certainly smaller."
    parts.append(Text(f"{legend} {box_text(summary)}.", style="dim italic"))
    parts += [Text(answer) for answer in answers(summary)]
    return Group(*parts)
