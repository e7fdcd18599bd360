"""Figs. 15 and 16 of Omega, drawn in the paper's form with the paper's values, and their numbers as
tables (Schwarzkopf et al., EuroSys 2013)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from experiments.figures import style
from experiments.papers.figure import MapReduceResults, Table
from experiments.papers.mapreduce_arrays import USED_AT_US, USED_PERMILLE
from experiments.papers.omega import mapreduce_statistics as statistic
from experiments.papers.omega.mapreduce import (
    BUSY,
    CELLS,
    GLOBAL_CAP,
    LIGHT,
    MAX_PARALLELISM,
    POLICIES,
    RELATIVE,
    REQUESTED,
    WITH_EXTRA,
    at_policy,
)
from experiments.papers.omega.mapreduce_claims import CONFIDENT, GAINING, HIGH_USE, SPEEDUPS
from experiments.statistics import median_interval

_CDF_IN, _TIME_IN = (9.6, 4.2), (9.6, 5.0)
_CLUSTERS = {BUSY: "for clusters A and C", LIGHT: "for cluster D"}
_SLOWEST, _TICKS = 0.7, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_PAPER_WIDTH = 5.0  # of the lines for the paper's values
_PAPER_SAYS = {
    (BUSY, MAX_PARALLELISM): "50 to 70 % gain; 80th percentile: 3 to 4 x",
    (BUSY, GLOBAL_CAP): "little or no benefit",
    (BUSY, RELATIVE): "quite well",
    (LIGHT, MAX_PARALLELISM): "50 to 70 % gain; 80th percentile: 3 to 4 x",
    (LIGHT, GLOBAL_CAP): "almost as well as max-parallelism",
    (LIGHT, RELATIVE): "quite well",
}


def fig15(results: MapReduceResults) -> Figure:
    """The distribution of the speed-ups of all seeds, a panel for each cell and a line for each
    policy."""
    with style.drawing(rows=1, columns=len(CELLS)) as (figure, made):
        figure.set_size_inches(*_CDF_IN)
        made[1].sharex(made[0])
        for axes, cell in zip(made, CELLS, strict=True):
            for index, policy in enumerate(WITH_EXTRA):
                found = np.sort(
                    np.concatenate(
                        [statistic.speedups(runs, cell, policy) for runs in results.seeds]
                    )
                )
                share = np.arange(1, len(found) + 1) / max(1, len(found))
                axes.plot(found, share, label=policy.capitalize(), **style.line_style(index))
            _paper_values(axes)
            style.share_axis(axes)
            axes.set_ylim(0, 1.02)
            axes.set_title(f"{cell} ({_CLUSTERS[cell]})")
            axes.set_ylabel("Share of the MapReduce jobs")
        for axes in made:
            _speedup_axis(axes)
        style.legend(figure, made[0])
    return figure


def fig16(results: MapReduceResults) -> Figure:
    """The use of the busy cell over time under the first seed, without extra workers above and with
    max-parallelism below."""
    with style.drawing(rows=2, columns=1) as (figure, made):
        figure.set_size_inches(*_TIME_IN)
        above, below = made
        below.sharex(above)
        for axes, policy in ((above, REQUESTED), (below, MAX_PARALLELISM)):
            arrays = results.first(at_policy(BUSY, policy))
            at_us = arrays[USED_AT_US]
            axes.plot(at_us, arrays[USED_PERMILLE] / 1000, color=style.colour(0), linewidth=1.1)
            end_us = at_us[-1] if len(at_us) else 1
            axes.axvspan(0, statistic.FILLING * end_us, color=style.INK, alpha=0.08, linewidth=0)
            axes.set_xlim(0, end_us)
            axes.set_ylim(0, 1.02)
            axes.set_ylabel("Use of the cell")
            style.share_axis(axes)
            style.duration_axis(axes, "x", log=False)
        above.set_title("Without extra workers")
        below.set_title("Max-parallelism")
        below.set_xlabel("Time")
    return figure


def fig15_table(results: MapReduceResults) -> Table:
    """Speed-ups on each cell with each policy, and what the paper says of them."""

    def row(cell: str, policy: str) -> tuple[str, ...]:
        jobs = [float(len(statistic.speedups(runs, cell, policy))) for runs in results.seeds]
        return (
            at_policy(cell, policy),
            f"{np.mean(jobs):.0f}",
            _median(results, statistic.gaining_share(cell, policy), _percent),
            _median(results, statistic.speedup_at(cell, policy, 0.5), _times),
            _median(results, statistic.speedup_at(cell, policy, CONFIDENT), _times),
            _PAPER_SAYS[cell, policy],
        )

    return Table(
        ("", "jobs", "at least 5 % faster", "median", "80th percentile", "paper"),
        tuple(row(cell, policy) for cell in CELLS for policy in WITH_EXTRA),
        "Speed-ups over the same job with the workers that its user asked for, of the jobs that "
        "ended in both runs; medians over the seeds.",
    )


def fig16_table(results: MapReduceResults) -> Table:
    """The use of each cell with each policy."""
    rows = tuple(
        (
            label,
            _median(results, statistic.use_mean(label), _percent),
            _median(results, statistic.use_deviation(label), _percent),
            _median(results, statistic.use_at(label, HIGH_USE), _percent),
        )
        for label in (at_policy(cell, policy) for cell in CELLS for policy in POLICIES)
    )
    return Table(
        ("", "mean use", "standard deviation", "95th percentile"),
        rows,
        "Use of the cell over time, without the first tenth of the run; medians over the seeds. "
        "The paper states no numbers.",
    )


def _paper_values(axes: Axes) -> None:
    """The share of the jobs that do not gain, and the speed-up at the 80th percentile."""
    look: dict[str, Any] = {
        "color": style.INK,
        "linewidth": _PAPER_WIDTH,
        "alpha": 0.45,
        "solid_capstyle": "butt",
        "zorder": 1.5,  # below the lines
    }
    axes.plot(SPEEDUPS, (CONFIDENT, CONFIDENT), label="Paper, max-parallelism", **look)
    axes.plot((1, 1), [1 - share for share in GAINING], **look)
    for text, at, aside, side in (
        ("3 to 4 x", (SPEEDUPS[0], CONFIDENT), -5, "right"),
        ("50 to\n70 %\ngain", (1, 1 - sum(GAINING) / 2), 5, "left"),
    ):
        axes.annotate(
            text, at, (aside, 0), textcoords="offset points", ha=side, va="center", fontsize=8
        )


def _speedup_axis(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xlim(_SLOWEST, max(_TICKS[2], axes.get_xlim()[1]))
    axes.xaxis.set_major_locator(FixedLocator(list(_TICKS)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} x"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("Speed-up of the job")


def _median(results: MapReduceResults, value: statistic.Value, text: Callable[[float], str]) -> str:
    found = median_interval([value(runs) for runs in results.seeds]).estimate
    return "not known" if found is None else text(found)


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _times(speedup: float) -> str:
    return f"{speedup:.2f} x"
