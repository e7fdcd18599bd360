"""The measured coverage of intervals: the page, the kept data, and what the documents state."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.statistics import interval_in_words, median_interval, seeds_needed
from tests.benchmarks.interval_coverage import DATA, LEAST, METHODS, coverage, read, rows_of, tables

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
