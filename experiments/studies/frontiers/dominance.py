"""The geometry of frontiers: which points are dominated, and how much of a box they dominate.

An architecture can trade delay for quality, so it is a set of points and not one. A point dominates
another that is no better in either figure and worse in one (Pareto). The *dominated area* of a set
is the part of a box in which every place is dominated by one of its points: the hypervolume
indicator (Zitzler and Thiele, IEEE Transactions on Evolutionary Computation 3(4), 1999) with the
box's worst corner as its reference point, over the area of the box.

Delays span decades, so the box measures them by their logarithm. Thus the dominated area has a
plain meaning: it is the mean quality, between the box's worst and best, that a user gets whose
limit on the delay may be anything in the box, every decade being as likely as another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Place = tuple[float, float]  # delay and quality in a box: 0 is its best end, 1 its worst


@dataclass(frozen=True, slots=True)
class Box:
    """The delays and qualities that frontiers are measured in.

    Attributes:
        fastest_us: The least delay in microseconds; shorter ones count as this.
        slowest_us: The largest delay; a point at it or beyond dominates nothing.
        best: The best value of the quality; better ones count as this.
        worst: The worst value; a point at it or beyond dominates nothing. It is below `best` where
            higher values are better.

    Raises:
        ValueError: The box has no area.
    """

    fastest_us: float
    slowest_us: float
    best: float
    worst: float

    def __post_init__(self) -> None:
        if not 0 < self.fastest_us < self.slowest_us or self.best == self.worst:
            raise ValueError("a box needs 0 < fastest_us < slowest_us, and best other than worst")

    def place(self, delay_us: float, quality: float) -> Place:
        """The place of a point in the box: from 0, as good as counts, upwards; 1 and more is
        outside."""
        decades = math.log(self.slowest_us / self.fastest_us)
        delay = math.log(max(delay_us, self.fastest_us) / self.fastest_us) / decades
        return delay, max(0.0, (quality - self.best) / (self.worst - self.best))


def non_dominated(places: Sequence[Place]) -> list[bool]:
    """Whether no other place dominates it, for each place. Equal places do not dominate each
    other."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    kept = [False] * len(places)
    lowest = math.inf  # of the qualities at shorter delays
    start = 0
    while start < len(order):
        delay = places[order[start]][0]
        end = start
        while end < len(order) and places[order[end]][0] == delay:
            end += 1
        best = places[order[start]][1]
        if best < lowest:
            for index in order[start:end]:
                kept[index] = places[index][1] == best
            lowest = best
        start = end
    return kept


def dominated_area(places: Sequence[Place]) -> float:
    """The part of the box that the places dominate, from 0 to 1; 0 without places."""
    inside = sorted(
        (max(0.0, delay), max(0.0, quality))
        for delay, quality in places
        if delay < 1 and quality < 1
    )
    area, lowest = 0.0, 1.0
    for (delay, quality), (end, _) in pairwise([*inside, (1.0, 1.0)]):
        lowest = min(lowest, quality)
        area += (end - delay) * (1 - lowest)
    return area
