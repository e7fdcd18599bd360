"""Scheduling delay: over time as in ParSync's Figs. 5a, 6b and 7b, and its distribution."""

from __future__ import annotations

from matplotlib.figure import Figure

from experiments.analysis.run_directory import Run
from experiments.figures import data, style


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
