"""Whole-system checks over a run as it is repeated: an observer that hands audits everything that a
cell is asked and answers, and the audits of an arm's quotas and of its schedulers' own limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from parsync.core.audits import LimitAudit, QuotaAudit
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import SyncRequest
from parsync.core.limits import SchedulerLimits
from parsync.core.master import MasterCore
from parsync.core.quotas import Capacity
from parsync.metrics.record import Record
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.runtime.assembly import Assembly
from schedulers.mapreduce.jobs import MapReduceAudit, MapReduceJobs
from shared_state.cell import Cell, Released
from shared_state.invariants import AuditCounts, CellAudit
from shared_state.observed_cell import CellObserver, CellObservers, ObservedCell
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, PartitionDelta, Reason, Transaction

_ACCEPTED = int(Reason.ACCEPTED)


class CellAuditor(CellObserver):
    """Raises InvariantViolation at the first call that breaks an invariant.

    Args:
        audit: Of the cell.
        mapreduce: The MapReduce jobs of the workload; None if it has none.

    Attributes:
        agent: The agent that asked for the deltas that are being read.
    """

    def __init__(self, audit: CellAudit, mapreduce: MapReduceJobs | None = None) -> None:
        self._audit = audit
        self._mapreduce = None if mapreduce is None else MapReduceAudit(mapreduce)
        self.agent = -1

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        self._audit.commit(transaction, result, now_us)
        if self._mapreduce is not None:
            self._mapreduce.accepted(transaction.task[result.reason == _ACCEPTED], now_us)

    def on_release(self, cell: Cell, released: Released, now_us: int) -> None:
        self._audit.released(released, now_us)
        if self._mapreduce is not None:
            self._mapreduce.finished(released.task)

    def on_load(
        self,
        cell: Cell,
        task: Int64,
        machine: Int32,
        request: Int64,
        owner: Int32,
        allocation: Int64,
    ) -> None:
        self._audit.loaded(task, machine, request, owner, allocation)

    def on_machines(
        self, cell: Cell, machine: Int32, up: NDArray[Any], lost: Released, now_us: int
    ) -> None:
        self._audit.machines(machine, up, lost, now_us)

    def on_delta(self, cell: Cell, delta: PartitionDelta, now_us: int) -> None:
        self._audit.delta(self.agent, delta)


def quota_audit(assembly: Assembly) -> QuotaAudit | None:
    """The audit of an arm's quotas; None if it has none. AgoraError as Assembly.quotas."""
    if assembly.arm.quotas is None or assembly.quotas is None:
        return None
    workload = assembly.workload
    return QuotaAudit(
        assembly.arm.quotas,
        assembly.quotas,
        Capacity.of(workload),
        workload.tasks,
        workload.cell.dimensions,
        assembly.arm.agent_name,
    )


def limit_audit(assembly: Assembly) -> LimitAudit | None:
    """The audit of the limits that the schedulers of an arm set themselves; None if they have
    none."""
    limits: dict[int, SchedulerLimits] = {}
    for agent in range(assembly.arm.agents):
        options = assembly.arm.group_of(agent).protocol.options
        if isinstance(options, OptimisticOptions) and options.limits.has_any:
            limits[agent] = options.limits
    if not limits:
        return None
    workload = assembly.workload
    return LimitAudit(limits, workload.cell, workload.tasks, assembly.arm.agent_name)


class AuditedMaster:
    """A master whose cell is audited; it notes which agent asks for a sync."""

    def __init__(
        self,
        master: MasterCore,
        audit: CellAudit,
        mapreduce: MapReduceJobs | None = None,
        observer: CellObserver | None = None,
    ) -> None:
        self._auditor = CellAuditor(audit, mapreduce)
        self._master = master
        heard = (self._auditor,) if observer is None else (self._auditor, observer)
        master.cell = ObservedCell(master.cell, CellObservers(*heard))
        self.cell = master.cell

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, SyncRequest):
            self._auditor.agent = event.agent
        return self._master.handle(now_us, event)

    def forget_ends(self, agent: int) -> None:
        """As Master.forget_ends."""
        self._master.forget_ends(agent)

    def finish(self, now_us: int) -> list[Record]:
        """As Participant.finish."""
        return self._master.finish(now_us)


class RunAudit:
    """All audits of a run: of its cell, quotas and limits.

    Args:
        assembly: Of the run's arm. AgoraError as Assembly.quotas.
    """

    def __init__(self, assembly: Assembly) -> None:
        workload = assembly.workload
        self._cell = CellAudit(workload.cell, assembly.partitioning, assembly.eviction_priority)
        self._cell.submitted(workload.arrival_rows)
        self._mapreduce = workload.mapreduce
        self._quotas = quota_audit(assembly)
        self._limits = limit_audit(assembly)

    @property
    def quota_rounds(self) -> int:
        """Rounds of the coordinator so far; its grants were correct and obeyed."""
        return 0 if self._quotas is None else self._quotas.rounds

    @property
    def limited_commits(self) -> int:
        """Requests so far of schedulers that limit themselves; they keep the limits."""
        return 0 if self._limits is None else self._limits.commits

    def master(self, master: MasterCore, observer: CellObserver | None = None) -> AuditedMaster:
        """The run's master, before its first event, with a cell that is audited, and observed by
        another observer, too."""
        return AuditedMaster(master, self._cell, self._mapreduce, observer)

    def handled(self, address: int, now_us: int, event: Event, effects: Sequence[Effect]) -> None:
        """Check what came of an event: see QuotaAudit.handled."""
        if self._quotas is not None:
            self._quotas.handled(address, now_us, event, effects)
        if self._limits is not None:
            self._limits.handled(address, now_us, event, effects)

    def matches(self, cell: Cell) -> None:
        """Check that the cell's state is what its answers said. Raises InvariantViolation."""
        self._cell.matches(cell)

    def cell_counts(self) -> AuditCounts:
        """What was asked of the cell, and answered."""
        return self._cell.finish()
