"""Intervals against closed forms and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.statistics import mean_interval, paired_difference

T_9 = 2.2621571627409915  # 97.5 % point of Student's t with 9 degrees of freedom (tables)
T_1 = 12.706204736432095


def test_the_interval_of_the_mean_is_students_t() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0]
    mean = sum(values) / 10
    error = math.sqrt(sum((v - mean) ** 2 for v in values) / 9 / 10)
    interval = mean_interval(values)
    assert interval.mean == pytest.approx(mean)
    assert interval.high == pytest.approx(mean + T_9 * error)
    assert interval.low == pytest.approx(mean - T_9 * error)


def test_two_values_give_a_very_wide_interval_and_one_gives_none() -> None:
    two = mean_interval([0.0, 2.0])
    assert (two.low, two.high) == pytest.approx((1 - T_1, 1 + T_1))
    one = mean_interval([5.0])
    assert (one.mean, one.low, one.high, one.n) == (5.0, None, None, 1)
    assert mean_interval([]).mean is None


def test_a_missing_value_leaves_the_mean_undefined() -> None:
    interval = mean_interval([1.0, None, 2.0])
    assert (interval.mean, interval.n, interval.missing) == (None, 2, 1)
    difference = paired_difference([1.0, None], [2.0, 2.0])
    assert (difference.mean, difference.missing, difference.certain) == (None, 1, False)


def test_the_interval_covers_the_true_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    runs = 2000
    inside = 0
    for _ in range(runs):
        interval = mean_interval(rng.normal(7, 3, 10).tolist())
        assert interval.low is not None and interval.high is not None
        inside += interval.low <= 7 <= interval.high
    assert abs(inside / runs - 0.95) < 4 * math.sqrt(0.95 * 0.05 / runs)


def test_pairing_removes_what_the_seed_does_to_both() -> None:
    rng = np.random.default_rng(2)
    seed_effect = rng.normal(100, 30, 10)
    arm = seed_effect + 1 + rng.normal(0, 0.1, 10)
    difference = paired_difference(arm.tolist(), seed_effect.tolist())
    assert difference.certain
    assert difference.mean == pytest.approx(1, abs=0.2)
    assert (difference.lower_in, difference.higher_in) == (0, 10)
    assert difference.sign_p == pytest.approx(2 / 2**10)  # closed form: all ten on one side


def test_the_relative_difference_is_the_geometric_mean_of_ratios() -> None:
    difference = paired_difference([2.0, 8.0], [1.0, 1.0])
    assert difference.relative == pytest.approx(4 - 1)
    half = T_1 * math.log(2)  # logs are log 2 and 3 log 2: standard error log 2
    assert difference.relative_low == pytest.approx(4 * math.exp(-half) - 1)
    assert difference.relative_high == pytest.approx(4 * math.exp(half) - 1)
    assert paired_difference([0.0, 1.0], [1.0, 1.0]).relative is None


def test_equal_arms_differ_by_nothing_surely() -> None:
    difference = paired_difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (difference.mean, difference.certain, difference.sign_p) == (0.0, False, None)


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0.1, 1e6)), min_size=2, max_size=12))
def test_swapping_the_arms_turns_the_difference_round(pairs: list[tuple[float, float]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    forth, back = paired_difference(one, other), paired_difference(other, one)
    assert forth.mean is not None and back.mean is not None
    assert forth.mean == pytest.approx(-back.mean)
    assert forth.low == pytest.approx(-(back.high or 0))
    assert forth.certain == back.certain
    assert (1 + (forth.relative or 0)) * (1 + (back.relative or 0)) == pytest.approx(1)
    assert forth.relative_low is not None and forth.relative_low >= -1


def test_unequal_numbers_of_seeds_are_refused() -> None:
    with pytest.raises(ValueError):
        paired_difference([1.0], [1.0, 2.0])
