"""The interval of extra slots over seeds."""

from __future__ import annotations

import math

import numpy as np

from experiments.campaign.task import Arrays
from experiments.studies.model_runs import extra_slots_interval


def answer(least: float, too_few: float) -> Arrays:
    return {"least": np.array(least), "too_few": np.array(too_few)}


def test_seeds_that_agree_leave_the_resolution_of_the_search() -> None:
    too_few = (200, 250, 250, 300, 350)
    found = extra_slots_interval([answer(400, one) for one in too_few])
    assert (found.estimate, found.n, found.level) == (400, 5, 0.9375)
    assert (found.low, found.high) == (200, 400)


def test_an_answer_of_zero_is_exact() -> None:
    found = extra_slots_interval([answer(0, math.nan)] * 5)
    assert (found.low, found.estimate, found.high) == (0, 0, 0)


def test_one_seed_has_no_interval() -> None:
    found = extra_slots_interval([answer(400, 200)])
    assert (found.estimate, found.low, found.high) == (400, None, None)


def test_a_seed_without_an_answer_leaves_no_median() -> None:
    found = extra_slots_interval([answer(400, 200), answer(math.nan, 4_000)])
    assert (found.estimate, found.missing) == (None, 1)
