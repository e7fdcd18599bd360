"""The page of a frontier, frontier.html: one file that loads nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments.analysis.frontier_model import FrontierPoint, FrontierSummary, pair_key
from experiments.analysis.statistics import interval_in_words
from experiments.figures import style
from experiments.figures.frontier import draw_condition
from experiments.report.html import filled, save_page
from experiments.studies.frontiers.map import draw_map
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
