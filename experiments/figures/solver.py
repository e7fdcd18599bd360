"""The time that the rounds of flow schedulers take."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from experiments.analysis.run_directory import Run
from experiments.figures import data, style


def per_round(run: Run) -> Figure | None:
    shown = data.panels(run, lambda arm: len(data.sampled(arm, "rounds", "solve_us")[0]) > 0)
    if not shown:
        return None
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                time, solve_us = data.sampled(arm, "rounds", "solve_us")
                axes.plot(
                    time,
                    solve_us.clip(1),
                    linestyle="none",
                    marker=".",
                    markersize=3,
                    alpha=0.35,
                    markeredgewidth=0,
                    color=style.colour(arm.index),
                )
                middle, median = _median(time, solve_us.clip(1), data.end_us(run) / 1e6)
                line = style.marked_line(arm.index, len(middle))
                axes.plot(middle, median, label=arm.name, **line)
        for axes in panels:
            style.duration_axis(axes, "y", log=True)
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
        style.label_panels(panels, style.TIME, "Solver time per round")
        style.legend(figure, *panels)
    return figure


def _median(time: data.Floats, value: data.Floats, end_s: float) -> tuple[data.Floats, data.Floats]:
    """Median of the rounds in each of a few steps of time."""
    edges = np.linspace(0, max(end_s, float(time[-1])), 21)
    step = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, 19)
    filled = np.unique(step)
    return ((edges[:-1] + edges[1:]) / 2)[filled], np.array(
        [np.median(value[step == s]) for s in filled]
    )
