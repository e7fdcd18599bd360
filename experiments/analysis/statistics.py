"""Medians over seeds with intervals, and paired comparisons over seeds.

What is estimated is the median over seeds: half of all seeds give less, half give more. Its
interval goes from one seed's value to another's, equally far from both ends of the sorted values.
How often such an interval covers the median follows from the binomial distribution alone, whatever
the figure's own distribution: each seed is below the median with probability 1/2. So the level of
an interval is known exactly, but only some levels exist: five seeds have their range with 93.75 %,
ten seeds the second to the ninth with 97.85 %, and fewer than five have none (LEAST_LEVEL). Figures
that tie are covered at least as often. docs/intervals.md measures this on runs, beside Student's t
of the values and of their logarithms, which cover less than they say.

Arms of one seed meet the same workload, so their difference is taken seed by seed: what the seed
does to both cancels. The interval of the differences and that of the ratios end at the same places
in order, so both exclude "no difference", or neither does. Intervals are not corrected for the
number of comparisons, unless a higher level is asked for (corrected_level).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from parsync.metrics.quantity import LARGEST, Count, Figures, Number

ESTIMAND: Literal["median over seeds"] = "median over seeds"
LEAST_LEVEL = 0.93  # of an interval that is printed; the range of five seeds has 0.9375
FAMILY_LEVEL = 0.95  # of intervals that hold together

Value = float | int | None


class Interval(Figures):
    """An estimate from n seeds and its interval.

    Attributes:
        estimand: What is estimated.
        estimate: None where a seed lacks the figure, or there is none.
        low, high: The limits, None where n is too small for the level that was asked for.
        level: How often such an interval covers what is estimated; None without limits.
        n: Seeds with the figure.
        missing: Seeds without it; then there is no estimate.
        at_least: Some of the values are lower bounds.
        varied: Whether the seeds made any difference to the figure (seeds_varied). If not, the
            limits are the estimate itself, and say nothing of other seeds.
    """

    estimand: Literal["median over seeds"] = ESTIMAND
    estimate: Number | None = None
    low: Number | None = None
    high: Number | None = None
    level: Number | None = None
    n: Count
    missing: Count = 0
    at_least: bool = False
    varied: bool = False

    @property
    def spread(self) -> tuple[float, float] | None:
        """The limits to print; None where there are none, the seeds made no difference, or values
        are lower bounds."""
        if self.low is None or self.high is None or not self.varied or self.at_least:
            return None
        return self.low, self.high


class Difference(Figures):
    """An arm compared with a baseline, seed by seed.

    Attributes:
        absolute: The median of the arm's figures minus the baseline's, in the figure's unit.
        relative: The median of the arm's figures over the baseline's, less 1; its estimate is None
            unless all values are positive.
        lower_in, higher_in: The number of seeds in which the arm's figure was lower, higher.
        sign_p: The p value of the two-sided sign test.
        certain: Whether the intervals exclude "no difference", and what a bound hides could only
            make the difference larger.
        at_least, at_most: Whether in some seed the arm's or the baseline's figure is a lower bound,
            so that the difference is at least or at most what is given (both: it may be anything).
    """

    absolute: Interval
    relative: Interval
    lower_in: Count
    higher_in: Count
    sign_p: Number | None
    certain: bool
    at_least: bool = False
    at_most: bool = False

    @property
    def estimate(self) -> float | None:
        """The difference, in the figure's unit."""
        return self.absolute.estimate

    @property
    def is_equal(self) -> bool:
        """Whether both arms have the same figure under every seed."""
        return self.estimate is not None and self.lower_in == self.higher_in == 0

    @property
    def too_few_seeds(self) -> bool:
        """Whether there are too few seeds for an interval."""
        return self.estimate is not None and self.absolute.low is None


def seeds_varied(values: Sequence[Value]) -> bool:
    """Whether the seeds made any difference to a figure.

    Where they made none, nothing was sampled: the workload is a trace that no seed changes, and the
    scheduler draws nothing. Then an interval over seeds, or a count of seeds, says nothing.
    """
    return len(set(values)) > 1


def seeds_needed(comparisons: int) -> int:
    """The least number of seeds with which so many intervals can hold together (Bonferroni): 1 +
    log2(comparisons / (1 - FAMILY_LEVEL)), rounded up."""
    level = corrected_level(comparisons)
    seeds = 2
    while _level(seeds, 0) < level:
        seeds += 1
    return seeds


def corrected_level(comparisons: int) -> float:
    """The level of each of so many intervals that hold together with FAMILY_LEVEL (Bonferroni)."""
    return 1 - (1 - FAMILY_LEVEL) / max(1, comparisons)


def fewest_seeds() -> int:
    """The least number of seeds that have an interval."""
    return next(seeds for seeds in range(2, 100) if _level(seeds, 0) >= LEAST_LEVEL)


def median_interval(
    values: Sequence[Value], level: float = LEAST_LEVEL, at_least: bool = False
) -> Interval:
    """The median over seeds, and the shortest interval of order statistics with at least a level.

    Args:
        values: A value for each seed. None (a quantile among uncommitted tasks) leaves the estimate
            undefined: it is large, not absent.
        level: The least level of the interval; it has no limits if n is too small for this level.
        at_least: See Interval.
    """
    known = sorted(float(value) for value in values if value is not None)
    n, missing = len(known), len(values) - len(known)
    if missing or not known:
        return Interval(n=n, missing=missing, at_least=at_least)
    estimate = known[n // 2] if n % 2 else _middle(known[n // 2 - 1], known[n // 2])
    varied = seeds_varied(known)
    ranks = _ranks(n, level)
    if ranks is None:
        return Interval(estimate=estimate, n=n, at_least=at_least, varied=varied)
    place, exact = ranks
    return Interval(
        estimate=estimate,
        low=known[place],
        high=known[n - 1 - place],
        level=exact,
        n=n,
        at_least=at_least,
        varied=varied,
    )


def paired_difference(
    arm: Sequence[Value],
    baseline: Sequence[Value],
    level: float = LEAST_LEVEL,
    at_least: bool = False,
    at_most: bool = False,
) -> Difference:
    """Compare two arms whose i-th values are of the same seed.

    Args:
        level: The least level of the intervals.
        at_least, at_most: See Difference.

    Raises:
        ValueError: The arms differ in their number of values.
    """
    pairs = list(zip(arm, baseline, strict=True))
    known = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
    missing = len(pairs) - len(known)
    absolute = median_interval([a - b for a, b in known], level)
    relative = Interval(n=len(known), missing=missing)
    if missing:
        absolute = relative
    elif known and all(a > 0 and b > 0 for a, b in known):
        relative = _ratios_less_one(known, level)
    lower, higher = sum(a < b for a, b in known), sum(a > b for a, b in known)
    return Difference(
        absolute=absolute,
        relative=relative,
        lower_in=lower,
        higher_in=higher,
        sign_p=_sign_p(lower, higher),
        certain=_excludes_zero(absolute)
        and not (at_least and lower > 0)
        and not (at_most and higher > 0),
        at_least=at_least,
        at_most=at_most,
    )


def level_text(level: float | None) -> str:
    """A level as it is printed, such as "93.75 %"; "" without one."""
    return "" if level is None else f"{100 * level:.4g} %"


def level_of_seeds(seeds: int) -> float | None:
    """The level of an interval over so many seeds; None if they have none."""
    ranks = _ranks(seeds, LEAST_LEVEL)
    return None if ranks is None else ranks[1]


def interval_in_words(seeds: int) -> str:
    """What an interval over so many seeds is, such as "93.75 % interval (lowest to highest
    seed)"; for too few, that there is none."""
    ranks = _ranks(seeds, LEAST_LEVEL)
    if ranks is None:
        return f"no interval: it takes {fewest_seeds()} seeds"
    place, level = ranks
    ends = (
        "the lowest to the highest seed"
        if place == 0
        else f"the {_ordinal(place + 1)} to the {_ordinal(seeds - place)} of the sorted seeds"
    )
    return f"{level_text(level)} interval ({ends})"


def _ordinal(number: int) -> str:
    tens, units = number % 100, number % 10
    ending = {1: "st", 2: "nd", 3: "rd"}.get(units, "th") if tens not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def _ratios_less_one(pairs: Sequence[tuple[float, float]], level: float) -> Interval:
    """The median of ratios less 1. Between two ratios their geometric mean is taken, so that
    swapping the arms turns the ratio over."""
    ratios = sorted(min(a / b, LARGEST) for a, b in pairs)
    n = len(ratios)
    middle = math.sqrt(ratios[(n - 1) // 2]) * math.sqrt(ratios[n // 2])
    found = median_interval(ratios, level)
    estimate = ratios[n // 2] if n % 2 or ratios[n // 2] == ratios[n // 2 - 1] else middle
    return found.model_copy(
        update={
            "estimate": estimate - 1,
            "low": None if found.low is None else found.low - 1,
            "high": None if found.high is None else found.high - 1,
        }
    )


def _middle(one: float, other: float) -> float:
    """The mean of two values; of equal values exactly that value."""
    return one if one == other else one + (other - one) / 2


def _ranks(n: int, level: float) -> tuple[int, float] | None:
    """The place of the lower limit among n sorted values, counted from 0, and the level of the
    interval from there to the same place from above: the shortest that has at least the level."""
    best = None
    for place in range(n // 2):
        exact = _level(n, place)
        if exact < level:
            break
        best = place, exact
    return best


def _level(n: int, place: int) -> float:
    """The probability that the median is between the values at this place from below and from
    above, of n sorted ones: 1 - 2 P(B <= place) with B binomial (n, 1/2)."""
    outside = sum(math.comb(n, k) for k in range(place + 1))
    return 1.0 - outside / (1 << (n - 1))


def _sign_p(lower: int, higher: int) -> float | None:
    n = lower + higher
    if n == 0:
        return None
    tail = sum(math.comb(n, k) for k in range(min(lower, higher) + 1))
    return min(1.0, tail / (1 << (n - 1)))


def _excludes_zero(interval: Interval) -> bool:
    return (
        interval.low is not None
        and interval.high is not None
        and (interval.low > 0 or interval.high < 0)
    )
