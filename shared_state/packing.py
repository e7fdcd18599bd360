"""Integer columns as few bytes, for logs and messages (native/pack.hpp states the format)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shared_state import _native


def pack_columns(*arrays: NDArray[Any]) -> bytes:
    """Integer or bool arrays of one or two dimensions as bytes. ValueError for others."""
    packed: bytes = _native.pack_columns(*arrays)
    return packed


def unpack_columns(packed: bytes) -> list[NDArray[Any]]:
    """The arrays pack_columns was given, equal in dtype, shape and values. ValueError if the bytes
    are not such."""
    arrays: list[NDArray[Any]] = _native.unpack_columns(packed)
    return arrays
