"""The forms of plots that several figures have.

Lines over a parameter, one panel beside another, as in Omega's figures: medians over the seeds. A
ring in place of a filled mark is a lower bound: jobs were still waiting at the end of the run.
Error bars are the median absolute deviation of the daily values.

Lines over time, as in Figs. 5 to 16 of ParSync: medians among schedulers with a band from the 10th
to the 90th percentile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from experiments.analysis.statistics import median_interval
from experiments.analysis.summary_model import Phase, SeedFigures
from experiments.figures import style
from experiments.figures.drawings import Floats, band, ratio
from experiments.papers.chapter import Results, Series
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


# Lines over time

BIN_S = 1.0
_WIDE_IN, _PANEL_IN = 9.2, 3.0
_BANDS_MAX = 5  # more of them hide the lines
_NONE: Mapping[str, str] = {}

Lines = Callable[[Series, float], tuple[Floats, Floats]]  # times in s, values [schedulers, bins]


def over_time(
    results: Results,
    labels: Sequence[str],
    panels: Sequence[str],
    beside: Mapping[str, str] = _NONE,
) -> Figure:
    """Several arms side by side in panels.

    Args:
        labels: Of the runs to draw.
        panels: Keys of PANELS.
        beside: Of some of these runs another one, which is drawn as a thin dotted line.
    """
    with style.drawing(rows=1, columns=len(panels)) as (figure, made):
        figure.set_size_inches(_WIDE_IN, _PANEL_IN + 0.6)
        row = np.atleast_1d(made)
        for axes, key in zip(row, panels, strict=True):
            values, title, finish = PANELS[key]
            for index, label in enumerate(labels):
                time, of_schedulers = values(results.series[label], _end_s(results))
                _median(axes, index, label, time, of_schedulers, len(labels) <= _BANDS_MAX)
                if label in beside:
                    _dotted(axes, index, *values(results.series[beside[label]], _end_s(results)))
            _finish(axes, results, title, finish)
        style.legend(figure, row[0])
    return figure


def in_detail(results: Results, label: str, beside: str | None = None) -> Figure:
    """One arm in four panels: throughput with utilisation, delay, conflicts, quality.

    Besides the median scheduler, a thin line shows all schedulers together.

    Args:
        label: Of the run.
        beside: Of another run, which is drawn as a thin dotted line.
    """
    end_s = _end_s(results)
    series = results.series[label]
    with style.drawing(rows=2, columns=2) as (figure, made):
        figure.set_size_inches(_WIDE_IN, 2 * _PANEL_IN + 0.4)
        for axes, key in zip(made.flat, ("throughput", "delay", "conflicts", "share"), strict=True):
            values, title, finish = PANELS[key]
            _median(axes, 0, "median scheduler (band: 10 to 90 %)", *values(series, end_s), True)
            _together(axes, values, series, end_s, finish is _counts)
            if beside is not None:
                _dotted(axes, 0, *values(results.series[beside], end_s))
            _finish(axes, results, title, finish)
        used = series["cell_used_permille"].astype(np.float64) / 1000
        utilisation_beside(made.flat[0], series["cell_at_us"].astype(np.float64) / 1e6, used)
        _rate(made.flat[2], series, end_s)
        style.legend(figure, made.flat[0])
    return figure


def utilisation_beside(axes: Axes, time_s: Floats, share: Floats) -> None:
    """The use of the cell as a thick dashed curve on an axis of its own, as in the paper."""
    beside = _axis_beside(axes, time_s, share, "Utilisation (dashed)", 1.8)
    beside.set_ylim(0, 1.02)


def throughput(series: Series, end_s: float) -> tuple[Floats, Floats]:
    """Tasks committed per second, of each scheduler."""
    time, counts = binned(series, "first_commits", end_s)
    return time, counts / BIN_S


def delay_us(series: Series, end_s: float) -> tuple[Floats, Floats]:
    """The mean delay of the tasks submitted in each second, of each scheduler."""
    time, total = binned(series, "delay_us", end_s)
    return time, ratio(total, binned(series, "committed", end_s)[1])


def conflicts(series: Series, end_s: float) -> tuple[Floats, Floats]:
    """Conflicts per second, of each scheduler."""
    time, counts = binned(series, "conflicts", end_s)
    return time, counts / BIN_S


def conflict_rate(series: Series, end_s: float) -> tuple[Floats, Floats]:
    """Conflicts as a share of claims, of each scheduler."""
    time, counts = binned(series, "conflicts", end_s)
    return time, ratio(counts, binned(series, "claims", end_s)[1])


def preferred_share(series: Series, end_s: float) -> tuple[Floats, Floats]:
    """Of the tasks submitted in each second that prefer machines, the share placed on one."""
    time, preferred = binned(series, "preferred", end_s)
    return time, ratio(preferred, binned(series, "submitted_prefers", end_s)[1])


def waiting(series: Series, end_s: float) -> tuple[Floats, Floats]:
    """Tasks submitted and not committed yet, of each scheduler."""
    # "committed" counts at the time of submission
    time, submitted = binned(series, "submitted", end_s)
    committed = binned(series, "first_commits", end_s)[1]
    return time, np.cumsum(submitted - committed, axis=1)


def binned(series: Series, name: str, end_s: float) -> tuple[Floats, Floats]:
    """A series summed over bins of a second, up to the end: the middle of each bin in s, and
    float64[schedulers, bins]."""
    counts = series[name]
    per_bin = max(1, round(BIN_S * 1e6 / int(series["bucket_us"][0])))
    bins = int(end_s / BIN_S)
    padded = np.zeros((counts.shape[0], bins * per_bin))
    used = min(counts.shape[1], bins * per_bin)
    padded[:, :used] = counts[:, :used]
    summed: Floats = padded.reshape(counts.shape[0], bins, per_bin).sum(axis=2)
    middle: Floats = (np.arange(bins, dtype=np.float64) + 0.5) * BIN_S
    return middle, summed


def _durations(axes: Axes) -> None:
    style.duration_axis(axes, "y", log=True)


def _seconds(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    style.duration_axis(axes, "y", log=False)


def _shares(axes: Axes) -> None:
    axes.set_ylim(0, 1.02)
    style.share_axis(axes)


def _counts(axes: Axes) -> None:
    axes.set_ylim(bottom=0)


# What a panel shows, its title, and its axis.
PANELS: dict[str, tuple[Lines, str, Callable[[Axes], None]]] = {
    "throughput": (throughput, "Throughput of a scheduler (tasks/s)", _counts),
    "delay": (delay_us, "Scheduling delay", _seconds),
    "log_delay": (delay_us, "Scheduling delay", _durations),
    "conflicts": (conflicts, "Conflicts of a scheduler per second", _counts),
    "share": (preferred_share, "Tasks on preferred machines", _shares),
    "waiting": (waiting, "Uncommitted tasks of a scheduler", _counts),
}


def _median(
    axes: Axes, index: int, name: str, time: Floats, values: Floats, has_band: bool
) -> None:
    low, median, high = band(values)
    axes.plot(time, median, label=name, **style.line_style(index))
    if has_band:
        axes.fill_between(
            time, low, high, color=style.colour(index), alpha=2 * style.BAND_ALPHA, linewidth=0
        )


def _dotted(axes: Axes, index: int, time: Floats, values: Floats) -> None:
    """The medians of a run beside that of the index-th line."""
    colour = style.colour(index)
    axes.plot(time, band(values)[1], color=colour, linestyle=":", linewidth=1.0)


def _together(axes: Axes, values: Lines, series: Series, end_s: float, are_counts: bool) -> None:
    """All schedulers as one: the mean over all tasks, or their total count as a mean of the
    schedulers, which has the same axis."""
    schedulers = len(series["submitted"])
    summed = {
        name: array.sum(axis=0, keepdims=True) if array.ndim == 2 else array
        for name, array in series.items()
    }
    time, total = values(summed, end_s)
    axes.plot(
        time,
        total[0] / (schedulers if are_counts else 1),
        color=style.colour(1),
        linewidth=1.0,
        label=f"all {schedulers} together (counts: total / {schedulers})",
    )


def _finish(axes: Axes, results: Results, title: str, finish: Callable[[Axes], None]) -> None:
    phases = [
        Phase(start_us=one.start_us, end_us=one.end_us, load_percent=one.load_percent)
        for one in results.first(results.runs[0].label).phases
    ]
    finish(axes)
    style.shade_phases(axes, phases, 0)
    style.time_axis(axes, _end_s(results) * 1e6)
    axes.set_ylabel(title)


def _rate(axes: Axes, series: Series, end_s: float) -> None:
    """The conflict rate as a dashed curve on an axis of its own."""
    time, rates = conflict_rate(series, end_s)
    _axis_beside(axes, time, band(rates)[1], "Share of claims (dashed)", 1.2).set_ylim(bottom=0)


def _axis_beside(axes: Axes, time: Floats, share: Floats, title: str, width: float) -> Axes:
    beside = axes.twinx()
    beside.plot(time, share, color=style.INK, linestyle="--", linewidth=width)
    beside.grid(visible=False)
    beside.set_ylabel(title)
    style.share_axis(beside)
    return beside


def _end_s(results: Results) -> float:
    end_us: int = results.first(results.runs[0].label).phases[-1].end_us
    return end_us / 1e6
