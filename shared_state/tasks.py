"""Columnar tasks, the cell they run on, and the placement costs every scheduler sees."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from shared_state import _native

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]

NO_GANG = -1
ENTIRE = 1000  # shares are kept in permille
NO_PREFERENCE = 0
# The elsewhere_cost of a preference set whose tasks may run only on what it lists: a constraint.
# No other cost is that high.
NOWHERE_ELSE = 1 << 38


class TaskClass(IntEnum):
    """Batch tasks end; service tasks run until the end of the trace (Firmament section 7.1), or
    long (Omega section 2). Activities of MapReduce jobs are a class of their own, so that a
    scheduler for them can be given these jobs (Omega section 6)."""

    BATCH = 0
    SERVICE = 1
    MAPREDUCE = 2


def fits(request: Int64, free: Int64) -> NDArray[np.bool_]:
    """Whether requests fit what is free, bool[...], where both are int64[..., R] that numpy can
    broadcast together.

    A resource that is requested at 0 is not checked, and takes nothing: a task that wants none of
    it fits a machine that is overdrawn in it (native/free_amounts.hpp). ValueError for arrays of
    another type.
    """
    if request.ndim == 1 and free.ndim == 2:  # a scheduler asks for one task after the other
        return _native.fits_rows(request, free)
    request, free = np.broadcast_arrays(request, free)
    *shape, dimensions = request.shape
    rows = prod(shape), dimensions
    fit = _native.fits_each(request.reshape(rows), free.reshape(rows), dimensions)
    return fit.reshape(shape)


@dataclass(frozen=True)
class CellSpec:
    """A cell's machines, as rows in topology order (rack by rack).

    Immutable, and shared by every participant.

    Attributes:
        dimensions: Names of the R resources, e.g. ("slots",) or ("cpu_milli", "mem_mib").
        capacity: int64[M, R].
        rack: int32[M], non-decreasing.
        slot_score: int64[M], static quality; higher is better, 0 is none.
        overcommit_permille: int64[R]; claims are accepted while
            used <= capacity * permille / 1000 (integer floor), in each resource that they request
            some of.
    """

    dimensions: tuple[str, ...]
    capacity: Int64
    rack: Int32
    slot_score: Int64
    overcommit_permille: Int64

    @property
    def machines(self) -> int:
        return int(self.capacity.shape[0])

    @cached_property
    def limit(self) -> Int64:
        """What a claim may fill each machine to, over-commit included: int64[M, R], read-only."""
        limit: Int64 = self.capacity * self.overcommit_permille // 1000
        limit.setflags(write=False)
        return limit


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PreferenceCatalog:
    """Integer placement costs by preference set: the one model of what a placement is worth.

    Immutable, and shared by every participant. Two catalogs are equal if they are the same object.

    There are K sets. Set 0 is "no preference": empty, and every machine costs 0. To leave its tasks
    waiting costs no less than to leave others waiting. A task of set k placed on
    machine m costs the machine's cost if m is listed for k, else its rack's cost if the rack is
    listed, else elsewhere_cost[k]. Left waiting it costs unscheduled_cost[k] plus wait_cost for
    each wait_quantum_us of run time that it has waited. The machines listed are the *preferred*
    machines. A set whose elsewhere_cost is NOWHERE_ELSE is a constraint: its tasks may run only on
    the machines and racks listed, and a plan that places them elsewhere breaks the contract.

    Attributes:
        machine_offsets: int64[K+1]; set k lists entries [offsets[k], offsets[k+1]) of the next two.
        machine: int32[entries], ascending within a set.
        machine_cost: int64[entries].
        rack_offsets, rack, rack_cost: The same for racks.
        elsewhere_cost: int64[K].
        unscheduled_cost: int64[K].
        wait_cost: Of one quantum of waiting.
        wait_quantum_us: The length of a quantum.
    """

    machine_offsets: Int64
    machine: Int32
    machine_cost: Int64
    rack_offsets: Int64
    rack: Int32
    rack_cost: Int64
    elsewhere_cost: Int64
    unscheduled_cost: Int64
    wait_cost: int = 1
    wait_quantum_us: int = 1_000_000

    @property
    def sets(self) -> int:
        return len(self.elsewhere_cost)

    @property
    def has_constraints(self) -> bool:
        """Whether a set restricts its tasks to what it lists."""
        return bool((self.elsewhere_cost == NOWHERE_ELSE).any())

    @staticmethod
    def empty() -> PreferenceCatalog:
        """Only set 0: nobody prefers anything."""
        zero = np.zeros(1, np.int64)
        none64, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
        two = np.zeros(2, np.int64)
        return PreferenceCatalog(two, none32, none64, two, none32, none64, zero, zero)


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Tasks, columnar, n of them. A task's id is its row in the workload; ids are dense from 0.

    Attributes:
        task: int64[n], ids.
        job: int64[n], 0 or more.
        request: int64[n, R], 0 or more, and above 0 in some dimension. A resource requested at 0
            is not checked, and takes nothing.
        priority: int32[n]; higher is more important.
        submit_us: int64[n].
        preference: int32[n], a set of the PreferenceCatalog; 0 is none.
        gang: int64[n], NO_GANG, or an id from 0 on that tasks share which are placed together or
            not at all.
        task_class: int8[n], a TaskClass.
    """

    task: Int64
    job: Int64
    request: Int64
    priority: Int32
    submit_us: Int64
    preference: Int32
    gang: Int64
    task_class: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.task)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> TaskBatch:
        """The named rows, in order (a slice copies nothing)."""
        return TaskBatch(
            self.task[rows],
            self.job[rows],
            self.request[rows],
            self.priority[rows],
            self.submit_us[rows],
            self.preference[rows],
            self.gang[rows],
            self.task_class[rows],
        )

    def contiguous(self) -> TaskBatch:
        """The same tasks in columns that native code reads where they are; itself if it is so."""
        columns = [getattr(self, field.name) for field in fields(self)]
        if all(column.flags.c_contiguous for column in columns):
            return self
        return TaskBatch(*map(np.ascontiguousarray, columns))

    @staticmethod
    def concatenate(batches: list[TaskBatch]) -> TaskBatch:
        """One batch with the rows of all, in order. `batches` holds at least one."""
        if len(batches) == 1:
            return batches[0]
        return TaskBatch(
            *(np.concatenate([getattr(b, f.name) for b in batches]) for f in fields(TaskBatch))
        )

    @staticmethod
    def empty(dimensions: int) -> TaskBatch:
        none = np.zeros(0, np.int64)
        none32 = np.zeros(0, np.int32)
        return TaskBatch(
            none,
            none,
            np.zeros((0, dimensions), np.int64),
            none32,
            none,
            none32,
            none,
            np.zeros(0, np.int8),
        )
