"""What agents of every protocol do alike: count what is queued, claim places, and record what
became of the claims. A protocol's agent without a view builds on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass

import numpy as np

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, SetTimer, StartDecision
from parsync.core.event import Event
from parsync.core.events import (
    ClaimsSettled,
    CommitReply,
    CommitRequest,
    DecisionDone,
    SampleDue,
    Started,
    TasksAdopted,
    TasksEnded,
    TasksSubmitted,
)
from parsync.core.queued_tasks import DelegatedTasks, QueuedTasks
from parsync.metrics.agent_log import AgentLog
from parsync.metrics.record import Record
from parsync.metrics.tables import NOT_KNOWN
from parsync.protocols.claim_checks import check_machines
from parsync.protocols.sorting_out import SortingOut
from parsync.protocols.spec import AgentEnvironment
from schedulers.interface import ChangeKind, ContractBroken
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitMode, ConflictCheck, Reason, Transaction


@dataclass(slots=True)
class _Claims:
    """Claims that are being decided or committed."""

    tasks: QueuedTasks
    machine: Int32
    synced_us: Int64
    start_us: int = 0
    decision_us: int = 0


class BaseAgent(ABC):
    """An agent that runs no scheduler.

    A subclass says what it does with queued tasks (on_queued) and with the events of its protocol
    (on_event). Tasks that no machine can ever hold are removed before it sees them.

    Attributes:
        index: Its address.
        name: E.g. lottery-3.
        cell_side: The address of the protocol's participant beside the master, if it has one.
        queued: Tasks that are submitted to it and not committed.
        epoch: How often its host was restarted. A participant that answers later than at once
            repeats it, so that an agent can drop the answers to its predecessor.
    """

    def __init__(self, environment: AgentEnvironment) -> None:
        shared = environment.shared
        self.index = environment.index
        self.name = environment.name
        self.cell_side = shared.cell_side
        self.queued = 0
        self.epoch = 0
        self._table = shared.table
        self._machines = shared.cell.machines
        self._clock = environment.clock
        self._sample_us = shared.sample_us
        self._log = AgentLog(self.index, shared.cell, shared.table, shared.catalog)
        self._sorting_out = SortingOut(environment, self._log)
        self._undecided: deque[_Claims] = deque()  # the first of them is being decided
        self._committing: dict[int, _Claims] = {}  # by transaction
        self._delegated = DelegatedTasks()
        self._transactions = 0

    @abstractmethod
    def on_queued(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        """Find places for tasks that were submitted, lost their machine, or whose claims were
        rejected."""

    @abstractmethod
    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Handle an event of the protocol."""

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
        check_machines(machine, len(tasks), self._machines)
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
            case TasksSubmitted(task):
                return self._queue(now_us, QueuedTasks.new(task, 1))
            case TasksEnded(change, task):
                if change == ChangeKind.FINISHED:
                    return []
                return self._queue(now_us, QueuedTasks.new(task, 0))
            case SampleDue(sample):
                self._record_sample(now_us)
                return [
                    *self._log.flush(),
                    self._sample_timer(max(now_us, sample * self._sample_us)),
                ]
            case Started(epoch):
                self.epoch = epoch
                return [self._sample_timer(now_us)]
            case TasksAdopted():
                return []
        return self.on_event(now_us, event)

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements that it still holds."""
        self._record_sample(now_us)
        return self._log.flush()

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

    def _queue(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        tasks = self._sorting_out.placeable(now_us, tasks)
        if not len(tasks):
            return []
        self.queued += len(tasks)
        return self.on_queued(now_us, tasks)

    def _on_decided(self) -> list[Effect]:
        claims = self._undecided.popleft()
        self._log.decided(claims.decision_us)
        self._transactions += 1
        self._committing[self._transactions] = claims
        task = claims.tasks.task
        transaction = Transaction(
            scheduler=self.index,
            sequence=self._transactions,
            task=task,
            machine=claims.machine,
            request=np.ascontiguousarray(self._table.request[task]),
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
        counts, _, _ = self._log.commit(
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
        self._log.commit(
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

    def _sample_timer(self, now_us: int) -> SetTimer:
        following = now_us // self._sample_us + 1
        return SetTimer(following * self._sample_us, SampleDue(following))

    def _record_sample(self, now_us: int) -> None:
        self._log.sample(now_us, self.queued, 0, False, 0)
