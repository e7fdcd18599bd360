"""Implied cost: what a later task loses on average when a slot is taken now.

Krishnan and Ott 1986, Kelly 1988; the formula and its fixed point are in native/implied_cost.hpp.
"""

from __future__ import annotations

import numpy as np

from schedulers import _native
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.periodic import DemandOptions, PeriodicEstimator, Renewal
from schedulers.prices.registry import SlotPriceSpec
from shared_state.tasks import Int64
from shared_state.view import ClusterView

# Counted work, in picoseconds: per machine, per price computed and per price copied.
MACHINE_PS = 10_000
PRICE_PS = 12_000
COPY_PS = 500


class ImpliedPrices(PeriodicEstimator):
    """The tasks that list a machine want nu of its C slots (OfferedDemand.load). With b slots busy,
    the price of the next is E(nu, C) / E(nu, b) x the gain of these tasks over any other machine,
    where E is Erlang's loss formula."""

    def __init__(self, options: DemandOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us, options.forget_us, pools=options.pool)
        self._price = np.zeros((0, 0), np.int64)  # as the next prices are, to be changed in place
        self._load = np.zeros(0, np.int64)  # what each row was computed for
        self._gain = np.zeros(0, np.int64)

    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        slots = self.slots.slots
        if current is None:
            levels = max(1, int(slots.max(initial=0)))
            self._price = np.zeros((len(slots), levels), np.int64)
            self._load, self._gain = np.full(len(slots), -1, np.int64), np.zeros_like(slots)
        levels = self._price.shape[1]
        computed, changed = _native.update_implied_prices(
            self._price,
            self._load,
            self._gain,
            self.demand.load(self.slots.busy(view)),
            slots,
            self.demand.gain(),
            levels,
        )
        work_ps = MACHINE_PS * len(slots) + PRICE_PS * computed * levels
        if current is not None and not changed:
            return Renewal(current, work_ps)
        return Renewal(self._price.copy(), work_ps + COPY_PS * self._price.size)


SPEC = SlotPriceSpec("implied", DemandOptions, ImpliedPrices, shares_demand=True)
