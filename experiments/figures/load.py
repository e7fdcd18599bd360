"""Load and how it is borne: throughput (ParSync's Figs. 6a and 7a), utilisation, tasks waiting (its
Fig. 9)."""

from __future__ import annotations

from matplotlib.figure import Figure

from experiments.figures import data, style
from experiments.run_directory import Run


def throughput(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            if arm.index == 0:
                time, offered = data.rate(arm, "submitted", data.end_us(run))
                axes.step(
                    time,
                    offered.sum(axis=0),
                    where="mid",
                    color=style.INK,
                    alpha=0.45,
                    linewidth=3,
                    label="submitted",
                )
            time, commits = data.rate(arm, "first_commits", data.end_us(run))
            drawn |= bool(commits.any())
            axes.plot(time, commits.sum(axis=0), label=arm.name, **style.line_style(arm.index))
        axes.set_ylim(bottom=0)
        style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
        style.time_axis(axes, data.end_us(run))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_ylabel("Tasks committed (1/s)")
        style.legend(figure, axes)
    return figure if drawn else None


def utilisation(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            time, permille = data.sampled(arm, "cell", "used_permille")
            drawn |= len(time) > 0
            axes.plot(time, permille / 1000, label=arm.name, **style.line_style(arm.index))
        style.share_axis(axes)
        axes.set_ylim(0, 1.02 if axes.get_ylim()[1] <= 1.05 else None)
        style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel("Cell in use")
        style.legend(figure, axes)
    return figure if drawn else None


def backlog(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            time, queued = data.sampled_by_agent(arm, "queued")
            if not len(time):
                continue
            drawn = True
            low, median, high = data.band(queued)
            axes.plot(time, median, label=arm.name, **style.line_style(arm.index))
            axes.fill_between(
                time, low, high, color=style.colour(arm.index), alpha=style.BAND_ALPHA, linewidth=0
            )
        axes.set_yscale("symlog", linthresh=10)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel("Tasks waiting per scheduler")
        style.legend(figure, axes)
    return figure if drawn else None
