"""Potentials: what a flow scheduler's own optimum says that a slot is worth, averaged over time.

The potential of a machine less that of the sink is the dual price of the machine's capacity in a
round: by how much the round would cost less with one more slot there. It looks at the tasks of the
round alone. Where nothing waits and no task had to take a worse place, it is 0.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from schedulers.decision_time import PS_PER_OPERATION
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import SlotPrices, no_prices
from schedulers.prices.periodic import UpdateOptions, hold_small_moves
from schedulers.prices.registry import SlotPriceSpec
from schedulers.prices.running_mean import FRACTION_BITS, RunningMean
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView

MAX_PRICE = 1 << 32  # as of the other kinds
LONGEST_US = 1 << 22  # that is summed before it is averaged: keeps sums within 63 bits
# Counted work: picoseconds per update and per round, and of each per machine.
WEIGHTS_PS = (40_000_000, 4_000_000, 6_000, 1_500)


class PotentialOptions(UpdateOptions):
    """How far back the average reaches.

    Attributes:
        forget_s: After this time, in seconds of the scheduler's time, what a slot was worth in a
            round counts 1/e.
    """

    forget_s: float = Field(30.0, ge=1e-6, le=1e5)

    @property
    def forget_us(self) -> int:
        return round(self.forget_s * 1e6)


class PotentialPrices:
    """The price of a machine's next slot is the mean over time of max(0, the machine's potential
    less the sink's), whatever is busy. A round counts for the time until the next."""

    operations: int

    def __init__(self, options: PotentialOptions, environment: SchedulerEnvironment) -> None:
        self.operations = 0
        self._update_us = options.update_us
        self._prices = no_prices(*environment.cell.capacity.shape)
        machines = environment.cell.machines
        self._worth = np.zeros(machines, np.int64)  # of a slot, as of the last round
        self._since_us = 0
        self._sum = np.zeros(machines, np.int64)  # of worth x microseconds, not averaged yet
        self._sum_us = 0
        self._mean = RunningMean(machines, options.forget_us)
        self._period = -1
        self._rounds = 0  # since the last update
        self._has_learnt = False

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """Ignore the tasks: the potentials know of them."""

    def learn_potentials(self, machine: Int64, sink: int, now_us: int) -> None:
        """Learn what slots are worth from now on (LearnsPotentials)."""
        self._count_until(now_us)
        np.clip(machine - sink, 0, MAX_PRICE, out=self._worth)
        self._rounds += 1
        self._has_learnt = True

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        """The prices of this period (SlotPriceEstimator.update)."""
        self.operations = 0
        period = now_us // self._update_us
        if period <= self._period or not self._has_learnt:
            return self._prices
        self._period = period
        self._count_until(now_us)
        self._average_sum()
        price = self._mean.rounded()
        current = self._prices.price
        renewal = hold_small_moves(current, price[:, None], int(price.max(initial=0)))
        if renewal.price is not current:
            self._prices = SlotPrices(renewal.price, self._prices.slots, self._prices.unit)
        self.operations = self._work()
        return self._prices

    def _work(self) -> int:
        rounds, self._rounds = self._rounds, 0
        per_update, per_round, update_machine, round_machine = WEIGHTS_PS
        machines = len(self._worth)
        work = (
            per_update + update_machine * machines + rounds * (per_round + round_machine * machines)
        )
        return work // PS_PER_OPERATION

    def _count_until(self, now_us: int) -> None:
        """Count what slots were worth up to now."""
        elapsed_us, self._since_us = now_us - self._since_us, now_us
        if self._sum_us + elapsed_us > LONGEST_US:
            self._average_sum()
        if elapsed_us > LONGEST_US:
            self._mean.add(self._worth << FRACTION_BITS, elapsed_us)
            return
        self._sum += self._worth * elapsed_us
        self._sum_us += elapsed_us

    def _average_sum(self) -> None:
        if self._sum_us:
            self._mean.add((self._sum << FRACTION_BITS) // self._sum_us, self._sum_us)
            self._sum[:] = self._sum_us = 0


SPEC = SlotPriceSpec("potentials", PotentialOptions, PotentialPrices, needs_potentials=True)
