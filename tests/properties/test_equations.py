"""ParSync's equations against exact rational arithmetic, simulated rounds and closed forms, and
what holds for all parameters."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.model.equations import (
    average_staleness_bounds_us,
    conflicts_at_slot,
    conflicts_with_countless_schedulers,
    conflicts_with_more_schedulers,
    expected_conflicts,
    expected_weighted_conflicts,
    pick_probabilities,
    score_classes,
    weighted_conflicts_with_countless_schedulers,
)
from shared_state.errors import AgoraError
from tests.unit.simulated_rounds import STANDARD_ERRORS, picks, simulated_conflicts

schedulers = st.integers(1, 200)
slots = st.one_of(st.integers(1, 50), st.integers(1, 10**6), st.just(200_000), st.just(10**12))


@st.composite
def rounds(draw: st.DrawFn) -> tuple[int, int, int]:
    """N, K and S_idle; K is often 1 or S_idle."""
    idle_slots = draw(slots)
    tasks = draw(st.one_of(st.integers(0, idle_slots), st.integers(0, min(5, idle_slots))))
    return draw(schedulers), draw(st.sampled_from([tasks, idle_slots, tasks])), idle_slots


def exact_conflicts(n: int, k: int, s: int) -> Fraction:
    """Eq. 2 as the paper writes it."""
    return n * k - s + s * (1 - Fraction(k, s)) ** n


@given(rounds())
def test_results_are_exact_to_thirteen_digits(of: tuple[int, int, int]) -> None:
    exact = exact_conflicts(*of)
    assert abs(Fraction(float(expected_conflicts(*of))) - exact) <= exact / 10**13


@given(rounds())
def test_more_schedulers_or_tasks_never_conflict_less(of: tuple[int, int, int]) -> None:
    n, k, s = of
    conflicts = float(expected_conflicts(n, k, s))
    assert float(expected_conflicts(n + 1, k, s)) >= conflicts
    assert float(expected_conflicts(n, min(k + 1, s), s)) >= conflicts
    assert max(0, n * k - s) <= conflicts * (1 + 1e-12)
    assert conflicts <= (n - 1) * k * (1 + 1e-12)  # of the schedulers at a slot one wins


@given(rounds(), st.integers(1, 10**6))
def test_more_slots_never_conflict_more(of: tuple[int, int, int], extra: int) -> None:
    n, k, s = of
    conflicts = float(expected_conflicts(n, k, s))
    assert float(expected_conflicts(n, k, s + extra)) <= conflicts * (1 + 1e-12)


@given(rounds(), st.floats(1, 1e6), st.floats(1, 1e6))
def test_f_of_a_grows_with_a_and_stays_below_its_limit(
    of: tuple[int, int, int], a: float, other: float
) -> None:
    low, high = conflicts_with_more_schedulers(np.sort([a, other]), *of)
    limit = float(conflicts_with_countless_schedulers(*of))
    tolerance = 1e-9 * limit
    first = float(expected_conflicts(*of))
    assert first - tolerance <= low
    assert low - tolerance <= high <= limit + tolerance
    assert (of[0] - 1) * limit <= of[0] * first + tolerance


@given(st.lists(rounds(), min_size=1, max_size=6), st.floats(1, 100))
def test_arrays_give_what_numbers_give(of: list[tuple[int, int, int]], a: float) -> None:
    n, k, s = np.array(of).T
    assert expected_conflicts(n, k, s).tolist() == [float(expected_conflicts(*one)) for one in of]
    assert conflicts_with_more_schedulers(a, n, k, s).tolist() == [
        float(conflicts_with_more_schedulers(a, *one)) for one in of
    ]
    assert conflicts_with_countless_schedulers(n, k, s).tolist() == [
        float(conflicts_with_countless_schedulers(*one)) for one in of
    ]
    grid = expected_conflicts(n[:, None], k.min(), s)
    assert grid.shape == (len(of), len(of))
    assert float(grid[-1, 0]) == float(expected_conflicts(n[-1], k.min(), s[0]))


@given(
    schedulers,
    st.lists(st.tuples(st.floats(1e-6, 1e6), st.integers(1, 1000)), min_size=1, max_size=8),
    st.floats(0, 1),
)
def test_unequal_weights_never_give_fewer_conflicts_than_equal_ones(
    n: int, classes: list[tuple[float, int]], share: float
) -> None:
    weights, counts = np.array(classes).T
    idle_slots = counts.sum()
    tasks = share * idle_slots
    weighted = float(expected_weighted_conflicts(n, tasks, weights, counts))
    equal = float(expected_conflicts(n, tasks, idle_slots))
    assert equal - 1e-9 * n * idle_slots <= weighted <= (n - 1) * tasks * (1 + 1e-9) + 1e-9


def test_equation_1_is_the_sum_over_the_binomial_distribution() -> None:
    """E max(X - 1, 0) as defined, before the paper's rearrangement."""
    probability = np.linspace(0, 1, 21)
    for schedulers in (1, 2, 3, 7):
        distribution = np.ones((1, 21))
        for _ in range(schedulers):  # Pascal's triangle
            distribution = np.vstack([distribution * (1 - probability), np.zeros(21)]) + np.vstack(
                [np.zeros(21), distribution * probability]
            )
        excess = np.maximum(np.arange(schedulers + 1) - 1, 0)
        assert conflicts_at_slot(schedulers, probability) == pytest.approx(
            excess @ distribution, rel=1e-12, abs=1e-15
        )


def test_equation_4_is_equation_3() -> None:
    schedulers, tasks, idle_slots = 10, 2000, 20_000
    a = np.array([1.0, 2.0, 4.0, 8.0])
    x = a * idle_slots / tasks
    c1, c2 = schedulers * tasks - idle_slots, idle_slots
    c3 = schedulers * tasks / idle_slots
    assert conflicts_with_more_schedulers(a, schedulers, tasks, idle_slots) == pytest.approx(
        c1 + c2 * (1 - 1 / x) ** (x * c3), rel=1e-12
    )


def test_more_schedulers_add_little_in_the_paper_s_setting() -> None:
    """f(1) and the limit of f(A), of N = 10, K = 2,000 and S_idle = 20,000, by hand."""
    low = conflicts_with_more_schedulers(1, 10, 2000, 20_000)
    high = conflicts_with_countless_schedulers(10, 2000, 20_000)
    assert (float(low), float(high)) == pytest.approx((20_000 * 0.9**10, 20_000 / np.e))
    assert float(high / low) == pytest.approx(1.055, abs=0.0005)


def test_many_schedulers_come_near_to_the_limit() -> None:
    settings = (np.array([2, 10]), np.array([5.0, 2000.0]), np.array([200_000, 20_000]))
    limit = conflicts_with_countless_schedulers(*settings)
    assert conflicts_with_more_schedulers(1e9, *settings) == pytest.approx(limit, rel=1e-8)
    # 1e5 tasks on 1e12 slots: (N K)^2 / 2 S, where the closed form has no correct digit
    assert conflicts_with_countless_schedulers(100, 1000, 1e12) == pytest.approx(5e-3, rel=1e-6)


def test_the_bounds_of_staleness_are_those_of_the_paper_s_examples() -> None:
    low, high = average_staleness_bounds_us(500_000, [1, 2])
    assert low.tolist() == [0, 125_000] and high.tolist() == [500_000, 375_000]


@pytest.mark.parametrize(
    ("schedulers", "tasks", "idle_slots", "variance", "rounds"),
    [
        (10, 20, 200, 0.0, 2000),  # the ratios of the paper's cell at 90 % use
        (3, 90, 100, 0.0, 2000),
        (160, 1, 200, 0.0, 1000),  # a large A
        (10, 100, 1000, 2.0, 400),
        (4, 900, 1000, 2.0, 400),
        (20, 50, 300, 4.0, 1000),
        (10, 100, 1000, 8.0, 400),
        (1, 50, 300, 2.0, 10),
        (5, 300, 300, 2.0, 10),
    ],
)
def test_simulated_rounds_agree_with_slots_drawn_by_weight(
    schedulers: int, tasks: int, idle_slots: int, variance: float, rounds: int
) -> None:
    scores = np.random.default_rng(7).normal(10, np.sqrt(variance), idle_slots)
    weights = np.exp(scores - 10)
    mean, error = simulated_conflicts(schedulers, tasks, weights, rounds)
    expected = float(expected_weighted_conflicts(schedulers, tasks, weights, np.ones(idle_slots)))
    assert abs(mean - expected) <= STANDARD_ERRORS * error + 1e-9 * expected


def test_cells_with_random_scores_agree_with_their_classes_on_average() -> None:
    """score_classes stands for all cells whose scores are normal: each round has a new one."""
    schedulers, tasks, idle_slots, rounds = 10, 60, 600, 1000
    rng = np.random.default_rng(11)
    conflicts = []
    for _ in range(rounds):
        weights = np.exp(rng.normal(0, np.sqrt(2.0), idle_slots))
        conflicts.append(np.maximum(picks(rng, schedulers, tasks, weights) - 1, 0).sum())
    error = np.std(conflicts, ddof=1) / np.sqrt(rounds)
    expected = float(
        expected_weighted_conflicts(schedulers, tasks, *score_classes(2.0, idle_slots))
    )
    assert abs(np.mean(conflicts) - expected) <= STANDARD_ERRORS * error


def test_slots_of_equal_weight_give_equation_2() -> None:
    schedulers, tasks = np.array([1, 2, 10, 40]), np.array([100, 50, 100, 7])
    expected = expected_conflicts(schedulers, tasks, 100)
    weighted = expected_weighted_conflicts(schedulers, tasks, [3.0, 3.0], [40, 60])
    assert weighted == pytest.approx(expected, rel=1e-11)
    assert expected_weighted_conflicts(
        schedulers, tasks, *score_classes(0.0, 100)
    ) == pytest.approx(expected, rel=1e-11)


def test_countless_schedulers_are_the_limit_of_many() -> None:
    weights, slots = score_classes(2.0, 20_000)
    schedulers, tasks = np.array([10, 10, 1]), np.array([2000.0, 3.0, 30_000.0])
    limit = weighted_conflicts_with_countless_schedulers(schedulers, tasks, weights, slots)
    near = expected_weighted_conflicts(schedulers * 1e8, tasks / 1e8, weights, slots)
    assert near == pytest.approx(limit, rel=1e-6)
    equal = weighted_conflicts_with_countless_schedulers(10, 2000, [4.0], [20_000])
    assert equal == pytest.approx(conflicts_with_countless_schedulers(10, 2000, 20_000))


def test_classes_stand_for_their_slots() -> None:
    weights = np.array([1.0, 2.0, 5.0])
    slots = np.array([3, 4, 2])
    by_class = pick_probabilities(4, weights, slots)
    one_by_one = pick_probabilities(4, np.repeat(weights, slots), np.ones(9))
    assert np.repeat(by_class, slots) == pytest.approx(one_by_one, rel=1e-12)
    assert by_class @ slots == pytest.approx(4, rel=1e-12)
    assert (np.diff(by_class) > 0).all()


@pytest.mark.parametrize("tasks", [0, 1, 19_000, 19_999, 20_000])
@pytest.mark.parametrize("variance", [0.0, 2.0, 1000.0])
def test_probabilities_of_extreme_draws_sum_up_to_the_tasks(tasks: int, variance: float) -> None:
    weights, slots = score_classes(variance, 20_000)
    assert slots.sum() == pytest.approx(20_000)
    probability = pick_probabilities(min(tasks, slots.sum()), weights, slots)
    assert ((probability >= 0) & (probability <= 1)).all()
    assert (probability * slots).sum() == pytest.approx(tasks, rel=1e-12)


@pytest.mark.parametrize(
    ("equation", "parameters", "says"),
    [
        (expected_conflicts, (0, 1, 10), "schedulers: expected finite numbers from 1 on, got 0"),
        (
            expected_conflicts,
            ([3, 0.5], 1, 10),
            "schedulers: expected finite numbers from 1 on, got 0.5",
        ),
        (expected_conflicts, (2, -1, 10), "tasks: expected finite numbers from 0 on, got -1"),
        (
            expected_conflicts,
            (2, float("nan"), 10),
            "tasks: expected finite numbers from 0 on, got nan",
        ),
        (expected_conflicts, (2, 11, 10), "tasks: expected at most 10 (idle_slots), got 11"),
        (expected_conflicts, (2, 5, [10, 4]), "tasks: expected at most 4 (idle_slots), got 5"),
        (expected_conflicts, (2, 0, 0), "idle_slots: expected finite numbers from 1 on, got 0"),
        (
            expected_conflicts,
            (2, 1, float("inf")),
            "idle_slots: expected finite numbers from 1 on, got inf",
        ),
        (expected_conflicts, ("two", 1, 10), "schedulers: expected numbers, got 'two'"),
        (expected_conflicts, (True, 1, 10), "schedulers: expected numbers, got True"),
        (expected_conflicts, (None, 1, 10), "schedulers: expected numbers, got None"),
        (
            expected_conflicts,
            ([1, 2], [1, 2, 3], 10),
            "shapes cannot be broadcast together: schedulers ",
        ),
        (
            conflicts_with_more_schedulers,
            (0.9, 10, 5, 10),
            "factor: expected finite numbers from 1",
        ),
        (conflicts_with_more_schedulers, (2, 10, 21, 10), "tasks: expected at most 20 (factor * "),
        (conflicts_at_slot, (3, 1.5), "probability: expected at most 1, got 1.5"),
        (average_staleness_bounds_us, (-1, 1), "gap_us: expected finite numbers from 0 on, got -1"),
        (average_staleness_bounds_us, (1, 0), "blocks: expected finite numbers from 1 on, got 0"),
        (pick_probabilities, (1, [1.0, 0.0], [1, 1]), "weights: expected numbers above 0, got 0"),
        (
            pick_probabilities,
            (3, [1.0, 2.0], [1, 1]),
            "tasks: expected at most 2 (the sum of slots)",
        ),
        (pick_probabilities, (1, [1.0, 2.0], [1, 1, 1]), "weights, slots: expected [classes] and"),
        (pick_probabilities, (0, [1.0, 2.0], [0, 0]), "slots: expected some, got 0"),
        (pick_probabilities, ([1, 1], [1.0, 2.0], [[1, 1]] * 3), "shapes cannot be broadcast toge"),
        (score_classes, (-2.0, 10), "variance: expected finite numbers from 0 on, got -2"),
        (score_classes, (1e9, 10), "variance: expected at most 1000, got 1e"),
    ],
)
def test_bad_parameters_are_named(
    equation: Callable[..., object], parameters: tuple[object, ...], says: str
) -> None:
    with pytest.raises(AgoraError) as caught:
        equation(*parameters)
    assert str(caught.value).startswith(says)


def test_more_tasks_than_slots_fit_where_schedulers_share_them() -> None:
    assert float(conflicts_with_more_schedulers(2, 10, 20, 10)) == 190
