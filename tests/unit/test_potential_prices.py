"""Prices that are time averages of the potentials of a flow scheduler's rounds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from pydantic import ConfigDict, ValidationError

from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import LearnsPotentials
from schedulers.prices.registry import PriceOptions
from tests.price_world import PriceWorld, catalog_of, cell_of


def world_of(machines=3, **options):
    world = PriceWorld("potentials", [2] * machines, [(100, {0: 0})], **options)

    def learn(at_s, *machine, sink=1000):
        world.estimator.learn_potentials(np.array(machine, np.int64), sink, round(at_s * 1e6))

    return world, learn


def test_they_are_zero_until_a_round_was_worth_something():
    world, learn = world_of()
    before = world.prices()
    assert before.price.tolist() == [[0], [0], [0]]
    world.offer([1, 1, 1])
    assert world.prices(1) is before
    learn(2, 1000, 990, 0)  # no machine is above the sink
    assert world.prices(5) is before
    assert world.estimator.operations > 0


def test_they_are_means_over_time_not_over_rounds():
    world, learn = world_of(forget_s=1e5, update_s=10.0)
    learn(0, 1300, 1000, 900)
    learn(1, 1000, 1400, 1000)
    learn(3, 1000, 1000, 1000)
    learn(3.1, 1000, 1000, 1000)
    # machine 0: 300 for 1 s of 10; machine 1: 400 for 2 s
    assert world.price(10) == [[30], [80], [0]]


def test_a_long_time_without_rounds_counts_as_the_last_of_them():
    world, learn = world_of(1, forget_s=1e5)
    learn(0, 1000 + 600)
    learn(1, 1000)
    assert world.price(12) == [[50]]


def test_old_rounds_are_forgotten_exponentially():
    world, learn = world_of(1, forget_s=10.0)
    learn(0, 1900)
    assert world.price(10) == [[900]]  # the mean is right from the first second
    learn(10, 1000)
    # 10 s of 900 and then 10 s of 0, weighted e^-1 to 1
    assert world.price(20)[0][0] == pytest.approx(900 / (1 + np.e), abs=1)
    assert world.price(400) == [[0]]


def test_small_moves_change_no_price():
    world, learn = world_of(2, forget_s=1.0)
    learn(0, 1640, 1640)
    first = world.prices(10)
    assert first.price.tolist() == [[640], [640]]
    learn(10, 1645, 1700)
    changed = world.prices(20)
    assert changed.price.tolist() == [[640], [700]]
    learn(20, 1648, 1706)
    assert world.prices(30) is changed


def test_the_highest_potentials_do_not_overflow():
    world, _ = world_of(2)
    top = np.array([2**62, -(2**62)], np.int64)
    for second in range(0, 4000, 400):
        world.estimator.learn_potentials(top, 0, second * 10**6)
        assert world.price(second + 1) == [[2**32], [0]]


class FlowLike(PriceOptions):
    model_config = ConfigDict(extra="forbid")
    has_potentials: ClassVar[bool] = True


def test_only_flow_schedulers_can_use_them():
    with pytest.raises(ValidationError, match="prices: 'potentials' needs a flow scheduler"):
        PriceOptions(prices="potentials")
    environment = SchedulerEnvironment(
        "tested", cell_of([1, 1]), np.array([0, 2]), catalog_of([(1, {0: 0})])
    )
    learner = FlowLike(prices="potentials").estimator(environment)
    assert isinstance(learner, LearnsPotentials)
    assert not isinstance(FlowLike(prices="implied").estimator(environment), LearnsPotentials)
    learner.learn_potentials(np.array([7, 3], np.int64), 2, 0)
    world, _ = world_of(2)
    assert learner.update(world.view, 10**6).price.tolist() == [[5], [1]]
