"""How long a decision takes.

It is a value, so that a fast implementation saturates as the scheduler it stands for would.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

# What an operation of this repository's kinds of scheduler takes on the machine their counted work
# was calibrated on.
PS_PER_OPERATION = 100_000

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


@dataclass(frozen=True, slots=True)
class Modelled:
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

    def duration_us(
        self,
        tasks: int,
        partitions_scanned: int,
        operations: int,
        elapsed_ns: int,
        priced_machines: int = 0,
    ) -> int:
        search_ns = self.task_ns * tasks + self.partition_ns * partitions_scanned
        return self.job_us + _to_us(search_ns + self.price_machine_ns * priced_machines)

    def tasks_within(self, window_us: int, partitions_per_task: int) -> int | None:
        per_task_ns = self.task_ns + self.partition_ns * partitions_per_task
        if per_task_ns == 0:
            return None
        return max(1, -(-(window_us - self.job_us) * 1000 // per_task_ns))


@dataclass(frozen=True, slots=True)
class Counted:
    """Counted operations at a calibrated time each: deterministic, and it grows with the work.

    The kinds of this repository weight what they count, so that an operation takes about 100 ns
    whatever it consists of: 100 stands for the machine of the calibration, 200 for one half as
    fast. (flow/work.py and greedy/base.py have the weights, tests/benchmarks/calibrate_*_work.py
    the calibration.)

    Raises:
        ValueError: ns_per_operation is not above 0.
    """

    clock_class: ClassVar[ClockClass] = ClockClass.OWN_SPEED
    charges_kept: ClassVar[bool] = False
    ns_per_operation: int

    def __post_init__(self) -> None:
        if self.ns_per_operation <= 0:
            raise ValueError(f"ns_per_operation: expected more than 0, got {self.ns_per_operation}")

    def duration_us(
        self,
        tasks: int,
        partitions_scanned: int,
        operations: int,
        elapsed_ns: int,
        priced_machines: int = 0,
    ) -> int:
        return _to_us(self.ns_per_operation * operations)

    def tasks_within(self, window_us: int, partitions_per_task: int) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Measured:
    """Wall time. Under the virtual runtime runs with it do not repeat, and results say so."""

    clock_class: ClassVar[ClockClass] = ClockClass.OWN_SPEED
    charges_kept: ClassVar[bool] = False

    def duration_us(
        self,
        tasks: int,
        partitions_scanned: int,
        operations: int,
        elapsed_ns: int,
        priced_machines: int = 0,
    ) -> int:
        return _to_us(elapsed_ns)

    def tasks_within(self, window_us: int, partitions_per_task: int) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class ModelledByClass:
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

    def duration_us(
        self,
        tasks: int,
        partitions_scanned: int,
        operations: int,
        elapsed_ns: int,
        priced_machines: int = 0,
    ) -> int:
        return self.by_class_us(tasks, 0, partitions_scanned, priced_machines)

    def by_class_us(
        self, batch_tasks: int, service_tasks: int, partitions_scanned: int, priced_machines: int
    ) -> int:
        """The duration of a round about so many tasks of each class. What they scanned is divided
        between the classes in proportion; prices count once."""
        tasks = batch_tasks + service_tasks
        of_service = partitions_scanned * service_tasks // max(1, tasks)
        total_us = 0
        if service_tasks:
            alone = 0 if batch_tasks else priced_machines
            total_us += self.service.duration_us(service_tasks, of_service, 0, 0, alone)
        if batch_tasks or not service_tasks:
            scanned = partitions_scanned - of_service
            total_us += self.batch.duration_us(batch_tasks, scanned, 0, 0, priced_machines)
        return total_us

    def tasks_within(self, window_us: int, partitions_per_task: int) -> int | None:
        return None


def _to_us(ns: int) -> int:
    return -(-ns // 1000)
