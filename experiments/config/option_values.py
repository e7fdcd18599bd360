"""Values of options that hold several numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shared_state.errors import AgoraError

Number = TypeVar("Number", int, float)


def numbers_of(option: str, text: str, kind: Callable[[str], Number]) -> tuple[Number, ...]:
    """Return the numbers of "50,80,95".

    Raises:
        AgoraError: A part is no number, or one appears twice; the error names the option.
    """
    try:
        found = tuple(kind(part.strip()) for part in text.split(","))
    except ValueError as error:
        raise AgoraError(f"{option} {text}: expected numbers joined by commas") from error
    if len(set(found)) < len(found):
        raise AgoraError(f"{option} {text}: a value appears twice")
    return found
