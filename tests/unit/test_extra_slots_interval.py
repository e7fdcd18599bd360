"""The interval of extra slots over seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.model_runs.run import Arrays
from experiments.model_runs.searches import extra_slots_interval


def answer(least: float, too_few: float) -> Arrays:
    return {"least": np.array(least), "too_few": np.array(too_few)}


def test_seeds_that_agree_leave_the_resolution_of_the_search() -> None:
    found = extra_slots_interval([answer(400, 200), answer(400, 250), answer(400, 250)])
    assert (found.mean, found.n) == (400, 3)
    assert found.low == pytest.approx(400 - 500 / 3)
    assert found.high == pytest.approx(400 + 500 / 3)


def test_an_answer_of_zero_is_exact() -> None:
    found = extra_slots_interval([answer(0, math.nan), answer(0, math.nan)])
    assert (found.low, found.mean, found.high) == (0, 0, 0)


def test_one_seed_has_no_interval() -> None:
    found = extra_slots_interval([answer(400, 200)])
    assert (found.mean, found.low, found.high) == (400, None, None)


def test_a_seed_without_an_answer_leaves_no_mean() -> None:
    found = extra_slots_interval([answer(400, 200), answer(math.nan, 4_000)])
    assert (found.mean, found.missing) == (None, 1)
