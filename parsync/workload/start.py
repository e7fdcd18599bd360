"""How an arm begins: the tasks that run or wait at time 0, as its own warm-up left them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.workload.workload import InitialPlacement, QuotaMembership, Workload
from shared_state.tasks import NO_GANG, Int32, Int64, TaskBatch

WAITS = -1


@dataclass(frozen=True, slots=True)
class StartState:
    """k tasks that are not over at time 0.

    Attributes:
        tasks: Their columns; ids, jobs and gangs are numbered by themselves.
        machine: int32[k], where each runs, or WAITS.
        duration_us: int64[k], what remains of its run time, counted as away from preferred
            machines; -1 = never ends.
        quota_group: int32[k], a position among the names of the workload's quota groups; None if
            it has none.
    """

    tasks: TaskBatch
    machine: Int32
    duration_us: Int64
    quota_group: Int32 | None = None


def starting_from(workload: Workload, state: StartState) -> Workload:
    """A workload that begins with the tasks of a state.

    They come behind its own tasks, whose ids stay as they are, and so do their jobs and gangs.
    Those that wait are submitted at time 0, before all others.

    Raises:
        ValueError: Tasks run at the start of the workload already.
    """
    if len(workload.initial.task):
        raise ValueError("the workload says itself what runs at time 0")
    n, k = len(workload.tasks), len(state.tasks)
    rows = np.arange(n, n + k, dtype=np.int64)
    own, before = workload.tasks, state.tasks
    gang = before.gang.copy()
    gang[gang != NO_GANG] += int(own.gang.max(initial=NO_GANG)) + 1
    added = replace(
        before,
        task=rows,
        job=before.job + (int(own.job.max(initial=-1)) + 1),
        submit_us=np.zeros(k, np.int64),
        gang=gang,
    )
    runs = state.machine != WAITS
    waiting = rows[~runs]
    waiting = waiting[np.argsort(added.job[waiting - n], kind="stable")]
    job = added.job[waiting - n]
    first = np.flatnonzero(np.diff(job, prepend=-1))
    return replace(
        workload,
        tasks=joined_tasks(own, added),
        duration_us=np.concatenate([workload.duration_us, state.duration_us]),
        arrival_us=np.concatenate([np.zeros(len(first), np.int64), workload.arrival_us]),
        arrival_offsets=np.concatenate([first, workload.arrival_offsets + len(waiting)]),
        arrival_rows=np.concatenate([waiting, workload.arrival_rows]),
        initial=InitialPlacement(rows[runs], state.machine[runs]),
        quotas=joined_quotas(workload.quotas, state.quota_group),
    )


def joined_quotas(own: QuotaMembership | None, before: Int32 | None) -> QuotaMembership | None:
    """The quota groups of the workload's tasks, then those of the tasks of its start."""
    if own is None or before is None:
        assert own is None and before is None, "a warm-up has the quota groups of its workload"
        return None
    return replace(own, group=joined_column(own.group, before))


def joined_tasks(one: TaskBatch, other: TaskBatch) -> TaskBatch:
    """The rows of one table, then those of the other. Columns whose values are all alike stay
    read-only broadcasts."""
    columns: dict[str, Any] = {
        name: joined_column(getattr(one, name), getattr(other, name))
        for name in TaskBatch.__dataclass_fields__
    }
    return TaskBatch(**columns)


def joined_column(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The values of one column, then those of the other."""
    if len(one) and one.strides[0] == 0 and (other == one[0]).all():
        return np.broadcast_to(one[0], (len(one) + len(other), *one.shape[1:]))
    return np.concatenate([one, other])
