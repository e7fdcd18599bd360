"""How much an arm gets done, and how loaded it is: throughput, utilisation of the cell, backlog,
and whether both were steady."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.metric import (
    Counters,
    KeptRows,
    Metric,
    NativeMetric,
    Rows,
    Scope,
    TableColumns,
    TimeSeries,
    ratio,
)
from parsync.metrics.quantity import Better, Count, Figures, Number, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from schedulers.interface import ChangeKind

_ENDED = {
    ChangeKind.FINISHED: "ended_finished",
    ChangeKind.EVICTED: "ended_evicted",
    ChangeKind.LOST: "ended_lost",
}


class ThroughputFigures(Figures):
    """First commits and ends, by the window in which they happened. Tasks that waited at the start
    and were committed late are no part of what the arrivals after it get."""

    throughput_per_s: Number | None = quantity(
        "Throughput",
        Unit.RATE,
        Better.HIGHER,
        "First commits per second; what was submitted bounds it.",
        headline=True,
        per_scheduler=True,
    )
    ended_finished: Count
    ended_evicted: Count
    ended_lost: Count


class ThroughputMetric(NativeMetric):
    """First commits and ended allocations."""

    kind = "throughput"
    description = "First commits per second, and allocations that ended."
    figures_model = ThroughputFigures
    reads: ClassVar[TableColumns] = {
        "tasks": ("agent", "submit_us", "commit_us", "first"),
        "ends": ("agent", "end_us", "change", "due"),
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("first_commits", *_ENDED.values(), "still_running"), run)
        self.timeline = TimeSeries(("first_commits",), run.agents, run.bucket_us)

    def add_up(self, rows: Rows) -> None:
        if rows.table == "tasks":
            firsts = rows.first_commits
            late = firsts.slot("submit_us") == self.run.start
            slot = late.choose(self.run.outside, firsts.slot("commit_us"))
            firsts.add(self.count["first_commits"], (firsts["agent"], slot))
            firsts.add_over_time(
                self.timeline, "first_commits", firsts["agent"], firsts["commit_us"]
            )
        else:
            self._ends(rows)

    def _ends(self, rows: Rows) -> None:
        place = rows["agent"], rows.slot("end_us")
        known = rows.where(rows["agent"] >= 0)  # -1: running before any agent existed
        due = rows["due"] == 1
        known.where(due).add(self.count["still_running"], place)
        ended = known.where(~due)
        for change, name in _ENDED.items():
            ended.where(rows["change"] == change).add(self.count[name], place)

    def figures(self, scope: Scope) -> ThroughputFigures:
        commits = scope.sum(self.count["first_commits"])
        return ThroughputFigures(
            throughput_per_s=ratio(commits * 1e6, self.run.window_us(scope.slots)),
            **{name: scope.sum(self.count[name]) for name in _ENDED.values()},
        )


class UtilisationFigures(Figures):
    """The use of the cell's first resource, over the samples in the windows; the same for all
    agents."""

    utilisation_mean: Number | None = quantity(
        "Utilisation",
        Unit.SHARE,
        Better.NEITHER,
        "Of the cell's first resource, averaged over samples.",
    )
    utilisation_max: Number | None = quantity(
        "Highest utilisation", Unit.SHARE, Better.NEITHER, "Largest sample."
    )


class UtilisationMetric(Metric):
    """Use of the cell's first resource."""

    kind = "utilisation"
    description = "How much of the cell is in use."
    figures_model = UtilisationFigures
    keeps: ClassVar[TableColumns] = {"cell": ("at_us", "running", "machines_up", "used_permille")}

    def figures(self, scope: Scope) -> UtilisationFigures:
        rows, inside = scope.rows("cell")
        if not inside.any():
            return UtilisationFigures.unknown()
        used = rows["used_permille"][inside]
        return UtilisationFigures(
            utilisation_mean=float(used.mean()) / 1000, utilisation_max=int(used.max()) / 1000
        )


class BacklogFigures(Figures):
    """Tasks submitted and not committed, at the samples in the windows: sums over the schedulers,
    and the longest queue of any of them."""

    backlog_mean: Number | None = quantity(
        "Backlog",
        Unit.COUNT,
        Better.LOWER,
        "Tasks submitted and not committed, averaged over samples.",
        per_scheduler=True,
    )
    backlog_end: Number | None = quantity(
        "Backlog at the end", Unit.COUNT, Better.LOWER, "At the last sample of the counted time."
    )
    backlog_max_per_scheduler: Number | None


class BacklogMetric(Metric):
    """Lengths of the schedulers' queues."""

    kind = "backlog"
    description = "How many tasks wait in the schedulers' queues."
    figures_model = BacklogFigures
    keeps: ClassVar[TableColumns] = {"agents": ("at_us", "agent", "queued")}

    def figures(self, scope: Scope) -> BacklogFigures:
        rows, inside = scope.rows("agents")
        if not inside.any():
            return BacklogFigures.unknown()
        mean = end = largest = 0.0
        for agent in scope.agents:
            queued = rows["queued"][inside & (rows["agent"] == agent)]
            if len(queued):
                mean += float(queued.mean())
                end += int(queued[-1])
                largest = max(largest, int(queued.max()))
        return BacklogFigures(backlog_mean=mean, backlog_end=end, backlog_max_per_scheduler=largest)


FEWEST_SAMPLES = 8
STANDARD_ERRORS = 2.0
UTILISATION_SHARE, UTILISATION_POINTS = 0.05, 0.01
BACKLOG_SHARE, BACKLOG_OF_RUNNING = 0.2, 0.01


class StationarityFigures(Figures):
    """Of one load phase: None over several phases, and where there are too few samples.

    A phase is `transient` if backlog or utilisation drifts: if the straight line fitted to its
    samples changes over the counted time
    - by more than twice its standard error, and
    - by more than a share of its mean (utilisation 5 %, backlog 20 %), and
    - by more than what does not matter: for utilisation 1 point, for the backlog 1 % of the tasks
      that run.

    A phase that is only a few mean run times long may be called stationary although it had too
    little time to show a trend.
    """

    backlog_change: Number | None = quantity(
        "Change of the backlog",
        Unit.COUNT,
        Better.NEITHER,
        "Over the counted time of a phase, by the straight line fitted to its samples.",
    )
    utilisation_change: Number | None = quantity(
        "Change of the utilisation",
        Unit.SHARE,
        Better.NEITHER,
        "Over the counted time of a phase, by the straight line fitted to its samples.",
    )
    transient: bool | None = None


class StationarityMetric(Metric):
    """Trends of backlog and utilisation."""

    kind = "stationarity"
    description = "Whether backlog and utilisation drifted during a load phase."
    figures_model = StationarityFigures
    keeps: ClassVar[TableColumns] = {
        "cell": ("at_us", "running", "machines_up", "used_permille"),
        "agents": ("at_us", "agent", "queued"),
    }

    def figures(self, scope: Scope) -> StationarityFigures:
        unknown = StationarityFigures.unknown()
        if len(scope.slots) != 1:
            return unknown
        cell, within = scope.rows("cell")
        agents, of_agents = scope.rows("agents")
        utilisation = trend(cell["used_permille"][within] / 1000)
        backlog = trend(_backlog(agents, of_agents))
        if utilisation is None or backlog is None:
            return unknown
        running = float(cell["running"][within].mean())
        return StationarityFigures(
            backlog_change=backlog.change,
            utilisation_change=utilisation.change,
            transient=utilisation.drifts(UTILISATION_SHARE, UTILISATION_POINTS)
            or backlog.drifts(BACKLOG_SHARE, BACKLOG_OF_RUNNING * running),
        )


def _backlog(rows: KeptRows, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The sum over the agents, at evenly spaced times. Agents of a live run do not take their
    samples at the same time."""
    at_us, agent, queued = (rows[name][inside] for name in ("at_us", "agent", "queued"))
    if not len(at_us):
        return np.zeros(0)
    agents, samples = np.unique(agent, return_counts=True)
    times = np.linspace(at_us.min(), at_us.max(), int(samples.max()))
    total = np.zeros(len(times))
    for one in agents:
        mine = agent == one
        total += np.interp(times, at_us[mine], queued[mine])
    return total


@dataclass(frozen=True, slots=True)
class Trend:
    """The straight line through a series of samples.

    Samples in a row are alike, so they count as fewer: as n (1 - r) / (1 + r) of them, for r their
    correlation with the next one, and as 3 at least (B. D. Santer et al., Statistical significance
    of trends and trend differences in layer-average atmospheric temperature time series, Journal of
    Geophysical Research 105, 2000).

    Attributes:
        change: From the first sample to the last.
        error: The standard error of the change.
        mean: Of the samples.
    """

    change: float
    error: float
    mean: float

    def drifts(self, share: float, least: float) -> bool:
        """Whether the change is certain, and more than `least` and than this share of the mean."""
        change = abs(self.change)
        return change > max(STANDARD_ERRORS * self.error, share * abs(self.mean), least)


def trend(values: NDArray[np.float64]) -> Trend | None:
    """The trend of evenly spaced samples float64[n]; None for fewer than FEWEST_SAMPLES."""
    n = len(values)
    if n < FEWEST_SAMPLES:
        return None
    time = np.linspace(-0.5, 0.5, n)
    mean, spread = float(values.mean()), float(time @ time)
    change = float(time @ values) / spread
    rest = values - mean - change * time
    squares = float(rest @ rest)
    if squares <= 1e-12 * float(values @ values):
        return Trend(change, 0.0, mean)
    alike = max(0.0, float(rest[1:] @ rest[:-1]) / squares)
    effective = max(3.0, n * (1 - alike) / (1 + alike))
    return Trend(change, math.sqrt(squares / (effective - 2) / spread), mean)
