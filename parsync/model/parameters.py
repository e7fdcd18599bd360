"""Checks of the model's parameters: numbers or arrays of them, from a person or a program."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shared_state.errors import AgoraError

Float64 = NDArray[np.float64]


def numbers(name: str, values: ArrayLike, at_least: float) -> Float64:
    """Return the values as float64, of their shape.

    Args:
        name: The parameter's name, for the error.
        values: A number or an array of them.
        at_least: The least that is allowed.

    Raises:
        AgoraError: A value is no number, not finite or too small.
    """
    given: NDArray[Any] = np.asarray(values)
    if given.dtype.kind not in "iuf":
        raise AgoraError(f"{name}: expected numbers, got {_brief(values)}")
    array: Float64 = given.astype(np.float64)
    wrong = ~(np.isfinite(array) & (array >= at_least))
    if wrong.any():
        got = array[wrong].flat[0]
        raise AgoraError(f"{name}: expected finite numbers from {at_least:g} on, got {got:g}")
    return array


def check_at_most(name: str, values: Float64, limits: ArrayLike, limit_name: str = "") -> None:
    """Raise AgoraError if a value is above its limit. The two are broadcast together."""
    values, limits = np.broadcast_arrays(values, limits)
    wrong = values > limits
    if wrong.any():
        got, limit = values[wrong].flat[0], limits[wrong].flat[0]
        source = f" ({limit_name})" if limit_name else ""
        raise AgoraError(f"{name}: expected at most {limit:g}{source}, got {got:g}")


def check_broadcast(**parameters: Float64) -> None:
    """Raise AgoraError if parameters have shapes that cannot be broadcast together."""
    try:
        np.broadcast_shapes(*(array.shape for array in parameters.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in parameters.items())
        raise AgoraError(f"shapes cannot be broadcast together: {shapes}") from None


def _brief(values: ArrayLike) -> str:
    text = repr(values)
    return text if len(text) <= 60 else f"{text[:57]}..."
