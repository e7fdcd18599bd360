"""The sentences and numbers of a sweep, for its page and the terminal."""

from __future__ import annotations

from experiments.statistics import CONFIDENCE, Interval
from experiments.sweeps.looks import LOOKS
from experiments.sweeps.result import ArmComparison, ArmResult, SweepSummary
from parsync.metrics.quantity import Quantity, Unit, counted


def interval_text(quantity: Quantity, interval: Interval) -> str:
    """A mean with half the width of its interval."""
    text = quantity.text(interval.mean, interval.at_least)
    if interval.low is None or interval.high is None:
        return text
    return f"{text} ± {quantity.spread_text((interval.high - interval.low) / 2)}"


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
    if difference.mean is None:
        return ""
    text = quantity.difference_text(difference.mean)
    if difference.at_least or difference.at_most:
        return f"{text} (rests on a lower bound)"
    if difference.low is None or difference.high is None:
        return text
    ends = [quantity.difference_text(end) for end in (difference.low, difference.high)]
    return f"{text} ({ends[0]} to {ends[1]}{'' if difference.certain else ': unsure'})"


def basis_sentence(summary: SweepSummary) -> str:
    """What the figures rest on."""
    seeds = sorted({len(one.seeds) for one in summary.combinations})
    if seeds[-1] < 2:
        return "One seed each: differences may be due to chance."
    over = f"{seeds[0]} seeds" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    return (
        f"Means over {over}, ± half their {CONFIDENCE:.0%} interval. Differences are taken seed by "
        "seed. Intervals are not corrected for how many there are."
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
        else f"{summary.until} of the baseline's mean"
    )
    return (
        f"{metric.label}: {reached} of {counted(len(known), 'difference')} to a baseline "
        f"{'is' if reached == 1 else 'are'} known to within {target}. Looked at after "
        f"{', '.join(map(str, LOOKS[:-1]))} and {LOOKS[-1]} seeds; these intervals are corrected "
        f"for the looks and for the differences of a combination, which all hold together with "
        f"{CONFIDENCE:.0%}."
    )
