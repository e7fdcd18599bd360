"""Placement quality: over time (ParSync's Figs. 5b, 6d and 7d), against the delay it costs, and regret."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from experiments.figures import data, style
from experiments.summary import Run


def over_time(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            time, hits = data.coarse(arm, "preferred", data.end_us(run))
            _, whole = data.coarse(arm, "submitted_prefers", data.end_us(run))
            width = min(hits.shape[1], whole.shape[1])
            low, median, high = data.band(data.ratio(hits[:, :width], whole[:, :width]))
            drawn |= bool(whole.any())
            axes.plot(time[:width], median, label=arm.name, **style.line_style(arm.index))
            axes.fill_between(
                time[:width], low, high, color=style.colour(arm.index), alpha=style.BAND_ALPHA, linewidth=0
            )
        style.share_axis(axes)
        axes.set_ylim(0, 1.02)
        style.shade_phases(axes, run.summary["workload"]["phases"], run.summary["settle_us"])
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel("On a preferred machine")
        style.legend(figure, axes)
    return figure if drawn else None


def trade_off(run: Run) -> Figure | None:
    """Mean delay against preferred share: this run filled, every paired seed a small dot, the seeds' mean with its interval."""
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            overall = arm.figures["overall"]
            marker = {"marker": style.MARKERS[arm.index % len(style.MARKERS)], "color": style.colour(arm.index)}
            for seed in arm.figures["seeds"]:
                x, y = seed["overall"].get("delay_mean_us"), seed["overall"].get("preferred_share")
                if x and y is not None:
                    axes.plot(x, y, linestyle="none", markersize=3, alpha=0.4, markeredgewidth=0, **marker)
            paired = run.summary["paired"]["arms"].get(arm.figures["slug"], {})
            delay, share = paired.get("delay_mean_us"), paired.get("preferred_share")
            if delay and share and delay["low"] is not None and share["low"] is not None and delay["mean"] > 0:
                # An interval that reaches 0 cannot be drawn on a logarithmic axis: it is cut at a tenth of the mean.
                below = delay["mean"] - max(delay["low"], delay["mean"] / 10)
                axes.errorbar(
                    delay["mean"],
                    share["mean"],
                    xerr=[[below], [delay["high"] - delay["mean"]]],
                    yerr=share["high"] - share["mean"],
                    linestyle="none",
                    capsize=2,
                    markersize=7,
                    label=arm.name,
                    **marker,
                )
                drawn = True
            elif overall["delay_mean_us"] and overall["preferred_share"] is not None:
                axes.plot(
                    overall["delay_mean_us"],
                    overall["preferred_share"],
                    linestyle="none",
                    markersize=8,
                    label=arm.name,
                    **marker,
                )
                drawn = True
        axes.margins(0.12)
        style.duration_axis(axes, "x", log=True)
        style.share_axis(axes)
        axes.set_xlabel("Mean scheduling delay  (left is better)")
        axes.set_ylabel("Preferred machine  (up is better)")
        style.legend(figure, axes)
    return figure if drawn else None


def decision_regret(run: Run) -> Figure | None:
    """Regret of sampled batches at the time of their commit."""
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            rows = arm.figures["regret"].get("decision", [])
            if not rows:
                continue
            drawn = True
            axes.plot(
                [row["at_us"] / 1e6 for row in rows],
                [row["regret"] for row in rows],
                linestyle="none",
                marker=style.MARKERS[arm.index % len(style.MARKERS)],
                markersize=4,
                alpha=0.75,
                color=style.colour(arm.index),
                label=arm.name,
            )
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        style.shade_phases(axes, run.summary["workload"]["phases"], run.summary["settle_us"])
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel("Cost above the batch's optimum")
        style.legend(figure, axes)
    return figure if drawn else None


def system_regret(run: Run) -> Figure | None:
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            rows = arm.figures["regret"].get("system", [])
            if not rows:
                continue
            drawn = True
            time = np.array([row["at_us"] for row in rows]) / 1e6
            axes.plot(time, [row["without_migration"] for row in rows], label=arm.name, **style.line_style(arm.index))
            if "with_migration" in rows[0]:
                axes.plot(
                    time,
                    [row["with_migration"] for row in rows],
                    color=style.colour(arm.index),
                    linestyle=":",
                    linewidth=1,
                )
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        style.shade_phases(axes, run.summary["workload"]["phases"], run.summary["settle_us"])
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel("Cost above the cell's optimum")
        style.legend(figure, axes)
    return figure if drawn else None
