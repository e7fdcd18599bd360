"""Arithmetic of statistics whose parts may not be known: what is not known makes the result so."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def over(
    choose: Callable[[Sequence[float]], float], values: Sequence[float | None]
) -> float | None:
    """What is chosen among some values, such as the least; None if one of them is not known."""
    known = [value for value in values if value is not None]
    return choose(known) if known and len(known) == len(values) else None


def quotient(part: float | None, whole: float | None) -> float | None:
    """part / whole; None where there is no whole."""
    return None if part is None or not whole else part / whole


def difference(one: float | None, other: float | None) -> float | None:
    """one - other."""
    return None if one is None or other is None else one - other
