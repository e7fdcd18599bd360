"""Array idioms of the flow scheduler."""

from __future__ import annotations

from schedulers import _native
from shared_state.tasks import Int64


def ranges(begin: Int64, size: Int64) -> Int64:
    """The entries of the named rows of a CSR table: begin[0], begin[0]+1, ... (size[0] of them),
    begin[1], ...; int64."""
    rows: Int64 = _native.ranges(begin, size)
    return rows


def listed_arcs(
    offsets: Int64, head: Int64, cost: Int64, row: Int64, listed: Int64
) -> tuple[Int64, Int64, Int64]:
    """The entries of sets of a CSR table as arcs: those of set listed[0] out of row[0], and so on.

    Args:
        offsets: int64[K+1], of the table.
        head, cost: int64[entries], the table.
        row, listed: int64[n] each.

    Returns: row, head and cost of the arcs, int64[k] each.
    """
    arcs: tuple[Int64, Int64, Int64] = _native.listed_arcs(offsets, head, cost, row, listed)
    return arcs


def differing(a: Int64, b: Int64) -> Int64:
    """The places where two columns (int64[n] each) differ, ascending; int64."""
    places: Int64 = _native.differing(a, b)
    return places
