"""Array idioms of the flow scheduler."""

from __future__ import annotations

import numpy as np

from shared_state.tasks import Int64


def ranges(begin: Int64, size: Int64) -> Int64:
    """The entries of the named rows of a CSR table: begin[0], begin[0]+1, ... (size[0] of them),
    begin[1], ...; int64."""
    total = int(size.sum())
    if total == 0:
        return np.zeros(0, np.int64)
    shift = begin - (np.cumsum(size) - size)
    rows: Int64 = np.arange(total) + np.repeat(shift, size)
    return rows


def rank_within(group: Int64) -> Int64:
    """The number of equal entries before each, int64[n]. `group` is sorted."""
    if len(group) == 0:
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    return np.arange(len(group)) - np.repeat(starts, np.diff(np.r_[starts, len(group)]))
