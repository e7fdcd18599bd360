"""What papers state, and whether it holds here.

A claim is written down before its first run: what is computed for each seed, and between which
limits it has to be. So nobody chooses a tolerance that fits what came out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Literal, TypeVar

from pydantic import Field

from experiments.model_runs.run import Arrays
from experiments.statistics import Interval, mean_interval
from experiments.summary_model import SeedFigures
from parsync.metrics.figures import Figures, Number

M = TypeVar("M")  # what a run measures

# The figures of the arms of one seed, by the arm's name.
ArmsOfSeed = Mapping[str, SeedFigures]
# The results of the runs of models under one seed, by the run's label.
ModelsOfSeed = Mapping[str, Arrays]


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does_not_hold"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits between which a statistic supports a claim; None: no limit on that side.

    Attributes:
        strict: Whether the limits themselves are outside. For claims of a difference: two runs that
            are the same in every event show none.

    Raises:
        ValueError: There is no limit, or the lower one is above the upper one, or both are strict.
    """

    low: float | None = None
    high: float | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError("limits: expected at least one")
        if self.strict and self.low is not None and self.high is not None:
            raise ValueError("limits: expected only one that is strict")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"limits: expected low <= high, got {self.low} and {self.high}")

    def contain(self, low: float, high: float) -> bool:
        """Whether all values from low to high are within the limits."""
        if self.strict and (low == self.low or high == self.high):
            return False
        return (self.low is None or low >= self.low) and (self.high is None or high <= self.high)

    def exclude(self, low: float, high: float) -> bool:
        """Whether no value from low to high is within the limits."""
        if self.strict and (high == self.low or low == self.high):
            return True
        return (self.low is not None and high < self.low) or (
            self.high is not None and low > self.high
        )

    def text(self) -> str:
        """The limits in words, such as "at least 0.9", "above 1" or "0.9 to 1.1"."""
        above, below = ("above", "below") if self.strict else ("at least", "at most")
        if self.low is None:
            return f"{below} {self.high:g}"
        return f"{above} {self.low:g}" if self.high is None else f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)  # slots and a generic alias do not go together
class ClaimOf(Generic[M]):
    """Something that a paper states of a figure or a table.

    Attributes:
        id: The figure's id and a name, such as "fig5.adaptive_bounded".
        source: Where the paper says so.
        statement: What it says, in one sentence.
        paper_value: The paper's value, as the paper gives it; "" if it gives none.
        statistic: What is computed for each seed, with its unit.
        limits: Where the mean of the statistic has to be.
        value: Computes the statistic from what a seed's runs measured, by label; None if it has no
            value.
        only_at_paper_scale: A smaller cell cannot show it, since it is about an absolute number.
        incomparable: Why no run can show it, in one sentence; "" if runs can. The statistic is then
            that of what stands in.
    """

    id: str
    source: str
    statement: str
    paper_value: str
    statistic: str
    limits: Limits
    value: Callable[[Mapping[str, M]], float | None]
    only_at_paper_scale: bool = False
    incomparable: str = ""


Claim = ClaimOf[SeedFigures]
ModelClaim = ClaimOf[Arrays]


class ClaimResult(Figures):
    """A claim of claims.json.

    Attributes:
        ours: The mean of the statistic over the seeds, with its 95 % interval (Student's t).
        limits: In words.
        scale: Of the runs it was judged from; "demo": live, on the demo's cell.
        reason: Why the verdict is what it is, in one sentence.
    """

    id: str = Field(pattern=r"^[a-z0-9_]+\.[a-z0-9_]+$")
    source: str
    statement: str
    paper_value: str
    statistic: str
    limits: str
    ours: Interval
    values: list[Number | None]
    scale: Literal["smoke", "paper", "demo"]
    verdict: Literal["holds", "does_not_hold", "not_comparable"]
    reason: str


def judge(claim: ClaimOf[M], seeds: Sequence[Mapping[str, M]], at_paper_scale: bool) -> ClaimResult:
    """Whether a claim holds over some seeds.

    It holds if the whole interval of the statistic's mean is within the claim's limits, and does
    not hold if none of it is. A single seed has no interval, so its value alone decides.
    """
    values = [claim.value(runs) for runs in seeds]
    ours = mean_interval(values)
    verdict, reason = _verdict(claim, ours, at_paper_scale)
    return ClaimResult(
        id=claim.id,
        source=claim.source,
        statement=claim.statement,
        paper_value=claim.paper_value,
        statistic=claim.statistic,
        limits=claim.limits.text(),
        ours=ours,
        values=values,
        scale="paper" if at_paper_scale else "smoke",
        verdict=verdict.value,
        reason=reason,
    )


def _verdict(claim: ClaimOf[M], ours: Interval, at_paper_scale: bool) -> tuple[Verdict, str]:
    if claim.incomparable:
        return Verdict.NOT_COMPARABLE, claim.incomparable
    if claim.only_at_paper_scale and not at_paper_scale:
        return Verdict.NOT_COMPARABLE, "It is about an absolute number, and the cell is smaller."
    if ours.mean is None:
        return Verdict.NOT_COMPARABLE, "The statistic has no value in some seed."
    low = ours.mean if ours.low is None else ours.low
    high = ours.mean if ours.high is None else ours.high
    what = "The value" if ours.low is None else "The interval"
    of_one = " There is only one seed." if ours.low is None else ""
    limits = claim.limits.text()
    if claim.limits.contain(low, high):
        return Verdict.HOLDS, f"{what} is within the limits ({limits}).{of_one}"
    if claim.limits.exclude(low, high):
        return Verdict.DOES_NOT_HOLD, f"{what} is outside the limits ({limits}).{of_one}"
    return Verdict.NOT_COMPARABLE, f"The interval crosses a limit ({limits}). More seeds may help."
