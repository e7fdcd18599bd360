"""Intervals against closed forms, what they say of ties and of few seeds, and their coverage: as
computed here, and as measured on the page with its kept data.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from experiments.analysis.statistics import (
    corrected_level,
    fewest_seeds,
    interval_in_words,
    median_interval,
    paired_difference,
    seeds_needed,
)
from tests.benchmarks.interval_coverage import DATA, LEAST, METHODS, coverage, read, rows_of, tables


def test_five_seeds_have_their_range_and_ten_the_second_to_the_ninth() -> None:
    five = median_interval([3.0, 1.0, 4.0, 1.5, 5.0])
    assert (five.estimate, five.low, five.high, five.level) == (3.0, 1.0, 5.0, 0.9375)
    ten = median_interval([float(value) for value in range(10)])
    assert (ten.estimate, ten.low, ten.high) == (4.5, 1.0, 8.0)
    assert ten.level == pytest.approx(0.978515625)


@pytest.mark.parametrize("n", [5, 6, 7, 8, 11, 20, 40])
def test_the_level_is_that_of_the_binomial_distribution_and_the_interval_the_shortest(
    n: int,
) -> None:
    interval = median_interval([float(value) for value in range(n)])
    assert interval.low is not None and interval.level is not None
    place = round(interval.low)
    assert interval.level == pytest.approx(1 - 2 * stats.binom.cdf(place, n, 0.5))
    assert interval.level >= 0.93 > 1 - 2 * stats.binom.cdf(place + 1, n, 0.5)


def test_fewer_than_five_seeds_have_no_interval() -> None:
    assert fewest_seeds() == 5
    four = median_interval([1.0, 2.0, 3.0, 4.0])
    assert (four.estimate, four.low, four.level) == (2.5, None, None)
    assert "takes 5 seeds" in interval_in_words(4)
    assert interval_in_words(5) == "93.75 % interval (the lowest to the highest seed)"
    assert interval_in_words(10) == "97.85 % interval (the 2nd to the 9th of the sorted seeds)"
    difference = paired_difference([1.0, 2.0], [3.0, 4.0])
    assert difference.too_few_seeds and not difference.certain
    assert median_interval([]).estimate is None


@pytest.mark.parametrize("comparisons", [1, 2, 6, 7, 12, 100])
def test_corrected_comparisons_need_more_seeds(comparisons: int) -> None:
    needed = seeds_needed(comparisons)
    assert needed == math.ceil(1 + math.log2(comparisons / 0.05))
    values, level = [float(value) for value in range(needed)], corrected_level(comparisons)
    assert median_interval(values, level).low == 0.0
    assert median_interval(values[1:], level).low is None


@pytest.mark.parametrize("value", [0.1 + 0.2, 1e-9, 3.3e17])
@pytest.mark.parametrize("n", [5, 6, 10, 40])
def test_equal_values_give_a_width_of_exactly_nothing(value: float, n: int) -> None:
    interval = median_interval([value] * n)
    assert interval.low == interval.estimate == interval.high == value
    assert not interval.varied and interval.spread is None


def test_equal_arms_are_called_equal() -> None:
    figures = [0.1, 0.2, 0.3, 0.1, 0.7]
    difference = paired_difference(figures, figures)
    assert difference.is_equal and not difference.certain and difference.sign_p is None
    assert difference.absolute.spread is None
    assert (difference.absolute.low, difference.absolute.high) == (0.0, 0.0)


def test_a_missing_value_leaves_the_median_undefined() -> None:
    interval = median_interval([1.0, None, 2.0])
    assert (interval.estimate, interval.n, interval.missing) == (None, 2, 1)
    difference = paired_difference([1.0, None], [2.0, 2.0])
    assert difference.estimate is None and difference.absolute.missing == 1
    assert not difference.certain and not difference.too_few_seeds


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("skewed", [False, True])
def test_the_interval_covers_the_true_median_as_often_as_it_says(n: int, skewed: bool) -> None:
    rng = np.random.default_rng(1)
    runs = 4000
    draws = rng.normal(0, 2, (runs, n))
    inside = 0
    for values in np.exp(draws) if skewed else draws:
        interval = median_interval(values.tolist())
        assert interval.low is not None and interval.high is not None
        inside += interval.low <= (1.0 if skewed else 0.0) <= interval.high
    level = median_interval([0.0] * n).level
    assert level is not None
    assert abs(inside / runs - level) < 4 * math.sqrt(level * (1 - level) / runs)


def test_pairing_removes_what_the_seed_does_to_both() -> None:
    rng = np.random.default_rng(2)
    seed_effect = rng.normal(100, 30, 10)
    arm = seed_effect + 1 + rng.normal(0, 0.1, 10)
    difference = paired_difference(arm.tolist(), seed_effect.tolist())
    assert difference.certain
    assert difference.estimate == pytest.approx(1, abs=0.2)
    assert (difference.lower_in, difference.higher_in) == (0, 10)
    assert difference.sign_p == pytest.approx(2 / 2**10)  # closed form: all ten on one side


def test_the_sign_test_is_that_of_scipy() -> None:
    for lower in range(8):
        arm, baseline = [0.0] * lower + [2.0] * (7 - lower), [1.0] * 7
        expected = stats.binomtest(lower, 7).pvalue
        assert paired_difference(arm, baseline).sign_p == pytest.approx(expected)


def test_the_relative_difference_is_the_median_of_ratios() -> None:
    difference = paired_difference([2.0, 8.0, 3.0, 1.0, 10.0], [1.0, 1.0, 1.0, 2.0, 2.0])
    assert difference.relative.estimate == 3 - 1
    assert (difference.relative.low, difference.relative.high) == (0.5 - 1, 8 - 1)
    even = paired_difference([2.0, 8.0], [1.0, 1.0])
    assert even.relative.estimate == pytest.approx(4 - 1)  # the geometric mean of both


def test_a_delay_of_nothing_has_no_relative_difference() -> None:
    with_nothing = paired_difference([0.0, 1.0, 1.0, 1.0, 1.0], [1.0] * 5)
    assert with_nothing.relative.estimate is None and with_nothing.absolute.low == -1.0


positive = st.floats(0.1, 1e6)


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=12))
def test_swapping_the_arms_turns_the_difference_round(pairs: list[tuple[float, float]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    forth, back = paired_difference(one, other), paired_difference(other, one)
    assert forth.estimate is not None and back.estimate is not None
    assert forth.estimate == pytest.approx(-back.estimate)
    if forth.absolute.low is not None:
        assert forth.absolute.low == -(back.absolute.high or 0)
    assert forth.certain == back.certain
    ratios = [1 + (side.relative.estimate or 0) for side in (forth, back)]
    assert ratios[0] * ratios[1] == pytest.approx(1)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=5, max_size=12))
def test_the_absolute_and_the_relative_interval_agree(pairs: list[tuple[int, int]]) -> None:
    difference = paired_difference([a for a, _ in pairs], [b for _, b in pairs])
    for interval in (difference.absolute, difference.relative):
        assert interval.low is not None and interval.high is not None
        assert difference.certain == (interval.low > 0 or interval.high < 0)


def test_unequal_numbers_of_seeds_are_refused() -> None:
    with pytest.raises(ValueError):
        paired_difference([1.0], [1.0, 2.0])


DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "intervals.md"
EARLIER = ("earlier method", "before the change of")
# an estimate with limits, such as "8.6 ± 0.9", "5.7 [5.1, 6.2]" or "1.2 (0.6 to 1.9)"
WITH_LIMITS = re.compile(
    r"[\d.]+%? (?:± ?[\d.]+|\[[-+−]?[\d.,]+, ?[-+−]?[\d.,]+\]|\([-+−]?[\d.]+ to [-+−]?[\d.]+\))"
)


def test_the_page_has_the_tables_of_the_kept_data() -> None:
    made, data = read(DATA)
    page = PAGE.read_text("utf-8")
    assert tables(data) in page
    command, _, commit = made.partition(", commit ")
    assert command in page and commit in page
    for schedulers in (1, 4):
        for load in (70, 95):
            here = (data["schedulers"] == schedulers) & (data["load_percent"] == load)
            assert sorted(data["seed"][here]) == list(range(1, 2001))


def test_only_the_method_in_use_covers_enough_everywhere() -> None:
    """The rule by which it was chosen."""
    _, data = read(DATA)
    passes = {
        method.label: all(
            coverage(method, for_t if method.label == "t" else values, of).low >= LEAST
            for _, values, for_t in rows_of(data)
            for of in (5, 10)
        )
        for method in METHODS
    }
    assert passes == {"t": False, "t of logarithms": False, "order statistics": True}


@pytest.mark.parametrize("of", [5, 10])
def test_the_limits_that_are_measured_are_those_of_reports(of: int) -> None:
    groups = np.random.default_rng(3).lognormal(size=(50, of))
    low, high = METHODS[-1].limits(groups)
    for group, its_low, its_high in zip(groups.tolist(), low, high, strict=True):
        interval = median_interval(group)
        assert (interval.low, interval.high) == (its_low, its_high)


def test_the_page_states_levels_and_numbers_of_seeds_as_they_are() -> None:
    page = PAGE.read_text("utf-8")
    for seeds, level in re.findall(r"^\| (\d+) \| [\w ]+ \| [\w ]+ \| ([\d.]+ %) \|$", page, re.M):
        assert interval_in_words(int(seeds)).startswith(f"{level} interval")
    comparisons, needed = re.findall(r"^\| (?:comparisons|seeds) \|((?: \d+ \|)+)$", page, re.M)
    numbers = [[int(cell) for cell in row.split("|")[:-1]] for row in (comparisons, needed)]
    assert [seeds_needed(count) for count in numbers[0]] == numbers[1]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: str(page.name))
def test_intervals_of_earlier_methods_are_marked(page: Path) -> None:
    text = page.read_text("utf-8")
    found = WITH_LIMITS.findall(text)
    words = " ".join(text.replace("> ", " ").split())
    assert not found or any(mark in words for mark in EARLIER), found[:3]
