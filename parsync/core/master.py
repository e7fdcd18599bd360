"""The master: owns the cell, grants claims first come first served, and notifies owners and workers
of what became of them. It is native (native/master.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from parsync.core._native import Master
from parsync.core.quotas import TaskQuotas
from parsync.metrics.record import Measurements, Record
from shared_state.cell import Cell
from shared_state.observed_cell import observers_of
from shared_state.tasks import Int32, Int64, TaskBatch


class EndsNotice(IntEnum):
    """When an agent is notified that its tasks have finished (TasksEnded). Of tasks that lose their
    place, all agents are notified at once."""

    NEVER = 0
    AT_ONCE = 1
    BEFORE_SYNC = 2  # of all since the last sync, before the answer to its SyncRequest


class MasterCore(Master):
    """Sans-I/O master of one cell.

    table: every task (row = id), for the requests of ended tasks. initial_task int64[k],
    initial_machine int32[k], initial_owner int32[k]: what runs at time 0. ends_notice: when each
    agent is notified that its tasks have finished. watchers: the addresses that are notified of
    every start, end and machine change; of ends, the worker pool is notified of those that it did
    not report. quotas: the quota groups of the tasks, if they have some: what these hold is
    recorded, and their shares if the arm divides the cell among them.
    """

    def __init__(
        self,
        cell: Cell,
        table: TaskBatch,
        initial_task: Int64,
        initial_machine: Int32,
        initial_owner: Int32,
        ends_notice: Sequence[EndsNotice],
        sample_us: int,
        watchers: tuple[int, ...] = (),
        quotas: TaskQuotas | None = None,
    ) -> None:
        self._records = Measurements()
        super().__init__(
            cell.native,
            table.request,
            table.priority,
            initial_task,
            initial_machine,
            initial_owner,
            [int(notice) for notice in ends_notice],
            sample_us,
            list(watchers),
            int(cell.spec.capacity[:, 0].sum()),
            None if quotas is None else quotas.of_task,
            0 if quotas is None else quotas.groups,
            cell.partitioning.offsets,
            self._records,
        )
        self.cell = cell

    @property
    def cell(self) -> Cell:
        """What it grants claims on. Who observes it hears of the calls that the master makes."""
        return self._cell

    @cell.setter
    def cell(self, cell: Cell) -> None:
        self._cell = cell
        self.observe(cell.native, cell, observers_of(cell))

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        return self._records.flush()

    def checkpoint(self) -> Any:
        """The whole state: the cell's, and the master's own."""
        held, waiting = self._records.held(), self.waiting_ends()
        return self.cell.checkpoint(), self.epoch, self.running, held, waiting

    def restore(self, state: Any) -> None:
        """Take the state of the same run's master. Errors as Cell.restore."""
        cell, epoch, running, held, waiting = state
        self.cell = Cell.restore(self.cell.spec, self.cell.partitioning, cell, self.cell.priority)
        self.restore_counts(epoch, running)
        self._records.restore(held)
        for agent, ended in waiting:
            self.add_waiting_ends(agent, ended)
