"""Claims whose statistics rest on figures that are lower bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.analysis.summary_model import SeedFigures
from experiments.papers.claims import Claim, ClaimResult, Limits, RunsOfSeed, judge, value_range
from experiments.papers.statistics import difference, over, quotient
from parsync.metrics.summary import PhaseFigures, ScopeFigures

KEY = "delay_mean_us"


def arm(*delays_us: float, bounds: tuple[int, ...] = ()) -> SeedFigures:
    """An arm with these delays in its phases, those named lower bounds."""
    phases = [
        PhaseFigures.model_construct(
            **fields(
                others={KEY: None if place in bounds else delay_us},
                at_least={KEY: delay_us} if place in bounds else {},
            )
        )
        for place, delay_us in enumerate(delays_us)
    ]
    overall = ScopeFigures.model_construct(**fields(others={}, at_least={}))
    return SeedFigures.model_construct(**fields(overall=overall, phases=phases, groups=[]))


def fields(**values: Any) -> dict[str, Any]:
    """Some of the fields of a model, as no claim here looks at others."""
    return values


def of(label: str, phase: int = 0) -> Callable[[RunsOfSeed], float | None]:
    return lambda arms: arms[label].phases[phase].value(KEY)


def ratio(arms: RunsOfSeed) -> float | None:
    """A over B."""
    return quotient(of("A")(arms), of("B")(arms))


def judged(value: Callable[[RunsOfSeed], float | None], limits: Limits, **arms: SeedFigures) -> str:
    return result_of(value, limits, **arms).verdict


def result_of(
    value: Callable[[RunsOfSeed], float | None], limits: Limits, **arms: SeedFigures
) -> ClaimResult:
    claim = Claim("fig1.one", "", "", "", "", limits, value)
    return judge(claim, [arms], at_paper_scale=True)


def test_a_lower_bound_may_pass_a_lower_limit_and_break_an_upper_one_but_not_the_reverse() -> None:
    bound = arm(5.0, bounds=(0,))
    assert judged(of("A"), Limits(low=4.0), A=bound) == "holds"
    assert judged(of("A"), Limits(high=4.0), A=bound) == "does_not_hold"
    assert judged(of("A"), Limits(low=6.0), A=bound) == "not_comparable"
    assert judged(of("A"), Limits(high=6.0), A=bound) == "not_comparable"
    result = result_of(of("A"), Limits(high=6.0), A=bound)
    assert result.ours.at_least
    assert "at least what is given (limits: at most 6)" in result.reason


def test_a_ratio_to_a_lower_bound_is_an_upper_bound() -> None:
    one, bound = arm(2.0), arm(4.0, bounds=(0,))
    assert judged(ratio, Limits(high=0.6), A=one, B=bound) == "holds"
    assert judged(ratio, Limits(low=0.6), A=one, B=bound) == "does_not_hold"
    result = result_of(ratio, Limits(low=0.4), A=one, B=bound)
    assert (result.verdict, result.ours.at_least) == ("not_comparable", False)
    assert "at most what is given" in result.reason


def test_a_ratio_of_two_lower_bounds_may_be_anything() -> None:
    arms = {"A": arm(2.0, bounds=(0,)), "B": arm(4.0, bounds=(0,))}
    result = result_of(ratio, Limits(low=0.4), **arms)
    assert result.verdict == "not_comparable"
    assert "may be larger or smaller" in result.reason


def test_growth_within_one_arm_is_not_known_where_its_later_phase_is_a_bound() -> None:
    growth = lambda arms: quotient(of("A", 1)(arms), of("A", 0)(arms))  # noqa: E731
    assert judged(growth, Limits(high=3.0), A=arm(2.0, 4.0)) == "holds"
    assert judged(growth, Limits(high=3.0), A=arm(2.0, 4.0, bounds=(1,))) == "not_comparable"
    assert judged(growth, Limits(low=1.5), A=arm(2.0, 4.0, bounds=(1,))) == "holds"


def test_bounds_that_the_statistic_does_not_use_change_nothing() -> None:
    other = arm(4.0, bounds=(0,))
    assert judged(of("A"), Limits(high=6.0), A=arm(5.0), B=other) == "holds"
    assert judged(of("A"), Limits(high=6.0), A=arm(5.0, 9.0, bounds=(1,))) == "holds"


@given(
    delays_us=st.lists(st.integers(1, 50), min_size=3, max_size=3),
    more_us=st.lists(st.integers(0, 1000), min_size=3, max_size=3),
    bounds=st.sets(st.integers(0, 2)),
    name=st.sampled_from(["least", "most", "ratio", "difference"]),
)
def test_the_range_contains_the_statistic_of_every_larger_figure(
    delays_us: list[int], more_us: list[int], bounds: set[int], name: str
) -> None:
    labels = "ABC"
    statistics: dict[str, Callable[[RunsOfSeed], float | None]] = {
        "least": lambda arms: over(min, [of(label)(arms) for label in labels]),
        "most": lambda arms: over(max, [of(label)(arms) for label in labels]),
        "ratio": lambda arms: quotient(over(max, [of("A")(arms), of("B")(arms)]), of("C")(arms)),
        "difference": lambda arms: difference(of("A")(arms), of("B")(arms)),
    }
    statistic = statistics[name]
    shown = {
        label: arm(float(delay_us), bounds=(0,) if place in bounds else ())
        for place, (label, delay_us) in enumerate(zip(labels, delays_us, strict=True))
    }
    true = {
        label: arm(float(delay_us + (more if place in bounds else 0)))
        for place, (label, delay_us, more) in enumerate(
            zip(labels, delays_us, more_us, strict=True)
        )
    }
    found = value_range(statistic, shown)
    assert found.low is not None and found.high is not None
    value = statistic(true)
    assert value is not None
    assert found.low <= value <= found.high
    if not bounds:
        assert found.low == pytest.approx(value) == found.high
