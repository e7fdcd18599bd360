"""Sentences about actors that were restarted or lost during a live run."""

from __future__ import annotations

from collections.abc import Sequence

from parsync.metrics.quantity import Count, Figures, duration


class Restart(Figures):
    """An actor that was restarted or lost.

    Attributes:
        at_us: When it was lost.
        away_us: The time until it was back; None: it was not back by the end.
    """

    actor: str
    at_us: Count
    away_us: Count | None


def sentence(restart: Restart) -> str:
    """One restart, with its time in the run and how long the actor was away."""
    away_us = restart.away_us
    end = "did not come back" if away_us is None else f"was back {duration(away_us)} later"
    return f"{restart.actor} was lost {duration(restart.at_us)} into the run and {end}"


def count(restarts: Sequence[Restart]) -> str:
    """How many, for a narrow place; "" if there are none."""
    if not restarts:
        return ""
    lost = any(restart.away_us is None for restart in restarts)
    number = len(restarts)
    if lost:
        return f"{number} actor{'s' if number > 1 else ''} lost"
    return f"{number} restart{'s' if number > 1 else ''}"
