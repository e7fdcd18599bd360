"""The master: owns the cell, grants claims first come first served, and notifies owners and workers
of what became of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsync.core.addresses import WORKERS
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event
from parsync.core.events import (
    AllocationsEnded,
    ClaimsSettled,
    CommitReply,
    CommitRequest,
    MachinesChanged,
    RunningReply,
    RunningRequest,
    SampleDue,
    Started,
    SyncReply,
    SyncRequest,
    TasksAdopted,
    TasksCancelled,
    TasksEnded,
    TasksFinished,
    TasksStarted,
)
from parsync.core.quota_events import QuotaShares
from parsync.core.quotas import TaskQuotas
from parsync.metrics.measurements import Measurements
from parsync.metrics.record import Record
from schedulers.interface import ChangeKind
from shared_state.cell import Cell, Released
from shared_state.tasks import Int32, Int64, TaskBatch


class MasterCore:
    """Sans-I/O master of one cell.

    table: every task (row = id), for the requests of ended tasks. initial_task int64[k],
    initial_machine int32[k], initial_owner int32[k]: what runs at time 0. wants_ends: bool[N], the
    agents that are notified when their tasks finish. All are notified of evictions and lost
    machines. watchers: the addresses that are notified of every start, end and machine change; of
    ends, the worker pool is notified of those that it did not report. quotas: the quota groups of
    the tasks, if they have some: what these hold is recorded, and their shares if the arm divides
    the cell among them.
    """

    def __init__(
        self,
        cell: Cell,
        table: TaskBatch,
        initial_task: Int64,
        initial_machine: Int32,
        initial_owner: Int32,
        wants_ends: np.ndarray,
        sample_us: int,
        watchers: tuple[int, ...] = (),
        quotas: TaskQuotas | None = None,
    ) -> None:
        self.cell = cell
        self._table = table
        self._initial = (initial_task, initial_machine, initial_owner)
        self._wants_ends = wants_ends
        self._any_wants_ends = bool(wants_ends.any())
        self._sample_us = sample_us
        self._watchers = watchers
        self._beside = tuple(address for address in watchers if address != WORKERS)
        self._quotas = quotas
        self._records = Measurements()
        self._owner_columns: dict[int, Int32] = {}  # by agent
        self._epoch = 0
        self._running = 0
        self._capacity = int(cell.spec.capacity[:, 0].sum())

    @property
    def running(self) -> int:
        """Allocations that have not ended."""
        return self._running

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case CommitRequest():
                return self._commit(now_us, event)
            case SyncRequest():
                return self._sync(now_us, event)
            case RunningRequest():
                return self._show_running(event)
            case TasksFinished():
                return self._finish(now_us, event)
            case SampleDue(sample):
                return self._sample(now_us, sample)
            case MachinesChanged():
                return self._change_machines(now_us, event)
            case Started():
                return self._start(now_us, event)
            case QuotaShares():
                return self._record_shares(now_us, event)
        raise TypeError(f"master cannot handle {type(event).__name__}")

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        return self._records.flush()

    def checkpoint(self) -> Any:
        """The whole state: the cell's, and the master's own."""
        return self.cell.checkpoint(), self._epoch, self._running, self._records.held()

    def restore(self, state: Any) -> None:
        """Take the state of the same run's master. Errors as Cell.restore."""
        cell, self._epoch, self._running, held = state
        self.cell = Cell.restore(self.cell.spec, self.cell.partitioning, cell, self.cell.priority)
        self._records.restore(held)

    def record_due_ends(self, allocation: Int64, end_us: Int64) -> None:
        """Tasks still running when the run ends, with the time they are due to end: so that job
        completion times are not cut off at the last commit.

        Allocations that have ended otherwise, of which the worker pool has not been notified yet,
        are left out.
        """
        live = self.cell.allocations().allocation
        runs = np.isin(allocation, live, assume_unique=True)  # of both, which is much faster
        running = self.cell.describe(allocation[runs])
        columns = (
            running.task,
            running.machine,
            running.owner,
            end_us[runs],
            int(ChangeKind.FINISHED),
            1,
        )
        self._records.add("ends", len(running), *columns)

    def _start(self, now_us: int, event: Started) -> list[Effect]:
        self._epoch = event.epoch
        following = now_us // self._sample_us + 1
        effects: list[Effect] = [SetTimer(following * self._sample_us, SampleDue(following))]
        task, machine, owner = self._initial
        if event.epoch == 0 and len(task):
            allocation = self.cell.load(task, machine, self._table.request[task], owner)
            self._running += len(task)
            effects += self._notify_started(TasksStarted(now_us, task, allocation, machine, owner))
            for agent in np.unique(owner):
                mine = owner == agent
                effects.append(
                    Send(int(agent), TasksAdopted(task[mine], allocation[mine], machine[mine]))
                )
        return effects

    def _commit(self, now_us: int, event: CommitRequest) -> list[Effect]:
        transaction = event.transaction
        result = self.cell.commit(transaction, now_us)
        owner = transaction.scheduler
        reply = Send(event.reply_to, CommitReply(self._epoch, owner, result))
        effects: list[Effect] = [reply] if event.reply_to == owner else []
        accepted = result.accepted
        count = int(np.count_nonzero(accepted))
        if len(result.evicted):
            effects += self._notify_ended(
                now_us, self.cell.describe(result.evicted), ChangeKind.EVICTED
            )
        if count:
            self._running += count
            everything = count == len(transaction)
            started = TasksStarted(
                now_us,
                transaction.task if everything else transaction.task[accepted],
                result.allocation if everything else result.allocation[accepted],
                transaction.machine if everything else transaction.machine[accepted],
                self._owner_column(owner, count),
            )
            effects += self._notify_started(started)
        if event.reply_to != owner:  # one who watches the cell knows of the starts by then
            effects += reply, Send(owner, ClaimsSettled(transaction, result))
        return effects

    def _record_shares(self, now_us: int, event: QuotaShares) -> list[Effect]:
        amounts = (event.wanted.ravel(), event.share.ravel(), event.limit.ravel())
        self._records.add("quota_shares", event.share.size, now_us, *_cells(event.share), *amounts)
        return []

    def _record_quota_use(self, now_us: int, quotas: TaskQuotas) -> None:
        live = self.cell.allocations()
        held = quotas.held(live.task, live.request)
        self._records.add("quota_use", held.size, now_us, *_cells(held), held.ravel())

    def _owner_column(self, owner: int, count: int) -> Int32:
        """The owners of `count` tasks of one agent, read-only: all such columns share memory."""
        column = self._owner_columns.get(owner)
        if column is None or len(column) < count:
            column = np.full(max(count, 256), owner, np.int32)
            column.setflags(write=False)
            self._owner_columns[owner] = column
        return column[:count]

    def _notify_started(self, started: TasksStarted) -> list[Effect]:
        effects: list[Effect] = [Send(WORKERS, started)]
        if self._beside:
            effects += [Send(address, started) for address in self._beside]
        return effects

    def _sync(self, now_us: int, event: SyncRequest) -> list[Effect]:
        deltas = tuple(
            self.cell.delta_since(partition, version, now_us, event.with_seqnum)
            for partition, version in zip(
                event.partition.tolist(), event.version.tolist(), strict=True
            )
        )
        return [Send(event.agent, SyncReply(self._epoch, deltas))]

    def _show_running(self, event: RunningRequest) -> list[Effect]:
        live = self.cell.allocations()
        wanted = np.isin(self.cell.partitioning.of(live.machine), event.partition)
        wanted &= self._table.priority[live.task] < event.below
        reply = RunningReply(
            event.partition, live.allocation[wanted], live.task[wanted], live.machine[wanted]
        )
        return [Send(event.agent, reply)]

    def _finish(self, now_us: int, event: TasksFinished) -> list[Effect]:
        released = self.cell.release(event.allocation, event.owner, now_us)
        return self._notify_ended(now_us, released, ChangeKind.FINISHED)

    def _change_machines(self, now_us: int, event: MachinesChanged) -> list[Effect]:
        released = self.cell.set_machines(event.machine, event.up, now_us)
        effects: list[Effect] = [Send(address, event) for address in self._watchers]
        return effects + self._notify_ended(now_us, released, ChangeKind.LOST)

    def _notify_ended(self, now_us: int, released: Released, change: ChangeKind) -> list[Effect]:
        count = len(released.task)
        if count == 0:
            return []
        self._running -= count
        self._records.add(
            "ends", count, released.task, released.machine, released.owner, now_us, int(change), 0
        )
        effects: list[Effect] = []
        if change is not ChangeKind.FINISHED:
            effects.append(Send(WORKERS, TasksCancelled(released.allocation)))
        watchers = self._beside if change is ChangeKind.FINISHED else self._watchers
        if watchers:
            all_ended = AllocationsEnded(
                int(change), released.task, released.allocation, released.machine, released.owner
            )
            effects += [Send(address, all_ended) for address in watchers]
        if change is ChangeKind.FINISHED and not self._any_wants_ends:
            return effects
        for agent in np.unique(released.owner).tolist():
            if change is ChangeKind.FINISHED and not self._wants_ends[agent]:
                continue
            mine = released.owner == agent
            ended = TasksEnded(
                int(change),
                released.task[mine],
                released.allocation[mine],
                released.machine[mine],
                released.request[mine],
                released.version[mine],
            )
            effects.append(Send(agent, ended))
        return effects

    def _sample(self, now_us: int, sample: int) -> list[Effect]:
        used_permille = int(self.cell.used[:, 0].sum()) * 1000 // max(1, self._capacity)
        self._records.add("cell", 1, now_us, self._running, self.cell.machines_up, used_permille)
        if self._quotas is not None:
            self._record_quota_use(now_us, self._quotas)
        effects: list[Effect] = [*self._records.flush()]
        following = max(sample + 1, now_us // self._sample_us + 1)
        effects.append(SetTimer(following * self._sample_us, SampleDue(following)))
        return effects


def _cells(amounts: Int64) -> tuple[Int64, Int64]:
    """The row and the column of each amount, amounts int64[G, R] read row by row."""
    rows, columns = np.indices(amounts.shape)
    return rows.ravel(), columns.ravel()
