"""Demand: a machine is as dear as the tasks that prefer it are many."""

from __future__ import annotations

import numpy as np

from schedulers.interface import SchedulerEnvironment
from schedulers.prices.periodic import (
    DemandOptions,
    PeriodicEstimator,
    Renewal,
    hold_small_moves,
)
from schedulers.prices.registry import SlotPriceSpec
from shared_state.tasks import Int64
from shared_state.view import ClusterView

FRACTION_BITS = 20  # of loads
SHARE_BITS = 30
MACHINE_PS = 40_000  # counted work per machine, in picoseconds


class DemandPrices(PeriodicEstimator):
    """The tasks that list a machine want nu of its C slots (OfferedDemand.load). The price is
    nu / (nu + C) x the gain of these tasks over any other machine, whatever is busy."""

    def __init__(self, options: DemandOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us, options.forget_us, pools=options.pool)

    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        gain = self.demand.gain()
        load = self.demand.load(self.slots.busy(view)) >> 32 - FRACTION_BITS
        wanted = load + (self.slots.slots << FRACTION_BITS)
        scale = 1 + (wanted >> 31)  # keeps what follows within 63 bits
        share = (load // scale << SHARE_BITS) // np.maximum(wanted // scale, 1)
        price = gain * share + (1 << SHARE_BITS - 1) >> SHARE_BITS
        renewal = hold_small_moves(current, price[:, None], gain)
        return Renewal(renewal.price, renewal.work_ps + MACHINE_PS * len(price))


SPEC = SlotPriceSpec("demand", DemandOptions, DemandPrices, shares_demand=True)
