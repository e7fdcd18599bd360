"""Eqs. 1 to 4 of ParSync, against simulated rounds and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.model.conflicts import (
    conflicts_at_slot,
    conflicts_with_countless_schedulers,
    conflicts_with_more_schedulers,
    expected_conflicts,
)
from parsync.model.staleness import average_staleness_bounds_us
from shared_state.errors import AgoraError
from tests.unit.simulated_rounds import STANDARD_ERRORS, picks, simulated_conflicts


@pytest.mark.parametrize(
    ("schedulers", "tasks", "idle_slots", "rounds"),
    [
        (10, 20, 200, 2000),  # the ratios of the paper's cell at 90 % use
        (2, 1, 50, 10_000),
        (2, 40, 80, 2000),
        (3, 90, 100, 2000),
        (3, 7, 1000, 4000),
        (20, 100, 2000, 400),
        (80, 3, 240, 1000),  # a large A
        (160, 1, 200, 1000),
    ],
)
def test_simulated_rounds_agree_with_equation_2(
    schedulers: int, tasks: int, idle_slots: int, rounds: int
) -> None:
    mean, error = simulated_conflicts(schedulers, tasks, np.ones(idle_slots), rounds)
    expected = float(expected_conflicts(schedulers, tasks, idle_slots))
    assert abs(mean - expected) <= STANDARD_ERRORS * error


def test_simulated_rounds_agree_with_equation_1_at_every_slot() -> None:
    rounds, idle_slots = 4000, 30
    rng = np.random.default_rng(1)
    conflicts = np.array(
        [np.maximum(picks(rng, 6, 9, np.ones(idle_slots)) - 1, 0) for _ in range(rounds)]
    )
    error = conflicts.std(axis=0, ddof=1) / np.sqrt(rounds)
    expected = conflicts_at_slot(6, 9 / idle_slots)
    assert (np.abs(conflicts.mean(axis=0) - expected) <= STANDARD_ERRORS * error).all()


def test_only_the_mean_number_of_tasks_counts_if_schedulers_have_different_numbers() -> None:
    rounds, idle_slots = 4000, 60
    rng = np.random.default_rng(3)
    conflicts = []
    for _ in range(rounds):
        tasks = rng.choice([4, 16], size=5)  # K = 10 on average
        x = sum(picks(rng, 1, int(k), np.ones(idle_slots)) for k in tasks)
        conflicts.append(np.maximum(x - 1, 0).sum())
    error = np.std(conflicts, ddof=1) / np.sqrt(rounds)
    expected = float(expected_conflicts(5, 10, idle_slots))
    assert abs(np.mean(conflicts) - expected) <= STANDARD_ERRORS * error


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


def test_one_scheduler_has_no_conflicts_at_all() -> None:
    tasks = np.arange(0, 1001)
    assert not expected_conflicts(1, tasks, 1000).any()


def test_schedulers_that_pick_every_slot_all_lose_but_one() -> None:
    assert expected_conflicts([1, 2, 10, 320], 500, 500).tolist() == [0, 500, 4500, 159_500]


def test_two_schedulers_with_one_task_meet_once_in_as_many_rounds_as_there_are_slots() -> None:
    slots = np.array([1.0, 3.0, 200_000.0, 1e12])
    assert expected_conflicts(2, 1, slots) == pytest.approx(1 / slots, rel=1e-14)


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


@pytest.mark.parametrize(
    ("schedulers", "tasks", "idle_slots", "says"),
    [
        (0, 1, 10, "schedulers: expected finite numbers from 1 on, got 0"),
        ([3, 0.5], 1, 10, "schedulers: expected finite numbers from 1 on, got 0.5"),
        (2, -1, 10, "tasks: expected finite numbers from 0 on, got -1"),
        (2, float("nan"), 10, "tasks: expected finite numbers from 0 on, got nan"),
        (2, 11, 10, "tasks: expected at most 10 (idle_slots), got 11"),
        (2, 5, [10, 4], "tasks: expected at most 4 (idle_slots), got 5"),
        (2, 0, 0, "idle_slots: expected finite numbers from 1 on, got 0"),
        (2, 1, float("inf"), "idle_slots: expected finite numbers from 1 on, got inf"),
        ("two", 1, 10, "schedulers: expected numbers, got 'two'"),
        (True, 1, 10, "schedulers: expected numbers, got True"),
        (None, 1, 10, "schedulers: expected numbers, got None"),
        ([1, 2], [1, 2, 3], 10, "shapes cannot be broadcast together: schedulers "),
    ],
)
def test_bad_parameters_are_named(
    schedulers: object, tasks: object, idle_slots: object, says: str
) -> None:
    with pytest.raises(AgoraError) as caught:
        expected_conflicts(schedulers, tasks, idle_slots)  # type: ignore[arg-type]
    assert str(caught.value).startswith(says)


def test_bad_parameters_of_the_other_equations_are_named() -> None:
    with pytest.raises(AgoraError, match=r"factor: expected finite numbers from 1 on, got 0\.9"):
        conflicts_with_more_schedulers(0.9, 10, 5, 10)
    with pytest.raises(AgoraError, match=r"tasks: expected at most 20 \(factor \* idle_slots\)"):
        conflicts_with_more_schedulers(2, 10, 21, 10)
    with pytest.raises(AgoraError, match=r"probability: expected at most 1, got 1\.5"):
        conflicts_at_slot(3, 1.5)
    with pytest.raises(AgoraError, match="gap_us: expected finite numbers from 0 on, got -1"):
        average_staleness_bounds_us(-1, 1)
    with pytest.raises(AgoraError, match="blocks: expected finite numbers from 1 on, got 0"):
        average_staleness_bounds_us(1, 0)
    assert float(conflicts_with_more_schedulers(2, 10, 20, 10)) == 190  # K / A fits


def test_the_bounds_of_staleness_are_those_of_the_paper_s_examples() -> None:
    low, high = average_staleness_bounds_us(500_000, [1, 2])
    assert low.tolist() == [0, 125_000] and high.tolist() == [500_000, 375_000]
