"""How many seeds a comparison needs: seeds are added until a difference is known well enough.

The difference of two arms is looked at after 10, 20 and 40 seeds. Whoever looks several times, and
stops when the interval is short, sees one that misses the truth more often than a single look
does. So every interval has at least the level 1 - 0.05 / (looks x differences) (Bonferroni): all
intervals of a combination, at all looks, hold together with at least 95 %. That is true for every
rule that decides by the looks when to stop. A look after too few seeds for that level gives no
interval (experiments.analysis.statistics.seeds_needed).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from experiments.analysis.statistics import Interval, Value, corrected_level, median_interval
from parsync.metrics.quantity import Count, Figures, Number, Unit
from shared_state.errors import AgoraError

LOOKS = (10, 20, 40)  # seeds


@dataclass(frozen=True, slots=True)
class Target:
    """How well a difference is to be known.

    Attributes:
        half_width: How far its interval reaches from the estimate: a part of the baseline's median,
            or for shares a difference of shares (0.02: two percentage points).
    """

    half_width: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """The target of a text such as "2%". Raises AgoraError for any other."""
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
        percent = float(match[1]) if match and len(text) <= 20 else 0.0
        if not 0 < percent <= 100:
            raise AgoraError(f"sweep.until: expected a percentage such as 2%, got {text!r}")
        return cls(percent / 100)


class KnownDifference(Figures):
    """An arm minus the baseline after a look.

    Attributes:
        difference: In the figure's unit; without an estimate where a figure is missing, and without
            limits after too few seeds.
        half_width: As in Target; None where it cannot be told.
        seeds: How many the look is after.
        reached: Whether the target is.
    """

    difference: Interval
    half_width: Number | None
    seeds: Count
    reached: bool


def looked_level(differences: int) -> float:
    """The level of each interval of a combination that compares so many differences."""
    return corrected_level(len(LOOKS) * max(1, differences))


def look(
    arm: Sequence[Value],
    baseline: Sequence[Value],
    unit: Unit,
    target: Target,
    differences: int,
) -> KnownDifference:
    """What is known of a difference now.

    Args:
        arm, baseline: The figure under each seed.
        unit: Of the figure.
        target: How well it is to be known.
        differences: How many are compared in the combination, this one included.
    """
    pairs = zip(arm, baseline, strict=True)
    interval = median_interval(
        [None if one is None or other is None else one - other for one, other in pairs],
        looked_level(differences),
    )
    half = None
    if interval.estimate is not None and interval.low is not None and interval.high is not None:
        reach = max(interval.high - interval.estimate, interval.estimate - interval.low)
        half = _relative(reach, baseline, unit)
    return KnownDifference(
        difference=interval,
        half_width=half,
        seeds=len(arm),
        reached=half is not None and half <= target.half_width,
    )


def _relative(half: float, baseline: Sequence[Value], unit: Unit) -> float | None:
    if unit is Unit.SHARE or half == 0:
        return half
    median = abs(median_interval(baseline).estimate or 0)
    return half / median if median else None
