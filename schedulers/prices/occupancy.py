"""Occupancy: the fuller a machine, the dearer its next slot.

Who takes the cheapest slot spreads tasks evenly over machines. The prices know nothing of demand,
so what they gain is what spreading alone gains: the control of the other kinds.
"""

from __future__ import annotations

import numpy as np

from schedulers.interface import SchedulerEnvironment
from schedulers.prices.periodic import LEAST_MOVE, PeriodicEstimator, Renewal, UpdateOptions
from schedulers.prices.registry import SlotPriceSpec
from shared_state.tasks import Int64
from shared_state.view import ClusterView


class OccupancyPrices(PeriodicEstimator):
    """The next slot of a machine with b of C slots busy has the price b / C x the mean gain of a
    preferred machine over any other."""

    def __init__(self, options: UpdateOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us)
        self._gain = 0  # that the prices were made of

    def _renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        gain, slots = self._demand.mean_gain, self._slots.slots[:, None]
        if current is not None and abs(gain - self._gain) <= gain // LEAST_MOVE:
            return Renewal(current, 0)
        self._gain = gain
        busy = np.arange(max(1, int(slots.max(initial=0))))
        price = gain * np.minimum(busy, slots) // np.maximum(slots, 1)
        return Renewal(price, price.size)


SPEC = SlotPriceSpec("occupancy", UpdateOptions, OccupancyPrices)
