"""What the claims of Omega's section 6 are judged by: numbers computed from what a seed's runs keep
of their MapReduce jobs (mapreduce_arrays.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.campaign.task import Arrays
from experiments.reproduce.arithmetic import over, quotient
from experiments.reproduce.claims import ModelsOfSeed
from experiments.reproduce.mapreduce_arrays import RUN_US, USED_AT_US, USED_PERMILLE
from experiments.reproduce.omega_mapreduce_runs import REQUESTED, at_policy
from experiments.results.mapreduce import speedups_of

Value = Callable[[ModelsOfSeed], float | None]
Floats = NDArray[np.float64]
Statistic = Callable[[Floats], np.floating[Any]]

LEAST_GAIN = 1.05  # times as fast: a job gains if it is at least that
FILLING = 0.1  # of the time of arrivals, in which the cell fills up: not part of its use


def speedups(runs: ModelsOfSeed, cell: str, policy: str) -> Floats:
    """The speed-up of each job over its run with the workers that were asked for: float64[k]."""
    arrays, before = runs[at_policy(cell, policy)], runs[at_policy(cell, REQUESTED)]
    return speedups_of(arrays[RUN_US], before[RUN_US])


def use(arrays: Arrays) -> Floats:
    """The use of the cell at each sample, without the first part of the run: float64[s]."""
    at_us = arrays[USED_AT_US]
    if not len(at_us):
        return np.zeros(0)
    used: Floats = arrays[USED_PERMILLE][at_us >= FILLING * at_us[-1]] / 1000
    return used


def gaining_share(cell: str, policy: str) -> Value:
    """The share of the jobs that gain."""
    return _of_speedups(cell, policy, lambda found: np.mean(found >= LEAST_GAIN))


def speedup_at(cell: str, policy: str, share: float) -> Value:
    """The quantile of the speed-ups at a share of the jobs."""
    return _of_speedups(cell, policy, lambda found: np.quantile(found, share))


def use_above(label: str, level: float) -> Value:
    """The share of the time in which more of the cell is in use than this."""
    return _of_use(label, lambda found: np.mean(found > level))


def use_mean(label: str) -> Value:
    """The mean use of the cell over time."""
    return _of_use(label, np.mean)


def use_at(label: str, share: float) -> Value:
    """The quantile of the use of the cell over time."""
    return _of_use(label, lambda found: np.quantile(found, share))


def use_deviation(label: str) -> Value:
    """The standard deviation of the use of the cell over time."""
    return _of_use(label, np.std)


def ratio(value: Value, other: Value) -> Value:
    """One value over another."""
    return lambda runs: quotient(value(runs), other(runs))


def least(values: Sequence[Value]) -> Value:
    """The least of some values."""
    return lambda runs: over(min, [value(runs) for value in values])


def _of_speedups(cell: str, policy: str, statistic: Statistic) -> Value:
    return lambda runs: _known(speedups(runs, cell, policy), statistic)


def _of_use(label: str, statistic: Statistic) -> Value:
    return lambda runs: _known(use(runs[label]), statistic)


def _known(found: Floats, statistic: Statistic) -> float | None:
    """A statistic of some numbers; None if there are none."""
    return float(statistic(found)) if len(found) else None
