"""Checks of arguments: every public function converts its arguments to int64 arrays here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

Int64Array = NDArray[np.int64]
INT64 = np.dtype(np.int64)


def as_int64(name: str, values: ArrayLike) -> Int64Array:
    """`values` as a contiguous one-dimensional int64 array; a scalar becomes one entry.

    Raises:
        TypeError: names the field if there are no values (None).
        ValueError: if they are not integers, do not fit 64 bits, or have several dimensions.
            Booleans are not integers here.
    """
    if _is_column(values):
        return values
    array = _as_column(name, values)
    if array.dtype == INT64 and array.flags.c_contiguous:
        return array
    if array.dtype.kind == "b":
        raise ValueError(f"{name} holds booleans, expected integers")
    return _converted(name, array)


def as_ids(name: str, values: ArrayLike, num_ids: Callable[[], int]) -> Int64Array:
    """Ids of nodes or arcs, int64[k]: as given, or those where a mask is True.

    Args:
        name: the field, for messages.
        values: ids, or a mask bool[num_ids()].
        num_ids: the number of ids.

    Raises:
        ValueError: as `as_int64`, and for a mask of another length.
    """
    if _is_column(values):
        return values
    array = _as_column(name, values)
    if array.dtype == INT64 and array.flags.c_contiguous:
        return array
    if array.dtype.kind != "b":
        return _converted(name, array)
    count = num_ids()
    if np.ndim(values) != 1 or array.size != count:
        got = f"{array.size} entries" if np.ndim(values) == 1 else "a single boolean"
        raise ValueError(f"{name}: a mask has an entry for each of the {count} ids, got {got}")
    return np.flatnonzero(array).astype(np.int64, copy=False)


def broadcast(name: str, values: ArrayLike, length: int) -> Int64Array:
    """As `as_int64`; a single value is repeated to `length`."""
    array = values if _is_column(values) else as_int64(name, values)
    return np.full(length, array[0], dtype=np.int64) if array.size == 1 and length != 1 else array


def need_type(name: str, value: object, kind: type, expected: str) -> None:
    """Raise TypeError that names the argument unless `value` is of type `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}")


def as_budget(max_operations: int | None, max_seconds: float | None) -> tuple[int, float]:
    """A budget as the native calls take it: negative for None.

    Raises:
        TypeError: for a value that is not a number.
        ValueError: for a number that is not positive: nothing could be done within it.
    """
    if max_operations is None and max_seconds is None:
        return -1, -1.0
    for name, value, kind, expected in (
        ("max_operations", max_operations, (int, np.integer), "an integer"),
        ("max_seconds", max_seconds, (int, float, np.integer, np.floating), "a number"),
    ):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, kind):
            raise TypeError(f"{name}: expected {expected} or None, got {type(value).__name__}")
        if not value > 0:
            raise ValueError(f"{name} = {value}: must be more than 0")
    most = np.iinfo(np.int64).max
    return (
        -1 if max_operations is None else min(int(max_operations), int(most)),
        -1.0 if max_seconds is None else float(max_seconds),
    )


def _is_column(values: ArrayLike) -> TypeGuard[Int64Array]:
    """Whether values are as native code takes them. They nearly always are, and a round makes a
    dozen changes of a few microseconds each."""
    return (
        values.__class__ is np.ndarray
        and values.dtype is INT64
        and values.ndim == 1
        and values.flags.c_contiguous
    )


def _as_column(name: str, values: ArrayLike) -> np.ndarray:
    if values is None:
        raise TypeError(f"{name}: expected integers, got None")
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of unequal lengths
        raise ValueError(f"{name}: expected a list of integers ({error})") from error
    if array.ndim == 0:
        array = array.reshape(1)
    if array.size == 0 and array.ndim == 1 and array.dtype.kind != "b":
        return array.astype(np.int64)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions, expected 1")
    return array


def _converted(name: str, array: np.ndarray) -> Int64Array:
    if array.dtype == object:
        array = _python_integers(name, array)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {array.dtype}, expected integers of at most 64 bits")
    if array.dtype == np.uint64 and (array > np.uint64(np.iinfo(np.int64).max)).any():
        raise ValueError(f"{name} has a value beyond int64")
    return np.ascontiguousarray(array, dtype=np.int64)


def _python_integers(name: str, array: np.ndarray) -> np.ndarray:
    """An object array as int64. NumPy makes such arrays of integers beyond 64 bits and of
    non-integers.

    Raises:
        ValueError: names the index of the value that is no integer of 64 bits.
    """
    for index, value in enumerate(array):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            got = "None" if value is None else type(value).__name__
            raise ValueError(f"{name}[{index}]: expected an integer, got {got}")
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{name}[{index}] = {value}: beyond int64")
    return array.astype(np.int64)
