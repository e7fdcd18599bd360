"""Whether a load phase was stationary: trends of backlog and utilisation over its counted time.

A phase is transient if one of the two drifts: if the straight line fitted to its samples changes
over the counted time
- by more than twice its standard error, and
- by more than a share of its mean (utilisation 5 %, backlog 20 %), and
- by more than what does not matter: for utilisation 1 point, for the backlog 1 % of the tasks that
  run.

Samples in a row are alike, so they count as fewer: as n (1 - r) / (1 + r) of them, for r their
correlation with the next one, and as 3 at least (B. D. Santer et al., Statistical significance of
trends and trend differences in layer-average atmospheric temperature time series, Journal of
Geophysical Research 105, 2000). A phase that is only a few mean run times long may be called
stationary although it had too little time to show a trend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.figures import Figures, Number
from parsync.metrics.metric import KeptRows, Metric, Scope, TableColumns
from parsync.metrics.quantity import Better, Unit, quantity

FEWEST_SAMPLES = 8
STANDARD_ERRORS = 2.0
UTILISATION_SHARE, UTILISATION_POINTS = 0.05, 0.01
BACKLOG_SHARE, BACKLOG_OF_RUNNING = 0.2, 0.01


@dataclass(frozen=True, slots=True)
class Trend:
    """The straight line through a series of samples.

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


class StationarityFigures(Figures):
    """Of one load phase: None over several phases, and where there are too few samples.

    transient: backlog or utilisation drifted (parsync/metrics/load.py has the rule).
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
        unknown = StationarityFigures(backlog_change=None, utilisation_change=None, transient=None)
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
