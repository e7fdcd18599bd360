"""The contract between a scheduler and the estimator of its slot prices.

A scheduler tells the estimator which tasks it is offered, and asks for prices before it plans. An
estimator knows no more than that and the scheduler's view; it never sees tasks to come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView


@dataclass(frozen=True, slots=True, eq=False)
class SlotPrices:
    """What the next free slots of machines are worth to other tasks.

    The price of a machine's next slot depends on how many of its slots are busy. Arrays are
    read-only.

    Attributes:
        price: int64[M, L], 0 or more, in the unit of placement costs: column b is the price of the
            next slot of a machine that has b busy slots. Where more than L - 1 are busy, the last
            column counts, so with L = 1 the price does not depend on them. Prices never fall from
            one column to the next.
        slots: int64[M], how many slots an empty machine has.
        unit: int64[R], a slot: what a task of typical size asks for. Busy slots are `slots` less
            what fits the free room (schedulers.units).
    """

    price: Int64
    slots: Int64
    unit: Int64

    def __post_init__(self) -> None:
        for column in (self.price, self.slots, self.unit):
            column.flags.writeable = False


class SlotPriceEstimator(Protocol):
    """Learns what slots are worth. It belongs to one scheduler.

    It is deterministic and computes in integers: equal calls give equal prices on any machine.
    schedulers.prices.conformance.check_estimator tests that a kind keeps this contract.

    Attributes:
        operations: Counted work of the last call of update(), in units of
            decision_clock.PS_PER_OPERATION; 0 if it looked at nothing anew.
    """

    operations: int

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """Learn which tasks the scheduler is offered. A task that is offered again, because its
        claim was rejected or it has to run again, counts once. The arrays are the caller's: they
        may change after the call.

        Args:
            task: int64[n], ids.
            preference: int32[n], their sets in the catalog.
            request: int64[n, R].
        """
        ...

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        """The prices at a time: the same object as before unless they changed.

        Args:
            view: As it stands. It is left unchanged.
            now_us: The scheduler's time, which never goes back.
        """
        ...


@runtime_checkable
class LearnsPotentials(Protocol):
    """What an estimator has besides if it learns from the rounds of a flow scheduler."""

    def learn_potentials(self, machine: Int64, sink: int, now_us: int) -> None:
        """Learn the potentials of a round. Called after each round whose flow is optimal.

        Flow goes from high potential to low: a machine's potential less the sink's, if that is
        above 0, is by how much the round would have cost less with one more slot of the machine.

        Args:
            machine: int64[M], in the unit of placement costs; the sink's where the round's graph
                does not have the machine. It may change after the call.
            sink: The potential of the sink.
            now_us: The scheduler's time.
        """
        ...


class DemandCounts(NamedTuple):
    """How many tasks of some preference sets schedulers were offered.

    Attributes:
        preference: int32[n], sets of the catalog, each at most once.
        tasks: int64[n], of each set. Below 0: so many were counted twice before.
        squares: int64[n], the sum over reports of the tasks of each set, squared: how much of the
            count may be chance, if tasks that are reported together are of one job.
    """

    preference: Int32
    tasks: Int64
    squares: Int64


@runtime_checkable
class SharesDemand(Protocol):
    """What an estimator has besides if it can learn from the tasks of other schedulers
    (SlotPriceSpec.shares_demand)."""

    def share_demand(self) -> None:
        """Remember the tasks that are counted from now on. Called once, before any is offered."""
        ...

    def take_new(self) -> Int64:
        """The tasks that were counted since the last call, int64[n], ids. A task that is offered
        again is not among them."""
        ...

    def learn_demand(self, counts: DemandCounts, over_us: int) -> None:
        """Learn what other schedulers were offered.

        Args:
            counts: Since the last call.
            over_us: Above 0: these and all tasks counted before were offered evenly over so long up
                to now. (A scheduler that was restarted learns so what it missed.) 0: these were
                offered just now.
        """
        ...


def no_prices(machines: int, dimensions: int) -> SlotPrices:
    """Prices of 0 for all slots."""
    return SlotPrices(
        np.zeros((machines, 1), np.int64),
        np.zeros(machines, np.int64),
        np.zeros(dimensions, np.int64),
    )
