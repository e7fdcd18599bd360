"""Integer columns as few bytes, for logs and messages (native/pack.hpp states the format)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_state import _native

_HEADER = struct.Struct("<cBBxIQ")
_MOST_VALUES = 1 << 28  # of a column: a few bytes may claim to stand for any number of equal ones
_DTYPES: dict[bytes, np.dtype[Any]] = {letter.encode(): np.dtype(letter) for letter in "?bBhHiIqQ"}
_OFFSETS: dict[int, np.dtype[Any]] = {size: np.dtype(f"<u{size}") for size in (1, 2, 4, 8)}


def pack_columns(*arrays: NDArray[Any]) -> bytes:
    """Integer or bool arrays of one or two dimensions as bytes. ValueError for others."""
    packed: bytes = _native.pack_columns(*arrays)
    return packed


def unpack_columns(packed: bytes) -> list[NDArray[Any]]:
    """The arrays pack_columns was given, equal in dtype, shape and values. ValueError if the bytes
    are not such."""
    arrays: list[NDArray[Any]] = []
    at = 0
    while at < len(packed):
        try:
            letter, size, width, rows, base = _HEADER.unpack_from(packed, at)
            at += _HEADER.size
            count = rows * max(width, 1)
            if count > _MOST_VALUES:
                raise ValueError(f"a column of {count} values")
            values = np.full(count, base, np.uint64)
            if size:
                values += np.frombuffer(packed, _OFFSETS[size], count, at)
            at += count * size
            column = values.astype(_DTYPES[letter])
        except (KeyError, ValueError, struct.error) as error:
            raise ValueError(f"packed columns: malformed at byte {at} ({error})") from error
        arrays.append(column.reshape(rows, width) if width else column)
    return arrays
