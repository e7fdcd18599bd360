"""Weighted max-min fair shares against their definition, and against the division unit by unit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parsync.core.coordinator import fair_shares, shares_and_limits


@st.composite
def divisions(draw: st.DrawFn) -> tuple[int, list[int], list[int], list[int]]:
    """capacity, floors, ceilings, weights."""
    claimants = draw(st.integers(1, 6))
    amounts = st.integers(0, draw(st.sampled_from([3, 40, 10_000])))
    pairs = [sorted((draw(amounts), draw(amounts))) for _ in range(claimants)]
    weights = [draw(st.sampled_from([1, 1, 2, 3, 7, 999, 1000])) for _ in range(claimants)]
    capacity = draw(st.integers(0, 2 * sum(high for _, high in pairs) + 1))
    return capacity, [low for low, _ in pairs], [high for _, high in pairs], weights


def computed(division: tuple[int, list[int], list[int], list[int]]) -> list[int]:
    capacity, floor, ceiling, weight = (np.array(part, np.int64) for part in division)
    return [int(share) for share in fair_shares(capacity, floor, ceiling, weight)]


def bounds(capacity: int, floor: list[int], ceiling: list[int]) -> tuple[list[int], list[int]]:
    """Floors and ceilings in force: floors that do not fit become ceilings."""
    return ([0] * len(floor), floor) if sum(floor) > capacity else (floor, ceiling)


@given(divisions())
def test_no_share_can_grow_fairly(division: tuple[int, list[int], list[int], list[int]]) -> None:
    capacity, _, _, weight = division
    floor, ceiling = bounds(*division[:3])
    shares = computed(division)
    assert sum(shares) == min(capacity, sum(ceiling))
    for share, low, high in zip(shares, floor, ceiling, strict=True):
        assert low <= share <= high
    for i, share in enumerate(shares):
        if share == ceiling[i]:
            continue
        grown = Fraction(share + 1, weight[i])
        for j, other in enumerate(shares):
            # a share above its floor is not above what the smaller one would have grown to
            if j != i and other > floor[j]:
                assert (Fraction(other, weight[j]), j) < (grown, i)


@given(divisions())
def test_unit_by_unit(division: tuple[int, list[int], list[int], list[int]]) -> None:
    capacity, floor, ceiling, weight = division
    if sum(ceiling) > 500:
        capacity, floor, ceiling = (
            capacity % 200,
            [low % 20 for low in floor],
            [low % 20 + high % 50 for low, high in zip(floor, ceiling, strict=True)],
        )
    low, high = bounds(capacity, floor, ceiling)
    shares = list(low)
    for _ in range(capacity - sum(low)):
        open_to = [i for i in range(len(shares)) if shares[i] < high[i]]
        if not open_to:
            break
        shares[min(open_to, key=lambda i: (Fraction(shares[i] + 1, weight[i]), i))] += 1
    assert computed((capacity, floor, ceiling, weight)) == shares


@given(divisions(), st.data())
def test_limits(division: tuple[int, list[int], list[int], list[int]], data: st.DataObject) -> None:
    capacity, minimum, maximum, weight = division
    wanted = [data.draw(st.integers(0, 12_000)) for _ in maximum]
    arrays = [np.array(part, np.int64) for part in (capacity, minimum, wanted, maximum, weight)]
    shares, limits = (part.tolist() for part in shares_and_limits(*arrays))
    assert sum(shares) <= capacity
    assert sum(limits) == min(capacity, sum(maximum))
    fits = sum(map(min, minimum, wanted)) <= capacity
    for share, limit, low, want, high in zip(shares, limits, minimum, wanted, maximum, strict=True):
        assert share <= limit <= high
        assert share <= want
        assert not fits or share >= min(low, want)
