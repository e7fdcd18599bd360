"""What papers state, and whether it holds here.

A claim is written down before its first run: what is computed for each seed, and between which
limits it has to be. So nobody chooses a tolerance that fits what came out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, Protocol

from pydantic import Field

from experiments.analysis.statistics import Interval, fewest_seeds, median_interval
from experiments.analysis.summary_model import SeedFigures
from parsync.metrics.quantity import Figures, Number
from parsync.metrics.summary import ScopeFigures

# What the runs of one seed measured, by label: the figures of an arm on the platform (SeedFigures),
# or arrays, of a run of a model or of the MapReduce jobs of an arm. A figure knows which it has.
RunsOfSeed = Mapping[str, Any]
Value = Callable[[RunsOfSeed], float | None]

_RAISED = 1e6  # times as large
_Place = tuple[str, int]  # a run, and a scope of its figures


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


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that a paper states of a figure or a table.

    Attributes:
        id: The figure's id and a name, such as "fig5.adaptive_bounded".
        source: Where the paper says so.
        statement: What it says, in one sentence.
        paper_value: The paper's value, as the paper gives it; "" if it gives none.
        statistic: What is computed for each seed, with its unit.
        limits: Where the median of the statistic over the seeds has to be.
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
    value: Value
    only_at_paper_scale: bool = False
    incomparable: str = ""


class ClaimResult(Figures):
    """A claim of claims.json.

    Attributes:
        ours: The median of the statistic over the seeds, with its interval, which is not corrected
            for the number of claims.
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


def judge(claim: Claim, seeds: Sequence[RunsOfSeed], at_paper_scale: bool) -> ClaimResult:
    """Whether a claim holds over some seeds.

    It holds if the whole interval of the statistic's median is within the claim's limits, and does
    not hold if none of it is. Few seeds have no interval: then the values of all of them have to be
    within the limits, or outside. Where figures are lower bounds, the same is asked of all that the
    statistic may be.
    """
    ranges = [value_range(claim.value, runs) for runs in seeds]
    values = [one.value for one in ranges]
    least = _within_seeds([one.low for one in ranges])
    most = _within_seeds([one.high for one in ranges])
    ours = median_interval(values)
    if most.estimate != ours.estimate and least.estimate == ours.estimate:
        ours = ours.model_copy(update={"at_least": True})
    verdict, reason = _verdict(claim, ours, least, most, at_paper_scale)
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


class Evidence(Protocol):
    """Whether a live run can be trusted."""

    def why_not_valid(self) -> str:
        """Why it cannot, in one sentence; "" if it can."""


def judge_live(
    claim: Claim, seeds: Sequence[RunsOfSeed], evidence: Sequence[Mapping[str, Evidence]]
) -> ClaimResult:
    """Whether a claim holds over some seeds of live runs, at the demo's scale.

    It is not comparable if a run that its statistic is computed from is not valid.

    Args:
        seeds: What the runs measured, seed by seed from seed 1.
        evidence: Of the live runs, seed by seed.
    """
    used = [UsedRuns(runs) for runs in seeds]
    result = judge(claim, used, at_paper_scale=False)
    reasons = [
        f"{named_run(label, seed, len(evidence))}: {why}"
        for seed, (runs, of_seed) in enumerate(zip(used, evidence, strict=True), start=1)
        for label in runs.labels
        if label in of_seed and (why := of_seed[label].why_not_valid())
    ]
    if reasons:
        result = judge(
            replace(claim, incomparable=" ".join(dict.fromkeys(reasons))),
            seeds,
            at_paper_scale=False,
        )
    return result.model_copy(update={"scale": "demo"})


def named_run(label: str, seed: int, seeds: int) -> str:
    """A run, by its seed only if there are several."""
    return f"'{label}'" if seeds == 1 else f"'{label}' with seed {seed}"


def _verdict(
    claim: Claim, ours: Interval, least: Interval, most: Interval, at_paper_scale: bool
) -> tuple[Verdict, str]:
    """The verdict and its reason.

    Args:
        least, most: Of what the statistic is at least and at most.
    """
    if claim.incomparable:
        return Verdict.NOT_COMPARABLE, claim.incomparable
    if claim.only_at_paper_scale and not at_paper_scale:
        return Verdict.NOT_COMPARABLE, "It is about an absolute number, and the cell is smaller."
    if ours.estimate is None:
        return Verdict.NOT_COMPARABLE, "The statistic has no value in some seed."
    if least.estimate is None or most.estimate is None:
        return Verdict.NOT_COMPARABLE, _of_bounds(ours, least, most, claim.limits)
    low = least.estimate if least.low is None else least.low
    high = most.estimate if most.high is None else most.high
    what, few = "The interval is", ""
    if ours.n == 1:
        what, few = "The value is", " There is only one seed."
    elif ours.low is None:
        what = f"The values of all {ours.n} seeds are"
        few = f" An interval takes {fewest_seeds()} seeds."
    limits = claim.limits.text()
    if claim.limits.contain(low, high):
        return Verdict.HOLDS, f"{what} within the limits ({limits}).{few}"
    if claim.limits.exclude(low, high):
        return Verdict.DOES_NOT_HOLD, f"{what} outside the limits ({limits}).{few}"
    if least.estimate != most.estimate:
        return Verdict.NOT_COMPARABLE, _of_bounds(ours, least, most, claim.limits)
    if few:
        some = f"Some seeds are within the limits ({limits}), some are not.{few}"
        return Verdict.NOT_COMPARABLE, some
    return Verdict.NOT_COMPARABLE, f"The interval crosses a limit ({limits}). More seeds may help."


def _within_seeds(values: Sequence[float | None]) -> Interval:
    """The interval of the median; of few seeds their range, which has no level."""
    found = median_interval(values)
    known = [value for value in values if value is not None]
    if found.estimate is None or found.low is not None:
        return found
    return found.model_copy(update={"low": min(known), "high": max(known)})


def _of_bounds(ours: Interval, least: Interval, most: Interval, limits: Limits) -> str:
    """Why a value that rests on lower bounds does not tell."""
    known = "may be larger or smaller"
    if least.estimate == ours.estimate:
        known = "is at least what is given"
    elif most.estimate == ours.estimate:
        known = "is at most what is given"
    return f"Tasks still waited when a run ended, so the value {known} (limits: {limits.text()})."


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The value of a statistic as it comes out, and what it may be at least and at most."""

    value: float | None
    low: float | None
    high: float | None


class UsedRuns(Mapping[str, Any]):
    """What the runs of a seed measured. labels: those that were looked at."""

    def __init__(self, runs: RunsOfSeed) -> None:
        self._runs = runs
        self.labels: dict[str, None] = {}

    def __getitem__(self, label: str) -> Any:
        self.labels[label] = None
        return self._runs[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


def value_range(statistic: Value, runs: RunsOfSeed) -> ValueRange:
    """The value of a claim's statistic under one seed, and what it may be.

    An arm that leaves tasks waiting has delays that are known only to be at least something. A
    ratio of such a delay to another is at least what comes out, a ratio of another to it at most
    that, and the larger of it and another may be either. So the statistic is computed again with
    these figures raised, one by one and together, as if each were far larger.

    Args:
        runs: What the seed's runs measured, by label. Only figures of a platform run can be lower
            bounds.
    """
    used = UsedRuns(runs)
    value = statistic(used)
    places = [
        (label, number)
        for label in used.labels
        for number, scope in enumerate(_scopes(runs[label]))
        if scope.at_least
    ]
    if value is None or not places:
        return ValueRange(value, value, value)

    def with_raised(raised: Set[_Place]) -> float | None:
        changed = {
            label: _raised(runs[label], {number for of, number in raised if of == label})
            for label in used.labels
        }
        return statistic({**runs, **changed})

    alone = {place: with_raised({place}) for place in places}
    known = {place: found for place, found in alone.items() if found is not None}
    upwards = {place for place, found in known.items() if found >= value}
    downwards = {place for place, found in known.items() if found <= value}
    found = [value, *alone.values(), with_raised(upwards), with_raised(downwards)]
    values = [one for one in found if one is not None]
    if len(values) < len(found):
        return ValueRange(value, None, None)
    return ValueRange(value, min(values), max(values))


def _scopes(run: object) -> list[ScopeFigures]:
    """The scopes of a platform run's figures, in the order of _raised; none of another run."""
    if not isinstance(run, SeedFigures):
        return []
    of_groups = [scope for group in run.groups for scope in (group.overall, *group.phases)]
    return [run.overall, *run.phases, *of_groups]


def _raised(run: Any, numbers: Set[int]) -> Any:
    """The same run, the lower bounds of these scopes raised."""
    if not isinstance(run, SeedFigures):
        return run
    scopes = iter(
        [
            scope.model_copy(update={"at_least": _far_above(scope)}) if place in numbers else scope
            for place, scope in enumerate(_scopes(run))
        ]
    )
    overall = next(scopes)
    phases = [next(scopes) for _ in run.phases]
    groups = [
        group.model_copy(
            update={"overall": next(scopes), "phases": [next(scopes) for _ in group.phases]}
        )
        for group in run.groups
    ]
    update = {"overall": overall, "phases": phases, "groups": groups}
    return run.model_copy(update=update)


def _far_above(scope: ScopeFigures) -> dict[str, float | None]:
    return {
        key: None if bound is None else (bound + 1) * _RAISED
        for key, bound in scope.at_least.items()
    }
