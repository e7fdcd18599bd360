"""Lower bounds for the figures of arms that left tasks unplaced, and which arms are ranked.

The mean delay of the placed tasks falls as an arm leaves more tasks waiting. So if more than a
negligible share is missing (metrics_summary.NEGLIGIBLE), a lower bound is compared instead: missing
tasks count with the time from their submission to the end of the measurements. An arm with a bound
is not ranked before one without. An arm that left more than twice as many tasks as another is not
ranked at all: it did less work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]


def value_of(figures: Figures, key: str) -> float | None:
    """Return the figure, or its lower bound if it leaves out too many tasks."""
    value: float | None = figures.get("at_least", {}).get(key, figures.get(key))
    return value


def is_bound(figures: Figures, key: str) -> bool:
    """Return whether the figure is a lower bound."""
    return key in figures.get("at_least", {})


def missing_share(compared: Sequence[Figures]) -> float:
    """Return the share of submitted tasks that were not committed, over several runs.

    It is 0 if it is negligible in each of them.
    """
    if not any(figures.get("incomplete") for figures in compared):
        return 0.0
    censored = sum(figures["censored"] or 0 for figures in compared)
    return float(censored / max(1, sum(figures["submitted"] or 0 for figures in compared)))


def did_their_work(compared: Mapping[str, Sequence[Figures]]) -> list[str]:
    """Return the arms that left no more than twice as many tasks as any other, in order.

    Args:
        compared: The figures of each arm's run or runs, by the arm's name.
    """
    missing = {arm: missing_share(figures) for arm, figures in compared.items()}
    least = min(missing.values(), default=0.0)
    return [arm for arm in compared if missing[arm] <= 2 * least]


def competing(compared: Mapping[str, Sequence[Figures]], key: str) -> list[str]:
    """Return the arms to rank by a figure: those without a bound, if there are any."""
    arms = did_their_work(compared)
    exact = [arm for arm in arms if not any(is_bound(figures, key) for figures in compared[arm])]
    return exact or arms
