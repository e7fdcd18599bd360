"""The slot prices by which a greedy scheduler places its tasks."""

from __future__ import annotations

from schedulers import _native
from schedulers.prices.interface import SlotPriceEstimator, SlotPrices
from schedulers.prices.options import PriceMode, PriceOptions, PriceScope
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView


class PlacementPrices:
    """An estimator of slot prices, and its prices as placing takes them.

    Attributes:
        operations: Counted work of the last update, as SlotPriceEstimator.operations.
        machines_priced: For how many machines the last update made prices anew.
    """

    operations: int
    machines_priced: int

    def __init__(
        self, options: PriceOptions, estimator: SlotPriceEstimator, catalog: object
    ) -> None:
        """Prices that are not known yet.

        Args:
            options: How prices enter a decision.
            estimator: Gives them.
            catalog: As native_catalog() makes it.
        """
        self._estimator = estimator
        self._known: SlotPrices | None = None
        self._rows = _native.PricedRows(
            catalog,
            options.price_mode is PriceMode.PAID,
            options.price_weight_permille,
            options.price_scope is PriceScope.ELSEWHERE,
        )
        self.operations = self.machines_priced = 0

    def update(
        self, task: Int64, preference: Int32, request: Int64, view: ClusterView, now_us: int
    ) -> object:
        """Learn of the tasks that a plan is about, and find the prices for it.

        Args:
            task: int64[n], ids.
            preference: int32[n].
            request: int64[n, R].
            view: As the plan finds it.
            now_us: When.

        Returns:
            The rows of the view by price, as _native.place() takes them.

        Raises:
            ValueError: The estimator's prices are not as its contract says.
        """
        if len(task):
            self._estimator.offered(task, preference, request)
        prices = self._estimator.update(view, now_us)
        self.operations = self._estimator.operations
        self.machines_priced = len(prices.price) if self.operations else 0
        if prices is not self._known:
            self._rows.set_prices(prices.price, prices.slots, prices.unit)
            self._known = prices
        return self._rows

    def known(self, view: ClusterView) -> tuple[SlotPrices, int]:
        """The prices of the last update, and the lowest of an open machine in the view."""
        assert self._known is not None
        return self._known, self._rows.lowest_price(view)
