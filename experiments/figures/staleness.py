"""How old the partitions are in the schedulers' views."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from experiments.figures import data, style
from experiments.run_directory import Run


def by_partition(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            # None becomes NaN: not drawn
            mean = np.array(arm.figures.staleness.mean_us, float)
            drawn |= bool(np.isfinite(mean).any())
            axes.plot(
                np.arange(len(mean)),
                mean,
                label=arm.name,
                marker=style.marker(arm.index),
                markersize=4,
                **style.line_style(arm.index),
            )
        axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
        style.duration_axis(axes, "y", log=False)
        axes.set_xlabel("Partition")
        axes.set_ylabel("Age in the views, average")
        axes.xaxis.get_major_locator().set_params(integer=True)
        style.legend(figure, axes)
    return figure if drawn else None
