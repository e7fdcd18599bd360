"""Eight schedulers with the same slot prices do not get into each other's way more than without
prices: runs in virtual time, paired by seed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from experiments.workloads.synthetic import generate
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig
from schedulers.prices.registry import PriceOptions
from tests.fixtures.overloaded_cell import OPTIONS, group
from tests.priced_world import GivenPrices

MACHINES, SLOTS, SCHEDULERS = 200, 4, 8
SEEDS = range(1, 5)
CELL = OPTIONS.model_copy(
    update={
        "machines": MACHINES,
        "slots_per_machine": SLOTS,
        "load_percent": (95,),
        "phase_s": 1.0,
        "start": "warm",
    }
)
PRICED = {"prices": "implied"}
STRATEGIES = pytest.mark.parametrize("strategy", ["quality_first", "latency_first"])
# What chance leaves of the mean difference of a pair of runs is about 0.005.
TOLERANCE = 0.01


def conflict_rate(strategy, seed, kind="random", **options):
    """The share of claims that conflict in a run."""
    schedulers = group(kind, SCHEDULERS, strategy=strategy, sync_set="all", options=options)
    arm = ArmConfig(name="arm", partitions=SCHEDULERS, groups=(schedulers,))
    count = dict.fromkeys(("claims", "stale", "full"), 0)

    def add(record):
        if record.table == "commits":
            for name in count:
                count[name] += int(record.columns[name].sum())

    spec = arm.seeded(seed, 1_000, 50_000, live=False)
    assert run_virtual(spec, generate(CELL, seed), 5_000_000, add, lambda _: None).drained
    assert count["claims"] > 3_000
    return (count["stale"] + count["full"]) / count["claims"]


@cache
def without_prices(strategy, seed):
    return conflict_rate(strategy, seed)


def rise(strategy, kind="random"):
    """By how much prices raise the share of conflicts, on average over seeds."""
    rates = [
        (conflict_rate(strategy, seed, kind, **PRICED), without_prices(strategy, seed))
        for seed in SEEDS
    ]
    return np.mean([with_prices - without for with_prices, without in rates])


@pytest.fixture
def equal_prices(monkeypatch):
    """All machines have the same price, for all schedulers."""

    class EqualPrices(GivenPrices):
        shared_demand = None

    def estimator(options, environment):
        if options.prices == "none":
            return None
        return EqualPrices(np.full((MACHINES, 1), 5), [SLOTS] * MACHINES, [1])

    monkeypatch.setattr(PriceOptions, "estimator", estimator)


@STRATEGIES
def test_equal_prices_do_not_send_all_schedulers_to_one_machine(strategy, equal_prices):
    assert rise(strategy) < TOLERANCE


@STRATEGIES
def test_prices_of_the_same_demand_do_not_raise_conflicts(strategy):
    assert rise(strategy) < TOLERANCE


def test_schedulers_that_all_take_the_first_of_the_cheapest_have_more_conflicts(equal_prices):
    """The control: what the tests above measure does rise where ties are not random."""
    assert rise("quality_first", "first_fit") > 5 * TOLERANCE
