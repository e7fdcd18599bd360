"""The data behind the figures of a run: coarser buckets, values per scheduler, bands among
schedulers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.analysis.run_directory import Run
from experiments.analysis.summary_model import ArmSummary
from experiments.config.decision_basis import basis_titles
from experiments.figures import style
from experiments.figures.labels import label
from parsync.metrics import histogram

MOST_POINTS = 60

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of a run with its place in the order of colours.

    Attributes:
        name: Its name as a label.
    """

    index: int
    name: str
    figures: ArmSummary
    series: dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Panel:
    """Arms that may stand on one axis: of one runtime and one clock class.

    Attributes:
        title: What their delays rest on; "" if all arms of the figure rest on it.
    """

    title: str
    arms: list[Arm]


def arms(run: Run) -> Iterator[Arm]:
    for index, arm in enumerate(run.summary.arms):
        place = run.places.get(arm.slug, index)
        yield Arm(place, label(arm.name), arm, run.series[arm.slug])


def panels(run: Run, has_data: Callable[[Arm], bool]) -> list[Panel]:
    """The arms with data, in sets that may be compared (ComparedArms.sets). Arms of different sets
    never share an axis: their delays, and what follows from delays, rest on different times."""
    by_slug = {arm.figures.slug: arm for arm in arms(run) if has_data(arm)}
    sets = run.summary.sets()
    titles = basis_titles([one.arms[0].basis for one in sets])
    found = [
        Panel(title, [by_slug[arm.slug] for arm in one.arms if arm.slug in by_slug])
        for title, one in zip(titles, sets, strict=True)
    ]
    found = [panel for panel in found if panel.arms]
    return [replace(panel, title="") for panel in found] if len(found) == 1 else found


def end_us(run: Run) -> int:
    return int(run.summary.workload.end_us)


def coarse(arm: Arm, name: str, until_us: int) -> tuple[Floats, Floats]:
    """Counts in at most MOST_POINTS buckets of time, up to until_us.

    Returns:
        The middle of each bucket in s, and the counts, float64[agents, buckets].
    """
    counts = arm.series[name]
    bucket_us = int(arm.series["bucket_us"][0])
    buckets = min(counts.shape[1], -(-until_us // bucket_us))
    factor = max(-(-buckets // MOST_POINTS), 1)
    padded = np.zeros((counts.shape[0], -(-buckets // factor) * factor))
    padded[:, :buckets] = counts[:, :buckets]
    summed = padded.reshape(counts.shape[0], -1, factor).sum(axis=2)
    width_s = factor * bucket_us / 1e6
    return (np.arange(summed.shape[1]) + 0.5) * width_s, summed


def rate(arm: Arm, name: str, until_us: int) -> tuple[Floats, Floats]:
    """Events per second over time. The last bucket, which may be cut short, is left out.

    Returns:
        The time in s, and the rates, float64[agents, buckets].
    """
    time, counts = coarse(arm, name, until_us)
    if len(time) < 2:
        return time[:0], counts[:, :0]
    return time[:-1], counts[:, :-1] / (time[1] - time[0])


def ratio(part: Floats, whole: Floats) -> Floats:
    """The quotient part / whole; NaN, which is not drawn, where there is no whole."""
    quotient: Floats = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return quotient


def band(values: Floats) -> tuple[Floats, Floats, Floats]:
    """The 10th percentile, median and 90th percentile among schedulers, per column; NaN where no
    scheduler has a value."""
    result = np.full((3, values.shape[1]), np.nan)
    for column in np.flatnonzero(~np.isnan(values).all(axis=0)):
        known = values[:, column]
        result[:, column] = np.percentile(known[~np.isnan(known)], (10, 50, 90))
    return result[0], result[1], result[2]


def drawing(shown: Sequence[Panel]) -> AbstractContextManager[tuple[Figure, list[Axes]]]:
    """A figure with these panels (style.drawing_panels)."""
    return style.drawing_panels(
        [panel.title for panel in shown], [len(panel.arms) for panel in shown]
    )


def draw_band(axes: Axes, panel: Panel, arm: Arm, time: Floats, values: Floats) -> None:
    """The median among an arm's schedulers as a line, and a band from their 10th to their 90th
    percentile, unless the panel has many arms.

    Args:
        panel: That the arm is drawn in.
        time: In s.
        values: float64[agents, len(time)].
    """
    low, median, high = band(values)
    axes.plot(time, median, label=arm.name, **style.marked_line(arm.index, len(time)))
    if len(panel.arms) <= style.MANY_LINES:
        axes.fill_between(
            time, low, high, color=style.colour(arm.index), alpha=style.BAND_ALPHA, linewidth=0
        )


def sampled(arm: Arm, table: str, column: str) -> tuple[Floats, Floats]:
    """The time in s and the value of every row of a table of samples, by time; empty if there are
    none."""
    name = f"{table}_{column}"
    if name not in arm.series:
        return np.zeros(0), np.zeros(0)
    return arm.series[f"{table}_at_us"] / 1e6, arm.series[name].astype(np.float64)


def sampled_by_agent(arm: Arm, column: str) -> tuple[Floats, Floats]:
    """The samples of all agents, gathered in at most MOST_POINTS steps of time.

    Returns:
        The time in s, and the values, float64[agents, times].
    """
    time, value = sampled(arm, "agents", column)
    if not len(time):
        return time, np.zeros((0, 0))
    agent = arm.series["agents_agent"]
    distinct = len(np.unique(arm.series["agents_at_us"]))
    steps = min(MOST_POINTS, distinct)
    width = (time[-1] - time[0]) / max(steps - 1, 1) or 1.0
    step = np.minimum(((time - time[0]) / width + 0.5).astype(np.int64), steps - 1)
    shape = (len(arm.series["group_of"]), steps)
    total, rows = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (agent, step), value)
    np.add.at(rows, (agent, step), 1)
    return time[0] + width * np.arange(steps), ratio(total, rows)


def rebinned_ages(arm: Arm, edges_us: Floats) -> Floats:
    """Claims by age of the state they were planned on: float64[Outcome.COUNT, bins], over all
    groups."""
    counts = arm.series["ages"].sum(axis=0)
    bins = np.clip(
        np.searchsorted(edges_us, histogram.MIDDLE, side="right") - 1, 0, len(edges_us) - 2
    )
    result = np.zeros((counts.shape[0], len(edges_us) - 1))
    for outcome in range(counts.shape[0]):
        np.add.at(result[outcome], bins, counts[outcome])
    return result
