"""What a scheduler knows of the tasks that run on the cell and may have to make room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int32, Int64, TaskBatch


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
    """

    allocation: Int64
    task: Int64
    machine: Int32
    priority: Int32
    submit_us: Int64
    request: Int64

    def __len__(self) -> int:
        return len(self.task)

    @staticmethod
    def of(table: TaskBatch, allocation: Int64, task: Int64, machine: Int32) -> RunningTasks:
        """Allocations (int64[n]) of tasks (int64[n]) on machines (int32[n]).

        Args:
            table: Every task (row = id).
        """
        return RunningTasks(
            allocation,
            task,
            machine,
            table.priority[task],
            table.submit_us[task],
            table.request[task],
        )

    def take(self, rows: Int64 | NDArray[np.bool_]) -> RunningTasks:
        """Those of some rows."""
        return RunningTasks(
            self.allocation[rows],
            self.task[rows],
            self.machine[rows],
            self.priority[rows],
            self.submit_us[rows],
            self.request[rows],
        )
