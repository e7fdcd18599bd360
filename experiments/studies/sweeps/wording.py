"""The sentences and numbers of a sweep, for its page and the terminal."""

from __future__ import annotations

from experiments.analysis.statistics import (
    FAMILY_LEVEL,
    Interval,
    fewest_seeds,
    interval_in_words,
    level_of_seeds,
    level_text,
    seeds_needed,
)
from experiments.studies.sweeps.looks import LOOKS
from experiments.studies.sweeps.result import (
    ArmComparison,
    ArmResult,
    CombinationResult,
    SweepSummary,
)
from parsync.metrics.quantity import Quantity, Unit, counted, from_to


def interval_text(quantity: Quantity, interval: Interval) -> str:
    """A median with its interval."""
    text = quantity.text(interval.estimate, interval.at_least)
    if interval.spread is None:
        return text
    low, high = interval.spread
    return f"{text} ({from_to(quantity.text(low), quantity.text(high))})"


def baselines(summary: SweepSummary) -> list[str]:
    """The arms that others are compared with."""
    compared = (its for one in summary.combinations for arm in one.arms for its in arm.comparisons)
    return list(dict.fromkeys(its.baseline for its in compared))


def difference_texts(quantity: Quantity, arm: ArmResult, several: bool) -> list[str]:
    """The difference to each baseline with its interval; none for the baseline.

    Args:
        several: Whether arms have several baselines, so that each is named.
    """
    texts = [(its.baseline, difference_text(quantity, its)) for its in arm.comparisons]
    return [f"to {baseline}: {text}" if several else text for baseline, text in texts if text]


def difference_text(quantity: Quantity, comparison: ArmComparison) -> str:
    """The difference to a baseline with its interval; "" where it is not known."""
    difference = comparison.differences[quantity.key]
    if difference.estimate is None:
        return ""
    if difference.is_equal:
        return "same"
    text = quantity.difference_text(difference.estimate)
    if difference.at_least or difference.at_most:
        return f"{text} (rests on a lower bound)"
    if difference.absolute.spread is None:
        return text
    ends = from_to(*(quantity.difference_text(end) for end in difference.absolute.spread))
    return f"{text} ({ends}{'' if difference.certain else ': unsure'})"


def basis_sentence(summary: SweepSummary) -> str:
    """What the figures rest on."""
    seeds = sorted({len(one.seeds) for one in summary.combinations})
    if seeds[-1] < 2:
        return "One seed each: differences may be due to chance."
    over = f"{seeds[0]} seeds" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    if level_of_seeds(seeds[-1]) is None:
        return (
            f"Medians over {over}, which are not enough for intervals: these take "
            f"{fewest_seeds()}. Differences may be due to chance."
        )
    levels = [level_text(level_of_seeds(one)) for one in seeds]
    intervals = (
        interval_in_words(seeds[0])
        if len(seeds) == 1
        else "intervals of "
        + ", ".join(
            f"{level} ({counted(one, 'seed')})"
            for one, level in zip(seeds, levels, strict=True)
            if level
        )
    )
    return (
        f"Medians over {over}, {intervals}. Differences are taken seed by seed. Intervals are not "
        "corrected for how many there are."
    )


def until_sentence(summary: SweepSummary) -> str:
    """What came of `until`; "" if it was not asked for."""
    if not summary.until:
        return ""
    metric = summary.quantity(summary.metrics[0])
    known = [
        difference
        for one in summary.combinations
        for arm in one.arms
        for compared in arm.comparisons
        if (difference := compared.known) is not None
    ]
    reached = sum(one.reached for one in known)
    target = (
        f"{summary.until.strip().removesuffix('%').strip()} percentage points"
        if metric.unit is Unit.SHARE
        else f"{summary.until} of the baseline's median"
    )
    needed = seeds_needed(len(LOOKS) * max(map(_compared, summary.combinations)))
    few = sum(one.difference.estimate is not None and one.difference.low is None for one in known)
    too_few = (
        f" {few} {'has' if few == 1 else 'have'} not enough seeds ({needed} needed)." if few else ""
    )
    return (
        f"{metric.label}: {reached} of {counted(len(known), 'difference')} to a baseline "
        f"{'is' if reached == 1 else 'are'} known to within {target}.{too_few} Looked at after "
        f"{', '.join(map(str, LOOKS[:-1]))} and {LOOKS[-1]} seeds; these intervals are corrected "
        f"for the looks and for the differences of a combination, which all hold together with "
        f"{level_text(FAMILY_LEVEL)}."
    )


def _compared(one: CombinationResult) -> int:
    """The number of differences of a combination."""
    return sum(len(arm.comparisons) for arm in one.arms)
