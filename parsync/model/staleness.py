"""How stale a synchronised view is on average: ParSync, section 5.1.

The staleness of a partition is the time since its latest synchronisation; the average staleness of
a view is the mean over its partitions. A view that is refreshed in B equal blocks, one every G / B,
has blocks of the ages 0, G/B, ..., (B-1) G/B right after a synchronisation, whose mean is
G (B-1) / 2B. Until the next one it grows by G/B, to G (B+1) / 2B. Over time it is uniform between
the two: its mean is G/2 for every B, its variance G^2 / 12 B^2.

| sync policy | blocks B |
|---|---|
| StateSync, aligned or staggered | 1 |
| DiffSyn and SameSyn in blocks of P/N partitions (section 5.1) | N |
| DiffSyn, one partition at a time (supplement A.3) | P |

The paper derives the bounds for B = 1 and 2, and says that they close in on G/2. If P is no
multiple of N, blocks differ by one partition, and the bounds move by less than G / P.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from parsync.model.parameters import Float64, check_broadcast, numbers


def average_staleness_bounds_us(gap_us: ArrayLike, blocks: ArrayLike) -> tuple[Float64, Float64]:
    """The least and the largest average staleness of a view, (G (B-1) / 2B, G (B+1) / 2B).

    Args:
        gap_us: The synchronisation gap G >= 0.
        blocks: B >= 1, in which the view is refreshed one after another; see the table above.

    Returns:
        (low, high) in microseconds, float64 of the broadcast shape.

    Raises:
        AgoraError: A parameter is out of its range, or the shapes cannot be broadcast together.
    """
    gap = numbers("gap_us", gap_us, at_least=0)
    number = numbers("blocks", blocks, at_least=1)
    check_broadcast(gap_us=gap, blocks=number)
    return gap * (number - 1) / (2 * number), gap * (number + 1) / (2 * number)
