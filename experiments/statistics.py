"""Means with confidence intervals, and paired comparisons over seeds.

Arms of one seed meet the same workload, so their difference is taken seed by seed: what the seed
does to both cancels. Intervals are Student's t on the seeds' values (exact if those are normal;
with ten seeds their means are near enough). Beside it stands the sign test, which assumes nothing
about the distribution. No correction for the number of comparisons: a table of forty 95 % intervals
has about two that miss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from parsync.metrics.figures import LARGEST, Count, Figures, Number

CONFIDENCE = 0.95

Value = float | int | None


class Interval(Figures):
    """Mean of n values and its confidence limits (None where n < 2).

    Attributes:
        missing: Seeds without the figure; then there is no mean.
        at_least: Some of the values are lower bounds.
    """

    mean: Number | None = None
    low: Number | None = None
    high: Number | None = None
    n: Count
    missing: Count = 0
    at_least: bool = False


class Difference(Figures):
    """An arm minus the baseline, seed by seed.

    Attributes:
        mean, low, high: In the figure's unit.
        relative, relative_low, relative_high: The arm over the baseline, less 1: the geometric mean
            of the seeds' ratios, with the interval of their logarithms, so that a delay can fall by
            at most 100 % (None unless all values are positive).
        lower_in, higher_in: The number of seeds in which the arm's figure was lower, higher.
        sign_p: The p value of the two-sided sign test.
        certain: Whether no interval given here includes "no difference", and what a bound hides
            could only make the difference larger.
        at_least, at_most: Whether in some seed the arm's or the baseline's figure is a lower bound,
            so that the difference is at least or at most what is given (both: it may be anything).
    """

    mean: Number | None = None
    low: Number | None = None
    high: Number | None = None
    relative: Number | None = None
    relative_low: Number | None = None
    relative_high: Number | None = None
    n: Count
    missing: Count = 0
    lower_in: Count
    higher_in: Count
    sign_p: Number | None
    certain: bool
    at_least: bool = False
    at_most: bool = False


def mean_interval(values: Sequence[Value], confidence: float = CONFIDENCE) -> Interval:
    """Student's t interval of the mean. A value of None (a quantile among uncommitted tasks) leaves
    the mean undefined: it is large, not absent."""
    known = [float(value) for value in values if value is not None]
    missing = len(values) - len(known)
    if missing or not known:
        return Interval(n=len(known), missing=missing)
    mean = math.fsum(known) / len(known)
    if len(known) < 2:
        return Interval(mean=mean, n=len(known))
    error = float(np.std(known, ddof=1)) / math.sqrt(len(known))
    half = float(stats.t.ppf((1 + confidence) / 2, len(known) - 1)) * error
    return Interval(mean=mean, low=mean - half, high=mean + half, n=len(known))


def paired_difference(
    arm: Sequence[Value],
    baseline: Sequence[Value],
    confidence: float = CONFIDENCE,
    at_least: bool = False,
    at_most: bool = False,
) -> Difference:
    """Compare two arms whose i-th values are of the same seed.

    Args:
        at_least, at_most: See Difference.

    Raises:
        ValueError: The arms differ in their number of values.
    """
    pairs = list(zip(arm, baseline, strict=True))
    known = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
    differences = [a - b for a, b in known]
    interval = mean_interval(differences, confidence)
    missing = len(pairs) - len(known)
    lower, higher = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
    sign_p = float(stats.binomtest(lower, lower + higher).pvalue) if lower + higher else None
    if missing:
        return Difference(
            n=len(known),
            missing=missing,
            lower_in=lower,
            higher_in=higher,
            sign_p=sign_p,
            certain=False,
            at_least=at_least,
            at_most=at_most,
        )
    ratios = Interval(n=0)
    if known and all(a > 0 and b > 0 for a, b in known):
        ratios = mean_interval([math.log(a) - math.log(b) for a, b in known], confidence)
    return Difference(
        mean=interval.mean,
        low=interval.low,
        high=interval.high,
        relative=_less_one(ratios.mean),
        relative_low=_less_one(ratios.low),
        relative_high=_less_one(ratios.high),
        n=len(known),
        missing=0,
        lower_in=lower,
        higher_in=higher,
        sign_p=sign_p,
        certain=_excludes_zero(interval)
        and (ratios.n == 0 or _excludes_zero(ratios))
        and not (at_least and lower > 0)
        and not (at_most and higher > 0),
        at_least=at_least,
        at_most=at_most,
    )


def _less_one(logarithm: float | None) -> float | None:
    return None if logarithm is None else min(math.expm1(min(logarithm, 700.0)), LARGEST)


def _excludes_zero(interval: Interval) -> bool:
    return (
        interval.low is not None
        and interval.high is not None
        and (interval.low > 0 or interval.high < 0)
    )
