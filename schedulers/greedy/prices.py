"""The slot prices by which a greedy scheduler places its tasks."""

from __future__ import annotations

from schedulers import _native
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import SlotPriceEstimator, SlotPrices
from schedulers.prices.options import PriceMode, PriceOptions, PriceScope
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView


class PlacementPrices:
    """An estimator of slot prices, and its prices as placing takes them.

    Attributes:
        operations: Counted work of the last update, as SlotPriceEstimator.operations.
    """

    operations: int

    def __init__(self, options: PriceOptions, estimator: SlotPriceEstimator) -> None:
        self._estimator = estimator
        self._rule = (
            options.price_mode is PriceMode.PAID,
            options.price_weight_permille,
            options.price_scope is PriceScope.ELSEWHERE,
        )
        self._known: SlotPrices | None = None
        self._native: object = None
        self.operations = 0

    @staticmethod
    def of(options: PriceOptions, environment: SchedulerEnvironment) -> PlacementPrices | None:
        """The prices of a scheduler with these options; None if it knows none."""
        estimator = options.estimator(environment)
        return None if estimator is None else PlacementPrices(options, estimator)

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
            The prices as _native.place() takes them. Raises ValueError if the estimator's prices
            are not as its contract says.
        """
        if len(task):
            self._estimator.offered(task, preference, request)
        prices = self._estimator.update(view, now_us)
        self.operations = self._estimator.operations
        if prices is not self._known:
            self._native = _native.SlotPrices(prices.price, prices.slots, prices.unit, *self._rule)
            self._known = prices
        return self._native
