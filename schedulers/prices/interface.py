"""The contract between a scheduler and the estimator of its slot prices.

A scheduler tells the estimator which tasks it is offered, and asks for prices before it plans. An
estimator knows no more than that and the scheduler's view; it never sees tasks to come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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
            decision_time.PS_PER_OPERATION; 0 if it looked at nothing anew.
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


def no_prices(machines: int, dimensions: int) -> SlotPrices:
    """Prices of 0 for all slots."""
    return SlotPrices(
        np.zeros((machines, 1), np.int64),
        np.zeros(machines, np.int64),
        np.zeros(dimensions, np.int64),
    )
