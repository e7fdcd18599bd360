"""Which arms may be called best: those that did as much work as the others.

A mean delay over the tasks that were placed is the lower the more tasks an arm leaves waiting. So
where more than a negligible share is missing (parsync.metrics.metric.NEGLIGIBLE) the figure
compared is a lower bound (ScopeFigures.value), in which the missing ones are charged until the run
was last seen, and an arm with a bound is not ranked against one without. Nor is an arm ranked that
left more than twice as many tasks unplaced as another one: it did less work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parsync.metrics.summary import ScopeFigures


def missing_share(compared: Sequence[ScopeFigures]) -> float:
    """The share of the submitted tasks that were not committed, over several runs; 0 where it is
    negligible in each of them."""
    if not any(figures.incomplete for figures in compared):
        return 0.0
    censored = sum(figures.censored or 0 for figures in compared)
    return float(censored / max(1, sum(figures.submitted or 0 for figures in compared)))


def ranked(compared: Mapping[str, Sequence[ScopeFigures]]) -> list[str]:
    """The arms, by name, that left no more than twice as many tasks as any, in order.

    Args:
        compared: The figures of each arm, of one or several runs.
    """
    missing = {arm: missing_share(figures) for arm, figures in compared.items()}
    least = min(missing.values(), default=0.0)
    return [arm for arm in compared if missing[arm] <= 2 * least]


def ranked_by(compared: Mapping[str, Sequence[ScopeFigures]], key: str) -> list[str]:
    """The arms of `ranked` whose figure may be the best: those without bounds, if there are any."""
    arms = ranked(compared)
    exact = [arm for arm in arms if not any(figures.is_bound(key) for figures in compared[arm])]
    return exact or arms
