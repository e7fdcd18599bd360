"""Conflicts when some slots are preferred, against simulated rounds and Eq. 2."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.model.conflicts import conflicts_with_countless_schedulers, expected_conflicts
from parsync.model.weighted import (
    expected_weighted_conflicts,
    pick_probabilities,
    score_classes,
    weighted_conflicts_with_countless_schedulers,
)
from shared_state.errors import AgoraError
from tests.unit.simulated_rounds import STANDARD_ERRORS, picks, simulated_conflicts


@pytest.mark.parametrize(
    ("schedulers", "tasks", "idle_slots", "variance", "rounds"),
    [
        (10, 100, 1000, 2.0, 400),
        (4, 900, 1000, 2.0, 400),
        (20, 50, 300, 4.0, 1000),
        (10, 100, 1000, 8.0, 400),
        (1, 50, 300, 2.0, 10),
        (5, 300, 300, 2.0, 10),
        (80, 4, 400, 2.0, 1000),
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


def test_scores_that_differ_more_give_more_conflicts() -> None:
    by_variance = [
        float(expected_weighted_conflicts(10, 2000, *score_classes(variance, 20_000)))
        for variance in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 100.0)
    ]
    assert (np.diff(by_variance) > 0).all()
    assert by_variance[-1] < 10 * 2000 - 2000  # someone gets each slot that is picked


@pytest.mark.parametrize("tasks", [0, 1, 19_000, 19_999, 20_000])
@pytest.mark.parametrize("variance", [0.0, 2.0, 1000.0])
def test_probabilities_of_extreme_draws_sum_up_to_the_tasks(tasks: int, variance: float) -> None:
    weights, slots = score_classes(variance, 20_000)
    assert slots.sum() == pytest.approx(20_000)
    probability = pick_probabilities(min(tasks, slots.sum()), weights, slots)
    assert ((probability >= 0) & (probability <= 1)).all()
    assert (probability * slots).sum() == pytest.approx(tasks, rel=1e-12)


def test_bad_weights_are_named() -> None:
    with pytest.raises(AgoraError, match="weights: expected numbers above 0, got 0"):
        pick_probabilities(1, [1.0, 0.0], [1, 1])
    with pytest.raises(AgoraError, match=r"tasks: expected at most 2 \(the sum of slots\), got 3"):
        pick_probabilities(3, [1.0, 2.0], [1, 1])
    with pytest.raises(AgoraError, match=r"weights, slots: expected \[classes\] and"):
        pick_probabilities(1, [1.0, 2.0], [1, 1, 1])
    with pytest.raises(AgoraError, match="slots: expected some, got 0"):
        pick_probabilities(0, [1.0, 2.0], [0, 0])
    with pytest.raises(AgoraError, match="shapes cannot be broadcast together: tasks"):
        pick_probabilities([1, 1], [1.0, 2.0], [[1, 1], [1, 1], [1, 1]])
    with pytest.raises(AgoraError, match="variance: expected finite numbers from 0 on, got -2"):
        score_classes(-2.0, 10)
    with pytest.raises(AgoraError, match="variance: expected at most 1000, got 1e"):
        score_classes(1e9, 10)
