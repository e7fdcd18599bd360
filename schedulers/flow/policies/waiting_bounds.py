"""How many tasks of a job or a gang may and must wait: fair shares of jobs, and admission of gangs.

Both are bounds of what flows through unscheduled aggregators. A policy has them by passing its
observe(), waiting_group() and waiting_bounds() on (quincy.py does). A flow can keep the bounds as
long as every task may go to every machine: no more tasks have to be placed than there is room.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from schedulers.flow.policies.interface import MachineLoad, ObservedCell
from shared_state.tasks import NO_GANG, Int64, TaskBatch


class WaitingBounds(Protocol):
    """Bounds of unscheduled aggregators. The methods are those of Policy with the same names."""

    def observe(self, cell: ObservedCell) -> None: ...

    def waiting_group(self, tasks: TaskBatch) -> Int64: ...

    def waiting_bounds(
        self, group: Int64, tasks: Int64, load: MachineLoad
    ) -> tuple[Int64, Int64] | None: ...


class FairShares:
    """Fair shares of jobs (Quincy section 4.2.2). Of the N_j tasks of job j that run or wait, at
    least E_j run and at most F_j, so that between N_j - F_j and N_j - E_j wait. Under preemption
    both are the job's fair share A_j: all jobs get equally many places, except that none gets more
    than it has tasks; what does not divide goes to the first jobs by number.

    Without preemption, running tasks stay, and only F_j = A_j bounds the others: a job with more
    than its share gets nothing until it has less. Then the places that are free go to jobs with
    less than their share.
    """

    def __init__(self, preemption: bool) -> None:
        self._preemption = preemption
        self._job = self._runs = np.zeros(0, np.int64)  # jobs with running tasks, ascending

    def observe(self, cell: ObservedCell) -> None:
        if not self._preemption:
            self._job, self._runs = np.unique(cell.running.job, return_counts=True)

    def waiting_group(self, tasks: TaskBatch) -> Int64:
        return tasks.job

    def waiting_bounds(
        self, group: Int64, tasks: Int64, load: MachineLoad
    ) -> tuple[Int64, Int64] | None:
        room = int(load.room.sum())
        if self._preemption:
            wait, order = np.empty_like(tasks), np.argsort(group)
            wait[order] = tasks[order] - fair_shares(tasks[order], room)
            return wait, wait
        job = np.union1d(group, self._job)
        of_group, of_running = np.searchsorted(job, group), np.searchsorted(job, self._job)
        waits, runs = np.zeros(len(job), np.int64), np.zeros(len(job), np.int64)
        waits[of_group], runs[of_running] = tasks, self._runs
        share = fair_shares(waits + runs, room + int(runs.sum()))
        least = waits - np.clip(share - runs, 0, waits)
        return least[of_group], tasks


def fair_shares(tasks: Int64, places: int) -> Int64:
    """Divide places among jobs with so many tasks (int64[n]) as evenly as they can use them:
    int64[n]. What is left of an even division goes to the first jobs that can use more."""
    order = np.sort(tasks)
    n = len(order)
    # what n jobs take if none gets more than the k-th smallest number of tasks
    taken = np.cumsum(order) + (n - 1 - np.arange(n)) * order
    satisfied = int(np.searchsorted(taken, places, side="right"))
    if satisfied == n:
        return tasks.copy()
    level = (places - int(order[:satisfied].sum())) // (n - satisfied)
    share = np.minimum(tasks, level)
    more = np.flatnonzero(tasks > level)[: places - int(share.sum())]
    share[more] += 1
    return share


class GangAdmission:
    """Admission of gangs by bounds of flow (the slides' future work: a minimum flow and a maximum
    capacity for gangs). Each gang has an unscheduled aggregator of its own. That of an admitted
    gang lets nothing through, so that all its tasks are placed; that of another gang has to be
    passed by all its tasks, so that they leave places to others.

    Which gangs are admitted is decided before the flow, since it could not meet the bounds of more
    gangs than there is room for: gangs of which tasks run first, then as they were submitted. A
    gang for which there is no room left is passed over.
    """

    def __init__(self) -> None:
        self._submit_us = np.zeros(0, np.int64)  # by gang
        self._runs = np.zeros(0, np.int64)  # gangs with running tasks

    def observe(self, cell: ObservedCell) -> None:
        self._runs = np.unique(cell.running.gang)

    def waiting_group(self, tasks: TaskBatch) -> Int64:
        gang = tasks.gang
        largest = int(gang.max(initial=NO_GANG)) + 1
        if largest > len(self._submit_us):
            more = np.zeros(max(largest, 2 * len(self._submit_us)) - len(self._submit_us), np.int64)
            self._submit_us = np.concatenate([self._submit_us, more])
        in_gang = gang != NO_GANG
        self._submit_us[gang[in_gang]] = tasks.submit_us[in_gang]
        return np.where(in_gang, 2 * gang + 1, 2 * tasks.job)

    def waiting_bounds(
        self, group: Int64, tasks: Int64, load: MachineLoad
    ) -> tuple[Int64, Int64] | None:
        row = np.flatnonzero(group % 2 == 1)
        if len(row) == 0:
            return None
        gang = group[row] // 2
        row = row[np.lexsort((gang, self._submit_us[gang], ~np.isin(gang, self._runs)))]
        least, most = np.zeros(len(group), np.int64), tasks.copy()
        left = int(load.room.sum())
        for one, size in zip(row.tolist(), tasks[row].tolist(), strict=True):
            if size <= left:
                left -= size
                most[one] = 0
            else:
                least[one] = size
        return least, most
