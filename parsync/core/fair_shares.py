"""Weighted max-min fair shares in integers, with a floor and a ceiling for each claimant.

Definition. Claimant i has a weight w[i] and gets a share of at least floor[i] and at most
ceiling[i]. A division of the capacity is weighted max-min fair if no share can grow, by one unit,
without another shrinking whose weighted share (share / weight) is no larger after that. It is what
water that rises at the same weighted level for all would give:

    share[i] = clamp(w[i] * level, floor[i], ceiling[i])

with the highest level at which the shares fit the capacity (Bertsekas and Gallager, "Data
Networks", 1992, section 6.5.2, with weights and floors).

In integers a unit goes, one after the other, to the claimant below its ceiling whose weighted share
with that unit, (share + 1) / weight, is the smallest; among equals to the first. So the shares are
unique, and they are computed without a division that rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int64

LARGEST_WEIGHT = 1000
LARGEST_AMOUNT = 1 << 52  # of all claimants together: products with weights stay within int64

# Two different weighted shares j / v and k / w differ by at least 1 / (v * w). So at most one of
# them lies between two neighbouring fractions of this denominator.
_FRACTIONS = LARGEST_WEIGHT * LARGEST_WEIGHT + 1


def fair_shares(capacity: Int64, floor: Int64, ceiling: Int64, weight: Int64) -> Int64:
    """Divide capacities among n claimants.

    Where the floors do not fit, they are the ceilings of a division without floors.

    Args:
        capacity: int64[...], 0 or more, one for each division.
        floor, ceiling: int64[..., n], 0 <= floor <= ceiling.
        weight: int64[n], from 1 to LARGEST_WEIGHT.

    Returns:
        int64[..., n]. Its sums are at most the capacities; they are the capacities, or the sums of
        the ceilings where those are less.

    Raises:
        ValueError: An argument is out of its range.
    """
    _check(capacity, floor, ceiling, weight)
    short = (floor.sum(axis=-1) > capacity)[..., None]
    ceiling = np.where(short, floor, ceiling)
    floor = np.where(short, 0, floor)

    def at(level: Int64, fraction: Int64) -> Int64:
        """The shares at level + fraction / _FRACTIONS, int64[...] each."""
        risen = weight * level[..., None] + weight * fraction[..., None] // _FRACTIONS
        clipped: Int64 = np.clip(risen, floor, ceiling)
        return clipped

    def fits(shares: Int64) -> NDArray[np.bool_]:
        fit: NDArray[np.bool_] = shares.sum(axis=-1) <= capacity
        return fit

    none = np.zeros_like(capacity)
    whole = _last(none, ceiling.max(axis=-1, initial=0), lambda level: fits(at(level, none)))
    part = _last(none, np.full_like(capacity, _FRACTIONS - 1), lambda part: fits(at(whole, part)))
    shares = at(whole, part)
    # What the next fraction adds is one unit each, all of the same weighted share.
    more = at(whole, part + 1) - shares
    left = capacity - shares.sum(axis=-1)
    shares += np.where(np.cumsum(more, axis=-1) <= left[..., None], more, 0)
    return shares


def shares_and_limits(
    capacity: Int64, minimum: Int64, wanted: Int64, maximum: Int64, weight: Int64
) -> tuple[Int64, Int64]:
    """Divide capacities among n claimants that want different amounts.

    Args:
        capacity: int64[...].
        minimum: int64[..., n], what each gets in any case if it wants that much.
        wanted: int64[..., n].
        maximum: int64[..., n], minimum <= maximum.
        weight: int64[n].

    Returns:
        The shares int64[..., n], the fair division of what is wanted; and the limits int64[..., n]
        up to which claimants may go before the next division. To the shares, the limits add what
        nobody wants yet: it is dealt out by weight, up to the maximums, whatever the shares are,
        for a claimant that has much also needs more at a time. They sum to at most the capacity,
        too.
    """
    wanted = np.minimum(wanted, maximum)
    shares = fair_shares(capacity, np.minimum(minimum, wanted), wanted, weight)
    left = capacity - shares.sum(axis=-1)
    return shares, shares + fair_shares(left, np.zeros_like(shares), maximum - shares, weight)


def _last(low: Int64, high: Int64, holds: Callable[[Int64], NDArray[np.bool_]]) -> Int64:
    """The last value from low to high for which holds() is true: it is true for low, and false
    after the first for which it is false. int64[...] each."""
    while (low < high).any():
        middle = high - (high - low) // 2
        kept = holds(middle)
        low = np.where(kept, middle, low)
        high = np.where(kept, high, middle - 1)
    return low


def _check(capacity: Int64, floor: Int64, ceiling: Int64, weight: Int64) -> None:
    if not ((weight >= 1) & (weight <= LARGEST_WEIGHT)).all():
        raise ValueError(f"weight: expected 1 to {LARGEST_WEIGHT}")
    if (capacity < 0).any():
        raise ValueError("capacity: expected 0 or more")
    if (floor < 0).any() or (floor > ceiling).any():
        raise ValueError("floor: expected 0 <= floor <= ceiling")
    if (ceiling > LARGEST_AMOUNT // max(1, ceiling.shape[-1])).any():
        raise ValueError(f"ceiling: expected at most {LARGEST_AMOUNT} for all claimants together")
