"""The statistics of the claims on Eq. 2 and Figs. 2 to 4. One that is not known is None."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from experiments.campaign.task import Arrays
from experiments.model_runs.run import number
from experiments.model_runs.searches import extra_slots
from experiments.reproduce.claims import ModelsOfSeed
from experiments.reproduce.model_settings import (
    DIFF,
    EQ2_FACTORS,
    FIG2_FACTORS,
    FIG4_PHASE_S,
    SAME,
    eq2_label,
    line_label,
    point_label,
)

Value = Callable[[ModelsOfSeed], float | None]

LAST_S = 5.0  # of a phase, for what holds at its end
SETTLE_S = 10.0  # of a phase, left out of its means


def largest_deviation(runs: ModelsOfSeed) -> float | None:
    """The largest deviation of simulated conflicts from Eq. 2, in standard errors."""
    return largest(
        abs(float(one["mean"]) - float(one["expected"])) / float(one["error"])
        for one in runs.values()
    )


def saved_ratio(runs: ModelsOfSeed) -> float | None:
    """Conflicts that an idle slot saves between 1 and 2 times the slots, over those between 2 and
    4 times, where there are twice as many further slots."""
    once, twice, four = (float(runs[eq2_label(1, times)]["mean"]) for times in (1, 2, 4))
    return over(once - twice, (twice - four) / 2)


def least_growth(runs: ModelsOfSeed) -> float | None:
    """The least ratio of conflicts at an A to those at half of it."""
    means = [number(runs[eq2_label(factor, 1)], "mean") for factor in EQ2_FACTORS]
    return least(over(more, less_) for less_, more in pairwise(means))


def line(runs: ModelsOfSeed, axis: str, name: str) -> dict[float, Arrays]:
    """The searches of a line of Figs. 2 and 3 by the value of the axis, ascending."""
    start = point_label(name, axis, 0)[:-1]
    found = {
        float(label.removeprefix(start)): arrays
        for label, arrays in runs.items()
        if label.startswith(start)
    }
    return dict(sorted(found.items()))


def growth(runs: ModelsOfSeed, axis: str, name: str) -> float | None:
    """S_extra at the largest value of the axis less that at the least, share of S."""
    shares = [_share(arrays) for arrays in line(runs, axis, name).values()]
    return less(shares[-1], shares[0])


def spread(runs: ModelsOfSeed, axis: str, name: str) -> float | None:
    """The largest difference of S_extra between values of the axis, share of S."""
    return range_of([_share(arrays) for arrays in line(runs, axis, name).values()])


def saved_by_factor(runs: ModelsOfSeed, axis: str) -> float | None:
    """S_extra saved by the last doubling of A over that saved by the one before."""
    lines = [line(runs, axis, line_label(factor)) for factor in FIG2_FACTORS]
    saved = [0.0, 0.0]
    for value in lines[0]:
        shares = [_share(of[value]) for of in lines]
        known = [share for share in shares if share is not None]
        if len(known) == len(shares):
            saved[0] += known[0] - known[1]
            saved[1] += known[1] - known[2]
    return over(saved[1], saved[0]) if saved[0] > 0 else None


def same_less_diff(axis: str, factor: int) -> Value:
    """The mean of S_extra under SameSyn less that under DiffSyn, share of S."""

    def value(runs: ModelsOfSeed) -> float | None:
        same = line(runs, axis, line_label(factor, SAME))
        diff = line(runs, axis, line_label(factor, DIFF))
        both = [less(_share(same[one]), _share(diff[one])) for one in same]
        known = [one for one in both if one is not None]
        return float(np.mean(known)) if known else None

    return value


def mean(arrays: Arrays, name: str, phase: int, group: int) -> float | None:
    """The mean of a group's medians in a phase, less its first seconds."""
    return _over_time(arrays, name, group, phase * FIG4_PHASE_S + SETTLE_S, phase)


def at_end(arrays: Arrays, name: str, phase: int, group: int) -> float | None:
    """The mean of a group's medians in the last seconds of a phase."""
    return _over_time(arrays, name, group, (phase + 1) * FIG4_PHASE_S - LAST_S, phase)


def utilisation(arrays: Arrays, phase: int) -> float | None:
    """The mean utilisation in a phase, less its first seconds."""
    bins = _within(arrays, phase * FIG4_PHASE_S + SETTLE_S, (phase + 1) * FIG4_PHASE_S)
    return float(arrays["utilisation"][bins].mean())


def largest(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return None if known is None else max(known)


def least(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return None if known is None else min(known)


def range_of(values: Iterable[float | None]) -> float | None:
    """The largest value less the least."""
    known = _known(values)
    return None if known is None else max(known) - min(known)


def less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def over(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _share(arrays: Arrays) -> float | None:
    found = extra_slots(arrays)
    return None if found is None else found / float(arrays["slots"])


def _over_time(arrays: Arrays, name: str, group: int, start_s: float, phase: int) -> float | None:
    bins = _within(arrays, start_s, (phase + 1) * FIG4_PHASE_S)
    medians = arrays[name][bins, group, 1]
    known = medians[~np.isnan(medians)]
    return float(known.mean()) if len(known) else None


def _within(arrays: Arrays, start_s: float, end_s: float) -> slice:
    """The bins that end within (start, end]."""
    first, last = np.searchsorted(arrays["end_s"], [start_s, end_s], side="right")
    return slice(int(first), int(last))


def _known(values: Iterable[float | None]) -> list[float] | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return known if known and len(known) == len(found) else None
