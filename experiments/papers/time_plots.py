"""Lines over time, as medians among schedulers with a band from the 10th to the 90th percentile:
the form of Figs. 5 to 16 of ParSync."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.analysis.summary_model import Phase
from experiments.figures import style
from experiments.figures.drawings import Floats, band, ratio
from experiments.papers.figure import Results, Series

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
                _line(axes, index, label, time, of_schedulers, len(labels) <= _BANDS_MAX)
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
            _line(axes, 0, "median scheduler (band: 10 to 90 %)", *values(series, end_s), True)
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


def _line(axes: Axes, index: int, name: str, time: Floats, values: Floats, has_band: bool) -> None:
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
