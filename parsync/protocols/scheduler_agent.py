"""The base class, in Python, of agents that drive a scheduler with a view of the cell.

          IDLE: nothing to decide         BLOCKED_ON_CAPACITY: nothing in the view fits
            |                               |
            | on_queued()                   | on_synced(), on_queued()
            v                               v
          next() --- nothing to decide --> IDLE, or BLOCKED_ON_CAPACITY: on_blocked()
            |
            v
          STARTING: start_round()       the protocol asks for what a round needs, and then calls
            |                           open_round(), which asks compose() what it is about
            v
          DECIDING: decide()            plans the round; its claims leave the view
            |
            | DecisionDone: on_decided()    (with pipelining next() follows here)
            v
          COMMITTING                    the claims are with the cell
            |
            | CommitReply: on_outcome(), on_losers(), on_round_over()
            v
          next()

The names in the picture are methods of the class. A protocol overrides start_round(), compose(),
waiting(), transaction_number(), and those whose names begin with on_. Each says what it does by
itself.

The agent's parts are native: view, queue, planner and log. Agents that are native as a whole are
those of the optimistic protocol and of offers (native/scheduler_agent.hpp). NativeSchedulerAgent is
what their classes in Python share.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, StartDecision
from parsync.core.event import Event
from parsync.core.events import (
    CommitReply,
    CommitRequest,
    DecisionDone,
    QuotaGrant,
    QuotaRequest,
    RunningReply,
    Started,
    SyncReply,
    TasksAdopted,
    TasksEnded,
)
from parsync.core.queued_tasks import NO_TASKS, QueuedTasks, UnitSizes
from parsync.metrics.record import AgentLog, Record
from parsync.metrics.tables import SCHEMAS, Tables
from parsync.protocols._native import QueueHolds
from parsync.protocols.agent_quota import AgentQuota
from parsync.protocols.agent_view import AgentView
from parsync.protocols.base import MeasuredAgent
from parsync.protocols.pending_queue import (
    NO_EXITS,
    AgentQueue,
    PendingQueue,
    QueueExits,
    SchedulerQueue,
    WaitingPart,
    record_waiting,
)
from parsync.protocols.rounds import Activity, ClaimUnit, Round, gangs_or_alone, make_rounds
from parsync.protocols.spec import AgentEnvironment
from schedulers.checked import CheckedScheduler
from schedulers.interface import (
    ChangeKind,
    ContractBroken,
    PartitionQuality,
    PartitionRanking,
    Plan,
    TaskChanges,
    observes_changes,
)
from schedulers.unplaceable import Unplaceable
from shared_state.tasks import Int32, Int64, TaskBatch
from shared_state.transaction import CommitResult, Reason, Transaction

# numpy compares with plain numbers three times as fast as with enums
_ACCEPTED, _DUPLICATE = int(Reason.ACCEPTED), int(Reason.DUPLICATE)
_NO_MACHINES: Int32 = np.zeros(0, np.int32)
_FEW = (PartitionRanking.LATENCY_FIRST, PartitionRanking.FRESHEST_PREFERRED)


class DrivesScheduler:
    """A base class of agents (parsync.core.participant) that run a scheduler.

    Attributes:
        name: The group's name and the agent's place in it.
        scheduler: The scheduler.
    """

    name: str
    scheduler: CheckedScheduler

    def doing_text(self, activity: IntEnum, queued: int, rounds: int) -> str:
        """What it does at the moment, in a few words, with its queued tasks and its rounds so
        far."""
        doing = activity.name.lower().replace("_", " ")
        return f"{self.name} {doing}, {queued:,} queued, {rounds:,} rounds"

    @property
    def calling(self) -> str:
        """The scheduler's call that is under way, "" if none is."""
        return self.scheduler.calling

    def overdue(self, limit_s: float) -> ContractBroken | None:
        """The error that says that the scheduler's call takes longer than limit_s; None if no call
        is under way."""
        return self.scheduler.overdue(limit_s)


class NativeSchedulerAgent(DrivesScheduler):
    """What agents that are native as a whole have in Python, beside a class of
    parsync.protocols._native.

    Attributes:
        index: Its address.
        view: What it believes about the cell.
        activity, queued, rounds: An Activity, the tasks that wait, and the rounds so far.
    """

    if TYPE_CHECKING:  # the native class has these

        @property
        def activity(self) -> int: ...
        @property
        def queued(self) -> int: ...
        @property
        def rounds(self) -> int: ...
        def log_end(self, now_us: int) -> None: ...

    def take_parts(
        self,
        environment: AgentEnvironment,
        view: AgentView,
        queue: AgentQueue | SchedulerQueue,
        tables: Tables = SCHEMAS,
    ) -> AgentLog:
        """Keep its parts, and return its log, which has these tables. Called first."""
        shared = environment.shared
        assert environment.scheduler is not None, "ProtocolCapability.RUNS_SCHEDULERS is declared"
        self.index = environment.index
        self.name = environment.name
        self.scheduler = environment.scheduler
        self.view = view.cell
        self._view, self._queue = view, queue
        self._log = AgentLog(self.index, shared.cell, shared.table, shared.catalog, tables)
        self._of_tasks = shared.table, shared.cell
        return self._log

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.doing})"

    @property
    def doing(self) -> str:
        """What it does at the moment, in a few words."""
        return self.doing_text(Activity(self.activity), self.queued, self.rounds)

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        self.log_end(now_us)
        waiting = self._queue.waiting(now_us)
        record_waiting(self._log, waiting, *self._of_tasks, self.view, self._view.unseen)
        return self._log.flush()


class TaskObserver:
    """Passes changes of tasks on to one scheduler, as Scheduler.observe describes.

    Args:
        scheduler: The scheduler.
        observes: Whether it is told of changes at all.
        table: Every task of the run (row = id).
    """

    def __init__(self, scheduler: CheckedScheduler, observes: bool, table: TaskBatch) -> None:
        self._scheduler = scheduler
        self._observes = observes
        self._table = table

    def on_adopted(self, now_us: int, event: TasksAdopted) -> None:
        """Tasks run already, without a claim of the scheduler."""
        if self._observes:
            tasks = self._table.take(event.task)
            kind, machine, allocation = ChangeKind.ADOPTED, event.machine, event.allocation
            self._scheduler.observe(
                TaskChanges(kind, now_us, event.task, machine, allocation, tasks)
            )

    def on_ended(self, now_us: int, event: TasksEnded) -> ChangeKind:
        """Allocations ended. Return how."""
        change = ChangeKind(event.change)
        self._observe(change, now_us, event.task, event.machine, event.allocation)
        return change

    def on_outcome(
        self, now_us: int, claims: Plan | Transaction, result: CommitResult, count: int
    ) -> NDArray[np.bool_] | None:
        """The cell answered the claims of a plan.

        Args:
            claims: The plan, or its transaction.
            count: The number of accepted claims.

        Returns:
            The rejected claims, bool[k], without duplicates; None if all were accepted.
        """
        if count == len(claims.task):
            self._observe(
                ChangeKind.COMMITTED, now_us, claims.task, claims.machine, result.allocation
            )
            return None
        accepted = result.reason == _ACCEPTED
        rejected: NDArray[np.bool_] = ~accepted & (result.reason != _DUPLICATE)
        if not self._observes:
            return rejected
        for kind, rows in ((ChangeKind.REJECTED, rejected), (ChangeKind.COMMITTED, accepted)):
            if count or kind is ChangeKind.REJECTED:
                self._observe(
                    kind, now_us, claims.task[rows], claims.machine[rows], result.allocation[rows]
                )
        return rejected

    def _observe(
        self, kind: ChangeKind, now_us: int, task: Int64, machine: Int32, allocation: Int64
    ) -> None:
        if self._observes:
            self._scheduler.observe(TaskChanges(kind, now_us, task, machine, allocation))


class SchedulerAgent(DrivesScheduler, MeasuredAgent):
    """Drives one scheduler: an Agent (parsync.core.participant).

    Without a method overridden it synchronises once, when it begins.

    Attributes:
        view: What it believes about the cell.
        queue: The tasks that wait, other than those of rounds under way.
        quota: What its tasks hold and may hold; None: no limit.
        activity: What it is doing.
        rounds: How many rounds have begun.
        round: The one that is being decided.
        ranking: How the last round ranked partitions, for the log.
        average_us: The average delay of its tasks, if the protocol keeps one; for the log.
        rows_changed: int64[P], machines that were found changed, by partition.
        retry_at_us: When the scheduler wants to be called again; None if it does not say.
    """

    def __init__(
        self,
        environment: AgentEnvironment,
        view: AgentView,
        queue: PendingQueue,
        *,
        quota: AgentQuota | None = None,
        unit: ClaimUnit = ClaimUnit.CLAIM,
        quality: PartitionQuality = PartitionQuality.MEAN_WEIGHT,
        pipelines: bool = False,
    ) -> None:
        """An agent that does nothing yet.

        Args:
            environment: Where it lives, and its scheduler.
            view, queue, quota: Its own.
            unit: Which of its claims stand or fall together.
            quality: Which partition the scheduler is told is the best.
            pipelines: Whether the next round begins before the answer to a commit has come.
        """
        shared, capabilities = environment.shared, environment.member.capabilities
        assert environment.scheduler is not None, "ProtocolCapability.RUNS_SCHEDULERS is declared"
        super().__init__(environment)
        self.scheduler = environment.scheduler
        self.view = view
        self.queue = queue
        self.quota = quota
        self.activity = Activity.SYNCING
        self.rounds = 0
        self.round: Round | None = None
        self.average_us = 0
        self.rows_changed = np.zeros(shared.partitioning.count, np.int64)
        self.retry_at_us: int | None = None
        self._unit, self._pipelines = unit, pipelines
        self._rounds = make_rounds(environment, view, quality)
        self._observer = TaskObserver(self.scheduler, observes_changes(capabilities), shared.table)
        # where all units are alike, none that waits behind another would fit
        alike = UnitSizes(shared.table, shared.catalog).are_alike
        self._holds = None if alike else QueueHolds(self.log)
        self.ranking = PartitionRanking.OPTIMISTIC  # of the last round
        self._batch_size = 1  # of the current batch when it was begun
        self._looks_anyway = False  # a round may begin though the view shows no change
        self._in_flight: dict[int, Round] = {}  # by transaction: without an outcome so far
        self._claims_in_flight = 0
        self._transactions = 0  # the number of the last one

    # What a protocol decides.

    def on_started(self, now_us: int) -> list[Effect]:
        """The agent begins, or begins again: synchronise for the first time, and set timers."""
        return self.view.request()

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Handle a message or a timer of the protocol. By itself it has none."""
        raise TypeError(f"agent cannot handle {type(event).__name__}")

    def on_synced(self, now_us: int, reply: SyncReply) -> list[Effect]:
        """The view has been refreshed. Begins a round unless one is under way."""
        waits = self.activity in (Activity.SYNCING, Activity.IDLE, Activity.BLOCKED_ON_CAPACITY)
        return self.next(now_us) if waits else []

    def on_queued(self, now_us: int) -> list[Effect]:
        """Tasks have joined the queue. Begins a round unless one is under way, or the queue is
        waiting for room."""
        waits = self.activity is Activity.IDLE or (
            self.activity is Activity.BLOCKED_ON_CAPACITY and self.queue.has_new(now_us)
        )
        return self.next(now_us) if waits else []

    def start_round(self, now_us: int) -> list[Effect]:
        """There is something to decide: get what a round needs, and call open_round(). Calls it at
        once, without a synchronisation."""
        return self.open_round(now_us)

    def compose(self, now_us: int, begins: bool) -> tuple[PartitionRanking, int | None]:
        """Say how the round that begins ranks partitions, and how many tasks it has at most, None:
        any number. By itself: not at all, and the whole batch.

        Args:
            now_us: The agent's time.
            begins: Whether it is the first about its batch, which queue.current() has.
        """
        return PartitionRanking.OPTIMISTIC, None

    def on_blocked(self, now_us: int) -> list[Effect]:
        """There is no room for what waits: set a timer for the next look, if no synchronisation
        would bring it."""
        return []

    def on_decided(self, now_us: int, round_: Round) -> None:
        """A round is decided, and not committed yet. Records which tasks hold the queue."""
        assert round_.plan is not None, "a round is planned before it is decided"
        self.record_holder(now_us, len(round_.plan.task))

    def on_outcome(
        self, now_us: int, round_: Round, result: CommitResult, first_commits: int, delay_us: int
    ) -> None:
        """The cell has answered the claims of a round. So many of its tasks were committed for the
        first time, with delays of that sum."""

    def on_losers(
        self, now_us: int, round_: Round, losers: QueuedTasks, machine: Int32
    ) -> list[Effect]:
        """The round is over: put the tasks whose claims were rejected, on machines int32[n], where
        they wait to be tried again. By itself: where the queue has its losers. Called for every
        round, also without losers."""
        return self.record_exits(now_us, self.queue.on_committed(round_, losers))

    def on_round_over(self, now_us: int, round_: Round, placed: int, lost: int) -> list[Effect]:
        """The round is over, so many of its claims accepted and so many rejected. Begins the next
        one, unless that has begun already."""
        is_over = self.activity in (Activity.DECIDING, Activity.COMMITTING)
        if is_over and self.round is None:
            return self._next_after(now_us, round_)
        goes_on = self.activity is Activity.IDLE or (
            self.activity is Activity.BLOCKED_ON_CAPACITY
            and (self.view.changed or self.queue.has_new(now_us))
        )
        return self.next(now_us) if goes_on else []

    def on_finished(self, now_us: int, ended: TasksEnded) -> list[Effect]:
        """Tasks of the agent ran to their end, of which it learns if its protocol or its scheduler
        asks for that. Tells the queue, which may have held back others."""
        return self.on_queued(now_us) if self.queue.on_finished(ended.task) else []

    def transaction_number(self, round_: Round) -> int:
        """The number of the transaction about a round, larger than those before: their count."""
        return self._transactions + 1

    def on_paused(self, now_us: int, key: int) -> list[Effect]:
        """Tasks pause: set a timer after which queue.on_requeue_due(key) is called. Only queues
        with LoserPolicy.REQUEUE do that."""
        raise NotImplementedError("a queue whose tasks pause needs a timer: override on_paused()")

    def waiting(self, now_us: int) -> list[WaitingPart]:
        """The tasks that wait, by why they do: those of the queue."""
        return self.queue.waiting(now_us)

    # What a protocol calls.

    def next(self, now_us: int, looks_anyway: bool = False) -> list[Effect]:
        """Start a round, if there is anything to decide.

        Args:
            now_us: The agent's time.
            looks_anyway: Whether tasks without room are tried though the view has not changed.
        """
        is_asked = self.retry_at_us is not None and self.retry_at_us <= now_us
        self._looks_anyway = self._looks_anyway or looks_anyway or is_asked
        if self.queue.has_next(now_us, self.view.changed or self._looks_anyway):
            self.activity = Activity.STARTING
            return self.start_round(now_us)
        if self.queue.has_waiting:
            return self._block(now_us)
        self.activity = Activity.IDLE
        return []

    def open_round(self, now_us: int) -> list[Effect]:
        """Compose the round and ask for the decision."""
        begun = self.queue.next_batch(now_us, self.view.changed or self._looks_anyway)
        self._looks_anyway = False
        if begun is None:  # a smaller grant of quota has come since next()
            self.activity = Activity.IDLE
            return []
        if begun:
            self._batch_size = begun
        self.ranking, most = self.compose(now_us, begun > 0)
        offered = self.queue.take(most)
        self.rounds += 1
        self.round = Round(self.rounds, now_us, self.ranking, offered, self._batch_size)
        self.retry_at_us = None
        self.activity = Activity.DECIDING
        self.view.changed = False
        return [StartDecision(self.rounds)]

    def tasks_by(self, now_us: int, end_us: int | None, ranking: PartitionRanking) -> int | None:
        """How many tasks a round may have whose last decision is to begin by end_us (None: any
        time). None: any number, or it is not known beforehand."""
        if end_us is None:
            return None
        scanned = 1 if ranking in _FEW else len(self.rows_changed)
        return self._clock.tasks_within(max(0, end_us - now_us), scanned)

    def record_exits(self, now_us: int, exits: QueueExits) -> list[Effect]:
        """Record the tasks that will never be placed, and have those that pause do so."""
        if exits is NO_EXITS:
            return []
        self.queued -= len(exits.too_large) + len(exits.abandoned)
        if len(exits.too_large):
            self._sorting_out.record(now_us, exits.too_large)
        if len(exits.abandoned):
            self.log.unplaceable(now_us, exits.abandoned, Unplaceable.ABANDONED)
        return self.on_paused(now_us, exits.retry) if exits.retry else []

    def record_holder(self, now_us: int, claimed: int = 0) -> None:
        """Record which tasks without room hold the queue, and how many wait behind them.

        Args:
            now_us: The agent's time.
            claimed: Tasks that do not wait because they are about to be committed.
        """
        if self._holds is not None:
            waiting = self.queued - self._claims_in_flight - claimed
            self._holds.see(now_us, self.queue.holder(now_us), waiting)

    # As an Agent.

    @property
    def doing(self) -> str:
        """What it does at the moment, in a few words."""
        return self.doing_text(self.activity, self.queued, self.rounds)

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case SyncReply():
                return self._synced(now_us, event)
            case DecisionDone():
                return self._decided(now_us)
            case CommitReply():
                return self._committed(now_us, event)
            case RunningReply() if self.view.preemptible is not None:
                self.view.preemptible.on_reply(event)
                return []
            case QuotaRequest(number) if self.quota is not None:
                return self.quota.on_request(number)
            case QuotaGrant() if self.quota is not None:
                return self._granted(now_us, event)
            case Started():
                self.view.start(now_us)
        return super().handle(now_us, event)

    def decide(self, decision: int, now_us: int) -> None:
        """Plan the open round on the view as it stands, and take its claims out of the view."""
        round_ = self.round
        assert round_ is not None and round_.number == decision, "a decision is of the open round"
        planned = self._rounds.plan(round_.offered.task, decision, round_.ranking, now_us)
        round_.plan, round_.synced_us, round_.ticket = planned[:3]
        round_.in_full, round_.seqnum = planned.in_full, planned.seqnum

    def decision_us(self, elapsed_ns: int) -> int:
        """How long the round just planned takes to decide.

        Args:
            elapsed_ns: Wall time of decide(), used by Measured clocks only.
        """
        assert self.round is not None and self.round.plan is not None, "decide() comes first"
        self.round.decision_us = self._rounds.decision_us(elapsed_ns)
        return self.round.decision_us

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        self._record_sample(now_us)
        if self._holds is not None:
            self._holds.end(now_us, 0)
        shared, view = self._shared, self.view
        parts = self.waiting(now_us)
        record_waiting(self.log, parts, shared.table, shared.cell, view.cell, view.unseen)
        return self.log.flush()

    def _synced(self, now_us: int, reply: SyncReply) -> list[Effect]:
        if not self.view.on_reply(now_us, reply, self.rounds, self.log, self.rows_changed):
            if self.activity in (Activity.IDLE, Activity.BLOCKED_ON_CAPACITY):
                self.activity = Activity.SYNCING
            return self.view.request()  # the master was restarted
        if self.quota is not None:
            self.quota.on_synced()
        return self.on_synced(now_us, reply)

    def _take(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        self.queue.add(tasks)
        return self.on_queued(now_us)

    def _adopted(self, now_us: int, event: TasksAdopted) -> list[Effect]:
        self._observer.on_adopted(now_us, event)
        if self.quota is not None:
            self.quota.on_adopted(event)
        self.queue.on_adopted(event.task)
        return []

    def _ended(self, now_us: int, event: TasksEnded) -> list[Effect]:
        if self.quota is not None:
            self.quota.on_ended(event)
        if self._observer.on_ended(now_us, event) is not ChangeKind.FINISHED:
            return self._submitted(now_us, QueuedTasks.new(event.task, 0))
        return self.on_finished(now_us, event)

    def _granted(self, now_us: int, grant: QuotaGrant) -> list[Effect]:
        """What was held back may have room now; running tasks may have to go."""
        assert self.quota is not None
        effects: list[Effect] = []
        reclaim = self.quota.on_grant(grant, self._transactions + 1)
        if reclaim is not None:
            self._transactions += 1  # its answer has nothing to settle
            effects.append(Send(MASTER, CommitRequest(self.index, reclaim)))
        return effects + (self.next(now_us) if self.activity is Activity.IDLE else [])

    def _block(self, now_us: int) -> list[Effect]:
        self.activity = Activity.BLOCKED_ON_CAPACITY
        return self.on_blocked(now_us)

    def _next_after(self, now_us: int, round_: Round) -> list[Effect]:
        """After a round: where the view had no room left, only a change of it helps."""
        if round_.blocked and not self.view.changed and not self.queue.has_new(now_us):
            return self._block(now_us)
        return self.next(now_us)

    def _decided(self, now_us: int) -> list[Effect]:
        round_, self.round = self.round, None
        assert round_ is not None and round_.plan is not None, "DecisionDone follows decide()"
        plan = round_.plan
        self.retry_at_us = plan.retry_at_us
        self.log.round(now_us, plan, round_.decision_us)
        effects = self.record_exits(now_us, self.queue.on_planned(round_))
        self.on_decided(now_us, round_)
        if not len(plan.task) and not len(plan.evict):
            self.log.attempts(round_.start_us, round_.decision_us, round_.tasks)
            effects += self.on_losers(now_us, round_, NO_TASKS, _NO_MACHINES)
            return effects + self.on_round_over(now_us, round_, 0, 0)
        effects.append(self._commit(round_))
        if self._pipelines:
            return effects + self._next_after(now_us, round_)
        self.activity = Activity.COMMITTING
        return effects

    def _commit(self, round_: Round) -> Send:
        plan = round_.plan
        assert plan is not None
        unit: Int64 | None = None
        if self._unit is ClaimUnit.JOB:
            unit = self._shared.table.job[plan.task]
        elif self._unit is ClaimUnit.GANG:
            unit = gangs_or_alone(plan.gang)
        self._transactions = self.transaction_number(round_)
        self._in_flight[self._transactions] = round_
        self._claims_in_flight += len(plan.task)
        transaction = round_.transaction(self.index, self._transactions, unit)
        return Send(MASTER, CommitRequest(self.index, transaction))

    def _committed(self, now_us: int, event: CommitReply) -> list[Effect]:
        result = event.result
        round_ = self._in_flight.pop(result.sequence, None)
        if round_ is None or round_.plan is None:
            return []  # repeated after a restart, or to a transaction without claims
        plan = round_.plan
        assert round_.synced_us is not None, "a round is planned before it is committed"
        self._claims_in_flight -= len(plan.task)
        self.view.settle(round_.ticket, result)
        # While they were under way, claims with sequence numbers kept their machines closed.
        self.view.changed = self.view.changed or self.view.with_seqnum
        work = self.queue.claimed_tasks(round_)
        claimed = QueuedTasks(work.task, work.attempts + 1, work.first)
        counts, first_commits, delay_us = self.log.commit(
            now_us,
            plan.task,
            plan.machine,
            round_.synced_us,
            claimed.attempts,
            claimed.first,
            result,
            round_.start_us,
            round_.decision_us,
            int(round_.ranking),
            round_.tasks,
        )
        self.on_outcome(now_us, round_, result, first_commits, delay_us)
        if self.quota is not None:
            self.quota.on_outcome(plan, result)
        accepted = counts[_ACCEPTED]
        rejected = self._observer.on_outcome(now_us, plan, result, accepted)
        self.queued -= accepted + counts[_DUPLICATE]
        losers, machine = NO_TASKS, _NO_MACHINES
        if rejected is not None:
            losers, machine = claimed.take(rejected), plan.machine[rejected]
        effects = self.on_losers(now_us, round_, losers, machine)
        return effects + self.on_round_over(now_us, round_, accepted, len(losers))

    def _record_sample(self, now_us: int) -> None:
        latency_first = self.ranking is PartitionRanking.LATENCY_FIRST
        staleness_us = self.view.staleness_us(now_us)
        self.log.sample(now_us, self.queued, self.average_us, latency_first, staleness_us)
