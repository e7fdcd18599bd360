"""Rounds of schedulers that draw slots at random: what the conflict model is compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STANDARD_ERRORS = 4.0  # that a mean may be off


def picks(
    rng: np.random.Generator, schedulers: int, tasks: int, weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """How many schedulers pick each slot, if each draws `tasks` of them by weight without
    replacement: the first to ring of exponential clocks."""
    rings = rng.exponential(size=(schedulers, len(weights))) / weights
    first = np.argsort(rings, axis=1)[:, :tasks]
    return np.bincount(first.ravel(), minlength=len(weights))


def simulated_conflicts(
    schedulers: int, tasks: int, weights: NDArray[np.float64], rounds: int
) -> tuple[float, float]:
    """Mean conflicts of a round, and its standard error."""
    rng = np.random.default_rng([schedulers, tasks, len(weights)])
    conflicts = [
        np.maximum(picks(rng, schedulers, tasks, weights) - 1, 0).sum() for _ in range(rounds)
    ]
    return float(np.mean(conflicts)), float(np.std(conflicts, ddof=1) / np.sqrt(rounds))
