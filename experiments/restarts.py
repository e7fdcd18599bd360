"""Sentences about actors that were restarted or lost during a live run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.quantities import duration

Restarts = Sequence[Mapping[str, Any]]  # actor, at_us, away_us (None: not back by the end)


def sentence(restart: Mapping[str, Any]) -> str:
    """One restart, with its time in the run and how long the actor was away."""
    away_us = restart["away_us"]
    end = "did not come back" if away_us is None else f"was back {duration(away_us)} later"
    return f"{restart['actor']} was lost {duration(restart['at_us'])} into the run and {end}"


def count(restarts: Restarts) -> str:
    """How many, for a narrow place; "" if there are none."""
    if not restarts:
        return ""
    lost = any(restart["away_us"] is None for restart in restarts)
    number = len(restarts)
    if lost:
        return f"{number} actor{'s' if number > 1 else ''} lost"
    return f"{number} restart{'s' if number > 1 else ''}"
