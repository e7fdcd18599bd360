"""The fluid bound of a load phase, as summary.json has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from parsync.metrics.quantity import Figures, Number

Share = Annotated[float, Field(ge=0, le=1)]


class PhaseBound(Figures):
    """What schedulers could reach at most if the load of a phase went on.

    Attributes:
        rates: Whether arrivals per second are those that the options say or those that came true.
        is_estimate: Machines have several resources, so that this is no strict bound.
        random_share: The preferred share if each task took a free slot at random.
        preferred_share: The highest preferred share. Like the next two None if there is no steady
            state, or the bound could not be computed.
        cost_mean: The lowest mean placement cost.
        occupancy: The part of the slots that is busy at the highest preferred share.
        highest_load: Where there is no steady state, the factor by which all rates would have to be
            multiplied for one; else None.
    """

    rates: Literal["expected", "realised"]
    is_estimate: bool
    random_share: Share
    preferred_share: Share | None
    cost_mean: Number | None
    occupancy: Number | None
    highest_load: Share | None

    @property
    def is_steady(self) -> bool:
        """Whether there is a bound: it is known, and there is a steady state."""
        return self.preferred_share is not None

    def way(self, preferred_share: float | None) -> float | None:
        """Which part of the way from random placement to the bound a preferred share has come;
        below 0 for less than random. None where there is no way to go, or it is not known."""
        if preferred_share is None or self.preferred_share is None:
            return None
        gap = self.preferred_share - self.random_share
        return (preferred_share - self.random_share) / gap if gap > 1e-9 else None


def bound_over(bounds: Sequence[PhaseBound | None], weight: Sequence[float]) -> PhaseBound | None:
    """The mean of several bounds by weight. None unless each bound of some weight is known and has
    a steady state."""
    weighed = [(one, part) for one, part in zip(bounds, weight, strict=True) if part > 0]
    known = [(one, part) for one, part in weighed if one is not None and one.is_steady]
    if not known or len(known) < len(weighed):
        return None
    total = sum(part for _, part in known)

    def mean(key: str) -> float | None:
        values = [(getattr(one, key), part) for one, part in known]
        if any(value is None for value, _ in values):
            return None
        return float(sum(value * part for value, part in values) / total)

    keys = ("random_share", "preferred_share", "cost_mean", "occupancy")
    return known[0][0].model_copy(update={key: mean(key) for key in keys})
