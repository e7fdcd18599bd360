"""Figures as people read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.metrics.quantity import counted, duration, percent_change
from tests.unit.known_quantities import QUANTITIES


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("delay_mean_us", 41_234.0, "41.2 ms"),
        ("delay_mean_us", 0.0, "0 µs"),
        ("delay_mean_us", 2_345_678.0, "2.35 s"),
        ("delay_mean_us", 9_997.0, "10.0 ms"),
        ("delay_mean_us", 99_970.0, "100 ms"),
        ("delay_mean_us", None, "–"),
        # a quantile among uncommitted tasks is not "nothing known"
        ("delay_p99_us", None, "never"),
        ("conflict_rate", 0.0512, "5.12 %"),
        ("preferred_share", 1.0, "100 %"),
        ("censored", 12_345, "12,345"),
        ("throughput_per_s", 9_876.4, "9,876/s"),
        ("throughput_per_s", 38_000.4, "38.0 k/s"),
        ("throughput_per_s", 999_700.0, "1.00 M/s"),
        ("cost_mean", 0.01234, "0.0123"),
        ("system_regret", 704_724.2, "704,724"),
        ("system_regret", 1_854_525.0, "1.85 M"),
    ],
)
def test_values(key: str, value: float | None, text: str) -> None:
    assert QUANTITIES[key].text(value) == text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("conflict_rate", -0.0512, "−5.1 pp"),
        ("delay_mean_us", 1_500.0, "+1.5 ms"),
        ("delay_mean_us", 0.0, "±0 µs"),
        ("throughput_per_s", -60_714.0, "−61 k/s"),
        ("cost_mean", -12.3, "−12"),
        ("cost_mean", None, "–"),
    ],
)
def test_differences(key: str, value: float | None, text: str) -> None:
    assert QUANTITIES[key].difference_text(value) == text


def test_changes_become_factors_once_they_are_large() -> None:
    assert [percent_change(value) for value in (-0.5, 0.123, 2.4, 1e300, None)] == [
        "−50 %",
        "+12 %",
        "×3.4",
        "over ×1,000",
        "–",
    ]


def test_one_is_singular() -> None:
    assert [counted(number, "way") for number in (0, 1, 2, 1000)] == [
        "0 ways",
        "1 way",
        "2 ways",
        "1,000 ways",
    ]


@given(st.floats(0, 1e15))
def test_a_duration_keeps_three_digits_and_has_no_exponent(value_us: float) -> None:
    text = duration(value_us)
    number, unit = re.fullmatch(r"([\d,.]+) (µs|ms|s)", text).groups()  # type: ignore[union-attr]
    shown = float(number.replace(",", "")) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit]
    assert shown == pytest.approx(value_us, rel=0.006, abs=1e-6)
