"""Eq. 2 and Figs. 2 to 4 of ParSync in the paper's form."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figures import extra_slots, style
from experiments.model_runs.searches import extra_slots_interval
from experiments.papers.figure import ModelResults
from experiments.papers.parsync.model_settings import (
    EQ2_FACTORS,
    EQ2_TIMES,
    FIG4_STRATEGIES,
    TAU_S,
    eq2_label,
)
from experiments.papers.parsync.model_statistics import line
from experiments.statistics import Interval

_WIDE_IN, _PANEL_IN = 9.2, 2.7
_PAPER_SURGE_S = 4.7  # of group A under quality-first, at the end of phase 2


def eq2(results: ModelResults) -> Figure:
    """Simulated conflicts of a round beside Eq. 2: over A, and over the idle slots."""
    with style.drawing(rows=1, columns=2) as (figure, panels):
        figure.set_size_inches(_WIDE_IN, _PANEL_IN + 0.6)
        for axes, values, labels, name in (
            (panels[0], EQ2_FACTORS, [eq2_label(one, 1) for one in EQ2_FACTORS], "A"),
            (panels[1], EQ2_TIMES, [eq2_label(1, one) for one in EQ2_TIMES], "Idle slots, times"),
        ):
            runs = [results.first(label) for label in labels]
            expected = [float(one["expected"]) for one in runs]
            axes.plot(values, expected, label="Eq. 2", **style.line_style(0))
            axes.errorbar(
                values,
                [float(one["mean"]) for one in runs],
                [2 * float(one["error"]) for one in runs],
                fmt="o",
                ms=4,
                color=style.colour(1),
                label="simulated, 2 standard errors",
            )
            axes.set_ylim(0, 1.15 * max(expected))
            axes.set_xlabel(name)
        style.equal_y(panels)
        panels[0].set_ylabel("Conflicts of a round")
        style.legend(figure, panels[0])
    return figure


def searches(results: ModelResults, axis: str, lines: tuple[str, ...]) -> Figure:
    """S_extra over one axis, a line for each of several settings; seeds as an interval."""
    found: dict[str, dict[float, Interval]] = {}
    for name in lines:
        by_value = [line(runs, axis, name) for runs in results.seeds]
        found[name] = {
            value: extra_slots_interval([of[value] for of in by_value]) for value in by_value[0]
        }
    return extra_slots.draw(axis, found)


def fig4(results: ModelResults) -> Figure:
    """Score and delay over time under each strategy: medians and the 10th to 90th percentiles of
    groups A and B, with the utilisation."""
    with style.drawing(rows=len(FIG4_STRATEGIES), columns=2) as (figure, panels):
        figure.set_size_inches(_WIDE_IN, len(FIG4_STRATEGIES) * _PANEL_IN)
        for row, label in zip(panels, FIG4_STRATEGIES, strict=True):
            arrays = results.first(label)
            for axes, name, title in (
                (row[0], "score", "Slot score"),
                (row[1], "delay_s", "Delay (s)"),
            ):
                for group in (1, 0):
                    low, median, high = arrays[name][:, group].T
                    colour = style.colour(group)
                    axes.plot(arrays["end_s"], median, color=colour, label=f"Group {'AB'[group]}")
                    axes.fill_between(
                        arrays["end_s"], low, high, color=colour, alpha=0.2, linewidth=0
                    )
                axes.set_title(label)
                axes.set_ylabel(title)
            row[1].set_ylim(bottom=0)
            _paper_value(row[1], label)
            _utilisation(row[1], arrays["end_s"], arrays["utilisation"])
        for column in panels.T:
            style.equal_y(column)
        for axes in panels[-1]:
            axes.set_xlabel("Time (s)")
        style.legend(figure, panels[0, 0])
    return figure


def _paper_value(axes: Axes, label: str) -> None:
    """What the paper states of the delay, as a dotted line."""
    quality, _, adaptive = FIG4_STRATEGIES
    value_s = {quality: _PAPER_SURGE_S, adaptive: TAU_S}.get(label)
    if value_s is not None:
        axes.axhline(value_s, color=style.INK, linestyle=":", linewidth=1)
        axes.annotate(
            f"paper: {value_s:g} s",
            (1, value_s),
            xytext=(0, 2),
            fontsize=8,
            textcoords="offset points",
        )


def _utilisation(axes: Axes, end_s: np.ndarray, share: np.ndarray) -> None:
    beside = axes.twinx()
    beside.plot(end_s, share, color=style.INK, linestyle="--", linewidth=1.8)
    beside.set_ylim(0, 1.02)
    beside.grid(visible=False)
    beside.set_ylabel("Utilisation (dashed)")
    style.share_axis(beside)
