"""Figures that metrics declare: the quotient of two series at each moment (delays as in ParSync's
Figs. 5a, 6b and 7b, conflicts as in its Figs. 6c and 7c, as a rate)."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.analysis.run_directory import Run
from experiments.figures import data, style
from parsync.metrics.metric import OverTime
from parsync.metrics.quantity import Unit


def draw(plot: OverTime, run: Run) -> Figure | None:
    """Draw a figure of a run; None where no arm has its series."""

    def quotient(arm: data.Arm) -> tuple[data.Floats, data.Floats]:
        time, part = data.coarse(arm, plot.part, data.end_us(run))
        _, whole = data.coarse(arm, plot.whole, data.end_us(run))
        return time, data.ratio(part, whole)

    shown = data.panels(run, lambda arm: _has_series(arm, plot))
    if not shown:
        return None
    known = [quotient(arm)[1] for panel in shown for arm in panel.arms]
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                data.draw_band(axes, panel, arm, *quotient(arm))
        for axes in panels:
            _scale(axes, plot, is_log=any(bool((values > 0).any()) for values in known))
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
        style.label_panels(panels, style.TIME, plot.axis)
        style.legend(figure, *panels)
    return figure


def _has_series(arm: data.Arm, plot: OverTime) -> bool:
    """Whether there is anything to draw: counts by agent, as a run's series.npz has them."""
    counts = [arm.series.get(name) for name in (plot.part, plot.whole)]
    agents = len(arm.series["group_of"])
    shapes = {None if count is None else count.shape for count in counts}
    shape = shapes.pop()
    if shapes or shape is None or len(shape) != 2 or shape[0] != agents:
        return False
    return bool(arm.series[plot.whole].any())


def _scale(axes: Axes, plot: OverTime, is_log: bool) -> None:
    if plot.unit is Unit.DURATION:
        style.duration_axis(axes, "y", log=is_log)
        return
    if plot.unit is Unit.SHARE:
        style.share_axis(axes)
    else:
        style.count_axis(axes)
    if plot.up_to_all:
        axes.set_ylim(0, 1.02)
    else:
        axes.set_ylim(bottom=0)
