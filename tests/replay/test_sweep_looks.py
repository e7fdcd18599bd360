"""Seeds until a difference is known well enough: the intervals hold although one looks thrice."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.analysis.statistics import FAMILY_LEVEL, median_interval
from experiments.studies.sweeps.looks import LOOKS, KnownDifference, Target, look, looked_level
from parsync.metrics.quantity import Unit
from shared_state.errors import AgoraError


def test_a_target_is_a_percentage() -> None:
    assert Target.parse("2%").half_width == 0.02
    assert Target.parse(" 0.5 % ").half_width == 0.005
    for text in ("", "2", "-2%", "0%", "100.1%", "nan%", "2%%", "1e1%", "9" * 400 + "%"):
        with pytest.raises(AgoraError, match=r"sweep.until: expected a percentage such as 2%"):
            Target.parse(text)


def test_the_error_is_divided_among_looks_and_differences() -> None:
    assert looked_level(1) == pytest.approx(1 - 0.05 / 3)
    assert looked_level(5) == pytest.approx(1 - 0.05 / 15)


ARM = [10.0 + place / 10 for place in range(1, 11)]
BASELINE = [10.0] * 10


def test_the_reach_is_relative_to_the_baseline_or_in_points() -> None:
    differences = [one - other for one, other in zip(ARM, BASELINE, strict=True)]
    interval = median_interval(differences, looked_level(2))
    assert (interval.low, interval.high) == (differences[0], differences[-1])
    assert interval.high is not None and interval.estimate is not None
    reach = interval.high - interval.estimate
    relative = look(ARM, BASELINE, Unit.DURATION, Target(reach / 10 + 1e-9), 2)
    assert relative.half_width == pytest.approx(reach / 10) and relative.reached
    assert relative.difference == interval
    assert not look(ARM, BASELINE, Unit.DURATION, Target(reach / 10 - 1e-9), 2).reached
    points = look(ARM, BASELINE, Unit.SHARE, Target(1.0), 2)
    assert points.half_width == pytest.approx(reach) and points.seeds == 10


def test_a_look_after_too_few_seeds_reaches_nothing() -> None:
    """Ten seeds have an interval of a level of 1 - 2 ** -9: enough for eight differences at three
    looks, not for nine."""
    eight, nine = (look(ARM, ARM, Unit.DURATION, Target(1.0), count) for count in (8, 9))
    assert eight.reached and not nine.reached
    assert nine.difference.estimate == 0 and nine.difference.low is None


def test_what_cannot_be_told_is_not_reached() -> None:
    for arm, baseline in (
        ([1.0, None], [1.0, 1.0]),  # a figure that is a lower bound, or beyond the end
        ([1.0], [2.0]),
        ([], []),
        ([1.0, -1.0], [0.0, 0.0]),  # nothing to be relative to
    ):
        known = look(arm, baseline, Unit.DURATION, Target(1.0), 1)
        assert known.half_width is None and not known.reached


def test_equal_arms_are_known_at_once() -> None:
    known = look([0.0] * 10, [0.0] * 10, Unit.DURATION, Target(0.01), 1)
    assert known.reached and known.half_width == 0


def stopped(draws: np.ndarray, baseline: np.ndarray, target: Target) -> list[KnownDifference]:
    """What is reported of a combination: the differences at the look at which all are known, or at
    the last one."""
    for seeds in LOOKS:
        known = [
            look(
                (baseline[:seeds] + arm[:seeds]).tolist(),
                baseline[:seeds].tolist(),
                Unit.DURATION,
                target,
                len(draws),
            )
            for arm in draws
        ]
        if all(one.reached for one in known):
            break
    return known


@pytest.mark.parametrize("arms", [1, 4])
@pytest.mark.parametrize("skewed", [False, True])
def test_all_intervals_of_a_combination_hold_together(arms: int, skewed: bool) -> None:
    """Monte Carlo: over 1,000 combinations, the share in which any reported interval misses the
    true difference, its median. The target is such that some stop earlier than others."""
    generator = np.random.default_rng(7)
    misses, stops = 0, dict.fromkeys(LOOKS, 0)
    combinations, true = 1_000, 1.0
    target = Target({1: 0.095, 4: 0.125}[arms])
    for _ in range(combinations):
        shape = (arms, LOOKS[-1])
        noise = (
            generator.exponential(1.0, shape) - math.log(2)
            if skewed
            else generator.normal(0, 1, shape)
        )
        baseline = np.full(LOOKS[-1], 10.0)
        known = stopped(true + noise, baseline, target)
        stops[known[0].seeds] += 1
        misses += any(
            one.difference.low is None
            or one.difference.high is None
            or not one.difference.low <= true <= one.difference.high
            for one in known
        )
    assert sum(count > combinations // 50 for count in stops.values()) > 1, stops
    allowed = 1 - FAMILY_LEVEL
    # three standard errors of the estimate
    error = 3 * (allowed * FAMILY_LEVEL / combinations) ** 0.5
    assert misses / combinations <= allowed + error
    held = {(1, False): 0.987, (4, False): 0.987, (1, True): 0.991, (4, True): 0.992}
    assert 1 - misses / combinations == pytest.approx(held[arms, skewed])  # as docs/sweep.md says
