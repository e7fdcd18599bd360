"""A slot simulation over time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.figures import style
from experiments.studies.slot_series import delay_mean_s, score_mean
from parsync.model.slot_results import SlotResults
from parsync.model.slot_settings import SlotSettings


def draw(settings: SlotSettings, found: SlotResults) -> Figure:
    """Conflicts, delay, score and backlog of each group of schedulers, and the utilisation of the
    cell. Dotted lines separate the phases."""
    with style.drawing(rows=2, columns=2) as (figure, panels):
        figure.set_size_inches(2 * style.WIDTH_IN, 1.6 * style.HEIGHT_IN)
        conflicts, delay, score, backlog = panels.ravel()
        _lines(conflicts, "Conflicts per claim", found, _conflict_rate)
        _lines(delay, "Mean delay", found, _delay_mean_us)
        _lines(score, "Mean score of the slots", found, score_mean)
        _lines(backlog, "Backlog (tasks)", found, _backlog)
        for axes in (conflicts, delay, backlog):
            axes.set_ylim(bottom=0)
        style.share_axis(conflicts)
        style.duration_axis(delay, "y", log=False)
        _utilisation(backlog, found)
        for axes in panels.ravel():
            _separate_phases(axes, settings)
            style.time_axis(axes, float(found.end_ns[-1]) / 1e3)
        if len(settings.groups) > 1:
            style.legend(figure, conflicts)
    return figure


def _lines(
    axes: Axes,
    label: str,
    found: SlotResults,
    value_of: Callable[[SlotResults, slice, int], float | None],
) -> None:
    """A line for each group of schedulers, with gaps where there is no value."""
    bins, groups = found.commits.shape
    middle_s = (found.start_ns + found.end_ns) / 2e9
    for group in range(groups):
        values: NDArray[np.float64] = np.full(bins, np.nan)
        for at in range(bins):
            value = value_of(found, slice(at, at + 1), group)
            values[at] = np.nan if value is None else value
        axes.plot(middle_s, values, label=f"group {group}", **style.line_style(group))
    axes.set_ylabel(label)


def _conflict_rate(found: SlotResults, bins: slice, group: int) -> float | None:
    return found.conflicts_and_scores(bins, group).conflict_rate


def _delay_mean_us(found: SlotResults, bins: slice, group: int) -> float | None:
    mean_s = delay_mean_s(found, bins, group)
    return None if mean_s is None else mean_s * 1e6


def _backlog(found: SlotResults, bins: slice, group: int) -> float:
    return float(found.backlog[bins, group].sum())


def _utilisation(axes: Axes, found: SlotResults) -> None:
    beside = axes.twinx()
    middle_s = (found.start_ns + found.end_ns) / 2e9
    beside.plot(middle_s, found.utilisation(), color=style.INK, linestyle="--", linewidth=1.2)
    beside.set_ylim(0, 1.02)
    beside.grid(visible=False)
    beside.set_ylabel("Utilisation (dashed)")
    style.share_axis(beside)


def _separate_phases(axes: Axes, settings: SlotSettings) -> None:
    end_s = 0.0
    for phase in settings.phases:
        end_s += phase.duration_s
        axes.axvline(end_s, color=style.INK, linestyle=":", linewidth=0.8)
