"""The page of a frontier, frontier.html: one file that loads nothing; and its map: which
architecture dominates most at each load and synchronisation gap.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation, Transform

from experiments.analysis.frontier_model import FrontierPoint, FrontierSummary, pair_key
from experiments.analysis.statistics import interval_in_words
from experiments.figures import style
from experiments.figures.frontier import architecture_label, draw_condition
from experiments.report.html import filled, save_page
from experiments.studies.frontiers.wording import (
    answers,
    area_text,
    best_of_condition,
    bounds_text,
    box_text,
    condition_text,
    conditions_by_load,
    gap_text,
    limits_us,
    load_text,
    not_certain_text,
    pair_text,
    pairs_of,
    sets_of,
    spread_text,
    within,
)
from experiments.toml_text import toml_text
from parsync.metrics.quantity import duration, from_to, share
from shared_state.errors import AgoraError

PAGE = "frontier.html"
# The figures drawn for each condition, if they are there: (delay, quality).
_DRAWN = (("delay_mean_us", "preferred_share"), ("delay_p99_us", "cost_mean"))


@dataclass(frozen=True, slots=True)
class _Drawing:
    name: str
    title: str
    svg: str


# By the indices of the architectures, and the delay and the quality.
_Plots = dict[tuple[tuple[int, ...], tuple[str, str]], _Drawing]


@dataclass(frozen=True, slots=True)
class _Cell:
    """Of the map.

    Attributes:
        text: Who is best.
        area: Its dominated area.
        index: Of the architecture, for its colour; None: nobody.
        certain: Whether nobody else may be as good.
    """

    text: str
    area: str
    index: int | None
    certain: bool


@dataclass(frozen=True, slots=True)
class _Map:
    """Who is best where, for a set of architectures and a pair of figures: a row for each load, a
    column for each gap; and the same as a plot, None if it would be too large."""

    title: str
    pair: str
    columns: list[str]
    rows: list[tuple[str, list[_Cell]]]
    plot: _Drawing | None


def write_frontier_page(
    directory: Path, summary: FrontierSummary, config: dict[str, object], check: Callable[[], None]
) -> Path:
    """Draw the figures of a frontier and write its page.

    Args:
        directory: Of the frontier.
        summary: What to show.
        config: The resolved configuration, shown at the end.
        check: Called before each figure; what it raises ends the drawing.

    Returns:
        The path of frontier.html.

    Raises:
        AgoraError: Something cannot be written.
    """
    figures, path = directory / "figures", directory / PAGE
    try:
        figures.mkdir(exist_ok=True)
        drawings = _draw(summary, figures, check)
        text = _render(summary, drawings, _draw_maps(summary, figures, check), config)
        save_page(path, text)
    except OSError as error:
        place = error.filename2 or error.filename or path
        raise AgoraError(f"{place}: cannot write the page: {error.strerror}") from error
    return path


def _draw(summary: FrontierSummary, folder: Path, check: Callable[[], None]) -> list[_Drawing]:
    drawings = []
    for place, condition in enumerate(summary.conditions):
        for number, (title, members) in enumerate(sets_of(summary)):
            for delay, quality in _DRAWN:
                check()
                figure = draw_condition(summary, place, members, delay, quality)
                if figure is None:
                    continue
                name = f"frontier-{place + 1}-{number + 1}-{delay.removesuffix('_us')}"
                where = "" if len(summary.conditions) == 1 else f", {condition_text(condition)}"
                text = f"{title}{where}: {pair_text(summary, delay, quality)}"
                _, svg = style.save(figure, figure, folder, name)
                drawings.append(_Drawing(name, text, style.inline_svg(svg, _plain(text))))
    return drawings


def _draw_maps(summary: FrontierSummary, folder: Path, check: Callable[[], None]) -> _Plots:
    """The map of each set and pair of figures, as far as it can be drawn."""
    plots = {}
    for number, (title, members) in enumerate(sets_of(summary)):
        for delay, quality in pairs_of(summary) if len(members) > 1 else []:
            check()
            figure = draw_map(summary, members, (delay, quality))
            if figure is None:
                continue
            name = f"map-{number + 1}-{delay.removesuffix('_us')}-{quality}"
            text = f"Who is best where. {title}: {pair_text(summary, delay, quality)}"
            _, svg = style.save(figure, figure, folder, name)
            svg_text = style.inline_svg(svg, _plain(text))
            plots[tuple(members), (delay, quality)] = _Drawing(name, text, svg_text)
    return plots


def _plain(text: str) -> str:
    """Text that may stand in an attribute."""
    return text.replace("&", "and").replace('"', "'").replace("<", "(").replace(">", ")")


def _render(
    summary: FrontierSummary,
    drawings: list[_Drawing],
    plots: _Plots,
    config: dict[str, object],
) -> str:
    return filled(
        "frontier.html.j2",
        summary=summary,
        drawings=drawings,
        answers=answers(summary),
        bounds=bounds_text(summary),
        maps=_maps(summary, plots),
        pairs=pairs_of(summary),
        sets=sets_of(summary),
        pair_text=lambda delay, quality: pair_text(summary, delay, quality),
        area_text=area_text,
        spread_text=spread_text,
        best_of=lambda place, members, pair: best_of_condition(summary, place, members, pair),
        box=box_text(summary),
        condition_text=condition_text,
        points_of=summary.points_of,
        limits=limits_us(summary),
        within=lambda index, place, pair, limit: within(summary, index, place, pair, limit),
        duration=duration,
        figure=lambda point, key: _figure(summary, point, key),
        on_frontier=_on_frontier,
        interval=interval_in_words(len(summary.seeds)),
        config=toml_text(config),
    )


def _figure(summary: FrontierSummary, point: FrontierPoint, key: str) -> tuple[str, str]:
    """A figure of a point and its interval, as text."""
    interval = point.figures.get(key)
    quantity = summary.quantity(key)
    if interval is None:
        return "–", ""
    text = quantity.text(interval.estimate, key in point.bounds)
    if interval.spread is None or key in point.bounds:
        return text, ""
    low, high = interval.spread
    return text, from_to(quantity.text(low), quantity.text(high))


def _on_frontier(point: FrontierPoint, delay: str, quality: str) -> bool:
    return point.not_dominated.get(pair_key(delay, quality), False)


def _maps(summary: FrontierSummary, plots: _Plots) -> list[_Map]:
    """One for each set of two or more architectures and pair of figures; none for a single
    condition."""
    if len(summary.conditions) < 2:
        return []
    rows = conditions_by_load(summary)
    found = []
    for title, members in sets_of(summary):
        if len(members) < 2:
            continue
        for pair in pairs_of(summary):
            cells = [[_cell(summary, place, members, pair) for place in row] for row in rows]
            loads = [load_text(summary.conditions[row[0]]) for row in rows]
            found.append(
                _Map(
                    title,
                    pair_text(summary, *pair),
                    [gap_text(summary.conditions[place]) or "the arms' own G" for place in rows[0]],
                    [
                        (load or "the workload as it is", row)
                        for load, row in zip(loads, cells, strict=True)
                    ],
                    plots.get((tuple(members), pair)),
                )
            )
    return found


def _cell(
    summary: FrontierSummary, condition: int, members: list[int], pair: tuple[str, str]
) -> _Cell:
    best = best_of_condition(summary, condition, members, pair)
    if best is None or best.best is None:
        return _Cell("nobody", "", None, False)
    text = summary.architectures[best.best].name
    area = summary.area_of(best.best, condition, *pair)
    value = area.area.estimate if area is not None and area.area.estimate is not None else 0.0
    beside = f"{share(value)} of the box"
    if best.tied:
        beside += f"; {not_certain_text(summary, best)}"
    return _Cell(text, beside, best.best, not best.tied)


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
