"""Placement quality: over time (ParSync's Figs. 5b, 6d and 7d), against the delay it costs, and
regret."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from experiments.figures import data, style
from experiments.run_directory import Run
from experiments.statistics import Interval

AT_LEAST = " (delay at least)"  # tasks never placed are charged until the run was last seen


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
                time[:width],
                low,
                high,
                color=style.colour(arm.index),
                alpha=style.BAND_ALPHA,
                linewidth=0,
            )
        style.share_axis(axes)
        axes.set_ylim(0, 1.02)
        style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel("On a preferred machine")
        style.legend(figure, axes)
    return figure if drawn else None


def trade_off(run: Run) -> Figure | None:
    """Mean delay against preferred share: this run filled, every paired seed a small dot, the
    seeds' median with its interval."""
    drawn = False
    with style.drawing() as (figure, axes):
        for arm in data.arms(run):
            overall = arm.figures.overall
            marker = {
                "marker": style.marker(arm.index),
                "color": style.colour(arm.index),
            }
            for seed in arm.figures.seeds:
                x, y = (
                    seed.overall.value("delay_mean_us"),
                    seed.overall.preferred_share,
                )
                if x and y is not None:
                    axes.plot(
                        x, y, linestyle="none", markersize=3, alpha=0.4, markeredgewidth=0, **marker
                    )
            paired = run.summary.paired.arms.get(arm.figures.slug, {})
            delay, share = paired.get("delay_mean_us"), paired.get("preferred_share")
            delays, shares = _limits(delay), _limits(share)
            if delay and delays and shares and delays[1] > 0:
                (low_x, x, high_x), (low_y, y, high_y) = delays, shares
                # An interval that reaches 0 cannot be drawn on a logarithmic axis: it is cut at a
                # tenth of the estimate.
                axes.errorbar(
                    x,
                    y,
                    xerr=[[x - max(low_x, x / 10)], [high_x - x]],
                    yerr=[[y - low_y], [high_y - y]],
                    linestyle="none",
                    capsize=2,
                    markersize=7,
                    label=arm.name + (AT_LEAST if delay.at_least else ""),
                    **marker,
                )
                drawn = True
            elif overall.delay_mean_us and overall.preferred_share is not None:
                axes.plot(
                    overall.value("delay_mean_us"),
                    overall.preferred_share,
                    linestyle="none",
                    markersize=8,
                    label=arm.name + (AT_LEAST if overall.is_bound("delay_mean_us") else ""),
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


def _limits(interval: Interval | None) -> tuple[float, float, float] | None:
    """Low, estimate and high; of few seeds the estimate alone."""
    if interval is None or interval.estimate is None:
        return None
    middle = interval.estimate
    if interval.low is None or interval.high is None:
        return middle, middle, middle
    return interval.low, middle, interval.high


def decision_regret(run: Run) -> Figure | None:
    """Sampled transactions as dots; per phase all of an arm's samples together."""
    drawn, exact = False, True
    arms = list(data.arms(run))
    stretches = _stretches(run)
    with style.drawing() as (figure, axes):
        for arm in arms:
            rows = arm.figures.regret.decision
            if not rows:
                continue
            drawn, exact = True, exact and all(row.exact for row in rows)
            at_us, regret, tasks = (
                np.array([getattr(row, key) for row in rows])
                for key in ("at_us", "regret", "tasks")
            )
            marker = {
                "marker": style.marker(arm.index),
                "color": style.colour(arm.index),
            }
            dots = {"linestyle": "none", "markersize": 2.5, "alpha": 0.3, "markeredgewidth": 0}
            axes.plot(at_us / 1e6, regret / tasks, **dots, **marker)
            middle, mean = [], []
            for start_us, end_us in stretches:
                inside = (at_us >= start_us) & (at_us < end_us)
                if inside.any():
                    # Arms side by side, or their marks would hide each other.
                    share = 0.2 + 0.6 * (arm.index + 0.5) / len(arms)
                    middle.append((start_us + share * (end_us - start_us)) / 1e6)
                    mean.append(regret[inside].sum() / tasks[inside].sum())
            axes.plot(
                middle, mean, label=arm.name, linestyle="-", linewidth=0.8, markersize=6, **marker
            )
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
        style.time_axis(axes, data.end_us(run))
        axes.set_ylabel(f"Cost above {'the optimum' if exact else 'a lower bound'}, per claim")
        style.legend(figure, axes)
    return figure if drawn else None


def _stretches(run: Run) -> list[tuple[float, float]]:
    """The load phases, or a few equal parts of a run that has only one."""
    phases = run.summary.workload.phases
    if len(phases) > 1:
        return [(phase.start_us, phase.end_us) for phase in phases]
    edges = np.linspace(0, data.end_us(run), 6)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def system_regret(run: Run) -> Figure | None:
    """The regret of the whole cell over time. Above, running tasks stay where they are; below, they
    may move, which often lowers the cost so much more that the two need scales of their own."""
    drawn, exact = False, True
    with style.drawing(rows=2, height_in=1.6 * style.HEIGHT_IN) as (figure, panels):
        for arm in data.arms(run):
            rows = arm.figures.regret.system
            drawn, exact = drawn or bool(rows), exact and all(row.exact for row in rows)
            for axes, part in zip(panels, ("without_migration", "with_migration"), strict=True):
                time_s = [row.at_us / 1e6 for row in rows]
                axes.plot(
                    time_s,
                    [getattr(row, part) for row in rows],
                    label=arm.name,
                    **style.line_style(arm.index),
                )
        for axes, title in zip(panels, ("running tasks stay", "all may move"), strict=True):
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(lambda value, _: _compact(value))
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
            axes.set_ylabel(f"Above {'the optimum' if exact else 'a lower bound'},\n{title}")
        style.legend(figure, panels[0])
    return figure if drawn else None


def _compact(value: float) -> str:
    """A large cost on an axis."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"
