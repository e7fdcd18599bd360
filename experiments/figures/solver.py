"""The time that the rounds of flow schedulers take."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from experiments.figures import data, style
from experiments.run_directory import Run


def per_round(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            time, solve_us = data.sampled(arm, "rounds", "solve_us")
            if not len(time):
                continue
            drawn = True
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
            axes.plot(middle, median, label=arm.name, **style.line_style(arm.index))
        style.duration_axis(axes, "y", log=drawn)
        style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel("Solver time per round")
        style.legend(figure, axes)
    return figure if drawn else None


def _median(time: data.Floats, value: data.Floats, end_s: float) -> tuple[data.Floats, data.Floats]:
    """Median of the rounds in each of a few steps of time."""
    edges = np.linspace(0, max(end_s, float(time[-1])), 21)
    step = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, 19)
    filled = np.unique(step)
    return ((edges[:-1] + edges[1:]) / 2)[filled], np.array(
        [np.median(value[step == s]) for s in filled]
    )
