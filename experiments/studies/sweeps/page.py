"""The page of a sweep, sweep.html: one file that loads nothing, made from sweep.json; and its
plots: a figure against a parameter, a line for each arm, with intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation, Transform

from experiments.analysis.model_files import read_model, writing
from experiments.config.decision_basis import basis_text, basis_title
from experiments.config.price_settings import REGRET_OF_PRICED_ARMS
from experiments.config.toml_file import read_toml
from experiments.figures import style
from experiments.figures.style import is_drawable, label
from experiments.report.html import filled, save_page
from experiments.report.page import never_stop
from experiments.studies.sweeps.result import (
    SWEEP,
    ArmResult,
    Column,
    CombinationResult,
    SweepSummary,
    SweptParameter,
    columns,
)
from experiments.studies.sweeps.sweep_file import SWEEP_FILE, assignments, value_text
from experiments.studies.sweeps.wording import (
    basis_sentence,
    difference_texts,
    interval_text,
    until_sentence,
)
from experiments.toml_text import toml_text
from parsync.metrics.kinds.regret import RegretMeans
from parsync.metrics.quantity import Quantity, Unit

PAGE = "sweep.html"
OPEN_ROWS = 40  # a table with more is folded


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot on the page, with what the figure means."""

    title: str
    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """Arms that may be compared with each other.

    Attributes:
        title: What their delays rest on.
        arms: Their names.
        baselines: Those that the others are compared with; none if there is one arm.
    """

    title: str
    arms: Sequence[str]
    baselines: Sequence[str]
    drawings: Sequence[Drawing]


def write_page(directory: Path, check: Callable[[], None] = never_stop) -> Path:
    """Draw the plots of a sweep and write its page.

    Args:
        directory: Of the sweep, with its sweep.json.
        check: Called before each plot; what it raises ends the drawing.

    Returns:
        The path of the page.

    Raises:
        AgoraError: There is no sweep, or something cannot be written.
    """
    summary = read_model(directory / SWEEP, SweepSummary)
    figures, path = directory / "figures", directory / PAGE
    with writing(path):
        figures.mkdir(exist_ok=True)
        sections = [
            _section(summary, number, arms, figures, check)
            for number, arms in enumerate(summary.sets())
        ]
        config = toml_text(read_toml(directory / SWEEP_FILE))
        text = render(summary, sections, config)
        save_page(path, text)
    return path


def shown_quantities(summary: SweepSummary) -> list[Quantity]:
    """The metrics, then the headline quantities that any combination has."""
    metrics = [summary.quantity(key) for key in summary.metrics]
    every = [*metrics, *(one for one in summary.quantities if one.headline and one not in metrics)]
    return [
        quantity
        for quantity in every
        if any(
            arm.figures[quantity.key].estimate is not None
            for one in summary.combinations
            for arm in one.arms
        )
    ]


def _section(
    summary: SweepSummary,
    number: int,
    arms: Sequence[str],
    figures: Path,
    check: Callable[[], None],
) -> Section:
    drawings = []
    every = panels(summary)
    parts = [every[at : at + MOST_PANELS] for at in range(0, len(every), MOST_PANELS)]
    for quantity in shown_quantities(summary):
        if quantity.key not in summary.metrics and not _differs(summary, quantity, arms):
            continue
        for place, part in enumerate(parts):
            check()
            figure = draw(summary, quantity, arms, part, by_browser=False)
            shown = draw(summary, quantity, arms, part, by_browser=True)
            if figure is None or shown is None:
                continue
            name = f"{quantity.key}-{number + 1}" + (f"-{place + 1}" if len(parts) > 1 else "")
            _, svg = style.save(figure, shown, figures, name)
            title = f"{quantity.label} against {_bottom(summary)}"
            drawings.append(Drawing(title, style.inline_svg(svg, title), quantity.description))
    rows = [arm for one in summary.combinations for arm in one.arms if arm.name in arms]
    baselines = list(dict.fromkeys(its.baseline for arm in rows for its in arm.comparisons))
    return Section(_title(rows), arms, baselines, drawings)


def _title(rows: Sequence[ArmResult]) -> str:
    """What the delays of these arms rest on."""
    titles = list(dict.fromkeys(basis_title(arm.basis) for arm in rows))
    if len({arm.basis.kind for arm in rows}) > 1:
        return "Clock classes that differ between combinations"
    return titles[0] if len(titles) == 1 else f"{titles[0]} to {basis_text(rows[-1].basis)}"


def _differs(summary: SweepSummary, quantity: Quantity, arms: Sequence[str]) -> bool:
    """Whether the medians of these arms are not all the same, such as 0 tasks not committed."""
    medians = {
        arm.figures[quantity.key].estimate
        for one in summary.combinations
        for arm in one.arms
        if arm.name in arms
    }
    return len(medians) > 1


def _bottom(summary: SweepSummary) -> str:
    axis = x_axis(summary)
    return next(one.label for one in summary.parameters if one.axis == axis)


def _prices_sentence(summary: SweepSummary) -> str:
    """What to keep in mind about regret, if arms with slot prices have any; "" otherwise."""
    has_regret = any(
        arm.prices and arm.figures[key].estimate is not None
        for one in summary.combinations
        for arm in one.arms
        for key in RegretMeans.model_fields
        if key in arm.figures
    )
    return REGRET_OF_PRICED_ARMS if has_regret else ""


def render(summary: SweepSummary, sections: Sequence[Section], config: str) -> str:
    """The page's text."""
    by_key = {one.key: one for one in summary.quantities}
    dictionary: list[Column] = columns(summary.parameters, summary.quantities)

    def mean(key: str, arm: ArmResult) -> str:
        return interval_text(by_key[key], arm.figures[key])

    def differences(key: str, arm: ArmResult, several: bool) -> list[str]:
        return difference_texts(by_key[key], arm, several)

    return filled(
        "sweep.html.j2",
        summary=summary,
        sections=sections,
        quantities=shown_quantities(summary),
        dictionary=dictionary,
        config=config,
        basis=basis_sentence(summary),
        until=until_sentence(summary),
        prices=_prices_sentence(summary),
        open_rows=OPEN_ROWS,
        mean=mean,
        differences=differences,
        value_text=value_text,
        place_of=summary.arms.index,
    )


MOST_PANELS = 6  # of a figure, one below the other
PANEL_IN = 2.5
TITLE_LETTERS = 58  # of a line
ASIDE_IN = 0.04  # between arms of one value
LOGARITHMIC = 20  # largest over smallest value of an axis, from which on it is logarithmic
MOST_TICKS = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """The combinations that differ in the axis only, and what the others are set to."""

    title: str
    combinations: Sequence[CombinationResult]


def x_axis(summary: SweepSummary) -> int:
    """The axis that plots have along the bottom: of those with the most values the first, numbers
    before others."""

    def worth(axis: int) -> tuple[bool, int]:
        values = _of_axis(summary, axis)[0].values
        return _numeric(values) and len(values) > 1, len(values)

    axes = sorted({one.axis for one in summary.parameters})
    return max(axes, key=worth)


def panels(summary: SweepSummary) -> list[Panel]:
    """A panel for each choice of the values that are not along the bottom."""
    axis = x_axis(summary)
    rest = [place for place, one in enumerate(summary.parameters) if one.axis != axis]
    labels = [summary.parameters[place].label for place in rest]

    def others(one: CombinationResult) -> str:
        return assignments(labels, [one.values[place] for place in rest])

    order = dict.fromkeys(map(others, summary.combinations))
    by_title = {
        title: list(group)
        for title, group in groupby(
            sorted(summary.combinations, key=lambda one: list(order).index(others(one))), others
        )
    }
    return [Panel(title, by_title[title]) for title in order]


def draw(
    summary: SweepSummary,
    quantity: Quantity,
    arms: Sequence[str],
    shown: Sequence[Panel],
    by_browser: bool,
) -> Figure | None:
    """Draw a quantity of some arms, a panel below the other on equal axes; None if no combination
    has it.

    Args:
        by_browser: A browser draws the names, which has more letters than matplotlib.
    """
    place = next(p for p, one in enumerate(summary.parameters) if one.axis == x_axis(summary))
    heights: list[float] = []
    arms = [name for name in summary.arms if name in arms]
    with style.drawing(len(shown), 1, 0.9 + PANEL_IN * len(shown)) as (figure, grid):
        every = [grid] if len(shown) == 1 else list(grid)
        for axes, panel in zip(every, shown, strict=True):
            heights += _draw_panel(axes, summary, quantity, arms, panel, place, by_browser)
            if panel.title:
                axes.set_title("\n".join(wrap(panel.title, TITLE_LETTERS)[:3]), fontsize=8.5)
            axes.set_ylabel(quantity.label)
        style.equal_y(every)
        for axes in every:
            _scale_y(axes, quantity, heights)
        if _numeric(summary.parameters[place].values):
            left, right = zip(*(axes.get_xlim() for axes in every), strict=True)
            for axes in every:
                axes.set_xlim(min(left), max(right))
        together = _of_axis(summary, x_axis(summary))
        names = together[0].label + "".join(f" (with {one.label})" for one in together[1:])
        every[-1].set_xlabel(names)
        style.legend(figure, *every)
    return figure if heights else None


def _draw_panel(
    axes: Axes,
    summary: SweepSummary,
    quantity: Quantity,
    arms: Sequence[str],
    panel: Panel,
    place: int,
    by_browser: bool,
) -> list[float]:
    """Draw the lines of a panel. Returns the heights of their points."""
    values = [one.values[place] for one in panel.combinations]
    numeric = _numeric(summary.parameters[place].values)
    x = [float(value) if numeric else float(at) for at, value in enumerate(values)]
    heights: list[float] = []
    for name in arms:
        index = summary.arms.index(name)
        intervals = [
            next(arm for arm in one.arms if arm.name == name).figures[quantity.key]
            for one in panel.combinations
        ]
        points = [
            (at, one.estimate, one.low, one.high)
            for at, one in zip(x, intervals, strict=True)
            if one.estimate is not None
        ]
        if not points:
            continue
        points.sort(key=lambda point: point[0])
        middles = [point[1] for point in points]
        heights += middles
        below = [0.0 if low is None else middle - low for _, middle, low, _ in points]
        above = [0.0 if high is None else high - middle for _, middle, _, high in points]
        shown = name if by_browser or is_drawable(name) else f"arm {index + 1}"
        axes.errorbar(
            [point[0] for point in points],
            middles,
            yerr=[below, above],
            label=label(shown),
            marker=style.marker(index),
            markersize=4,
            capsize=2.5,
            elinewidth=1.0,
            transform=_beside(axes, arms.index(name) - (len(arms) - 1) / 2),
            **style.line_style(index),
        )
        # What is moved aside does not count for the axes' limits.
        for at, middle, low, high in points:
            ends = (middle if low is None else low, middle if high is None else high)
            axes.update_datalim([(at, end) for end in ends])
    axes.autoscale_view()
    if numeric:
        _scale_x(axes, x)
    else:
        axes.set_xticks(x, [label(value_text(value)) for value in values])
    return heights


def _beside(axes: Axes, place: float) -> Transform:
    """The axes' coordinates moved to the side, so that the intervals of arms do not hide each
    other."""
    figure = axes.get_figure()
    assert figure is not None
    return axes.transData + ScaledTranslation(place * ASIDE_IN, 0, figure.dpi_scale_trans)


def _scale_x(axes: Axes, x: Sequence[float]) -> None:
    """Ticks at the values, if they are few."""
    if min(x) > 0 and max(x) > LOGARITHMIC * min(x):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    if len(set(x)) <= MOST_TICKS:
        axes.set_xticks(sorted(set(x)))
    axes.xaxis.set_major_formatter(
        style.TickLabels(lambda value, digits: f"{value:.{digits}g}", digits=6)
    )


def _scale_y(axes: Axes, quantity: Quantity, heights: Sequence[float]) -> None:
    """Durations that differ by much are on a logarithmic axis. Others do not go below 0 because of
    an interval."""
    smallest, largest = min(heights, default=0.0), max(heights, default=0.0)
    if quantity.unit is Unit.DURATION and largest > LOGARITHMIC * smallest > 0:
        if axes.get_ylim()[0] <= 0:
            axes.set_ylim(bottom=smallest / 3)
        style.duration_axis(axes, "y", log=True)
        return
    if axes.get_ylim()[0] < 0 <= smallest:
        axes.set_ylim(bottom=0)
    if quantity.unit is Unit.SHARE:
        if max(heights, default=2.0) <= 1 < axes.get_ylim()[1]:
            axes.set_ylim(top=1.02)
        style.share_axis(axes)
        return
    if quantity.unit is Unit.DURATION:
        style.duration_axis(axes, "y", log=False)
        return
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(style.TickLabels(quantity.text_of_digits))


def _of_axis(summary: SweepSummary, axis: int) -> list[SweptParameter]:
    return [one for one in summary.parameters if one.axis == axis]


def _numeric(values: Sequence[object]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
