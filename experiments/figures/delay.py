"""Scheduling delay: over time as in ParSync's Figs. 5a, 6b and 7b, and its distribution."""

from __future__ import annotations

from matplotlib.figure import Figure

from experiments.figures import data, style
from experiments.run_directory import Run


def over_time(run: Run) -> Figure | None:
    def delay_us(arm: data.Arm) -> tuple[data.Floats, data.Floats]:
        time, total = data.coarse(arm, "delay_us", data.end_us(run))
        _, count = data.coarse(arm, "committed", data.end_us(run))
        return time, data.ratio(total, count)

    shown = data.panels(run, lambda arm: bool(arm.series["committed"].any()))
    if not shown:
        return None
    waits = any(bool((delay_us(arm)[1] > 0).any()) for panel in shown for arm in panel.arms)
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                data.draw_band(axes, panel, arm, *delay_us(arm))
        for axes in panels:
            style.duration_axis(axes, "y", log=waits)
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
        style.label_panels(panels, style.TIME, "Scheduling delay")
        style.legend(figure, *panels)
    return figure


def distribution(run: Run) -> Figure | None:
    shown = data.panels(run, lambda arm: len(arm.series["delay_value_us"]) > 0)
    if not shown:
        return None
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                value, share = arm.series["delay_value_us"], arm.series["delay_share"]
                axes.step(
                    value.clip(1),
                    share,
                    where="post",
                    label=arm.name,
                    **style.marked_line(arm.index, len(value)),
                )
        for axes in panels:
            style.duration_axis(axes, "x", log=True)
            style.share_axis(axes)
            axes.set_ylim(0, 1.02)
        style.label_panels(panels, "Scheduling delay", "Tasks committed within")
        style.legend(figure, *panels)
    return figure
