"""What a scheduler knows of the tasks that run on the cell: those of any scheduler that may have to
make room, and its own allocations."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import NO_GANG, Int32, Int64, TaskBatch

MERGE_AT = 4096  # changes of own allocations kept apart, at least, before they are sorted in


@dataclass(frozen=True, slots=True)
class RunningTasks:
    """Allocations of any schedulers, as old as the state that they were read from.

    Attributes:
        allocation: int64[n], ids.
        task: int64[n].
        machine: int32[n].
        priority: int32[n].
        submit_us: int64[n].
        request: int64[n, R].
        preference: int32[n], sets of the PreferenceCatalog.
    """

    allocation: Int64
    task: Int64
    machine: Int32
    priority: Int32
    submit_us: Int64
    request: Int64
    preference: Int32

    def __len__(self) -> int:
        return len(self.task)

    @staticmethod
    def of(table: TaskBatch, allocation: Int64, task: Int64, machine: Int32) -> RunningTasks:
        """Allocations of tasks on machines, int64[n], int64[n] and int32[n]; `table` has every
        task (row = id)."""
        return RunningTasks(
            allocation,
            task,
            machine,
            table.priority[task],
            table.submit_us[task],
            table.request[task],
            table.preference[task],
        )

    def as_tasks(self) -> TaskBatch:
        """The tasks, as far as they are known: of no job and no gang."""
        none = np.zeros(len(self), np.int64)
        return TaskBatch(
            self.task,
            none,
            self.request,
            self.priority,
            self.submit_us,
            self.preference,
            none + NO_GANG,
            none.astype(np.int8),
        )

    def take(self, rows: Int64 | NDArray[np.bool_]) -> RunningTasks:
        """Those of some rows."""
        return RunningTasks(*(getattr(self, field.name)[rows] for field in fields(self)))


class FirstSeen:
    """Record when a scheduler first saw each allocation run, which is all it knows of progress."""

    def __init__(self) -> None:
        # of the last round, ascending
        self._allocation, self._since_us = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def since_us(self, allocation: Int64, now_us: int) -> Int64:
        """When each of these allocations, int64[n], all that are known to run, was first among
        them: int64[n]."""
        since_us = np.full(len(allocation), now_us, np.int64)
        if len(self._allocation):
            place = np.searchsorted(self._allocation, allocation)
            place = np.minimum(place, len(self._allocation) - 1)
            known = self._allocation[place] == allocation
            since_us[known] = self._since_us[place[known]]
        order = np.argsort(allocation)
        self._allocation, self._since_us = allocation[order], since_us[order]
        return since_us


class OwnAllocations:
    """The running allocations of a scheduler that evicts, as far as it has learned of them, each
    with its task and machine. Ids never come back once removed."""

    def __init__(self) -> None:
        self._id = np.zeros(0, np.int64)  # ascending
        self._task = np.zeros(0, np.int64)
        self._machine = np.zeros(0, np.int32)
        self._added: list[tuple[Int64, Int64, Int32]] = []
        self._removed: list[Int64] = []
        self._changes = 0

    def add(self, allocation: Int64, task: Int64, machine: Int32) -> None:
        """Add allocations: their ids and tasks, int64[n], and machines, int32[n]."""
        self._added.append((allocation, task, machine))
        self._count(len(allocation))

    def remove(self, allocation: Int64) -> None:
        """Remove allocations, int64[n]; those that it does not hold are ignored."""
        self._removed.append(allocation)
        self._count(len(allocation))

    def find(self, allocation: Int64) -> tuple[NDArray[np.bool_], Int64, Int32]:
        """Whether it holds each allocation, bool[n]; task int64[k] and machine int32[k] of those
        that it holds."""
        self._merge()
        if not len(self._id):
            return np.zeros(len(allocation), np.bool_), self._task, self._machine
        place = np.minimum(np.searchsorted(self._id, allocation), len(self._id) - 1)
        known: NDArray[np.bool_] = self._id[place] == allocation
        return known, self._task[place[known]], self._machine[place[known]]

    def everything(self) -> tuple[Int64, Int64]:
        """The ids of all allocations, int64[n] ascending, and their tasks, int64[n]."""
        self._merge()
        return self._id, self._task

    def _count(self, changes: int) -> None:
        self._changes += changes
        if self._changes > MERGE_AT + len(self._id):
            self._merge()

    def _merge(self) -> None:
        """Sort the changes in."""
        if not self._changes:
            return
        held = (self._id, self._task, self._machine)
        ids, task, machine = map(np.concatenate, zip(held, *self._added, strict=True))
        order = np.argsort(ids, kind="stable")  # nearly ascending, which that makes use of
        if self._removed and len(ids):
            ascending, removed = ids[order], np.concatenate(self._removed)
            place = np.minimum(np.searchsorted(ascending, removed), len(ids) - 1)
            order = np.delete(order, place[ascending[place] == removed])
        self._id, self._task, self._machine = ids[order], task[order], machine[order]
        self._added, self._removed, self._changes = [], [], 0
