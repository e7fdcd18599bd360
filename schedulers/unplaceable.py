"""Which units can never be placed. The platform decides this once for a run, and removes these
tasks: schedulers never see them.

A unit is a task, or a gang where schedulers place gangs together or not at all. "Never" begins at
some time, because machines that go down by the workload may not come up again. It also depends on
the machines that the unit's scheduler may use; parsync.workload.placeability determines it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.interface import PendingReason, Plan
from shared_state.partition import Partitioning
from shared_state.tasks import NO_GANG, CellSpec, Int64, TaskBatch
from shared_state.view import StaticCellState

NEVER_US = np.iinfo(np.int64).max  # a time that does not come


class Unplaceable(IntEnum):
    """Why a task was not placed and is not tried again."""

    LARGER_THAN_EVERY_MACHINE = 0
    ABANDONED = 1
    CONSTRAINED = 2
    NO_MACHINE = 3
    GANG_TOO_LARGE = 4
    ABOVE_LIMIT = 5
    ABOVE_QUOTA = 6


REASONS: dict[int, str] = {
    Unplaceable.LARGER_THAN_EVERY_MACHINE: "larger than every machine",
    Unplaceable.ABANDONED: "given up after too many attempts",
    Unplaceable.CONSTRAINED: "larger than every machine that its constraint allows",
    Unplaceable.NO_MACHINE: "larger than every machine that is up and that its scheduler may use",
    Unplaceable.GANG_TOO_LARGE: "in a gang larger than what its scheduler can have at once",
    Unplaceable.ABOVE_LIMIT: "above what its scheduler may hold (hold_max)",
    Unplaceable.ABOVE_QUOTA: "above the maximum of its quota group",
}


@dataclass(frozen=True)
class UnplaceableUnits:
    """The units that some scheduler can never place, over all n tasks of a run.

    Attributes:
        task_us: int64[n], from when on each task by itself can never be placed; NEVER_US: there is
            no such time.
        gang_us: int64[n], the same of each task's gang as a whole; NEVER_US for tasks without one.
        reason: int8[n], an Unplaceable for tasks with such a time.
        gang: int64[n], as in TaskBatch.
        gang_size: int64[n], how many tasks the gang of each has.
    """

    task_us: Int64
    gang_us: Int64
    reason: NDArray[np.int8]
    gang: Int64
    gang_size: Int64

    @staticmethod
    def by_size(tasks: TaskBatch, cell: CellSpec) -> UnplaceableUnits | None:
        """The tasks that no machine of the cell holds when empty, and all members of their gangs;
        None if there are none."""
        if not len(tasks) or (cell.limit >= tasks.request.max(axis=0)).all(axis=1).any():
            return None
        static = StaticCellState(cell, Partitioning(np.array([0, cell.machines], np.int64)))
        too_large = ~static.fits_when_empty(tasks.request)
        if not too_large.any():
            return None
        gang = tasks.gang[too_large]
        too_large |= np.isin(tasks.gang, gang[gang != NO_GANG])
        never = np.full(len(tasks), NEVER_US)
        reason = np.full(len(tasks), Unplaceable.LARGER_THAN_EVERY_MACHINE, np.int8)
        size = np.zeros(len(tasks), np.int64)
        return UnplaceableUnits(np.where(too_large, 0, never), never, reason, tasks.gang, size)

    def among(self, task: Int64, now_us: int) -> NDArray[np.bool_] | None:
        """Which of these tasks, int64[k], can never be placed from now on: bool[k]; None if all
        can. A gang counts as a whole only if all its tasks are among these. If one of its tasks
        can never be placed, none of those among these can."""
        never: NDArray[np.bool_] | None = self.native.among(task, now_us)
        return never

    @cached_property
    def native(self) -> Any:
        """The same in native code (native/contract.hpp). Shares the arrays."""
        columns = (self.task_us, self.gang_us, self.gang, self.gang_size)
        return _native.UnplaceableUnits(*map(np.ascontiguousarray, columns))


def with_unplaceable(plan: Plan, unplaceable: TaskBatch) -> Plan:
    """The plan of a round that was offered these tasks as well: they are pending as TOO_LARGE."""
    reason = np.full(len(unplaceable), PendingReason.TOO_LARGE, np.int8)
    return replace(
        plan,
        pending=np.concatenate([plan.pending, unplaceable.task]),
        pending_reason=np.concatenate([plan.pending_reason, reason]),
    )
