"""The map of a frontier: which architecture dominates most at each load and synchronisation gap."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation, Transform

from experiments.analysis.frontier_model import FrontierSummary
from experiments.figures import style
from experiments.figures.frontier import architecture_label
from experiments.studies.frontiers.wording import (
    area_text,
    best_of_condition,
    conditions_by_load,
    gap_text,
    load_text,
)

CERTAIN_ALPHA, OPEN_ALPHA = 0.45, 0.12  # ink stays readable on them, on light and dark pages
ROW_IN, AROUND_IN = 0.62, 1.3
ROW_CHARACTERS = 48  # of the names in all cells of a row together
MOST_LINES = 2  # of a name
MOST_COLUMNS, MOST_ROWS = 10, 20  # of a map that can be read


def draw_map(
    summary: FrontierSummary, members: Sequence[int], pair: tuple[str, str]
) -> Figure | None:
    """A row for each load and a column for each gap. A cell has the colour and the mark of the
    architecture with the largest dominated area, its name where there is room, and that area. It is
    pale and dashed where the architecture is not certainly ahead.

    Args:
        summary: The frontier.
        members: Architectures that may be ranked beside each other.
        pair: The delay and the quality that span the area.

    Returns:
        The figure; None if there is one condition, or more than can be read.
    """
    rows = conditions_by_load(summary)
    if len(summary.conditions) < 2 or len(rows) > MOST_ROWS or len(rows[0]) > MOST_COLUMNS:
        return None
    found: set[int] = set()
    with style.drawing(height_in=AROUND_IN + ROW_IN * len(rows)) as (figure, axes):
        for y, row in enumerate(rows):
            for x, condition in enumerate(row):
                best = best_of_condition(summary, condition, members, pair)
                if best is None or best.best is None:
                    _write(axes, x, y, "nobody")
                    continue
                name = architecture_label(summary, best.best)
                area = area_text(summary.area_of(best.best, condition, *pair))
                _fill(axes, x, y, best.best, certain=not best.tied)
                lines = _wrapped(name, ROW_CHARACTERS // len(row))
                _write(axes, x, y, "\n".join([*lines, area]))
                _mark(axes, x, y, best.best)
                found.add(best.best)
        _finish(axes, summary, rows)
        style.legend_of(
            figure,
            [(_handle(index), architecture_label(summary, index)) for index in sorted(found)],
        )
    return figure


def _wrapped(name: str, width: int) -> list[str]:
    """The name in lines of a cell; none where it does not fit, and the mark tells who it is."""
    lines = textwrap.wrap(name, max(1, width), break_long_words=False)
    fits = len(lines) <= MOST_LINES and all(len(line) <= width for line in lines)
    return lines if fits else []


def _fill(axes: Axes, x: int, y: int, index: int, certain: bool) -> None:
    colour = style.colour(index)
    alpha = CERTAIN_ALPHA if certain else OPEN_ALPHA
    corner, width, height = (x - 0.47, y - 0.46), 0.94, 0.92
    axes.add_patch(Rectangle(corner, width, height, color=colour, alpha=alpha, linewidth=0))
    outline = "-" if certain else (0, (3, 2))
    axes.add_patch(
        Rectangle(corner, width, height, fill=False, edgecolor=colour, linestyle=outline)
    )


def _write(axes: Axes, x: int, y: int, text: str) -> None:
    axes.text(x, y, text, ha="center", va="center", fontsize=9, linespacing=1.15)


def _mark(axes: Axes, x: int, y: int, index: int) -> None:
    """In the upper left corner of a cell, at the same distance from its sides in every map."""
    axes.plot(
        x - 0.47,
        y - 0.46,
        transform=axes.transData + _offset(axes),
        linestyle="none",
        marker=style.marker(index),
        markersize=4,
        color=style.colour(index),
    )


def _finish(axes: Axes, summary: FrontierSummary, rows: Sequence[Sequence[int]]) -> None:
    first = [summary.conditions[place] for place in rows[0]]
    axes.set_xlim(-0.5, len(first) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(first)), [gap_text(one) for one in first])
    loads = [load_text(summary.conditions[row[0]]).removeprefix("load ") for row in rows]
    axes.set_yticks(range(len(rows)), loads)
    axes.set_ylabel("Load" if any(loads) else "")
    axes.tick_params(length=0)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _offset(axes: Axes) -> Transform:
    """A shift by some points to the right and down."""
    figure = axes.get_figure()
    assert figure is not None, "drawn axes have a figure"
    return ScaledTranslation(6 / 72, -6 / 72, figure.dpi_scale_trans)


def _handle(index: int) -> Line2D:
    return Line2D([], [], linestyle="none", marker=style.marker(index), color=style.colour(index))
