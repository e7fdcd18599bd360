"""What the estimators of this repository share: prices are made anew once per period
(PeriodicEstimator), from how much the tasks offered want each machine (OfferedDemand), in slots of
typical size (Slots). RunningMean averages what slots were worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import mul
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers import _native
from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import native_columns
from schedulers.prices.interface import DemandCounts, SlotPrices, no_prices
from schedulers.units import TypicalRequest, units_in
from shared_state.errors import AgoraError
from shared_state.tasks import CellSpec, Int32, Int64
from shared_state.view import ClusterView

# A row of prices stays as it is until one of its prices has moved by more than this part of the
# gain: a flow scheduler pays for each arc whose cost changes.
LEAST_MOVE = 64
# Counted work: picoseconds per update, per task counted, per entry of the catalog read and per
# machine, and per price compared or computed in numpy.
# tests/benchmarks/calibrate_price_work.py compares them with the time taken.
WEIGHTS_PS = (50_000_000, 10_000, 4_000, 6_000)
PRICE_PS = 5_000
SAMPLES = 4096  # tasks offered last whose median is the typical request
KEEP_ALL: int = _native.KEEP_ALL
MAX_SLOTS: int = _native.PRICE_LEVELS  # of one machine: prices have a column for each
FRACTION_BITS = 8  # of means


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


class OfferedDemand:
    """How much the tasks that a scheduler was offered want each machine: counts each task once, and
    forgets exponentially (native/estimators.hpp).

    A task of a set that lists s machines adds 1/s to the demand for each of them. All figures but
    recent_requests and recent_sets are as of the last advance().

    Args:
        environment: Of the scheduler.
        forget_us: After this time a task counts 1/e; None: nothing is forgotten.
        samples: How many of the last tasks recent_requests and recent_sets show.
        pools: Whether machines are taken to be wanted alike as far as their demands may differ by
            chance.

    Raises:
        AgoraError: A preference set is malformed, or its costs differ by more than 2^32.
    """

    def __init__(
        self,
        environment: SchedulerEnvironment,
        forget_us: int | None,
        samples: int = SAMPLES,
        pools: bool = False,
    ) -> None:
        columns = native_columns(environment.catalog, environment.cell)
        dimensions = environment.cell.capacity.shape[1]
        try:
            self._counts = _native.OfferedDemand(columns, dimensions, samples)
        except ValueError as error:
            raise AgoraError(str(error)) from error
        self._forget_us = forget_us
        self._pools = pools

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """Count the tasks not seen before.

        Args:
            task: int64[n], ids, 0 to 2^30.
            preference: int32[n].
            request: int64[n, R].

        Raises:
            ValueError: There is no such task or set. Nothing was counted.
        """
        self._counts.offered(task, preference, request)

    def advance(self, elapsed_us: int) -> int:
        """Forget for that long, then add what was offered since the last call.

        Returns: How many entries of the catalog were read.
        """
        keep = KEEP_ALL if self._forget_us is None else kept(elapsed_us, self._forget_us)
        entries: int = self._counts.advance(keep)
        if self._pools:
            self._counts.pool()
        return entries

    def share(self) -> None:
        """Remember the tasks that are counted from now on, for take_new()."""
        self._counts.share()

    def take_new(self) -> Int64:
        """The tasks counted since the last call, int64[n], without those of learn()."""
        task: Int64 = self._counts.take_new()
        return task

    def learn(self, counts: DemandCounts) -> None:
        """Count tasks that others were offered.

        Raises:
            ValueError: There is no such set, or a count is out of range. Nothing was counted.
        """
        self._counts.learn(*counts)

    def spread(self, over_us: int) -> None:
        """Take everything counted so far as offered evenly over this time up to now."""
        self._counts.advance(KEEP_ALL)
        if self._forget_us is not None:
            self._counts.advance(kept_on_average(over_us, self._forget_us))

    @property
    def tasks(self) -> int:
        """How many tasks were offered, without forgetting, those since advance() too."""
        tasks: int = self._counts.tasks
        return tasks

    @property
    def recent_requests(self) -> Int64:
        """The requests of the last tasks offered, in no order: int64[k, R]."""
        request: Int64 = self._counts.recent_requests
        return request

    @property
    def recent_sets(self) -> Int32:
        """The sets of the last tasks counted, those of others with them, in no order: int32[k]."""
        preference: Int32 = self._counts.recent_sets
        return preference

    @property
    def sets_listing(self) -> Int32:
        """How many of the sets offered list each machine, without forgetting: int32[M]."""
        members: Int32 = self._counts.members
        return members

    @property
    def mean_gain(self) -> int:
        """What elsewhere costs more than a listed machine: the mean over all tasks that list some,
        and over their machines."""
        gain: int = self._counts.mean_gain()
        return gain

    def gain(self) -> Int64:
        """The same for each machine, over the tasks that list it: int64[M]; 0 where none does."""
        gain: Int64 = self._counts.gain()
        return gain

    def load(self, busy: int) -> Int64:
        """Each machine's demand in Erlang, in units of 2^-32: int64[M].

        By Little's law the tasks that are offered keep as many slots busy as their rate times their
        mean run time. So a machine's demand in Erlang is its share of the tasks offered, times the
        busy slots, and nobody needs to know run times.

        Args:
            busy: Busy slots of the whole cell.
        """
        load: Int64 = self._counts.load(busy)
        return load


def kept(elapsed_us: int, forget_us: int) -> int:
    """exp(-elapsed / forget) in units of 1 / KEEP_ALL, by integers alone."""
    if elapsed_us > 30 * forget_us:
        return 0
    one = 1 << 96
    term = total = one  # the series of exp(elapsed / forget), all terms of which are positive
    for n in range(1, 400):
        term = term * elapsed_us // (n * forget_us)
        if term == 0:
            break
        total += term
    return KEEP_ALL * one // total


def kept_on_average(over_us: int, forget_us: int) -> int:
    """The mean of exp(-age / forget) over ages from 0 to over_us, in units of 1 / KEEP_ALL."""
    if over_us <= 0:
        return KEEP_ALL
    return min(KEEP_ALL, forget_us * (KEEP_ALL - kept(over_us, forget_us)) // over_us)


class Slots:
    """How many slots machines have, and how many of all are busy, where tasks and machines may have
    several resources.

    A slot is what a task of typical size asks for: the median of the requests offered, dimension by
    dimension, with hysteresis. Where more than MAX_SLOTS of these fit a machine, a slot is a
    multiple of it.

    Attributes:
        unit: int64[R], a slot; 0 in every dimension while that is not known, or if tasks of typical
            size ask for nothing.
        slots: int64[M], how many slots fit each machine when it is empty.
    """

    def __init__(self, cell: CellSpec) -> None:
        self._limit = cell.limit
        self._typical = TypicalRequest(cell.capacity.shape[1])
        self.unit = self._typical.unit
        self.slots = np.zeros(cell.machines, np.int64)

    def update(self, request: Int64) -> bool:
        """Look at the requests offered last, int64[n, R]; True if the slot changed."""
        if not self._typical.update(request):
            return False
        unit = self._typical.unit.copy()
        while unit.any():
            most = int(units_in(self._limit, unit).max(initial=0))  # at most MAX_UNITS
            if most <= MAX_SLOTS:
                break
            unit *= -(-most // MAX_SLOTS)
        if np.array_equal(unit, self.unit):
            return False
        self.unit = unit
        self.slots = units_in(self._limit, unit) if unit.any() else np.zeros_like(self.slots)
        return True

    def busy(self, view: ClusterView) -> int:
        """The busy slots of all machines that the view knows to be up."""
        busy = self.slots - units_in(view.free, self.unit)
        return int(np.maximum(busy, 0).sum(where=view.up))


_WEIGHT_BITS = 20


class RunningMean:
    """The mean of a column over time, right from the first value on, of which the past is forgotten
    exponentially; in integers.

    Args:
        rows: n.
        forget_us: After this time a value counts 1/e.
    """

    def __init__(self, rows: int, forget_us: int) -> None:
        self._mean = np.zeros(rows, np.int64)
        self._forget_us = forget_us
        self._covered_us = 0  # the time that the mean covers, less what is forgotten

    def add(self, value: Int64, elapsed_us: int) -> None:
        """Forget for a time, in which the column had the value given.

        Args:
            value: int64[n], in units of 1 / 2^FRACTION_BITS, 0 to 2^40.
            elapsed_us: The time.
        """
        keep = kept(elapsed_us, self._forget_us)
        new_us = max(1, self._forget_us * (KEEP_ALL - keep) // KEEP_ALL)
        self._covered_us = self._covered_us * keep // KEEP_ALL + new_us
        part = (new_us << _WEIGHT_BITS) // self._covered_us
        self._mean += (value - self._mean) * part >> _WEIGHT_BITS

    def rounded(self) -> Int64:
        """The mean, to the nearest integer: int64[n]; 0 before the first value."""
        mean: Int64 = (self._mean + (1 << FRACTION_BITS - 1)) >> FRACTION_BITS
        return mean
