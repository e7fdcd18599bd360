"""Patience by price: a task waits for its preferred machines while that is worth it.

Waiting for a preferred machine saves what elsewhere costs more, each place with the price of its
slot: the next slot elsewhere, and on the preferred machines the slot that ends the wait, the last
free one. A task waits until the time that it has waited has cost as much as waiting saves. That is
the rent-or-buy rule (Karlin et al., Algorithmica 1988): while prices stay as they are, waiting and
then going elsewhere never costs more than twice what knowing the future would have saved.
"""

from __future__ import annotations

import numpy as np

from schedulers.prices.interface import SlotPrices
from schedulers.prices.options import ONE_PERMILLE, PriceOptions, PriceScope
from shared_state.tasks import Int32, Int64, PreferenceCatalog

LONGEST_US = 10**12  # where waiting costs nothing, or no limit is given
_LARGEST = 2**62


class PatienceByPrice:
    """How long tasks wait for their preferred machines.

    Args:
        options: How prices enter a decision.
        catalog: What placements and waiting cost.
        longest_us: No task waits longer; 0: no limit.
    """

    def __init__(
        self, options: PriceOptions, catalog: PreferenceCatalog, longest_us: int = 0
    ) -> None:
        self._catalog = catalog
        self._weight_permille = options.price_weight_permille
        self._listed_have_prices = options.price_scope is PriceScope.ALL
        self._longest_us = longest_us or LONGEST_US
        self._known: SlotPrices | None = None
        self._cheapest_listed = np.zeros(catalog.sets, np.int64)
        self._patience_us = np.zeros(catalog.sets, np.int64)

    def update(self, prices: SlotPrices, lowest_price: int) -> None:
        """Learn what slots cost now.

        Args:
            prices: Of all machines.
            lowest_price: Of the next slot of any open machine.
        """
        catalog = self._catalog
        if prices is not self._known:
            self._cheapest_listed = self._listed_costs(prices)
            self._known = prices
        elsewhere = catalog.elsewhere_cost + lowest_price * self._weight_permille // ONE_PERMILLE
        saved = np.maximum(elsewhere - self._cheapest_listed, 0)
        if catalog.wait_cost == 0:
            self._patience_us = np.where(saved > 0, self._longest_us, 0)
            return
        enough = (self._longest_us // catalog.wait_quantum_us + 1) * catalog.wait_cost
        quanta, rest = np.divmod(np.minimum(saved, min(enough, _LARGEST)), catalog.wait_cost)
        patience_us = quanta * catalog.wait_quantum_us
        patience_us += rest * catalog.wait_quantum_us // catalog.wait_cost
        self._patience_us = np.minimum(patience_us, self._longest_us)

    def of(self, preference: Int32) -> Int64:
        """How long tasks of sets preference, int32[n], wait after their submission: int64[n]."""
        waits: Int64 = self._patience_us[preference]
        return waits

    def _listed_costs(self, prices: SlotPrices) -> Int64:
        """The lowest cost and price of a listed machine's last free slot, by set: int64[K]. Of sets
        that list no machine the value means nothing."""
        catalog = self._catalog
        cost = catalog.machine_cost
        if self._listed_have_prices:
            last = np.clip(prices.slots - 1, 0, prices.price.shape[1] - 1)
            of_last = prices.price[np.arange(len(last)), last] * self._weight_permille
            cost = cost + (of_last // ONE_PERMILLE)[catalog.machine]
        lowest = np.zeros(catalog.sets, np.int64)
        lists = np.diff(catalog.machine_offsets) > 0
        if lists.any():
            lowest[lists] = np.minimum.reduceat(cost, catalog.machine_offsets[:-1][lists])
        return lowest
