"""A cell that tells an observer of every call that reads or changes it: for audits, digests and
measurements that need the true state, whatever protocol made the call."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shared_state import _native
from shared_state.cell import Cell, Released
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, Holds, PartitionDelta, Transaction


class CellObserver:
    """Hears of the calls to an ObservedCell, in their order. Every method does nothing by default.

    `cell` is the cell itself: as it was before the call in methods named `before_...`, as it is
    after the call in methods named `on_...`. An observer reads it and never changes it.
    """

    def on_attach(self, cell: Cell) -> None:
        """Called once, with the cell that is observed from now on."""

    def before_change(self, cell: Cell, now_us: int) -> None:
        """Called before every commit, release, load, hold, end of holds and change of machines
        (loads are at time 0), and before the more specific method."""

    def before_commit(self, cell: Cell, transaction: Transaction, now_us: int) -> None:
        """Called before a transaction is decided."""

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        """Called when a transaction is decided."""

    def on_release(self, cell: Cell, released: Released, now_us: int) -> None:
        """Called when allocations whose tasks have run are ended."""

    def on_load(
        self,
        cell: Cell,
        task: Int64,
        machine: Int32,
        request: Int64,
        owner: Int32,
        allocation: Int64,
    ) -> None:
        """Called when an initial state is placed."""

    def on_hold(self, cell: Cell, holds: Holds, now_us: int) -> None:
        """Called when room was held, or refused (with the id -1)."""

    def on_holds_ended(self, cell: Cell, ended: Holds, now_us: int) -> None:
        """Called when holds are ended, but not for those that a transaction or a lost machine
        ends."""

    def on_machines(
        self, cell: Cell, machine: Int32, up: NDArray[Any], lost: Released, now_us: int
    ) -> None:
        """Called when machines went down or came up.

        Args:
            lost: The allocations that ended with them.
        """

    def on_delta(self, cell: Cell, delta: PartitionDelta, now_us: int) -> None:
        """Called when the changes of a partition were read, for a synchronisation."""


class NativeObserver(CellObserver):
    """An observer in native code, of which Python hears nothing when native code calls the cell.

    Attributes:
        native: The observer. No method of this class does anything but call it.
    """

    def __init__(self, native: _native.CellObserver) -> None:
        self.native = native

    def on_attach(self, cell: Cell) -> None:
        self.native.attach(cell.native)

    def before_change(self, cell: Cell, now_us: int) -> None:
        self.native.before_change(now_us)

    def before_commit(self, cell: Cell, transaction: Transaction, now_us: int) -> None:
        self.native.before_commit(transaction, now_us)

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        self.native.on_commit(transaction, result, now_us)

    def on_release(self, cell: Cell, released: Released, now_us: int) -> None:
        self.native.on_release(released, now_us)

    def on_load(
        self,
        cell: Cell,
        task: Int64,
        machine: Int32,
        request: Int64,
        owner: Int32,
        allocation: Int64,
    ) -> None:
        self.native.on_load(task, machine, request, owner, allocation)

    def on_hold(self, cell: Cell, holds: Holds, now_us: int) -> None:
        self.native.on_hold(holds, now_us)

    def on_holds_ended(self, cell: Cell, ended: Holds, now_us: int) -> None:
        self.native.on_holds_ended(ended, now_us)

    def on_machines(
        self, cell: Cell, machine: Int32, up: NDArray[Any], lost: Released, now_us: int
    ) -> None:
        self.native.on_machines(machine, up, lost, now_us)

    def on_delta(self, cell: Cell, delta: PartitionDelta, now_us: int) -> None:
        self.native.on_delta(delta, now_us)


class CellObservers(CellObserver):
    """Several observers as one; each hears of every call, in the order given."""

    def __init__(self, *observers: CellObserver) -> None:
        self.observers = observers

    def on_attach(self, cell: Cell) -> None:
        for one in self.observers:
            one.on_attach(cell)

    def before_change(self, cell: Cell, now_us: int) -> None:
        for one in self.observers:
            one.before_change(cell, now_us)

    def before_commit(self, cell: Cell, transaction: Transaction, now_us: int) -> None:
        for one in self.observers:
            one.before_commit(cell, transaction, now_us)

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        for one in self.observers:
            one.on_commit(cell, transaction, result, now_us)

    def on_release(self, cell: Cell, released: Released, now_us: int) -> None:
        for one in self.observers:
            one.on_release(cell, released, now_us)

    def on_load(
        self,
        cell: Cell,
        task: Int64,
        machine: Int32,
        request: Int64,
        owner: Int32,
        allocation: Int64,
    ) -> None:
        for one in self.observers:
            one.on_load(cell, task, machine, request, owner, allocation)

    def on_hold(self, cell: Cell, holds: Holds, now_us: int) -> None:
        for one in self.observers:
            one.on_hold(cell, holds, now_us)

    def on_holds_ended(self, cell: Cell, ended: Holds, now_us: int) -> None:
        for one in self.observers:
            one.on_holds_ended(cell, ended, now_us)

    def on_machines(
        self, cell: Cell, machine: Int32, up: NDArray[Any], lost: Released, now_us: int
    ) -> None:
        for one in self.observers:
            one.on_machines(cell, machine, up, lost, now_us)

    def on_delta(self, cell: Cell, delta: PartitionDelta, now_us: int) -> None:
        for one in self.observers:
            one.on_delta(cell, delta, now_us)


class ObservedCell(Cell):
    """The cell it is made of, with an observer: both stand for one state."""

    def __init__(self, cell: Cell, observer: CellObserver) -> None:
        self.__dict__.update(cell.__dict__)
        self.observer = observer
        observer.on_attach(self)

    def commit(self, transaction: Transaction, now_us: int) -> CommitResult:
        self.observer.before_change(self, now_us)
        self.observer.before_commit(self, transaction, now_us)
        result = super().commit(transaction, now_us)
        self.observer.on_commit(self, transaction, result, now_us)
        return result

    def release(self, allocation: Int64, owner: Int32 | None, now_us: int) -> Released:
        self.observer.before_change(self, now_us)
        released = super().release(allocation, owner, now_us)
        self.observer.on_release(self, released, now_us)
        return released

    def load(self, task: Int64, machine: Int32, request: Int64, owner: Int32) -> Int64:
        self.observer.before_change(self, 0)
        allocation = super().load(task, machine, request, owner)
        self.observer.on_load(self, task, machine, request, owner, allocation)
        return allocation

    def hold(self, holder: Int32, machine: Int32, amount: Int64, now_us: int) -> Int64:
        self.observer.before_change(self, now_us)
        hold = super().hold(holder, machine, amount, now_us)
        self.observer.on_hold(self, Holds(hold, holder, machine, amount), now_us)
        return hold

    def end_holds(self, hold: Int64, now_us: int) -> Holds:
        self.observer.before_change(self, now_us)
        ended = super().end_holds(hold, now_us)
        self.observer.on_holds_ended(self, ended, now_us)
        return ended

    def set_machines(self, machine: Int32, up: NDArray[Any], now_us: int) -> Released:
        self.observer.before_change(self, now_us)
        lost = super().set_machines(machine, up, now_us)
        self.observer.on_machines(self, machine, up, lost, now_us)
        return lost

    def delta_since(
        self, partition: int, version: int, now_us: int, with_seqnum: bool
    ) -> PartitionDelta:
        delta = super().delta_since(partition, version, now_us, with_seqnum)
        self.observer.on_delta(self, delta, now_us)
        return delta


def observers_of(cell: Cell) -> list[CellObserver | _native.CellObserver]:
    """Those who observe a cell, in the order in which they hear of its calls; of native ones, what
    native code calls."""
    if not isinstance(cell, ObservedCell):
        return []
    return _each(cell.observer)


def _each(observer: CellObserver) -> list[CellObserver | _native.CellObserver]:
    if isinstance(observer, CellObservers):
        return [one for part in observer.observers for one in _each(part)]
    return [observer.native if isinstance(observer, NativeObserver) else observer]
