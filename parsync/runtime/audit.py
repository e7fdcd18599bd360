"""Whole-system checks over a run as it is repeated: an observer that hands audits everything that a
cell is asked and answers, and the audits of an arm's quotas and of its schedulers' own limits.

The latter keep their own accounts, from messages alone. Claims that the cell has not answered count
as held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.core.effects import Effect, Send, StartDecision
from parsync.core.event import Event
from parsync.core.events import (
    CommitReply,
    CommitRequest,
    QuotaGrant,
    QuotaReport,
    QuotaShares,
    Started,
    SyncRequest,
    TasksAdopted,
    TasksEnded,
)
from parsync.core.master import MasterCore
from parsync.core.quotas import Capacity, QuotaSpec, SchedulerLimits, TaskQuotas
from parsync.metrics.record import Record
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.runtime.assembly import Assembly
from schedulers.mapreduce.jobs import MapReduceAudit, MapReduceJobs
from shared_state.cell import Cell, Released
from shared_state.invariants import AuditCounts, CellAudit, InvariantViolation
from shared_state.observed_cell import CellObserver, CellObservers, ObservedCell
from shared_state.tasks import CellSpec, Int32, Int64, TaskBatch
from shared_state.transaction import CommitResult, Holds, PartitionDelta, Reason, Transaction

_ACCEPTED = int(Reason.ACCEPTED)
_ALL_GROUPS = ("all quota groups",)


class QuotaAudit:
    """Whether a run kept its quotas: what the coordinator granted, and what agents claimed.

    Call handled() for everything that the coordinator and the agents handle, each of them in the
    order in which it did. In every run these rules hold exactly:

    - In each round of the coordinator no quota group's limit exceeds the group's maximum, the
      limits of all groups sum to at most the capacity of the machines that are up, and what the
      agents are granted of a group sums to at most its limit.
    - No agent reports that its tasks hold less than they do.
    - After a commit request an agent's tasks hold, of each group that it claims for, at most what
      the agent was granted when the round of these claims began.

    What the tasks of a group hold on the cell may be above its limit for a while all the same,
    because grants rest on reports that are a message old (docs/quotas.md).

    Args:
        spec: The quota groups.
        quotas: The group of each task.
        capacity: Of the cell.
        table: Every task (row = id).
        dimensions: The names of the R resources.
        agent_name: The name of an agent by address, for messages.

    Attributes:
        rounds: Of the coordinator, that were settled.
        commits: Requests of agents that were checked.
    """

    def __init__(
        self,
        spec: QuotaSpec,
        quotas: TaskQuotas,
        capacity: Capacity,
        table: TaskBatch,
        dimensions: Sequence[str],
        agent_name: Callable[[int], str],
    ) -> None:
        self._names = [f"quota group '{group.name}'" for group in spec.groups]
        self._dimensions = dimensions
        self._agent_name = agent_name
        self._capacity = capacity
        self._maximum = spec.largest(capacity)
        self._agents: defaultdict[int, _QuotaAccount] = defaultdict(
            lambda: _QuotaAccount(quotas, table)
        )
        self.rounds = self.commits = 0

    def handled(self, address: int, now_us: int, event: Event, effects: Sequence[Effect]) -> None:
        """Check what came of an event.

        Args:
            address: Of the participant that handled it.
            now_us: When.
            event: The event.
            effects: Its effects, in order.

        Raises:
            InvariantViolation: A quota was not kept. It names who, when, the group, the amounts.
        """
        sent = [effect.event for effect in effects if isinstance(effect, Send)]
        shares = [event for event in sent if isinstance(event, QuotaShares)]
        if shares:
            grants = [event.amount for event in sent if isinstance(event, QuotaGrant)]
            self._check_round(now_us, shares[0].limit, sum(grants, np.zeros_like(shares[0].limit)))
        if address >= 0:
            self._agent_handled(address, now_us, event, effects)

    def _check_round(self, now_us: int, limit: Int64, granted: Int64) -> None:
        who = f"coordinator at {now_us} us"
        self._require(limit, self._maximum, f"{who}: the limit of", "its maximum")
        self._require(granted, limit, f"{who}: all grants of", "its limit")
        capacity, total = self._capacity.at(now_us)[None], limit.sum(axis=0)[None]
        self._require(total, capacity, f"{who}: the limits of", "the capacity", _ALL_GROUPS)
        self.rounds += 1

    def _agent_handled(
        self, agent: int, now_us: int, event: Event, effects: Sequence[Effect]
    ) -> None:
        if isinstance(event, Started):
            self._agents.pop(agent, None)  # in a new process it learns anew what its tasks hold
        account = self._agents[agent]
        account.on_event(event)
        who = f"scheduler '{self._agent_name(agent)}' at {now_us} us"
        for effect in effects:
            if isinstance(effect, StartDecision):
                account.at_round_begin = account.granted
            elif not isinstance(effect, Send):
                continue
            elif isinstance(effect.event, QuotaReport):
                held = effect.event.held
                self._require(account.held, held, f"{who}: what it holds of", "what it reports")
            elif isinstance(effect.event, CommitRequest):
                account.claim(effect.event)
                claimed = account.amount(effect.event.transaction.task)
                most = account.at_round_begin
                if most is not None:
                    most = np.where(claimed.any(axis=1, keepdims=True), most, account.held)
                    what = f"{who}: what it holds and claims of"
                    self._require(account.held, most, what, "its grant as the round began")
                    self.commits += 1

    def _require(
        self,
        amount: Int64,
        most: Int64,
        what: str,
        name: str,
        groups: Sequence[str] | None = None,
    ) -> None:
        """Raise InvariantViolation unless each amount, int64[G, R], is at most its limit."""
        over = np.argwhere(amount > most)
        if len(over):
            group, resource = over[0].tolist()
            unit = self._dimensions[resource]
            raise InvariantViolation(
                f"{what} {(groups or self._names)[group]}: {amount[group, resource]:,} {unit}, "
                f"expected at most {most[group, resource]:,} {unit}, {name}"
            )


class LimitAudit:
    """Whether schedulers kept the limits that they set themselves.

    Call handled() for everything that the agents handle, each of them in the order in which it did.
    After each request to commit claims these rules hold:

    - The tasks of the agent hold at most its limit of resources.
    - Tasks of at most `jobs_max` jobs hold resources, or of as many as ran when the agent began. (A
      job is admitted for longer than its tasks hold anything, so an agent may admit fewer.)

    Args:
        limits: Of each agent that has any, by address.
        cell: The cell.
        table: Every task (row = id).
        agent_name: The name of an agent by address, for messages.

    Attributes:
        commits: Requests of agents that were checked.
    """

    def __init__(
        self,
        limits: Mapping[int, SchedulerLimits],
        cell: CellSpec,
        table: TaskBatch,
        agent_name: Callable[[int], str],
    ) -> None:
        self._limits, self._cell, self._table = limits, cell, table
        self._agent_name = agent_name
        self._accounts = {agent: _LimitAccount(table) for agent in limits}
        self.commits = 0

    def handled(self, address: int, now_us: int, event: Event, effects: Sequence[Effect]) -> None:
        """Check what came of an event.

        Args:
            address: Of the participant that handled it.
            now_us: When.
            event: The event.
            effects: Its effects, in order.

        Raises:
            InvariantViolation: A limit was not kept. It names who, when, and the amounts.
        """
        limits = self._limits.get(address)
        if limits is None:
            return
        if isinstance(event, Started):
            self._accounts[address] = _LimitAccount(self._table)
        account = self._accounts[address]
        account.on_event(event)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.event, CommitRequest):
                account.claim(effect.event)
                if len(effect.event.transaction.task):
                    who = f"scheduler '{self._agent_name(address)}' at {now_us} us"
                    self._check(who, limits, account)
                    self.commits += 1

    def _check(self, who: str, limits: SchedulerLimits, account: _LimitAccount) -> None:
        most = limits.amount(self._cell)
        for unit, held, allowed in zip(
            self._cell.dimensions, account.held.tolist(), most.tolist(), strict=True
        ):
            if limits.hold_permille is not None and held > allowed:
                raise InvariantViolation(
                    f"{who}: holds and claims {held:,} {unit}, expected at most "
                    f"{allowed:,} {unit}, its own limit"
                )
        if limits.jobs_max is not None and len(account.tasks_of) > max(
            limits.jobs_max, account.jobs_adopted
        ):
            raise InvariantViolation(
                f"{who}: tasks of {len(account.tasks_of)} jobs hold resources, expected at most "
                f"{limits.jobs_max} jobs, its own limit"
            )


class _Account(ABC):
    """What the tasks of one agent hold, from the request to commit a claim until that fails or the
    task ends."""

    def __init__(self) -> None:
        self._claimed: dict[int, Int64] = {}  # tasks by transaction that was not answered yet

    @abstractmethod
    def hold(self, task: Int64, sign: int) -> None:
        """Tasks, int64[n], hold resources from now on (sign 1), or no more (-1)."""

    def on_event(self, event: Event) -> None:
        """Take in what the agent learns."""
        match event:
            case TasksAdopted():
                self.hold(event.task, +1)
            case TasksEnded():
                # of a task without an allocation a new process learns only that it has to run again
                self.hold(event.task[event.allocation >= 0], -1)
            case CommitReply(result=result):
                task = self._claimed.pop(result.sequence, None)
                if task is not None:
                    self.hold(task[result.reason != _ACCEPTED], -1)

    def claim(self, request: CommitRequest) -> None:
        """Enter the claims of a request."""
        self._claimed[request.transaction.sequence] = request.transaction.task
        self.hold(request.transaction.task, +1)


class _QuotaAccount(_Account):
    """An account by quota group.

    Attributes:
        held: int64[G, R].
        granted: int64[G, R], the agent's last grant.
        at_round_begin: int64[G, R], the grant as its last decision round began; None before that.
            Agents that drive no scheduler have no rounds.
    """

    def __init__(self, quotas: TaskQuotas, table: TaskBatch) -> None:
        super().__init__()
        self._quotas = quotas
        self._request = table.request
        self.held = self.amount(np.zeros(0, np.int64))
        self.granted = self.amount(np.zeros(0, np.int64))
        self.at_round_begin: Int64 | None = None

    def on_event(self, event: Event) -> None:
        if isinstance(event, QuotaGrant):
            self.granted = event.amount
        super().on_event(event)

    def hold(self, task: Int64, sign: int) -> None:
        self.held += sign * self.amount(task)

    def amount(self, task: Int64) -> Int64:
        """What tasks ask for, int64[G, R]."""
        return self._quotas.held(task, self._request[task])


class _LimitAccount(_Account):
    """An account of resources, and of jobs.

    Attributes:
        held: int64[R].
        tasks_of: By job, how many of its tasks hold something.
        jobs_adopted: Of how many jobs tasks ran when the agent began.
    """

    def __init__(self, table: TaskBatch) -> None:
        super().__init__()
        self._table = table
        self.held: Int64 = np.zeros(table.request.shape[1], np.int64)
        self.tasks_of: dict[int, int] = {}
        self.jobs_adopted = 0

    def on_event(self, event: Event) -> None:
        super().on_event(event)
        if isinstance(event, TasksAdopted):
            self.jobs_adopted = len(self.tasks_of)

    def hold(self, task: Int64, sign: int) -> None:
        self.held += sign * self._table.request[task].sum(axis=0)
        jobs, tasks = np.unique(self._table.job[task], return_counts=True)
        for job, number in zip(jobs.tolist(), tasks.tolist(), strict=True):
            left = self.tasks_of.get(job, 0) + sign * number
            if left:
                self.tasks_of[job] = left
            else:
                self.tasks_of.pop(job, None)


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

    def on_hold(self, cell: Cell, holds: Holds, now_us: int) -> None:
        self._audit.held(holds, now_us)

    def on_holds_ended(self, cell: Cell, ended: Holds, now_us: int) -> None:
        self._audit.holds_ended(ended, now_us)

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
