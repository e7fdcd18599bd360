"""Integer histograms with logarithmic buckets: exact counts and sums, quantiles to within 0.8 per
cent.

Values below 256 have a bucket each, larger ones share 128 equal buckets per power of two
(native/table_fold.hpp), so a bucket is never wider than 1/128 of its smallest value. A quantile is
placed within its bucket by its rank, so that it moves steadily with the data (else two runs would
seem to differ by whole buckets, with certainty): at most 0.8 % off, and exact below 256.
"""

from __future__ import annotations

import numpy as np

from parsync.metrics._native import HISTOGRAM_BUCKETS, buckets_of
from shared_state.tasks import Int64

_SUB_BITS = 7
RESOLUTION = 2.0**-_SUB_BITS
BUCKETS = HISTOGRAM_BUCKETS


def bucket_of(value: Int64) -> Int64:
    """The bucket of each value; negative values count as 0."""
    return buckets_of(np.asarray(value, np.int64))


def _lower_edges() -> Int64:
    bucket = np.arange(BUCKETS + 1, dtype=np.int64)
    shift = np.maximum((bucket >> _SUB_BITS) - 1, 0)
    edges: Int64 = (bucket - (shift << _SUB_BITS)) << shift
    return edges


LOWER_EDGE = _lower_edges()
MIDDLE = (LOWER_EDGE[:-1] + LOWER_EDGE[1:] - 1) / 2


def quantile(counts: Int64, fraction: float, beyond: int = 0) -> float | None:
    """The smallest value with at least `fraction` of the rows at or below it (the inverse of the
    distribution function); None if that is beyond the counted values, or if there are no rows.

    Args:
        counts: int64[BUCKETS].
        beyond: Rows known to be larger than any counted value (censored ones).
    """
    total = int(counts.sum()) + beyond
    if total == 0:
        return None
    rank = max(1, int(np.ceil(fraction * total - 1e-9)))
    cumulative = np.cumsum(counts)
    bucket = int(np.searchsorted(cumulative, rank))
    if bucket >= BUCKETS:
        return None
    inside = int(counts[bucket])
    # the rank's among those of the bucket, 0..1
    place = (rank - int(cumulative[bucket]) + inside - 0.5) / inside
    widest = int(LOWER_EDGE[bucket + 1] - LOWER_EDGE[bucket]) - 1
    return float(LOWER_EDGE[bucket]) + place * widest


def distribution(
    counts: Int64, beyond: int = 0, points: int = 200
) -> tuple[list[float], list[float]]:
    """The distribution function at up to `points` places, thinned by equal steps of its height:
    (value, share at or below)."""
    total = int(counts.sum()) + beyond
    if total == 0:
        return [], []
    filled = np.flatnonzero(counts)
    share = np.cumsum(counts[filled]) / total
    step = np.floor(share * points)
    keep = np.ones(len(filled), bool)
    keep[1:-1] = step[1:-1] != step[:-2]
    return MIDDLE[filled[keep]].tolist(), share[keep].tolist()
