"""Whole-system checks over a run's log: a cell that tells an audit of everything it is asked and
answers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import SyncRequest
from parsync.core.master import MasterCore
from shared_state.cell import Cell, Released
from shared_state.invariants import CellAudit
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, PartitionDelta, Transaction


class AuditedCell:
    """A Cell whose events an audit follows; InvariantViolation at the first that cannot be."""

    def __init__(self, cell: Cell, audit: CellAudit) -> None:
        self._cell = cell
        self._audit = audit
        self.agent = -1  # who asked for the deltas that are being taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cell, name)

    def commit(self, transaction: Transaction, now_us: int) -> CommitResult:
        result = self._cell.commit(transaction, now_us)
        self._audit.commit(transaction, result, now_us)
        return result

    def release(self, allocation: Int64, owner: Int32 | None, now_us: int) -> Released:
        released = self._cell.release(allocation, owner, now_us)
        self._audit.released(released, now_us)
        return released

    def load(self, task: Int64, machine: Int32, request: Int64, owner: Int32) -> Int64:
        allocation = self._cell.load(task, machine, request, owner)
        self._audit.loaded(task, machine, request, owner, allocation)
        return allocation

    def set_machines(self, machine: Int32, up: np.ndarray, now_us: int) -> Released:
        lost = self._cell.set_machines(machine, up, now_us)
        self._audit.machines(machine, up, lost, now_us)
        return lost

    def delta_since(
        self, partition: int, version: int, now_us: int, with_seqnum: bool
    ) -> PartitionDelta:
        delta = self._cell.delta_since(partition, version, now_us, with_seqnum)
        self._audit.delta(self.agent, delta)
        return delta


class AuditedMaster:
    """A MasterCore around an AuditedCell."""

    def __init__(self, master: MasterCore, audit: CellAudit) -> None:
        self._audited = AuditedCell(master.cell, audit)
        self._master = master
        master.cell = cast(Cell, self._audited)
        self.cell = master.cell

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, SyncRequest):
            self._audited.agent = event.agent
        return self._master.handle(now_us, event)
