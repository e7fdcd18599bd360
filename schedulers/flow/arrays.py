"""Array idioms of the flow scheduler."""

from __future__ import annotations

from schedulers import _native
from shared_state.tasks import Int64


def ranges(begin: Int64, size: Int64) -> Int64:
    """The entries of the named rows of a CSR table: begin[0], begin[0]+1, ... (size[0] of them),
    begin[1], ...; int64."""
    rows: Int64 = _native.ranges(begin, size)
    return rows


def differing(a: Int64, b: Int64) -> Int64:
    """The places where two columns (int64[n] each) differ, ascending; int64."""
    places: Int64 = _native.differing(a, b)
    return places
