"""The conflict model against exact rational arithmetic, and what holds for all parameters."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parsync.model.conflicts import (
    conflicts_with_countless_schedulers,
    conflicts_with_more_schedulers,
    expected_conflicts,
)
from parsync.model.weighted import expected_weighted_conflicts

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
