"""Greedy schedulers that place by given prices, for tests."""

from __future__ import annotations

import numpy as np

from schedulers.greedy.scheduler import GreedyScheduler, PlacementKind
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import SlotPrices
from schedulers.prices.registry import PriceMode, PriceOptions, PriceScope


class GivenPrices:
    """An estimator that always gives the same prices, and keeps what it was offered."""

    operations = 0

    def __init__(self, price, slots, unit):
        self.prices = SlotPrices(
            np.ascontiguousarray(price, np.int64),
            np.array(slots, np.int64),
            np.array(unit, np.int64),
        )
        self.offers = []

    def offered(self, task, preference, request):
        self.offers.append((task.tolist(), preference.tolist(), request.tolist()))

    def update(self, view, now_us):
        return self.prices


def rule(mode=PriceMode.TIE, weight_permille=1000, scope=PriceScope.ALL):
    return PriceOptions.model_construct(
        price_mode=mode, price_weight_permille=weight_permille, price_scope=scope
    )


def greedy_with(kind, spec, offsets, catalog, estimator, options=None, preferred_first=False):
    """A greedy scheduler of a kind by name with an estimator of prices."""
    environment = SchedulerEnvironment("priced", spec, offsets, catalog)
    scheduler = GreedyScheduler(PlacementKind[kind.upper()], environment, preferred_first)
    scheduler.place_by(rule() if options is None else options, estimator)
    return scheduler
