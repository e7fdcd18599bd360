"""Conflicts: over time (ParSync's Figs. 6c and 7c as a rate), against the age of the state decided
on, and between whom."""

from __future__ import annotations

from textwrap import wrap

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.analysis.run_directory import Run
from experiments.figures import data, style
from parsync.metrics import histogram
from parsync.metrics.conflicts import Outcome

_AGE_BINS = 16
_MATRICES_PER_ROW = 3
_FEWEST_CLAIMS = 50  # a rate on fewer says nothing


def by_age(run: Run) -> Figure | None:
    shown = data.panels(run, lambda arm: bool(arm.series["ages"].any()))
    if not shown:
        return None
    oldest = max(
        int(np.flatnonzero(arm.series["ages"].any(axis=(0, 1)))[-1])
        for panel in shown
        for arm in panel.arms
    )
    edges = np.linspace(0, histogram.MIDDLE[oldest] + 1, _AGE_BINS + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    with data.drawing(shown) as (figure, panels):
        for axes, panel in zip(panels, shown, strict=True):
            for arm in panel.arms:
                counts = data.rebinned_ages(arm, edges)
                claims = counts.sum(axis=0)
                rate = data.ratio(
                    counts[Outcome.CONFLICT], np.where(claims >= _FEWEST_CLAIMS, claims, 0)
                )
                axes.plot(
                    middle,
                    rate,
                    label=arm.name,
                    marker=style.marker(arm.index),
                    markersize=4,
                    **style.line_style(arm.index),
                )
        for axes in panels:
            style.share_axis(axes)
            axes.set_xlim(0, edges[-1])
            style.duration_axis(axes, "x", log=False)
            axes.set_ylim(bottom=0)
        x = "Age of the state the claim was planned on"
        style.label_panels(panels, x, "Claims in conflict")
        style.legend(figure, *panels)
    return figure


def rivals(run: Run) -> Figure | None:
    """Who loses claims to whom, a matrix per arm on one scale; a last column for unknown rivals if
    there are any."""
    shown = [arm for arm in data.arms(run) if np.any(arm.figures.rivals)]
    if not shown:
        return None
    shares = [
        np.array(arm.figures.rivals, float) / max(arm.figures.overall.claims, 1) for arm in shown
    ]
    shares = [share if share[:, -1].any() else share[:, :-1] for share in shares]
    highest = max(float(share.max()) for share in shares)
    columns = min(_MATRICES_PER_ROW, len(shown))
    rows = -(-len(shown) // columns)
    with style.drawing(rows, columns, height_in=0.7 + 1.45 * rows) as (figure, axes):
        grid = np.atleast_1d(axes).reshape(-1)
        for place, arm, share in zip(grid, shown, shares, strict=False):
            image = place.imshow(share, cmap="cividis_r", vmin=0, vmax=highest)
            place.set_title("\n".join(wrap(arm.name, 20)), fontsize=8)
            place.grid(False)
            place.tick_params(labelsize=7.5)
            for axis in (place.xaxis, place.yaxis):
                axis.set_major_locator(MaxNLocator(4, integer=True))
        for place in grid[len(shown) :]:
            place.set_visible(False)
        bar = figure.colorbar(image, ax=list(grid), shrink=0.6, aspect=25)
        style.share_axis(bar.ax)
        bar.ax.tick_params(labelsize=7.5)
        figure.supxlabel("Scheduler that was first", fontsize=9)
        figure.supylabel("Scheduler that lost", fontsize=9)
    return figure
