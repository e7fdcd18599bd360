"""Scheduling delay: over time as in ParSync's Figs. 5a, 6b and 7b, and its distribution."""

from __future__ import annotations

from matplotlib.figure import Figure

from experiments.figures import data, style
from experiments.run_directory import Run


def over_time(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            time, total = data.coarse(arm, "delay_us", data.end_us(run))
            _, count = data.coarse(arm, "committed", data.end_us(run))
            low, median, high = data.band(data.ratio(total, count))
            drawn |= bool((median > 0).any())
            axes.plot(time, median, label=arm.name, **style.line_style(arm.index))
            axes.fill_between(
                time, low, high, color=style.colour(arm.index), alpha=style.BAND_ALPHA, linewidth=0
            )
        style.duration_axis(axes, "y", log=drawn)
        style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel("Scheduling delay")
        style.legend(figure, axes)
    return figure if drawn else None


def distribution(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            value, share = arm.series["delay_value_us"], arm.series["delay_share"]
            if len(value):
                drawn = True
                axes.step(
                    value.clip(1),
                    share,
                    where="post",
                    label=arm.name,
                    **style.line_style(arm.index),
                )
        style.duration_axis(axes, "x", log=True)
        style.share_axis(axes)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("Scheduling delay")
        axes.set_ylabel("Tasks committed within")
        style.legend(figure, axes)
    return figure if drawn else None
