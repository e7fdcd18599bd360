"""Extra slots over one axis, a line for each of several settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter

from experiments.analysis.statistics import Interval
from experiments.figures import style

_NO_ANSWER = "no answer"


def draw(axis: str, lines: Mapping[str, Mapping[float, Interval]]) -> Figure:
    """S_extra, and its intervals over seeds. A cross at the top marks a value without an answer.

    Args:
        axis: The label of the axis.
        lines: By label: S_extra by the value of the axis; without estimate if there is no answer.
    """
    with style.drawing() as (figure, axes):
        figure.set_size_inches(2 * style.WIDTH_IN, style.HEIGHT_IN)  # it fills the width of a page
        for index, (label, found) in enumerate(lines.items()):
            _draw_line(axes, index, label, found)
        _mark_missing(axes, list(lines.values()))
        axes.margins(y=0.15)  # room for crosses
        axes.set_ylim(bottom=0)
        axes.set_xlabel(axis)
        axes.set_ylabel("Extra slots needed")
        _format(axes.xaxis)
        _format(axes.yaxis)
        entries = zip(*axes.get_legend_handles_labels(), strict=True)
        style.legend_of(figure, sorted(entries, key=lambda entry: entry[1] == _NO_ANSWER))
    return figure


def _draw_line(axes: Axes, index: int, label: str, found: Mapping[float, Interval]) -> None:
    known = {
        value: (one.estimate, one.low, one.high)
        for value, one in found.items()
        if one.estimate is not None
    }
    axes.errorbar(
        list(known),
        [middle for middle, _, _ in known.values()],
        [
            [0.0 if low is None else middle - low for middle, low, _ in known.values()],
            [0.0 if high is None else high - middle for middle, _, high in known.values()],
        ],
        marker=style.marker(index),
        ms=5,
        label=label,
        **style.line_style(index),
    )


def _mark_missing(axes: Axes, lines: Sequence[Mapping[float, Interval]]) -> None:
    label: str | None = _NO_ANSWER
    for index, found in enumerate(lines):
        missing = [value for value, one in found.items() if one.estimate is None]
        if missing:
            axes.plot(
                missing,
                [0.97 - 0.05 * index] * len(missing),  # several lines may have none at one value
                linestyle="none",
                marker="x",
                color=style.colour(index),
                transform=axes.get_xaxis_transform(),
                label=label,
            )
            label = None  # one entry of the legend


def _format(axis: Axis) -> None:
    """Thousands as k, and smaller numbers as they are."""
    large = max(map(abs, axis.get_view_interval())) >= 1000
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axis.set_major_formatter(EngFormatter(sep="") if large else plain)
