"""How long a decision takes.

It is a value, so that a fast implementation saturates as the scheduler it stands for would.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar, Protocol

import shared_state._native  # noqa: F401  (schedulers._native speaks of its types)
from schedulers import _native

# What an operation of this repository's kinds of scheduler takes on the machine their counted work
# was calibrated on.
PS_PER_OPERATION: int = _native.PS_PER_OPERATION

# What making slot prices anew takes per machine of the cell, for modelled clocks.
PRICE_MACHINE_NS = 100


class ClockClass(StrEnum):
    """What decision times stand for. Delays of different classes cannot be compared."""

    # Times are modelled, so that schedulers of every kind can be given the same capacity: what
    # differs is how they synchronise and where they place.
    EQUAL_CAPACITY = "equal_capacity"

    # Times follow from the work of the implementation, counted or measured: fast code decides more.
    OWN_SPEED = "own_speed"


class DecisionClock(Protocol):
    """Turns one decision round into a duration, in integers.

    Durations round up to whole microseconds.

    Attributes:
        clock_class: What its times stand for.
        charges_kept: Whether tasks that a scheduler keeps waiting are decided on in every round,
            and not only in the one that they are offered in.
    """

    clock_class: ClassVar[ClockClass]

    @property
    def charges_kept(self) -> bool: ...

    def duration_us(
        self,
        tasks: int,
        partitions_scanned: int,
        operations: int,
        elapsed_ns: int,
        priced_machines: int = 0,
    ) -> int:
        """The duration of a round.

        Args:
            tasks: How many tasks it decided on, placed or not: those that the scheduler was offered
                and, if charges_kept, those that it kept from earlier rounds.
            partitions_scanned: As in Plan, summed over tasks.
            operations: As in Plan.
            elapsed_ns: The wall time in which the plan was computed.
            priced_machines: As in Plan.
        """
        ...

    def tasks_within(self, window_us: int, partitions_per_task: int) -> int | None:
        """How many tasks' decisions begin within window_us if each scans partitions_per_task.

        Returns: At least 1; None if it is not known before deciding.
        """
        ...


class _NativeTimes:
    """The times of the clocks below: native/contract.hpp computes them, from what each clock
    reads of a round."""

    __slots__ = ()

    def duration_us(
        self,
        tasks: int,
        partitions_scanned: int,
        operations: int,
        elapsed_ns: int,
        priced_machines: int = 0,
    ) -> int:
        clock = _native_clock(self)
        return clock.duration_us(
            tasks, 0, partitions_scanned, operations, elapsed_ns, priced_machines
        )

    def tasks_within(self, window_us: int, partitions_per_task: int) -> int | None:
        return _native_clock(self).tasks_within(window_us, partitions_per_task)


@dataclass(frozen=True, slots=True)
class Modelled(_NativeTimes):
    """A time per round, per task and per partition looked at.

    Omega's simulator; ParSync section 6.2: quality-first checks every partition.

    Attributes:
        job_us: Per round.
        task_ns: Per task.
        partition_ns: Per partition looked at.
        charges_kept: As in DecisionClock.
        price_machine_ns: Per machine of the cell, whenever slot prices are computed anew.

    Raises:
        ValueError: A time is negative.
    """

    clock_class: ClassVar[ClockClass] = ClockClass.EQUAL_CAPACITY
    job_us: int
    task_ns: int
    partition_ns: int
    charges_kept: bool = False
    price_machine_ns: int = PRICE_MACHINE_NS

    def __post_init__(self) -> None:
        for name in ("job_us", "task_ns", "partition_ns", "price_machine_ns"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: expected 0 or more, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Counted(_NativeTimes):
    """Counted operations at a calibrated time each: deterministic, and it grows with the work.

    The kinds of this repository weight what they count, so that an operation takes about 100 ns
    whatever it consists of: 100 stands for the machine of the calibration, 200 for one half as
    fast. (flow/scheduler.py and greedy/scheduler.py have the weights,
    tests/benchmarks/calibrate_*_work.py the calibration.)

    Raises:
        ValueError: ns_per_operation is not above 0.
    """

    clock_class: ClassVar[ClockClass] = ClockClass.OWN_SPEED
    charges_kept: ClassVar[bool] = False
    ns_per_operation: int

    def __post_init__(self) -> None:
        if self.ns_per_operation <= 0:
            raise ValueError(f"ns_per_operation: expected more than 0, got {self.ns_per_operation}")


@dataclass(frozen=True, slots=True)
class Measured(_NativeTimes):
    """Wall time. Under the virtual runtime runs with it do not repeat, and results say so."""

    clock_class: ClassVar[ClockClass] = ClockClass.OWN_SPEED
    charges_kept: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class ModelledByClass(_NativeTimes):
    """A time per round and task that depends on the class of the tasks: the fast and the slow path
    of a monolithic scheduler (Omega section 4.1).

    A round about tasks of both classes takes the times of both.

    Attributes:
        batch: Of rounds about batch tasks.
        service: Of rounds about service tasks.
    """

    clock_class: ClassVar[ClockClass] = ClockClass.EQUAL_CAPACITY
    charges_kept: ClassVar[bool] = False
    batch: Modelled
    service: Modelled

    def by_class_us(
        self, batch_tasks: int, service_tasks: int, partitions_scanned: int, priced_machines: int
    ) -> int:
        """The duration of a round about so many tasks of each class. What they scanned is divided
        between the classes in proportion; prices count once."""
        tasks = batch_tasks + service_tasks
        clock = _native_clock(self)
        return clock.duration_us(tasks, service_tasks, partitions_scanned, 0, 0, priced_machines)


class NativeClock(Protocol):
    """A decision clock in native code (native/contract.hpp)."""

    def duration_us(
        self,
        tasks: int,
        service_tasks: int,
        partitions_scanned: int,
        operations: int,
        elapsed_ns: int,
        priced_machines: int,
    ) -> int:
        """As DecisionClock.duration_us; `service_tasks` are those of TaskClass.SERVICE among the
        tasks. Raises OverflowError for 2^63 us or more."""
        ...

    def tasks_within(self, window_us: int, partitions_per_task: int) -> int | None:
        """As DecisionClock.tasks_within."""
        ...


def native_clock(clock: DecisionClock) -> NativeClock | None:
    """The same clock in native code; None for a clock of somebody's own class."""
    own = Modelled, ModelledByClass, Counted, Measured
    return _native_clock(clock) if isinstance(clock, own) and type(clock) in own else None


@lru_cache(maxsize=256)
def _native_clock(clock: Hashable) -> NativeClock:
    native: NativeClock
    match clock:
        case Modelled():
            native = _native.modelled_clock(_times(clock))
        case ModelledByClass():
            native = _native.modelled_by_class_clock(_times(clock.batch), _times(clock.service))
        case Counted():
            native = _native.counted_clock(clock.ns_per_operation)
        case _:
            native = _native.measured_clock()
    return native


def _times(clock: Modelled) -> tuple[int, int, int, int]:
    return clock.job_us, clock.task_ns, clock.partition_ns, clock.price_machine_ns
