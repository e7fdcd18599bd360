"""Which tasks no machine of the cell could ever hold. The platform decides this, once for a run:
schedulers are never offered these tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from schedulers.interface import PendingReason, Plan
from shared_state.partition import Partitioning
from shared_state.tasks import NO_GANG, CellSpec, TaskBatch
from shared_state.view import StaticCellState


def tasks_too_large(tasks: TaskBatch, cell: CellSpec) -> NDArray[np.bool_] | None:
    """Find the tasks that no machine of the cell holds when empty, and all members of their gangs.

    Returns: bool[n], or None if there are none.
    """
    if not len(tasks) or (cell.limit >= tasks.request.max(axis=0)).all(axis=1).any():
        return None
    static = StaticCellState(cell, Partitioning(np.array([0, cell.machines], np.int64)))
    too_large = ~static.fits_when_empty(tasks.request)
    if not too_large.any():
        return None
    gang = tasks.gang[too_large]
    too_large |= np.isin(tasks.gang, gang[gang != NO_GANG])
    return too_large


def with_too_large(plan: Plan, too_large: TaskBatch) -> Plan:
    """The plan of a round that was offered these tasks as well: they are pending as TOO_LARGE."""
    reason = np.full(len(too_large), PendingReason.TOO_LARGE, np.int8)
    return replace(
        plan,
        pending=np.concatenate([plan.pending, too_large.task]),
        pending_reason=np.concatenate([plan.pending_reason, reason]),
    )
