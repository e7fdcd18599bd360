"""How old the partitions are in the schedulers' views."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.analysis.run_directory import Run
from experiments.figures import data, style


def by_partition(run: Run) -> Figure | None:
    def age_us(arm: data.Arm) -> data.Floats:
        return np.array(arm.figures.staleness.mean_us, float)  # None becomes NaN: not drawn

    shown = data.panels(run, lambda arm: bool(np.isfinite(age_us(arm)).any()))
    if not shown:
        return None
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                mean_us = age_us(arm)
                axes.plot(
                    np.arange(len(mean_us)),
                    mean_us,
                    label=arm.name,
                    marker=style.marker(arm.index),
                    markersize=4,
                    **style.line_style(arm.index),
                )
        panels[0].set_ylim(0, panels[0].get_ylim()[1] * 1.08)
        for axes in panels:
            style.duration_axis(axes, "y", log=False)
            axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        style.label_panels(panels, "Partition", "Age in the views, average")
        style.legend(figure, *panels)
    return figure
