"""What quota groups hold of the cell over time, and what they may (ParSync section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.analysis.run_directory import Run
from experiments.figures import data, style
from experiments.figures.labels import is_drawable, label

MOST_GROUPS = 8  # the largest of more
_PANEL_IN = 1.6
_LEGEND_IN = 0.9


def over_time(run: Run) -> Figure | None:
    """A panel for each arm: the use of the cell's first resource by each quota group, and the
    group's share where the arm has quotas."""
    arms = [arm for arm in data.arms(run) if len(data.sampled(arm, "quota_use", "held")[0])]
    if not arms:
        return None
    capacity = max(1, run.summary.workload.capacity[0])
    names = {arm.index: _names(run, arm) for arm in arms}
    colour_of = {name: style.colour(k) for k, name in enumerate(_largest(arms, names))}
    height_in = _LEGEND_IN + _PANEL_IN * max(len(arms), 1.5)
    with style.drawing(rows=len(arms), height_in=height_in) as (figure, panels):
        for axes, arm in zip(np.atleast_1d(panels), arms, strict=True):
            inside = {"ha": "left", "va": "top", "transform": axes.transAxes}
            axes.text(0.015, 0.96, arm.name, **inside)
            for group, name in enumerate(names[arm.index]):
                if name not in colour_of:
                    continue
                for table, column, line in (
                    ("quota_use", "held", {"linewidth": 1.6}),
                    ("quota_shares", "share", {"linewidth": 1.0, "linestyle": (0, (2.5, 1.5))}),
                ):
                    time, amount = _of_group(arm, table, column, group)
                    axes.plot(time, amount / capacity, color=colour_of[name], **line)
            style.share_axis(axes)
            style.shade_phases(axes, run.summary.workload.phases, run.summary.settle_us)
            style.time_axis(axes, data.end_us(run))
            axes.set_ylabel("Held of the cell")
        top = max(axes.get_ylim()[1] for axes in np.atleast_1d(panels))
        for axes in np.atleast_1d(panels):
            axes.set_ylim(0, 1.2 * top)  # with room for the arm's name
        entries: list[tuple[Any, str]] = [
            (Line2D([], [], color=colour), _shown(name)) for name, colour in colour_of.items()
        ]
        dashed = Line2D([], [], color=style.INK, linewidth=1.0, linestyle=(0, (2.5, 1.5)))
        style.legend_of(figure, [*entries, (dashed, "fair share")])
    return figure


def _names(run: Run, arm: data.Arm) -> list[str]:
    """The quota groups in the order of their numbers."""
    config: Mapping[str, Any] = run.summary.config
    of_arm = config["arms"][arm.index].get("quotas", {}).get("groups")
    groups = of_arm or config["workload"].get("quota_groups")
    if groups:
        return [group["name"] for group in groups]
    return [f"group {number}" for number in np.unique(arm.series["quota_use_quota_group"])]


def _largest(arms: list[data.Arm], names: Mapping[int, list[str]]) -> list[str]:
    """The groups that are drawn, in the order of the first arm: those that hold most in any."""
    most: dict[str, float] = {}
    for arm in arms:
        for group, name in enumerate(names[arm.index]):
            _, held = _of_group(arm, "quota_use", "held", group)
            most[name] = max(most.get(name, 0.0), float(held.mean()) if len(held) else 0.0)
    drawn = sorted(most, key=lambda name: -most[name])[:MOST_GROUPS]
    return [name for name in most if name in drawn]


def _of_group(
    arm: data.Arm, table: str, column: str, group: int
) -> tuple[data.Floats, data.Floats]:
    """The time in s and the amount of the first resource, of one group."""
    time, amount = data.sampled(arm, table, column)
    if not len(time):
        return time, amount
    chosen = arm.series[f"{table}_quota_group"] == group
    chosen &= arm.series[f"{table}_resource"] == 0
    return time[chosen], amount[chosen]


def _shown(name: str) -> str:
    return label(name) if is_drawable(name) else "a group whose name cannot be drawn"
