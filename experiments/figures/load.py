"""Load and how it is borne: throughput (ParSync's Figs. 6a and 7a), utilisation, tasks waiting (its
Fig. 9)."""

from __future__ import annotations

from matplotlib.figure import Figure

from experiments.analysis.run_directory import Run
from experiments.figures import data, style


def throughput(run: Run) -> Figure | None:
    shown = data.panels(run, lambda arm: bool(arm.series["first_commits"].any()))
    if not shown:
        return None
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            time, offered = data.rate(panel.arms[0], "submitted", data.end_us(run))
            axes.step(
                time,
                offered.sum(axis=0),
                where="mid",
                color=style.INK,
                alpha=0.45,
                linewidth=3,
                label="submitted",
            )
            for arm in panel.arms:
                time, commits = data.rate(arm, "first_commits", data.end_us(run))
                line = style.marked_line(arm.index, len(time))
                axes.plot(time, commits.sum(axis=0), label=arm.name, **line)
        for axes in panels:
            axes.set_ylim(bottom=0)
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
            style.count_axis(axes)
        style.label_panels(panels, style.TIME, "Tasks committed (1/s)")
        style.legend(figure, *panels)
    return figure


def utilisation(run: Run) -> Figure | None:
    shown = data.panels(run, lambda arm: len(data.sampled(arm, "cell", "used_permille")[0]) > 0)
    if not shown:
        return None
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                time, permille = data.sampled(arm, "cell", "used_permille")
                line = style.marked_line(arm.index, len(time))
                axes.plot(time, permille / 1000, label=arm.name, **line)
        for axes in panels:
            style.share_axis(axes)
            axes.set_ylim(0, 1.02 if axes.get_ylim()[1] <= 1.05 else None)
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
        style.label_panels(panels, style.TIME, "Cell in use")
        style.legend(figure, *panels)
    return figure


def backlog(run: Run) -> Figure | None:
    shown = data.panels(run, lambda arm: len(data.sampled(arm, "agents", "queued")[0]) > 0)
    if not shown:
        return None
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                data.draw_band(axes, panel, arm, *data.sampled_by_agent(arm, "queued"))
        for axes in panels:
            axes.set_yscale("symlog", linthresh=10)
            axes.set_ylim(bottom=0)
            style.count_axis(axes)
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
        style.label_panels(panels, style.TIME, "Tasks waiting per scheduler")
        style.legend(figure, *panels)
    return figure
