"""Weighted max-min fair shares: cases with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.core.fair_shares import LARGEST_AMOUNT, fair_shares, shares_and_limits


def divided(
    capacity: int, floor: list[int], ceiling: list[int], weight: list[int] | None = None
) -> list[int]:
    weights = np.array(weight or [1] * len(floor), np.int64)
    shares = fair_shares(np.array(capacity, np.int64), np.array(floor), np.array(ceiling), weights)
    return [int(share) for share in shares]


@pytest.mark.parametrize(
    ("capacity", "floor", "ceiling", "weight", "expected"),
    [
        pytest.param(12, [0, 0, 0], [99, 99, 99], None, [4, 4, 4], id="equal"),
        pytest.param(12, [0, 0, 0], [2, 99, 99], None, [2, 5, 5], id="who wants little gets it"),
        pytest.param(12, [0, 0, 0], [1, 2, 3], None, [1, 2, 3], id="enough for all"),
        pytest.param(12, [0, 0], [99, 99], [1, 3], [3, 9], id="by weight"),
        pytest.param(12, [8, 0, 0], [99, 99, 99], None, [8, 2, 2], id="a floor above the level"),
        pytest.param(12, [3, 0, 0], [99, 99, 99], None, [4, 4, 4], id="a floor below the level"),
        pytest.param(10, [0, 0, 0], [99, 99, 99], None, [4, 3, 3], id="ties go to the first"),
        pytest.param(11, [0, 0, 0], [99, 99, 99], None, [4, 4, 3], id="two units left"),
        pytest.param(1, [0, 0], [9, 9], [1, 1000], [0, 1], id="the heavier one's unit is smaller"),
        pytest.param(100, [0, 0], [90, 50], [1000, 1], [90, 10], id="who weighs little, the rest"),
        pytest.param(100, [0, 0], [200, 50], [1000, 1], [100, 0], id="who weighs little, nothing"),
        pytest.param(6, [9, 3], [20, 20], None, [3, 3], id="floors that do not fit"),
        pytest.param(0, [0, 0], [5, 5], None, [0, 0], id="nothing to divide"),
        pytest.param(7, [0], [5], None, [5], id="one claimant"),
    ],
)
def test_known_divisions(
    capacity: int,
    floor: list[int],
    ceiling: list[int],
    weight: list[int] | None,
    expected: list[int],
) -> None:
    assert divided(capacity, floor, ceiling, weight) == expected


def test_large_amounts_are_exact() -> None:
    """Shares of amounts beyond the integers that floating point holds."""
    capacity = LARGEST_AMOUNT // 4 + 1
    ceiling = [LARGEST_AMOUNT // 2] * 2
    first, second = divided(capacity, [0, 0], ceiling, [999, 1000])
    assert first + second == capacity
    # the next unit would have gone to neither sooner
    assert second * 999 <= (first + 1) * 1000
    assert first * 1000 <= (second + 1) * 999


def test_several_divisions_at_once() -> None:
    """Each resource dimension is divided by itself."""
    shares = fair_shares(
        np.array([12, 10]),
        np.zeros((2, 2), np.int64),
        np.array([[99, 2], [1, 99]]),
        np.ones(2, np.int64),
    )
    assert shares.tolist() == [[10, 2], [1, 9]]


@pytest.mark.parametrize(
    ("capacity", "floor", "ceiling", "weight", "named"),
    [
        (5, [0], [1], [0], "weight"),
        (5, [0], [1], [1001], "weight"),
        (-1, [0], [1], [1], "capacity"),
        (5, [2], [1], [1], "floor"),
        (5, [-1], [1], [1], "floor"),
        (5, [0], [LARGEST_AMOUNT + 1], [1], "ceiling"),
    ],
)
def test_bad_arguments_are_named(
    capacity: int, floor: list[int], ceiling: list[int], weight: list[int], named: str
) -> None:
    with pytest.raises(ValueError, match=f"^{named}:"):
        divided(capacity, floor, ceiling, weight)


def limits(
    capacity: int, minimum: list[int], wanted: list[int], maximum: list[int]
) -> tuple[list[int], list[int]]:
    weight = np.ones(len(minimum), np.int64)
    shares, upto = shares_and_limits(
        np.array(capacity), np.array(minimum), np.array(wanted), np.array(maximum), weight
    )
    return shares.tolist(), upto.tolist()


def test_limits_deal_out_what_nobody_wants() -> None:
    """The rest is dealt out on top of the shares."""
    assert limits(100, [0, 0], [10, 30], [100, 100]) == ([10, 30], [40, 60])


def test_limits_stay_below_the_maximum() -> None:
    assert limits(100, [0, 0], [90, 5], [20, 60]) == ([20, 5], [20, 60])


def test_under_overload_limits_are_the_shares() -> None:
    assert limits(90, [60, 0, 0], [99, 99, 10], [100, 100, 100]) == ([60, 20, 10], [60, 20, 10])


def test_a_minimum_that_nobody_wants_is_lent() -> None:
    """An idle group's minimum is used by the others until the group wants it."""
    assert limits(90, [60, 0], [0, 200], [90, 90])[0] == [0, 90]
