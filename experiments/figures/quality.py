"""Placement quality: over time (ParSync's Figs. 5b, 6d and 7d), against the delay it costs, and
regret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.analysis.run_directory import Run
from experiments.analysis.statistics import Interval
from experiments.figures import data, style

Limits = tuple[float, float, float]  # low, mean and high
AT_LEAST = " (delay at least)"  # tasks never placed are charged until the run was last seen


def trade_off(run: Run) -> Figure | None:
    """Mean delay against preferred share: every paired seed a small dot, the seeds' median with its
    interval. Without seeds: this run."""

    def has_mark(arm: data.Arm) -> bool:
        overall = arm.figures.overall
        measured = bool(overall.delay_mean_us) and overall.preferred_share is not None
        return measured or _median(run, arm) is not None

    shown = data.panels(run, has_mark)
    if not shown:
        return None
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                _mark(axes, run, arm)
        for axes in panels:
            axes.margins(0.12)
            style.duration_axis(axes, "x", log=True)
            style.share_axis(axes)
        x = "Mean scheduling delay  (left is better)"
        style.label_panels(panels, x, "Preferred machine\n(up is better)")
        style.legend(figure, *panels)
    return figure


def _mark(axes: Axes, run: Run, arm: data.Arm) -> None:
    """An arm and its paired seeds on the axes of delay and preferred share."""
    marker: dict[str, Any] = {"marker": style.marker(arm.index), "color": style.colour(arm.index)}
    for seed in arm.figures.seeds:
        x, y = seed.overall.value("delay_mean_us"), seed.overall.preferred_share
        if x and y is not None:
            axes.plot(x, y, linestyle="none", markersize=3, alpha=0.4, markeredgewidth=0, **marker)
    overall, median = arm.figures.overall, _median(run, arm)
    if median is None:
        axes.plot(
            overall.value("delay_mean_us") or np.nan,
            np.nan if overall.preferred_share is None else overall.preferred_share,
            linestyle="none",
            markersize=8,
            label=arm.name + (AT_LEAST if overall.is_bound("delay_mean_us") else ""),
            **marker,
        )
        return
    (low_x, x, high_x), (low_y, y, high_y) = median
    bound = run.summary.paired.arms[arm.figures.slug]["delay_mean_us"].at_least
    axes.errorbar(
        x,
        y,
        # An interval that reaches 0 cannot be drawn on a logarithmic axis: it is cut at a tenth of
        # the estimate.
        xerr=[[x - max(low_x, x / 10)], [high_x - x]],
        yerr=[[y - low_y], [high_y - y]],
        linestyle="none",
        capsize=2,
        markersize=7,
        label=arm.name + (AT_LEAST if bound else ""),
        **marker,
    )


def _median(run: Run, arm: data.Arm) -> tuple[Limits, Limits] | None:
    """Delay and preferred share over the paired seeds, if there are any."""
    paired = run.summary.paired.arms.get(arm.figures.slug, {})
    delay, share = (_limits(paired.get(key)) for key in ("delay_mean_us", "preferred_share"))
    return (delay, share) if delay and share and delay[1] > 0 else None


def _limits(interval: Interval | None) -> Limits | None:
    """Low, estimate and high; of few seeds the estimate alone."""
    if interval is None or interval.estimate is None:
        return None
    middle = interval.estimate
    if interval.low is None or interval.high is None:
        return middle, middle, middle
    return interval.low, middle, interval.high


def decision_regret(run: Run) -> Figure | None:
    """Sampled transactions as dots; per phase all of an arm's samples together."""
    shown = data.panels(run, lambda arm: bool(arm.figures.regret.decision))
    if not shown:
        return None
    regrets = [row for panel in shown for arm in panel.arms for row in arm.figures.regret.decision]
    least = "the optimum" if all(row.exact for row in regrets) else "a lower bound"
    stretches = _stretches(run)
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for number, arm in enumerate(panel.arms):
                # Arms side by side, or their marks would hide each other.
                place = 0.2 + 0.6 * (number + 0.5) / len(panel.arms)
                _draw_regrets(axes, arm, stretches, place)
        for axes in panels:
            axes.set_ylim(bottom=0)
            style.count_axis(axes)
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
        style.label_panels(panels, style.TIME, f"Cost above {least},\nper claim")
        style.legend(figure, *panels)
    return figure


def _draw_regrets(
    axes: Axes, arm: data.Arm, stretches: Sequence[tuple[float, float]], place: float
) -> None:
    """The sampled transactions of an arm, and all of a stretch of time together.

    Args:
        stretches: From and to, in us.
        place: Of the mark within its stretch, 0 to 1.
    """
    rows = arm.figures.regret.decision
    at_us, regret, tasks = (
        np.array([getattr(row, key) for row in rows]) for key in ("at_us", "regret", "tasks")
    )
    marker: dict[str, Any] = {"marker": style.marker(arm.index), "color": style.colour(arm.index)}
    dots: dict[str, Any] = {
        "linestyle": "none",
        "markersize": 2.5,
        "alpha": 0.3,
        "markeredgewidth": 0,
    }
    axes.plot(at_us / 1e6, regret / tasks, **dots, **marker)
    middle_s, mean = [], []
    for start_us, end_us in stretches:
        inside = (at_us >= start_us) & (at_us < end_us)
        if inside.any():
            middle_s.append((start_us + place * (end_us - start_us)) / 1e6)
            mean.append(regret[inside].sum() / tasks[inside].sum())
    line: dict[str, Any] = {"linestyle": "-", "linewidth": 0.8, "markersize": 6}
    axes.plot(middle_s, mean, label=arm.name, **line, **marker)


def _stretches(run: Run) -> list[tuple[float, float]]:
    """The load phases, or a few equal parts of a run that has only one."""
    phases = run.summary.workload.phases
    if len(phases) > 1:
        return [(phase.start_us, phase.end_us) for phase in phases]
    edges = np.linspace(0, data.end_us(run), 6)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def system_regret(run: Run) -> Figure | None:
    """The regret of the whole cell over time, if running tasks stay where they are, and if all may
    move."""
    shown = data.panels(run, lambda arm: bool(arm.figures.regret.system))
    if not shown:
        return None
    regrets = [row for panel in shown for arm in panel.arms for row in arm.figures.regret.system]
    least = "the optimum" if all(row.exact for row in regrets) else "a lower bound"
    parts = {"without_migration": "running tasks stay", "with_migration": "all may move"}
    rows = [(panel, part) for panel in shown for part in parts]
    titles = [f"{panel.title}: {parts[part]}".removeprefix(": ") for panel, part in rows]
    with style.drawing_panels(titles) as (figure, panels):
        for axes, (panel, part) in zip(panels, rows, strict=True):
            for arm in panel.arms:
                samples = arm.figures.regret.system
                axes.plot(
                    [row.at_us / 1e6 for row in samples],
                    [getattr(row, part) for row in samples],
                    label=arm.name,
                    **style.marked_line(arm.index, len(samples)),
                )
        for axes in panels:
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(style.TickLabels(_compact))
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
        style.label_panels(panels, style.TIME, f"Above {least}")
        style.legend(figure, *panels)
    return figure


def _compact(value: float, digits: int) -> str:
    """A large cost on an axis."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= unit:
            return f"{value / unit:.{digits}g}{name}"
    return f"{value:.{digits}g}"
