"""Figures that leave out what did not get there: what is compared in their place, and which arms
may win.

A mean delay over the tasks that were placed is the lower the more tasks an arm leaves waiting. So
where more than a negligible share is missing (metrics_summary.NEGLIGIBLE) the figure compared is a
lower bound, in which the missing ones are charged until the run was last seen, and an arm with a
bound wins nothing against one without. Nor does an arm win by any other figure that left tasks
unplaced, more than twice as many as another one: it did less work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]


def value_of(figures: Figures, key: str) -> float | None:
    """The figure, or its lower bound where it leaves out too much."""
    value: float | None = figures.get("at_least", {}).get(key, figures.get(key))
    return value


def is_bound(figures: Figures, key: str) -> bool:
    """Whether the figure is a lower bound."""
    return key in figures.get("at_least", {})


def missing_share(compared: Sequence[Figures]) -> float:
    """The share of the submitted tasks that were not committed, over several runs; 0 where it is
    negligible in each of them."""
    if not any(figures.get("incomplete") for figures in compared):
        return 0.0
    censored = sum(figures["censored"] or 0 for figures in compared)
    return float(censored / max(1, sum(figures["submitted"] or 0 for figures in compared)))


def did_their_work(compared: Mapping[str, Sequence[Figures]]) -> list[str]:
    """The arms, by name, that left no more than twice as many tasks as any, in order. compared: the
    figures of each, one or several runs."""
    missing = {arm: missing_share(figures) for arm, figures in compared.items()}
    least = min(missing.values(), default=0.0)
    return [arm for arm in compared if missing[arm] <= 2 * least]


def competing(compared: Mapping[str, Sequence[Figures]], key: str) -> list[str]:
    """Those of them whose figure may be the best: without bounds, if there are any."""
    arms = did_their_work(compared)
    exact = [arm for arm in arms if not any(is_bound(figures, key) for figures in compared[arm])]
    return exact or arms
