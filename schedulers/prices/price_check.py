"""What prices must be, and an estimator whose prices are checked as they are made."""

from __future__ import annotations

import numpy as np

from schedulers.prices.interface import (
    LearnsPotentials,
    SharesDemand,
    SlotPriceEstimator,
    SlotPrices,
)
from shared_state.errors import AgoraError
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView


class CheckedEstimator:
    """An estimator that refuses to hand out broken prices.

    Args:
        kind: Its kind, for messages.
        estimator: Whose prices are checked, each object once.
        machines: M of the cell.
        dimensions: R of the cell.

    Attributes:
        shared_demand: The estimator, if it shares demand.
    """

    def __init__(
        self, kind: str, estimator: SlotPriceEstimator, machines: int, dimensions: int
    ) -> None:
        self.kind = kind
        self.shared_demand: SharesDemand | None = None
        self._estimator = estimator
        self._shape = machines, dimensions
        self._checked: SlotPrices | None = None
        self.operations = 0

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """As in SlotPriceEstimator."""
        self._estimator.offered(task, preference, request)

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        """As in SlotPriceEstimator. AgoraError if the prices, or the counted work, are broken."""
        prices = self._estimator.update(view, now_us)
        if prices is not self._checked:
            self._require(broken_price_rule(prices, *self._shape))
            self._checked = prices
        operations = self._estimator.operations
        if not isinstance(operations, int) or operations < 0:
            self._require(f"operations: expected an integer of at least 0, got {operations!r}")
        self.operations = operations
        return prices

    def share_demand(self) -> None:
        """Let it share demand from now on. AgoraError if it is no SharesDemand."""
        estimator = self._estimator
        if not isinstance(estimator, SharesDemand):
            missing = "take_new() and learn_demand()"
            raise AgoraError(f"slot prices {self.kind!r}: shares_demand: expected {missing}")
        estimator.share_demand()
        self.shared_demand = estimator

    def _require(self, broken: str) -> None:
        if broken:
            raise AgoraError(f"slot prices {self.kind!r}: {broken}")


class CheckedLearner(CheckedEstimator):
    """The same for one that learns potentials. Its estimator is a LearnsPotentials."""

    def learn_potentials(self, machine: Int64, sink: int, now_us: int) -> None:
        """As in LearnsPotentials."""
        assert isinstance(self._estimator, LearnsPotentials)
        self._estimator.learn_potentials(machine, sink, now_us)


def checked(
    kind: str, estimator: SlotPriceEstimator, machines: int, dimensions: int
) -> CheckedEstimator:
    """An estimator whose prices are checked. It learns potentials if the one given does.

    Args:
        kind, estimator, machines, dimensions: As in CheckedEstimator.
    """
    learns = isinstance(estimator, LearnsPotentials)
    return (CheckedLearner if learns else CheckedEstimator)(kind, estimator, machines, dimensions)


def broken_price_rule(prices: object, machines: int, dimensions: int) -> str:
    """What is wrong with prices of a cell, as `field: what`; "" if nothing."""
    if not isinstance(prices, SlotPrices):
        return f"expected SlotPrices, got a {type(prices).__name__}"
    levels = prices.price.shape[1] if getattr(prices.price, "ndim", 0) == 2 else 1
    for field, shape in (
        ("price", (machines, max(1, levels))),
        ("slots", (machines,)),
        ("unit", (dimensions,)),
    ):
        column = getattr(prices, field)
        if column.dtype != np.int64 or column.shape != shape:
            expected = ", ".join(map(str, shape))
            return f"{field}: expected int64[{expected}], got {column.dtype}{list(column.shape)}"
        if column.size and int(column.min()) < 0:
            return f"{field}: expected 0 or more, got {int(column.min())}"
    falls = np.argwhere(prices.price[:, 1:] < prices.price[:, :-1])
    if len(falls):
        machine, column = falls[0].tolist()
        pair = prices.price[machine, column : column + 2].tolist()
        return (
            f"price: expected columns that never fall, got {pair[0]} and then {pair[1]} for "
            f"machine {machine}"
        )
    return ""
