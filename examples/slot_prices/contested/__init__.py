"""Slots cost something only on contested machines: those that more tasks prefer than they hold."""

import numpy as np
from pydantic import Field

from schedulers.prices.periodic import ForgettingOptions, PeriodicEstimator, hold_small_moves
from schedulers.prices.registry import SlotPriceSpec


class Options(ForgettingOptions):
    full_permille: int = Field(1000, ge=1)  # contested from this load on; 1000: as many as slots


class Contested(PeriodicEstimator):
    def __init__(self, options, environment):
        super().__init__(environment, options.update_us, options.forget_us)
        self.full_permille = options.full_permille

    def renew(self, view, current):
        load = self.demand.load(self.slots.busy(view)) >> 22  # in 1/1024 of a slot
        contested = load * 1000 >= self.slots.slots * 1024 * self.full_permille
        gain = self.demand.gain()
        return hold_small_moves(current, np.where(contested, gain, 0)[:, None], gain)


SPEC = SlotPriceSpec("contested", Options, Contested)
