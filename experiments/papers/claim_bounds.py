"""What a claim's statistic may be where figures that it is computed from are lower bounds.

An arm that leaves tasks waiting has delays that are known only to be at least something. A ratio of
such a delay to another is at least what comes out, a ratio of another to it at most that, and the
larger of it and another may be either. So the statistic is computed again with these figures
raised, one by one and together, as if each were far larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import TypeVar, cast

from experiments.summary_model import SeedFigures
from parsync.metrics.summary import ScopeFigures

M = TypeVar("M")  # what a run measures

_RAISED = 1e6  # times as large
_Place = tuple[str, int]  # a run, and a scope of its figures


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The value of a statistic as it comes out, and what it may be at least and at most."""

    value: float | None
    low: float | None
    high: float | None


class UsedRuns(Mapping[str, M]):
    """What the runs of a seed measured. labels: those that were looked at."""

    def __init__(self, runs: Mapping[str, M]) -> None:
        self._runs = runs
        self.labels: dict[str, None] = {}

    def __getitem__(self, label: str) -> M:
        self.labels[label] = None
        return self._runs[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


def value_range(
    statistic: Callable[[Mapping[str, M]], float | None], runs: Mapping[str, M]
) -> ValueRange:
    """The value of a claim's statistic under one seed.

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


def _raised(run: M, numbers: Set[int]) -> M:
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
    return cast(M, run.model_copy(update=update))


def _far_above(scope: ScopeFigures) -> dict[str, float | None]:
    return {
        key: None if bound is None else (bound + 1) * _RAISED
        for key, bound in scope.at_least.items()
    }
