"""The expected conflicts of ParSync's model, a panel for each parameter that is varied."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from experiments.figures import style
from experiments.studies.conflict_variations import RoundSetting, Variation, by_factor
from parsync.model.parameters import Float64


def draw(setting: RoundSetting, variations: Sequence[Variation]) -> Figure:
    """Four panels with equal ranges of y; a dot marks the setting itself."""
    own = _lines(setting, by_factor(setting, [1]))
    with style.drawing(2, 2, height_in=4.8) as (figure, panels):
        for axes, variation in zip(panels.flat, variations, strict=True):
            _draw_panel(axes, setting, variation, [float(conflicts[0]) for _, conflicts in own])
        style.equal_y(list(panels.flat))
        figure.supylabel("Expected conflicts of a round", fontsize=9.5)
        style.legend(figure, panels.flat[-1])
    return figure


def _lines(setting: RoundSetting, variation: Variation) -> list[tuple[str, Float64]]:
    """The lines of a panel, with their labels."""
    lines = [("slots all alike (Eq. 2)", variation.conflicts())]
    if setting.score_variance:
        label = f"drawn by score, V = {setting.score_variance:g}"
        lines.append((label, variation.weighted_conflicts()))
    return lines


def _draw_panel(
    axes: Axes, setting: RoundSetting, variation: Variation, own: Sequence[float]
) -> None:
    """A line for each kind of draw, and the limits that they approach.

    Args:
        own: The conflicts of the setting itself, of each line.
    """
    limit = variation.limit
    limits = [] if limit is None else [limit.conflicts, limit.weighted_conflicts]
    for index, (label, conflicts) in enumerate(_lines(setting, variation)):
        axes.plot(variation.values, conflicts, label=label, **style.line_style(index))
        axes.plot(variation.own_value, own[index], marker="o", ms=4, color=style.colour(index))
        for value in limits[index : index + 1]:
            axes.axhline(
                value,
                color=style.INK,
                linewidth=1,
                linestyle=":",
                label=None if index else "limit of many schedulers",
            )
    axes.plot(variation.values, variation.claims(), label="claims", color=style.INK, alpha=0.35)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(variation.label)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(EngFormatter(sep=""))
