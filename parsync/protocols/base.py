"""Base classes of a protocol's parts: of its agents (MeasuredAgent; BaseAgent if they run no
scheduler, scheduler_agent.py if they do), of its participant beside the master (BaseCellSide), and
of its queues at the machines (BaseNodeSide). What they share: CellWatcher, SortingOut and
check_machines()."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER, WORKERS, sequence_of
from parsync.core.effects import Effect, Send, SetTimer, StartDecision
from parsync.core.event import Event
from parsync.core.events import (
    AllocationsEnded,
    ClaimsSettled,
    CommitReply,
    CommitRequest,
    DecisionDone,
    HoldEnd,
    HoldsEnded,
    MachinesChanged,
    RoomFreed,
    SampleDue,
    Started,
    TasksAdopted,
    TasksEnded,
    TasksStarted,
    TasksSubmitted,
)
from parsync.core.queued_tasks import DelegatedTasks, QueuedTasks
from parsync.metrics.record import AgentLog, Record
from parsync.metrics.tables import NOT_KNOWN, SCHEMAS, Tables
from parsync.protocols import _native
from parsync.protocols.spec import AgentEnvironment, Environment
from schedulers.interface import ChangeKind, ContractBroken
from shared_state.cell import Cell
from shared_state.tasks import Int32, Int64, fits
from shared_state.transaction import (
    CommitMode,
    CommitResult,
    ConflictCheck,
    Reason,
    Transaction,
)


class SortingOut(_native.SortingOut):
    """Removes the units that one agent can never place when it receives them, so that they hold up
    no others, and records them.

    Args:
        environment: The agent's.
        log: The agent's.
    """

    def __init__(self, environment: AgentEnvironment, log: AgentLog) -> None:
        units = environment.unplaceable
        if units is None:
            super().__init__(None, None, log)
        else:
            super().__init__(units.native, units.reason, log)


def check_machines(machine: Int32, tasks: int, machines: int) -> None:
    """Raise ValueError unless `machine` names a machine of the cell for each task. Claims are
    checked where they are made: the line that is wrong is in the traceback then.

    Args:
        machine: int32[n].
        tasks: Their number, n.
        machines: That of the cell.
    """
    if machine.shape != (tasks,):
        raise ValueError(f"machine: expected {tasks}, one for each task, got {machine.shape}")
    wrong = np.flatnonzero((machine < 0) | (machine >= machines))
    if len(wrong):
        raise ValueError(
            f"machine[{wrong[0]}]: expected 0 to {machines - 1}, got {machine[wrong[0]]}"
        )


class MeasuredAgent(ABC):
    """What every agent written in Python does alike: it removes tasks that no machine can ever
    hold, counts those that wait with it, and records what it measures.

    Attributes:
        index: Its address.
        name: The group's name and the agent's place in it, e.g. lottery-3.
        epoch: How often its host was restarted. A participant that answers later than at once
            repeats it, so that an agent can drop the answers to its predecessor.
        cell_side: The address of the protocol's participant beside the master, if it has one.
        queued: Tasks that were submitted to it, or have to run again, and are neither committed nor
            given up.
        log: Its measurements.
        own_tables: Those of its protocol that `log.records` has besides (ProtocolSpec.tables).
    """

    own_tables: ClassVar[Tables] = MappingProxyType({})

    def __init__(self, environment: AgentEnvironment) -> None:
        shared = environment.shared
        self.index = environment.index
        self.name = environment.name
        self.epoch = 0
        self.cell_side = shared.cell_side
        self.queued = 0
        tables = {**SCHEMAS, **self.own_tables}
        self.log = AgentLog(self.index, shared.cell, shared.table, shared.catalog, tables)
        self._shared, self._clock = shared, environment.clock
        self._sorting_out = SortingOut(environment, self.log)

    def on_started(self, now_us: int) -> list[Effect]:
        """The agent begins, or begins again: set timers."""
        return []

    @abstractmethod
    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Handle a message or a timer of the protocol."""

    @abstractmethod
    def _take(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        """Tasks have joined those that wait."""

    @abstractmethod
    def _record_sample(self, now_us: int) -> None:
        """Record a point of the time series."""

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case TasksSubmitted(task):
                return self._submitted(now_us, QueuedTasks.new(task, 1))
            case TasksEnded():
                return self._ended(now_us, event)
            case SampleDue(sample):
                self._record_sample(now_us)
                timer = self._sample_timer(max(now_us, sample * self._shared.sample_us))
                return [*self.log.flush(), timer]
            case TasksAdopted():
                return self._adopted(now_us, event)
            case Started(epoch):
                self.epoch = epoch
                return [*self.on_started(now_us), self._sample_timer(now_us)]
        return self.on_event(now_us, event)

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds."""
        self._record_sample(now_us)
        return self.log.flush()

    def _submitted(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        tasks = self._sorting_out.placeable(now_us, tasks)
        if not len(tasks):
            return []
        self.queued += len(tasks)
        return self._take(now_us, tasks)

    def _ended(self, now_us: int, event: TasksEnded) -> list[Effect]:
        if event.change == ChangeKind.FINISHED:
            return []
        return self._submitted(now_us, QueuedTasks.new(event.task, 0))

    def _adopted(self, now_us: int, event: TasksAdopted) -> list[Effect]:
        return []

    def _sample_timer(self, now_us: int) -> SetTimer:
        following = now_us // self._shared.sample_us + 1
        return SetTimer(following * self._shared.sample_us, SampleDue(following))


@dataclass(slots=True)
class _Claims:
    """Claims that are being decided or committed."""

    tasks: QueuedTasks
    machine: Int32
    synced_us: Int64
    start_us: int = 0
    decision_us: int = 0


class BaseAgent(MeasuredAgent):
    """An agent that runs no scheduler.

    A subclass says what it does with queued tasks (on_queued) and with the events of its protocol
    (on_event). Tasks that no machine can ever hold are removed before it sees them.
    """

    def __init__(self, environment: AgentEnvironment) -> None:
        super().__init__(environment)
        self._undecided: deque[_Claims] = deque()  # the first of them is being decided
        self._committing: dict[int, _Claims] = {}  # by transaction
        self._delegated = DelegatedTasks()
        self._transactions = 0

    @abstractmethod
    def on_queued(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        """Find places for tasks that were submitted, lost their machine, or whose claims were
        rejected."""

    def claim(
        self, now_us: int, tasks: QueuedTasks, machine: Int32, synced_us: Int64 | None = None
    ) -> list[Effect]:
        """Claim a machine for each task, once the decision has taken its time. An agent decides one
        thing at a time: later claims wait for earlier ones.

        Args:
            tasks: The tasks; they come back to on_queued() if the cell rejects their claims.
            machine: int32[n], of the cell.
            synced_us: The cell's time of the state that the claims rest on, int64[n]; unset: now.

        Raises:
            ValueError: There is no such machine, or not one for each task.
        """
        machine = np.ascontiguousarray(machine, np.int32)
        check_machines(machine, len(tasks), self._shared.cell.machines)
        known_us = np.full(len(tasks), now_us, np.int64) if synced_us is None else synced_us
        self._undecided.append(_Claims(tasks, machine, known_us))
        return [StartDecision(self._transactions + 1)] if len(self._undecided) == 1 else []

    def delegate(self, tasks: QueuedTasks) -> Int64:
        """Leave it to the queues at the machines, or to a participant beside the master, to claim a
        machine for each task. Returns the tasks' ids, int64[n], for a message to them.

        The master sends the outcome of each claim to this agent, which records it as that of its
        own claims. Tasks whose claims are rejected come to on_rejected().
        """
        self._delegated.add(tasks)
        return tasks.task

    def take_back(self, task: Int64) -> QueuedTasks:
        """Take back delegated tasks that nobody claims a machine for any more, int64[n]. Tasks that
        have been placed meanwhile, or were never delegated, are left out."""
        tasks, known = self._delegated.take(task)
        return tasks.take(known)

    def on_rejected(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        """Handle delegated tasks whose claims the cell rejected: like queued ones, unless
        overridden. Where the queue at the machine tries again, they are delegated again here, and
        no message is due."""
        return self.on_queued(now_us, tasks)

    def decide(self, decision: int, now_us: int) -> None:
        """Begin to decide on the first claims that wait; nothing is left to compute."""
        self._undecided[0].start_us = now_us

    def decision_us(self, elapsed_ns: int) -> int:
        """The time that this decision takes, in us."""
        claims = self._undecided[0]
        tasks = len(claims.tasks)
        claims.decision_us = self._clock.duration_us(tasks, 0, tasks, elapsed_ns)
        return claims.decision_us

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case CommitReply():
                return self._on_committed(now_us, event)
            case ClaimsSettled():
                return self._on_settled(now_us, event)
            case DecisionDone():
                return self._on_decided()
        return super().handle(now_us, event)

    @property
    def doing(self) -> str:
        """What it does at the moment, in a few words."""
        return f"{self.name}, {self.queued:,} queued, {self._transactions:,} transactions"

    @property
    def calling(self) -> str:
        """No scheduler's call is ever under way."""
        return ""

    def overdue(self, limit_s: float) -> ContractBroken | None:
        """No scheduler's call takes too long."""
        return None

    def _take(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        return self.on_queued(now_us, tasks)

    def _on_decided(self) -> list[Effect]:
        claims = self._undecided.popleft()
        self.log.decided(claims.decision_us)
        self._transactions += 1
        self._committing[self._transactions] = claims
        task = claims.tasks.task
        transaction = Transaction(
            scheduler=self.index,
            sequence=self._transactions,
            task=task,
            machine=claims.machine,
            request=np.ascontiguousarray(self._shared.table.request[task]),
            synced_us=claims.synced_us,
            commit_mode=CommitMode.INCREMENTAL,
            conflict_check=ConflictCheck.RESOURCE_FIT,
        )
        effects: list[Effect] = [Send(MASTER, CommitRequest(self.index, transaction))]
        if self._undecided:
            effects.append(StartDecision(self._transactions + 1))
        return effects

    def _on_committed(self, now_us: int, event: CommitReply) -> list[Effect]:
        result = event.result
        claims = self._committing.pop(result.sequence, None)
        if claims is None:
            return []  # an answer repeated after a restart
        claimed = QueuedTasks(claims.tasks.task, claims.tasks.attempts + 1, claims.tasks.first)
        counts, _, _ = self.log.commit(
            now_us,
            claimed.task,
            claims.machine,
            claims.synced_us,
            claimed.attempts,
            claimed.first,
            result,
            claims.start_us,
            claims.decision_us,
            NOT_KNOWN,
        )
        self.queued -= counts[Reason.ACCEPTED] + counts[Reason.DUPLICATE]
        again = (result.reason != Reason.ACCEPTED) & (result.reason != Reason.DUPLICATE)
        return self.on_queued(now_us, claimed.take(again)) if again.any() else []

    def _on_settled(self, now_us: int, event: ClaimsSettled) -> list[Effect]:
        transaction, reason = event.transaction, event.result.reason
        # Others are tasks that an agent before a restart of this host had delegated.
        tasks, known = self._delegated.take(transaction.task)
        claimed = QueuedTasks(tasks.task, tasks.attempts + 1, tasks.first)
        self.log.commit(
            now_us,
            claimed.task,
            transaction.machine,
            transaction.synced_us,
            claimed.attempts,
            claimed.first,
            event.result,
            start_us=int(transaction.synced_us.max(initial=0)),
            decision_us=0,
        )
        placed = (reason == Reason.ACCEPTED) | (reason == Reason.DUPLICATE)
        self.queued -= int(np.count_nonzero(placed & known))
        again = ~placed & known
        return self.on_rejected(now_us, claimed.take(again)) if again.any() else []

    def _record_sample(self, now_us: int) -> None:
        self.log.sample(now_us, self.queued, 0, False, 0)


class CellWatcher(ABC):
    """A part of a protocol that is notified of every start, end and machine change on the cell. A
    subclass says what it does with the events of its protocol (on_event), and overrides the other
    handlers as it needs them.

    The columns have a row per task, of any agent: task and allocation int64[n], machine int32[n],
    owner int32[n] (the agent). Tasks that run at time 0 start then; machines are up at time 0.
    """

    @abstractmethod
    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Handle an event of the protocol, or a timer that it set."""

    def on_started(self, now_us: int) -> list[Effect]:
        """Set timers, at the start of the run and after each restart of the cell."""
        return []

    def on_tasks_started(
        self, now_us: int, task: Int64, allocation: Int64, machine: Int32, owner: Int32
    ) -> list[Effect]:
        """Handle the start of tasks."""
        return []

    def on_tasks_ended(
        self,
        now_us: int,
        change: ChangeKind,
        task: Int64,
        allocation: Int64,
        machine: Int32,
        owner: Int32,
    ) -> list[Effect]:
        """Handle the end of tasks, which finished, were evicted, or lost their machine."""
        return []

    def on_machines_changed(
        self, now_us: int, machine: Int32, up: NDArray[np.bool_]
    ) -> list[Effect]:
        """Handle machines that come up or go down, int32[n] and bool[n]. The tasks on those that go
        down end after this."""
        return []

    def on_holds_ended(
        self, now_us: int, hold: Int64, remainder: Int64, cause: HoldEnd
    ) -> list[Effect]:
        """Handle holds, of this participant or another, that a transaction or a lost machine ended:
        int64[k] and int64[k, resources] as in HoldsEnded. Queues at the machines are told of
        on_room_freed() instead."""
        return []

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case TasksStarted(_, task, allocation, machine, owner):
                return self.on_tasks_started(now_us, task, allocation, machine, owner)
            case AllocationsEnded(change, task, allocation, machine, owner):
                kind = ChangeKind(change)
                return self.on_tasks_ended(now_us, kind, task, allocation, machine, owner)
            case MachinesChanged(machine, up):
                return self.on_machines_changed(now_us, machine, up)
            case HoldsEnded(hold, remainder, cause):
                return self.on_holds_ended(now_us, hold, remainder, HoldEnd(cause))
            case Started():
                return self.on_started(now_us)
        return self.on_event(now_us, event)


class BaseCellSide(CellWatcher):
    """A participant beside the master. A subclass says what it does with the events of its
    protocol (on_event). It is notified of starts, ends and machine changes if the protocol declares
    ProtocolCapability.WATCHES_CELL; the cell shows them already then.

    Args:
        environment: The protocol's groups, the workload's tasks, the seed.
        cell: The master's cell, to read and not to change.

    Attributes:
        state: Everything that it remembers: numbers, arrays, and tuples of them. It is part of the
            cell's checkpoints, and comes back when a killed cell is restarted.
    """

    def __init__(self, environment: Environment, cell: Cell) -> None:
        self.environment = environment
        self.cell = cell
        self.state: Any = 0

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds: none."""
        return []

    def checkpoint(self) -> Any:
        """The whole state."""
        return self.state

    def restore(self, state: Any) -> None:
        """Take the state that checkpoint() returned. Arrays become writable."""
        self.state = _writable(state)


def _writable(state: Any) -> Any:
    """The same state, with copies of its arrays."""
    if isinstance(state, tuple):
        return tuple(map(_writable, state))
    return state.copy() if isinstance(state, np.ndarray) else state


class BaseNodeSide(CellWatcher):
    """Queues at the machines. A subclass says what it does with the events of its protocol
    (on_event), with the outcome of claims (on_claimed), and with starts, ends and machine changes
    as it needs to.

    The arrays show a change by the time that its handler is called. What they show is what the
    worker pool has been notified of: another agent's claim may be granted already, and a claim that
    fits here be rejected.

    Attributes:
        environment: The protocol's groups, the workload's tasks, the cell's capacity, the seed.
        used: What tasks use on each machine, int64[machines, resources].
        claimed: What claims ask for whose outcome is not known yet, int64[machines, resources].
            The start of an accepted claim's task comes just before the outcome: in its handler the
            task counts twice.
        up: Which machines are up, bool[machines].
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        capacity = environment.cell.capacity
        self.used = np.zeros(capacity.shape, np.int64)
        self.claimed = np.zeros(capacity.shape, np.int64)
        self.up = np.ones(len(capacity), np.bool_)
        self._limit = environment.cell.limit
        self._request = environment.table.request
        self._transactions = 0
        self._committing: dict[int, Transaction] = {}  # by sequence number

    @abstractmethod
    def on_claimed(
        self, now_us: int, agent: int, task: Int64, machine: Int32, result: CommitResult
    ) -> list[Effect]:
        """Handle the outcome of a claim(). The agent learns of it from the master.

        Args:
            agent, task, machine: As claimed.
            result: The cell's answer. A task with Reason.DUPLICATE runs already, or has run.
        """

    def on_room_freed(self, now_us: int, machine: Int32) -> list[Effect]:
        """Handle machines, int32[k], of which room that was held for offers is free again. Claims
        on it were rejected as HELD."""
        return []

    def free(self, machine: Int32) -> Int64:
        """What is neither used nor claimed on machines, int64[n, resources]. Over-commit counts as
        capacity, as it does for the cell."""
        free: Int64 = self._limit[machine] - self.used[machine] - self.claimed[machine]
        return free

    def fits(self, task: Int64, machine: Int32) -> NDArray[np.bool_]:
        """Whether each task has room on its machine, which is up, bool[n]. Each is looked at as if
        it were alone."""
        return fits(self._request[task], self.free(machine)) & self.up[machine]

    def claim(self, now_us: int, agent: int, task: Int64, machine: Int32) -> list[Effect]:
        """Claim a machine for each of an agent's tasks, int64[n] and int32[n], on the state as it
        is here. The outcome comes to on_claimed().

        Raises:
            ValueError: There is no such machine, or not one for each task.
        """
        machine = np.ascontiguousarray(machine, np.int32)
        check_machines(machine, len(task), len(self.up))
        self._transactions += 1
        transaction = Transaction(
            scheduler=agent,
            sequence=sequence_of(WORKERS, self._transactions),
            task=np.ascontiguousarray(task, np.int64),
            machine=machine,
            request=np.ascontiguousarray(self._request[task]),
            synced_us=np.full(len(task), now_us, np.int64),
        )
        self._committing[transaction.sequence] = transaction
        np.add.at(self.claimed, transaction.machine, transaction.request)
        return [Send(MASTER, CommitRequest(WORKERS, transaction))]

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case CommitReply(scheduler=agent, result=result):
                transaction = self._committing.pop(result.sequence)
                np.subtract.at(self.claimed, transaction.machine, transaction.request)
                return self.on_claimed(now_us, agent, transaction.task, transaction.machine, result)
            case TasksStarted():
                np.add.at(self.used, event.machine, self._request[event.task])
            case AllocationsEnded():
                np.subtract.at(self.used, event.machine, self._request[event.task])
            case MachinesChanged():
                self.up[event.machine] = event.up
            case RoomFreed(machine):
                return self.on_room_freed(now_us, machine)
        return super().handle(now_us, event)

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds: none."""
        return []
