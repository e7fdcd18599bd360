"""What the estimators of this repository share: prices are made anew once per period."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import mul
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.decision_time import PS_PER_OPERATION
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import SlotPrices, no_prices
from schedulers.prices.offered_demand import OfferedDemand
from schedulers.prices.slots import Slots
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView

# A row of prices stays as it is until one of its prices has moved by more than this part of the
# gain: a flow scheduler pays for each arc whose cost changes.
LEAST_MOVE = 64
# Counted work: picoseconds per update, per task counted, per entry of the catalog read, per machine
# and per price computed.
WEIGHTS_PS = (60_000_000, 10_000, 2_000, 40_000, 15_000)


class UpdateOptions(BaseModel):
    """When prices are made anew.

    Attributes:
        update_s: The period, in seconds of the scheduler's time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    update_s: float = Field(0.5, ge=1e-6, le=1e6)

    @property
    def update_us(self) -> int:
        return round(self.update_s * 1e6)


class ForgettingOptions(UpdateOptions):
    """How prices follow demand.

    Attributes:
        forget_s: After this time, in seconds of the scheduler's time, a task that was offered
            counts 1/e.
    """

    forget_s: float = Field(30.0, ge=1e-6, le=1e6)

    @property
    def forget_us(self) -> int:
        return round(self.forget_s * 1e6)


class Renewal(NamedTuple):
    """The prices of a period.

    Attributes:
        price: int64[M, L]; the array of the period before if no price moved enough.
        computed: How many prices were computed.
    """

    price: Int64
    computed: int


class PeriodicEstimator(ABC):
    """An estimator that counts the tasks offered, and makes its prices anew once per period.

    Periods begin at multiples of the update interval. Until a task was offered, and where tasks of
    typical size ask for nothing, every price is 0.

    Args:
        environment: Of the scheduler.
        update_us: The period.
        forget_us: After this time a task that was offered counts 1/e; None: nothing is forgotten.

    Raises:
        AgoraError: The catalog has costs that slot prices cannot have.
    """

    operations: int

    def __init__(
        self, environment: SchedulerEnvironment, update_us: int, forget_us: int | None = None
    ) -> None:
        self.operations = 0
        self._demand = OfferedDemand(environment, forget_us)
        self._slots = Slots(environment.cell)
        self._none = no_prices(*environment.cell.capacity.shape)
        self._prices = self._none
        self._update_us = update_us
        self._period = -1  # the number of the last
        self._tasks = 0  # counted up to then

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """Count the tasks (SlotPriceEstimator.offered)."""
        self._demand.offered(task, preference, request)

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        """The prices of this period (SlotPriceEstimator.update)."""
        period = now_us // self._update_us
        if period <= self._period:
            self.operations = 0
            return self._prices
        elapsed_us = (period - self._period) * self._update_us if self._period >= 0 else 0
        self._period = period
        entries = self._demand.advance(elapsed_us)
        counted, self._tasks = self._demand.tasks - self._tasks, self._demand.tasks
        is_new_slot = counted > 0 and self._slots.update(self._demand.recent_requests)
        computed = 0
        if self._slots.unit.any():
            current = self._prices.price
            renewal = self._renew(view, None if is_new_slot else current)
            computed = renewal.computed
            if renewal.price is not current:
                self._prices = SlotPrices(renewal.price, self._slots.slots, self._slots.unit)
        else:
            self._prices = self._none
        work = (1, counted, entries, len(self._slots.slots), computed)
        self.operations = sum(map(mul, WEIGHTS_PS, work)) // PS_PER_OPERATION
        return self._prices

    @abstractmethod
    def _renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        """The prices of a period that begins.

        Args:
            view: As it stands.
            current: The prices so far, int64[M, L]; None: the slot has changed, so that they do not
                count.
        """


def hold_small_moves(current: Int64 | None, price: Int64, gain: Int64 | int) -> Renewal:
    """Change the rows of prices in which some price moved by more than 1 / LEAST_MOVE of the gain.

    Args:
        current: int64[M, L], or None: all rows change.
        price: int64[M, L], as they would be.
        gain: Of each row, int64[M], or of all.
    """
    computed = price.size
    if current is None:
        return Renewal(price, computed)
    moved = np.abs(price - current).max(axis=1) > np.asarray(gain) // LEAST_MOVE
    if not moved.any():
        return Renewal(current, computed)
    return Renewal(np.where(moved[:, None], price, current), computed)
