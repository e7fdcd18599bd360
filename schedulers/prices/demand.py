"""Demand: a machine is as dear as the tasks that prefer it are many."""

from __future__ import annotations

import numpy as np

from schedulers.interface import SchedulerEnvironment
from schedulers.prices.periodic import (
    ForgettingOptions,
    PeriodicEstimator,
    Renewal,
    hold_small_moves,
)
from schedulers.prices.registry import SlotPriceSpec
from shared_state.tasks import Int64
from shared_state.view import ClusterView

FRACTION_BITS = 20


class DemandPrices(PeriodicEstimator):
    """The tasks that list a machine want nu of its C slots (OfferedDemand.load). The price is
    nu / (nu + C) x the gain of these tasks over any other machine, whatever is busy."""

    def __init__(self, options: ForgettingOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us, options.forget_us)

    def _renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        gain = self._demand.gain()
        load = self._demand.load(self._slots.busy(view)) >> 12  # 2^-20: at most 2^50
        wanted = load + (self._slots.slots << FRACTION_BITS)
        scale = np.maximum(wanted >> FRACTION_BITS, 1)  # keeps gain x load within 63 bits
        price = gain * (load // scale) // np.maximum(wanted // scale, 1)
        return hold_small_moves(current, price[:, None], gain)


SPEC = SlotPriceSpec("demand", ForgettingOptions, DemandPrices)
