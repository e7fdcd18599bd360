"""What the estimators of this repository share: prices are made anew once per period."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import mul
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.decision_time import PS_PER_OPERATION
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import DemandCounts, SlotPrices, no_prices
from schedulers.prices.offered_demand import SAMPLES, OfferedDemand
from schedulers.prices.slots import Slots
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView

# A row of prices stays as it is until one of its prices has moved by more than this part of the
# gain: a flow scheduler pays for each arc whose cost changes.
LEAST_MOVE = 64
# Counted work: picoseconds per update, per task counted, per entry of the catalog read and per
# machine, and per price compared or computed in numpy.
# tests/benchmarks/calibrate_price_work.py compares them with the time taken.
WEIGHTS_PS = (50_000_000, 10_000, 4_000, 6_000)
PRICE_PS = 5_000


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


class DemandOptions(ForgettingOptions):
    """How prices follow the demand for each machine.

    Attributes:
        pool: Whether machines are taken to be wanted alike as far as their demands may differ by
            chance.
    """

    pool: bool = True


class Renewal(NamedTuple):
    """The prices of a period.

    Attributes:
        price: int64[M, L]; the array of the period before if no price moved enough.
        work_ps: The work of making them, in picoseconds.
    """

    price: Int64
    work_ps: int


class PeriodicEstimator(ABC):
    """An estimator that counts the tasks offered, and makes its prices anew once per period.

    Periods begin at multiples of the update interval. Until a task was offered, and where tasks of
    typical size ask for nothing, every price is 0.

    Attributes:
        demand: Of the tasks offered, as of the period.
        slots: What a slot is, how many there are, and how many are busy.

    Args:
        environment: Of the scheduler.
        update_us: The period.
        forget_us: After this time a task that was offered counts 1/e; None: nothing is forgotten.
        samples: How many of the tasks offered last are remembered one by one.
        pools: Whether machines are taken to be wanted alike as far as their demands may differ by
            chance.

    Raises:
        AgoraError: The catalog has costs that slot prices cannot have.
    """

    operations: int

    def __init__(
        self,
        environment: SchedulerEnvironment,
        update_us: int,
        forget_us: int | None = None,
        samples: int = SAMPLES,
        pools: bool = False,
    ) -> None:
        self.operations = 0
        self.demand = OfferedDemand(environment, forget_us, samples, pools)
        self.slots = Slots(environment.cell)
        self._none = no_prices(*environment.cell.capacity.shape)
        self._prices = self._none
        self._update_us = update_us
        self._period = -1  # the number of the last
        self._tasks = 0  # offered up to then
        self._learned = 0  # counts of others since then

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """Count the tasks (SlotPriceEstimator.offered)."""
        self.demand.offered(task, preference, request)

    def share_demand(self) -> None:
        """Remember the tasks that are counted (SharesDemand.share_demand)."""
        self.demand.share()

    def take_new(self) -> Int64:
        """The tasks counted since the last call (SharesDemand.take_new)."""
        return self.demand.take_new()

    def learn_demand(self, counts: DemandCounts, over_us: int) -> None:
        """Learn what other schedulers were offered (SharesDemand.learn_demand)."""
        self._learned += len(counts.preference)
        self.demand.learn(counts)
        if over_us > 0:
            self.demand.spread(over_us)

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        """The prices of this period (SlotPriceEstimator.update)."""
        period = now_us // self._update_us
        if period <= self._period:
            self.operations = 0
            return self._prices
        elapsed_us = (period - self._period) * self._update_us if self._period >= 0 else 0
        self._period = period
        entries = self.demand.advance(elapsed_us)
        offered, self._tasks = self.demand.tasks - self._tasks, self.demand.tasks
        is_new_slot = offered > 0 and self.slots.update(self.demand.recent_requests)
        counted, self._learned = offered + self._learned, 0
        work_ps = sum(map(mul, WEIGHTS_PS, (1, counted, entries, len(self.slots.slots))))
        if self.slots.unit.any():
            current = self._prices.price
            renewal = self.renew(view, None if is_new_slot else current)
            work_ps += renewal.work_ps
            if renewal.price is not current:
                self._prices = SlotPrices(renewal.price, self.slots.slots, self.slots.unit)
        else:
            self._prices = self._none
        self.operations = work_ps // PS_PER_OPERATION
        return self._prices

    @abstractmethod
    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
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
    work_ps = PRICE_PS * price.size
    if current is None:
        return Renewal(price, work_ps)
    moved = np.abs(price - current).max(axis=1) > np.asarray(gain) // LEAST_MOVE
    if not moved.any():
        return Renewal(current, work_ps)
    return Renewal(np.where(moved[:, None], price, current), work_ps)
