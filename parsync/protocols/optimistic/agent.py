"""The optimistic scheduler agent: queue, view, decision rounds, commits and retries around one
Scheduler.

A batch is decided in rounds. A round offers tasks to the scheduler (as many as fit before the
agent's next sync, if rounds are cut there), takes what it planned out of the view at once, waits
for the decision time to pass, commits, and learns what was rejected (waiting for it or not:
WhileCommitting). Under LoserPolicy.BLOCK losers are decided again before anything else (ParSync
section 4.3); under REQUEUE they rejoin the queue's tail after a pause (Omega's simulator).
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, SetTimer, StartDecision
from parsync.core.event import Event
from parsync.core.events import (
    CommitReply,
    CommitRequest,
    DecisionDone,
    SampleDue,
    Started,
    SyncReply,
    SyncRequest,
    TasksAdopted,
    TasksEnded,
    TasksSubmitted,
)
from parsync.metrics.agent_log import AgentLog
from parsync.metrics.record import Record
from parsync.protocols.optimistic.backlog import (
    NOTHING,
    Aside,
    Backlog,
    OfferedBacklog,
    RetainedBacklog,
)
from parsync.protocols.optimistic.choices import Cut, FreedVisibility, WhileCommitting
from parsync.protocols.optimistic.events import RequeueDue, RetryDue, SyncDue
from parsync.protocols.optimistic.strategies import DelayAverage, Strategy
from parsync.protocols.optimistic.sync.policies import SyncPolicy
from parsync.protocols.optimistic.sync.staleness import average_staleness_us, freshness_order
from parsync.protocols.optimistic.work import NO_WORK, Activity, AgentPolicy, Round, Work
from schedulers.capability import Capability
from schedulers.checked import CheckedScheduler
from schedulers.decision_time import DecisionClock
from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    PlanContext,
    TaskChanges,
)
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import NO_GANG, CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import CONFLICTS, ConflictCheck, Reason
from shared_state.view import ClusterView, Terrain

_ACCEPTED, _DUPLICATE = (
    int(Reason.ACCEPTED),
    int(Reason.DUPLICATE),
)  # numpy compares with plain numbers three times as fast


class SchedulerAgent:
    """Sans-I/O agent `index` of `agents`. table: every task (row = id); no true durations in it.

    capabilities: those of the scheduler's kind. terrain: the constant part of views, shared by
    agents in one process.
    """

    def __init__(
        self,
        index: int,
        agents: int,
        name: str,
        seed: int,
        scheduler: CheckedScheduler,
        capabilities: Set[Capability],
        cell: CellSpec,
        partitioning: Partitioning,
        table: TaskBatch,
        catalog: PreferenceCatalog,
        sync: SyncPolicy,
        strategy: Strategy,
        clock: DecisionClock,
        policy: AgentPolicy,
        terrain: Terrain | None = None,
    ) -> None:
        self.index = index
        self.name = name
        self.view = ClusterView(
            cell, partitioning, policy.check is ConflictCheck.SEQUENCE_NUMBER, terrain
        )
        # windows on the view's memory
        self._synced_us, self._versions = self.view.synced_us, self.view.versions
        # as of when a partition that is not synced was known last; the agent's start if never
        self._known_us = np.zeros(partitioning.count, np.int64)
        self._seed = seed
        self.scheduler = scheduler
        self._partition_of = partitioning.of_each()
        self._table = table
        self._sync = sync
        self._strategy = strategy
        self._clock = clock
        self._policy = policy
        self._checks_seqnum = policy.check is ConflictCheck.SEQUENCE_NUMBER
        # A sync at every attempt has to show the last attempt's outcome, so it waits for that.
        waits = Capability.WAITS_FOR_OUTCOME in capabilities or sync.at_every_attempt
        self._goes_on = policy.while_committing is WhileCommitting.GO_ON and not waits
        whole_queue = Capability.PLANS_WHOLE_QUEUE in capabilities
        self._cuts = policy.cut is Cut.AT_SYNC and not whole_queue
        self._log = AgentLog(index, cell, table, catalog)
        self._epoch = -1  # the master's life this view is of; -1: never synced
        self._activity = Activity.STARVED
        gang = table.gang if (table.gang != NO_GANG).any() else None
        self._backlog: Backlog = (
            RetainedBacklog(whole_queue, gang)
            if Capability.KEEPS_PENDING in capabilities
            else OfferedBacklog(
                policy.losers,
                policy.attempts_max,
                policy.attempts_max_unplaced,
                gang,
                whole_queue,
            )
        )
        # size of the current batch when it was begun, the unit of the delay average
        self._batch_size = 1
        self._ranking = strategy.ranking(0)
        self._round: Round | None = None  # being decided
        # by transaction: those whose outcome is not known yet
        self._committing: dict[int, Round] = {}
        self._rounds = 0
        self._transactions = 0
        self._view_changed = False
        self._order = np.zeros(partitioning.count, np.int32)
        # where its order of equally fresh ones begins
        self._first_partition = index * partitioning.count // agents
        self._next_sync_us: int | None = None
        self._average = DelayAverage(policy.average_permille)
        self._busy_us = 0
        self._wasted_us = 0
        self.queued = 0  # tasks submitted and neither committed nor given up

    def __repr__(self) -> str:
        return f"SchedulerAgent({self.doing})"

    @property
    def doing(self) -> str:
        """In a few words."""
        doing = self._activity.name.lower()
        return f"{self.name} {doing}, {self.queued:,} queued, {self._rounds:,} rounds"

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case SyncReply():
                return self._synced(now_us, event)
            case DecisionDone():
                return self._decided(now_us)
            case CommitReply():
                return self._committed(now_us, event)
            case TasksSubmitted():
                return self._submitted(now_us, Work.fresh(event.task, 1))
            case SyncDue(k):
                return self._sync_due(now_us, k)
            case SampleDue(sample):
                return self._sample(now_us, sample)
            case RequeueDue(key):
                return self._rejoin(now_us, key)
            case RetryDue(number):
                return (
                    self._next(now_us, True)
                    if self._activity is Activity.STARVED and number == self._rounds
                    else []
                )
            case TasksEnded():
                return self._ended(now_us, event)
            case TasksAdopted():
                self._observe(
                    ChangeKind.ADOPTED, now_us, event.task, event.machine, event.allocation
                )
                return []
            case Started():
                return self._start(now_us)
        raise TypeError(f"agent cannot handle {type(event).__name__}")

    # --- decisions: called by the runtime on StartDecision ---------------------------------------

    def decide(self, decision: int, now_us: int) -> None:
        """Plan the open round on the view as it stands and take the planned claims out of the
        view."""
        this = self._round
        assert this is not None and this.number == decision, (
            "StartDecision and the open round go together"
        )
        context = PlanContext(
            now_us, stream_key(self._seed, self.name, decision), this.ranking, self._order
        )
        tasks = self._table.take(this.offered.task)
        plan = self.scheduler.plan(tasks, self.view, context)
        this.plan = plan
        this.in_full = plan.task is tasks.task
        this.synced_us = self._synced_us[self._partition_of[plan.machine]]
        if self._checks_seqnum:
            this.seqnum = self.view.seqnum[plan.machine]
        this.ticket = self.view.claim(plan.machine, plan.request)

    def decision_us(self, elapsed_ns: int) -> int:
        """How long the round just planned takes to decide. elapsed_ns: wall time of decide(), used
        by Measured clocks only."""
        this = self._round
        assert this is not None and this.plan is not None, "decide() comes first"
        plan = this.plan
        considered = len(plan.task) + (1 if len(plan.pending) else 0)
        this.decision_us = self._clock.duration_us(
            considered, int(plan.partitions_scanned), int(plan.operations), elapsed_ns
        )
        return this.decision_us

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        self._log_sample(now_us)
        return self._log.flush()

    # --- start, synchronisation ------------------------------------------------------------------

    def _start(self, now_us: int) -> list[Effect]:
        self._known_us[:] = now_us
        effects = self._request_sync(self._every_partition())
        effects.append(
            SetTimer(
                now_us + self._policy.sample_us, SampleDue(now_us // self._policy.sample_us + 1)
            )
        )
        return effects + self._arm_sync(now_us, 1)

    def _every_partition(self) -> Int32:
        return np.arange(len(self._order), dtype=np.int32)

    def _arm_sync(self, now_us: int, k: int) -> list[Effect]:
        due_us = self._sync.due_us(k)
        while due_us is not None and due_us <= now_us:
            k += 1
            due_us = self._sync.due_us(k)
        self._next_sync_us = due_us
        return [] if due_us is None else [SetTimer(due_us, SyncDue(k))]

    def _sync_due(self, now_us: int, k: int) -> list[Effect]:
        """The k-th sync and all later ones a slow runtime let pass."""
        partitions = self._sync.partitions(k)
        following = k + 1
        due_us = self._sync.due_us(following)
        while due_us is not None and due_us <= now_us:
            partitions = np.concatenate([partitions, self._sync.partitions(following)])
            following += 1
            due_us = self._sync.due_us(following)
        if following > k + 1:
            partitions = np.unique(partitions).astype(np.int32)
        return self._request_sync(partitions) + self._arm_sync(now_us, following)

    def _request_sync(self, partitions: Int32) -> list[Effect]:
        version = self._versions[partitions]
        return [Send(MASTER, SyncRequest(self.index, partitions, version, self._checks_seqnum))]

    def _synced(self, now_us: int, event: SyncReply) -> list[Effect]:
        if event.epoch != self._epoch:
            # The master has lived, died and come back (or this view is new): versions of another
            # life mean nothing.
            resync = self._epoch >= 0
            self._epoch = event.epoch
            if resync:
                np.maximum(self._known_us, self._synced_us, out=self._known_us)
                self.view.reset()
                return self._request_sync(self._every_partition())
        latest = -1
        for delta in event.deltas:
            if delta.from_version > self._versions[delta.partition]:
                continue  # meant for a view that has since been reset; the full sync is on its way
            rows = len(delta.row)
            held_us = int(self._synced_us[delta.partition])
            if held_us < 0:
                held_us = int(self._known_us[delta.partition])
            age_us = max(0, delta.at_us - held_us)
            self._log.sync(now_us, delta.partition, age_us, rows)
            self._view_changed = self._view_changed or rows > 0
            self.view.apply(delta)
            latest = delta.partition
        if latest >= 0:
            if len(event.deltas) == len(self._order):
                # Everything is equally fresh: agents turn to the partitions from different places.
                latest = (self._first_partition + self._rounds) % len(self._order)
            self._order = freshness_order(self._synced_us, latest)
        if self._activity is Activity.SYNCING:
            return self._open_round(now_us)
        if self._activity in (Activity.STARVED, Activity.IDLE):
            return self._next(now_us)
        return []

    # --- the queue -------------------------------------------------------------------------------

    def _submitted(self, now_us: int, work: Work) -> list[Effect]:
        self._backlog.add(work)
        self.queued += len(work)
        # What is new is a reason to look again only for those to whom that may show more than the
        # last look did.
        looks = self._backlog.has_new or self._sync.at_every_attempt
        if self._activity is Activity.IDLE or (
            self._activity is Activity.STARVED and looks and self._epoch >= 0
        ):
            return self._next(now_us, self._sync.at_every_attempt)
        return []

    def _next(self, now_us: int, may_have_changed: bool = False) -> list[Effect]:
        """Begin the next round, if there is anything to decide. may_have_changed: the sync before
        it may show a change of the view."""
        if self._epoch < 0:
            self._activity = Activity.STARVED
            return []
        begun = self._backlog.begin(self._view_changed or may_have_changed)
        if begun is None:
            if self._backlog.waiting:
                return self._starve(now_us)
            self._activity = Activity.IDLE
            return []
        if begun:
            self._batch_size = begun
            self._ranking = self._strategy.ranking(self._average.us)
        return self._begin_round(now_us)

    def _begin_round(self, now_us: int) -> list[Effect]:
        if self._sync.at_every_attempt:
            self._activity = Activity.SYNCING
            return self._request_sync(self._every_partition())
        return self._open_round(now_us)

    def _open_round(self, now_us: int) -> list[Effect]:
        limit: int | None = None
        if self._cuts and self._next_sync_us is not None:
            scanned = len(self._order) if self._ranking is PartitionRanking.QUALITY_FIRST else 1
            limit = self._clock.tasks_within(max(0, self._next_sync_us - now_us), scanned)
        offered = self._backlog.offer(limit)
        self._rounds += 1
        self._round = Round(self._rounds, now_us, self._ranking, offered, self._batch_size)
        self._activity = Activity.DECIDING
        self._view_changed = False
        return [StartDecision(self._rounds)]

    # --- commit ----------------------------------------------------------------------------------

    def _decided(self, now_us: int) -> list[Effect]:
        this = self._round
        assert this is not None and this.plan is not None, "DecisionDone follows decide()"
        plan = this.plan
        self._busy_us += this.decision_us
        self._log.round(now_us, plan)
        self._round = None
        effects = self._set_aside(now_us, self._backlog.planned(this))
        if len(plan.task) == 0 and len(plan.evict) == 0:
            return effects + self._round_over(now_us, this, NO_WORK)
        self._transactions += 1
        transaction = this.transaction(self.index, self._transactions, self._policy)
        self._committing[self._transactions] = this
        effects.append(Send(MASTER, CommitRequest(self.index, transaction)))
        if self._goes_on:
            return effects + self._go_on(now_us, this)
        self._activity = Activity.COMMITTING
        return effects

    def _committed(self, now_us: int, event: CommitReply) -> list[Effect]:
        this = self._committing.pop(event.result.sequence, None)
        if this is None or this.plan is None:
            return []  # an answer repeated after a restart
        result, plan = event.result, this.plan
        self.view.settle(this.ticket, result.reason, result.version)
        # While they were under way, claims with sequence numbers kept their machines closed to the
        # rounds that went on.
        self._view_changed = self._view_changed or (self._checks_seqnum and self._goes_on)
        work = self._backlog.claimed(this)
        claimed = Work(work.task, work.attempts + 1, work.first)
        claims, first_commits, delay_sum_us = self._log.commit(
            now_us,
            plan.task,
            plan.machine,
            claimed.attempts,
            claimed.first,
            result,
            this.start_us,
            this.decision_us,
            int(this.ranking),
        )
        count = claims[_ACCEPTED]
        self._average.add(delay_sum_us, first_commits, this.batch_size)
        self.queued -= count + claims[_DUPLICATE]
        if count == len(plan.task):
            self._observe(ChangeKind.COMMITTED, now_us, plan.task, plan.machine, result.allocation)
            return self._round_over(now_us, this, NO_WORK)
        if any(claims[reason] for reason in CONFLICTS):
            self._wasted_us += this.decision_us
        rejected = (result.reason != _ACCEPTED) & (result.reason != _DUPLICATE)
        self._observe(
            ChangeKind.REJECTED,
            now_us,
            plan.task[rejected],
            plan.machine[rejected],
            result.allocation[rejected],
        )
        if count:
            accepted = result.accepted
            self._observe(
                ChangeKind.COMMITTED,
                now_us,
                plan.task[accepted],
                plan.machine[accepted],
                result.allocation[accepted],
            )
        return self._round_over(now_us, this, claimed.take(rejected))

    def _set_aside(self, now_us: int, aside: Aside) -> list[Effect]:
        """Tell of the tasks that have left the backlog."""
        if aside is NOTHING:
            return []
        for task, abandoned in ((aside.hopeless, 0), (aside.spent, 1)):
            if len(task):
                self.queued -= len(task)
                self._log.unplaceable(now_us, task, abandoned)
        return (
            [SetTimer(now_us + self._policy.requeue_us, RequeueDue(aside.retry))]
            if aside.retry
            else []
        )

    def _round_over(self, now_us: int, this: Round, losers: Work) -> list[Effect]:
        """Put the losers where they belong, and go on unless the agent has done so already."""
        effects = self._set_aside(now_us, self._backlog.over(this, losers))
        if self._activity in (Activity.DECIDING, Activity.COMMITTING) and self._round is None:
            return effects + self._go_on(now_us, this)
        reopened = self._activity is Activity.STARVED and self._view_changed
        return effects + (self._next(now_us) if reopened or self._activity is Activity.IDLE else [])

    def _go_on(self, now_us: int, this: Round) -> list[Effect]:
        """After a round: where the view had no room left, only a change of it helps."""
        if this.starved and not self._view_changed and not self._backlog.has_new:
            return self._starve(now_us)
        return self._next(now_us)

    def _starve(self, now_us: int) -> list[Effect]:
        """Wait for the view to change; where nothing would tell of that, for a while."""
        self._activity = Activity.STARVED
        retry_us = self._sync.retry_us
        return [] if retry_us is None else [SetTimer(now_us + retry_us, RetryDue(self._rounds))]

    def _rejoin(self, now_us: int, key: int) -> list[Effect]:
        self._backlog.rejoin(key)
        return self._next(now_us) if self._activity is Activity.IDLE else []

    # --- running tasks ---------------------------------------------------------------------------

    def _ended(self, now_us: int, event: TasksEnded) -> list[Effect]:
        change = ChangeKind(event.change)
        self._observe(change, now_us, event.task, event.machine, event.allocation)
        if change is ChangeKind.FINISHED:
            if self._policy.freed is FreedVisibility.AT_ONCE:
                self.view.released(event.machine, event.request, event.version)
                self._view_changed = True
                if self._activity is Activity.STARVED:
                    return self._next(now_us)
            return []
        return self._submitted(now_us, Work.fresh(event.task, 0))

    def _observe(
        self, kind: ChangeKind, now_us: int, task: Int64, machine: Int32, allocation: Int64
    ) -> None:
        self.scheduler.observe(TaskChanges(kind, now_us, task, machine, allocation))

    # --- measurements ----------------------------------------------------------------------------

    def _log_sample(self, now_us: int) -> None:
        latency_first = self._ranking is PartitionRanking.LATENCY_FIRST
        held_us = np.maximum(self._synced_us, self._known_us)
        staleness_us = average_staleness_us(held_us, now_us)
        self._log.sample(
            now_us,
            self.queued,
            self._average.us,
            latency_first,
            self._busy_us,
            self._wasted_us,
            staleness_us,
        )

    def _sample(self, now_us: int, sample: int) -> list[Effect]:
        self._log_sample(now_us)
        effects: list[Effect] = [*self._log.flush()]
        following = max(sample + 1, now_us // self._policy.sample_us + 1)
        effects.append(SetTimer(following * self._policy.sample_us, SampleDue(following)))
        return effects
