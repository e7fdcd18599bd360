"""Lines over a parameter, one panel beside another: the form of Omega's figures.

Lines are medians over the seeds. A ring in place of a filled mark is a lower bound: jobs were still
waiting at the end of the run. Error bars are the median absolute deviation of the daily values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from experiments.analysis.statistics import median_interval
from experiments.analysis.summary_model import SeedFigures
from experiments.figures import style
from experiments.papers.figure import Results
from experiments.papers.statistics import Points, Reader, over

_SIZE_IN = (9.6, 3.9)

Axis = Callable[[Axes], None]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a panel.

    Attributes:
        name: In the legend.
        points: The parameter of each run and its label.
        read: What is drawn of a run. A list has a reader for each point.
        deviation: The length of the error bars; None for none.
        is_bound: Whether what is drawn is a lower bound.
        look: The place of its colour and dashes.
        dotted: A line to compare with, without marks.
    """

    name: str
    points: Points
    read: Reader | Sequence[Reader]
    look: int
    deviation: Reader | None = None
    is_bound: Callable[[SeedFigures], bool] | None = None
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a figure.

    Attributes:
        x_axis, y_axis: Finish the axes when all is drawn.
        level: A horizontal line, such as the SLO; None for none.
        level_name: Beside it.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    x_axis: Axis
    y_axis: Axis
    level: float | None = None
    level_name: str = ""


def draw(results: Results, panels: Sequence[Panel], *, same_y: bool = False) -> Figure:
    """Panels side by side with one legend.

    Args:
        same_y: All panels have the same range of y.
    """
    with style.drawing(rows=1, columns=len(panels)) as (figure, made):
        figure.set_size_inches(*_SIZE_IN)
        entries: dict[str, Line2D] = {}
        every = list(np.atleast_1d(made))
        for axes, panel in zip(every, panels, strict=True):
            if same_y and axes is not every[0]:
                axes.sharey(every[0])
            for line in panel.lines:
                above_zero = panel.y_axis in (durations_y, logarithmic_y)
                drawn = _line(axes, results, line, above_zero)
                entries.setdefault(line.name, drawn)
            if panel.level is not None:
                _level(axes, panel.level, panel.level_name)
            axes.set_title(panel.title)
            axes.set_xlabel(panel.x_label)
            axes.set_ylabel(panel.y_label)
        for axes, panel in zip(every, panels, strict=True):
            panel.x_axis(axes)
            panel.y_axis(axes)
        style.legend_of(figure, [(handle, name) for name, handle in entries.items()])
    return figure


def durations_x(axes: Axes) -> None:
    """The x axis is in microseconds, logarithmic, with a tick every two decades."""
    style.duration_axis(axes, "x", log=True)
    axes.xaxis.set_major_locator(LogLocator(base=100))
    axes.xaxis.set_minor_locator(LogLocator())


def durations_y(axes: Axes) -> None:
    """The y axis is in microseconds, logarithmic."""
    style.duration_axis(axes, "y", log=True)


def logarithmic_y(axes: Axes) -> None:
    """The y axis is a plain number, logarithmic."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def times_x(values: Sequence[float]) -> Axis:
    """The x axis is how many times as much; it has a tick at each value."""

    def finish(axes: Axes) -> None:
        axes.xaxis.set_major_locator(FixedLocator(list(values)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} x"))
        axes.xaxis.set_minor_locator(NullLocator())

    return finish


def from_zero_x(axes: Axes) -> None:
    """The x axis is a plain number from 0 on."""
    axes.set_xlim(left=0)


def shares_y(axes: Axes) -> None:
    """The y axis is a share of the time."""
    axes.set_ylim(0, 1.04)
    style.share_axis(axes)


def from_zero_y(axes: Axes) -> None:
    """The y axis is a plain number from 0 on."""
    axes.set_ylim(bottom=0)


def _line(axes: Axes, results: Results, line: Line, above_zero: bool) -> Line2D:
    """Draw a line; return what stands for it in the legend.

    Args:
        above_zero: Leave out points at zero, which a logarithmic axis does not have.
    """
    readers = [line.read] * len(line.points) if callable(line.read) else list(line.read)
    found = []
    for (x, label), read in zip(line.points, readers, strict=True):
        y = median_interval([read(run) for run in results.of(label)]).estimate
        if y is not None and not (above_zero and y <= 0):
            found.append((x, y, label))
    look = {**style.line_style(line.look), **({"linestyle": ":"} if line.dotted else {})}
    (handle,) = axes.plot([x for x, _, _ in found], [y for _, y, _ in found], **look)
    if line.dotted:
        return handle
    for x, y, label in found:
        _mark(axes, results, line, x, y, label)
    return handle


def _mark(axes: Axes, results: Results, line: Line, x: float, y: float, label: str) -> None:
    colour = style.colour(line.look)
    runs = results.of(label)
    if line.deviation is not None:
        length = over(np.mean, [line.deviation(run) for run in runs])
        if length is not None:
            axes.errorbar(x, y, yerr=length, color=colour, capsize=2.5, linewidth=1)
    bound = line.is_bound is not None and any(map(line.is_bound, runs))
    axes.plot(
        x,
        y,
        style.marker(line.look),
        markerfacecolor=style.PAPER if bound else colour,
        markeredgecolor=colour,
        markersize=4.5,
    )


def _level(axes: Axes, level: float, name: str) -> None:
    axes.axhline(level, color=style.INK, linewidth=0.9, linestyle=(0, (2, 2)))
    axes.annotate(
        name,
        (0.02, level),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        textcoords="offset points",
        va="bottom",
        fontsize=8,
    )
