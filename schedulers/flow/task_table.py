"""The tasks a flow scheduler answers for: waiting, claimed and unanswered, and (under preemption)
running. Columnar, rows are reused."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int32, Int64, TaskBatch

NO_ROW = -1
NO_NODE = -1
NO_ARC = -1


class TaskState(IntEnum):
    ABSENT = 0  # the row is free
    WAITING = 1  # to be placed
    IN_FLIGHT = 2  # claimed; the cell has not answered
    RUNNING = 3  # may be migrated or preempted
    EVICTING = 4  # running; the plan asked for its eviction


class TaskNodeState(IntEnum):
    """As what a task stands in the solver's graph."""

    NONE = 0
    WAITING = 1
    RUNNING = 2


class TaskTable:
    """Columns of capacity C >= the tasks known; `row_of` maps dense task ids to rows.

    What the agent said: task, job, submit_us, gang, machine, allocation, since_us: int64[C];
    request: int64[C, R]; priority, preference: int32[C]; task_class, state: int8[C]. What the graph
    keeps: node_state: int8[C]; node, next_hop (arc that carries the task's unit), running_arc (arc
    to the machine it runs on): int64[C], NO_NODE or NO_ARC when there is none; running_arc_cost:
    int64[C], of the latter before any progress; patience_arc (on which it waits while its patience
    lasts): int64[C], NO_ARC when there is none; patience_ends_us: int64[C], of tasks in the graph,
    0 if they have none.
    """

    def __init__(self, dimensions: int) -> None:
        self.task = np.zeros(0, np.int64)
        self.job = np.zeros(0, np.int64)
        self.request = np.zeros((0, dimensions), np.int64)
        self.priority = np.zeros(0, np.int32)
        self.submit_us = np.zeros(0, np.int64)
        self.preference = np.zeros(0, np.int32)
        self.gang = np.zeros(0, np.int64)
        self.task_class = np.zeros(0, np.int8)
        self.state = np.zeros(0, np.int8)
        self.machine = np.zeros(0, np.int64)
        self.allocation = np.zeros(0, np.int64)
        self.since_us = np.zeros(0, np.int64)
        self.node_state = np.zeros(0, np.int8)
        self.node = np.zeros(0, np.int64)
        self.next_hop = np.zeros(0, np.int64)
        self.running_arc = np.zeros(0, np.int64)
        self.running_arc_cost = np.zeros(0, np.int64)
        self.patience_arc = np.zeros(0, np.int64)
        self.patience_ends_us = np.zeros(0, np.int64)
        self._row_of: Int32 = np.zeros(0, np.int32)
        self._free: Int64 = np.zeros(0, np.int64)  # a stack of free rows

    def rows(self, task: Int64) -> Int64:
        """The row of each task, int64[n]; NO_ROW if unknown."""
        row = np.full(len(task), NO_ROW, np.int64)
        known = (task >= 0) & (task < len(self._row_of))
        row[known] = self._row_of[task[known]]
        return row

    def add(self, tasks: TaskBatch) -> Int64:
        """Rows for tasks not in the table, as WAITING."""
        n = len(tasks)
        if n == 0:
            return np.zeros(0, np.int64)
        self._reserve(n, int(tasks.task.max()))
        row = self._free[: -n - 1 : -1].copy()
        self._free = self._free[:-n]
        for name in (
            "task",
            "job",
            "request",
            "priority",
            "submit_us",
            "preference",
            "gang",
            "task_class",
        ):
            getattr(self, name)[row] = getattr(tasks, name)
        self.state[row] = TaskState.WAITING
        self.machine[row] = self.allocation[row] = NO_ROW
        self.node_state[row] = TaskNodeState.NONE
        self.node[row] = NO_NODE
        self.next_hop[row] = self.running_arc[row] = self.patience_arc[row] = NO_ARC
        self.patience_ends_us[row] = 0
        self._row_of[tasks.task] = row
        return row

    def drop(self, row: Int64) -> None:
        """Forget these tasks (each row once)."""
        self.state[row] = TaskState.ABSENT
        self.node_state[row] = TaskNodeState.NONE
        self._row_of[self.task[row]] = NO_ROW
        self._free = np.concatenate([self._free, row[::-1]])

    def batch(self, row: Int64) -> TaskBatch:
        return TaskBatch(
            self.task[row],
            self.job[row],
            self.request[row],
            self.priority[row],
            self.submit_us[row],
            self.preference[row],
            self.gang[row],
            self.task_class[row],
        )

    def wanted_node_state(self, preemption: bool) -> NDArray[np.int8]:
        """The state that each task's node should have in the graph, int8[C]."""
        node_state: NDArray[np.int8] = (self.state == TaskState.WAITING).astype(np.int8)
        if preemption:
            node_state[self.state == TaskState.RUNNING] = TaskNodeState.RUNNING
        return node_state

    def _reserve(self, rows: int, largest_task: int) -> None:
        if largest_task >= len(self._row_of):
            size = max(largest_task + 1, 2 * len(self._row_of), 1024)
            self._row_of = np.concatenate(
                [self._row_of, np.full(size - len(self._row_of), NO_ROW, np.int32)]
            )
        short = rows - len(self._free)
        if short <= 0:
            return
        old = len(self.task)
        more = max(short, old, 1024)
        for name, column in vars(self).items():
            if not name.startswith("_"):
                setattr(
                    self,
                    name,
                    np.concatenate([column, np.zeros((more, *column.shape[1:]), column.dtype)]),
                )
        # The lowest new rows are taken first, after the rows freed before.
        self._free = np.concatenate([np.arange(old + more - 1, old - 1, -1), self._free])
