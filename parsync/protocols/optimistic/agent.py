"""The optimistic scheduler agent: queue, view, decision rounds, commits and retries around one
scheduler.

One decision round: offer tasks to the scheduler (as many as it can decide before the agent's next
sync, if rounds are cut there), reserve its placements in the local view, wait for the decision
time, commit, and handle the rejections. With commit pipelining the next round starts before the
answer to the commit arrives. Under LoserPolicy.BLOCK rejected tasks are decided again before
anything else (ParSync section 4.3); under REQUEUE they rejoin the tail of the queue after a pause
(Omega's simulator).
"""

from __future__ import annotations

from parsync.core.effects import Effect, SetTimer, StartDecision
from parsync.core.event import Event
from parsync.core.events import (
    CommitReply,
    DecisionDone,
    RunningReply,
    SampleDue,
    Started,
    SyncReply,
    TasksAdopted,
    TasksEnded,
    TasksSubmitted,
)
from parsync.core.head_of_line import UnitSizes
from parsync.core.queued_tasks import NO_TASKS, QueuedTasks
from parsync.core.quota_events import QuotaGrant, QuotaRequest
from parsync.metrics.agent_log import AgentLog
from parsync.metrics.record import Record
from parsync.protocols.drives_scheduler import DrivesScheduler
from parsync.protocols.optimistic.agent_quota import make_quota
from parsync.protocols.optimistic.agent_view import AgentView
from parsync.protocols.optimistic.commits import Commits
from parsync.protocols.optimistic.events import RequeueDue, RetryDue, RoundDue, SyncDue
from parsync.protocols.optimistic.options import AgentPolicy
from parsync.protocols.optimistic.pending_queue import (
    NO_EXITS,
    PendingQueue,
    QueueExits,
)
from parsync.protocols.optimistic.queues import make_queue
from parsync.protocols.optimistic.retries import RetryTimer
from parsync.protocols.optimistic.round_planner import RoundPlanner
from parsync.protocols.optimistic.rounds import Activity, Round
from parsync.protocols.optimistic.shared_demand.events import DemandReply
from parsync.protocols.optimistic.shared_demand.exchange import DemandExchange, NoExchange
from parsync.protocols.optimistic.strategies import RoundRankings, Strategy
from parsync.protocols.optimistic.sync.policy import SyncContext, SyncPolicy
from parsync.protocols.optimistic.sync.schedule import SyncSchedule
from parsync.protocols.queue_holds import QueueHolds
from parsync.protocols.sorting_out import SortingOut
from parsync.protocols.spec import AgentEnvironment
from parsync.protocols.task_observer import TaskObserver
from parsync.protocols.waiting_tasks import record_waiting
from schedulers.capability import Capability, observes_changes
from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
)
from schedulers.unplaceable import Unplaceable
from shared_state.transaction import ConflictCheck


class OptimisticAgent(DrivesScheduler):
    """Drives one scheduler: an Agent (parsync.core.agent).

    Args:
        environment: Where it lives, and its scheduler.
        policy: How it behaves, whatever its scheduler.
        strategy: How it ranks partitions.
        sync: When it refreshes which of them.
        context: Its place in its sync set.
    """

    def __init__(
        self,
        environment: AgentEnvironment,
        policy: AgentPolicy,
        strategy: Strategy,
        sync: SyncPolicy,
        context: SyncContext,
    ) -> None:
        shared = environment.shared
        assert environment.scheduler is not None, "ProtocolCapability.RUNS_SCHEDULERS is declared"
        self.index = environment.index
        self.name = environment.name
        self.scheduler = environment.scheduler
        checks_seqnum = policy.conflict_check is ConflictCheck.SEQUENCE_NUMBER
        self._view = AgentView(environment, context, checks_seqnum)
        capabilities = environment.member.capabilities
        self._observer = TaskObserver(self.scheduler, observes_changes(capabilities))
        whole_queue = Capability.PLANS_WHOLE_QUEUE in capabilities
        longest_us: int | None = None
        if strategy.rounds_per_sync is not None and not whole_queue:
            longest_us = context.gap_us // (context.agents * strategy.rounds_per_sync)
        self._planner = RoundPlanner(environment, self.scheduler, self._view, policy, longest_us)
        self.view = self._view.cell
        self._demand: DemandExchange | NoExchange = NoExchange()
        if Capability.SHARES_DEMAND in capabilities:
            self._demand = DemandExchange(environment, self.scheduler, context.gap_us)
        self._sync = SyncSchedule(sync, context.partitions)
        self._syncs_at_every_attempt = sync.at_every_attempt
        self._sample_us = shared.sample_us
        self._rankings = RoundRankings(
            strategy, environment.member.options.make_long_strategy(), shared.table.task_class
        )
        self._policy = policy
        # A sync at every attempt has to show the last attempt's outcome, so it waits for that.
        waits = Capability.WAITS_FOR_OUTCOME in capabilities or sync.at_every_attempt
        self._pipelines = policy.commit_pipelining and not waits
        self._cuts = policy.cut_at_sync and not whole_queue
        self._log = AgentLog(self.index, shared.cell, shared.table, shared.catalog)
        self._sorting_out = SortingOut(environment, self._log)
        self._activity = Activity.BLOCKED_ON_CAPACITY
        self._quota = make_quota(environment, policy.limits)
        self._queue: PendingQueue = make_queue(
            policy, capabilities, shared.table, shared.catalog, self._quota.account
        )
        self._of_tasks = shared.table, shared.cell
        # where all units are alike, none that waits behind another would fit
        alike = UnitSizes(shared.table, shared.catalog).are_alike
        self._holds = None if alike else QueueHolds(self._log)
        # size of the current batch when it was begun, the unit of the delay average
        self._batch_size = 1
        self._ranking = self._rankings.ranking  # of the last round
        self._round: Round | None = None  # being decided
        self._rounds = 0
        self._view_may_have_changed = False  # a round may begin though the view shows no change
        self._begun_us = -policy.min_retry_interval_us  # the last round
        self._retries = RetryTimer(sync)
        self._commits = Commits(
            environment,
            policy,
            self._view,
            self._queue,
            self._quota,
            self._observer,
            self._sync,
            self._log,
        )
        self._average = self._commits.average
        self.queued = 0

    def __repr__(self) -> str:
        return f"OptimisticAgent({self.doing})"

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case SyncReply():
                return self._synced(now_us, event)
            case DecisionDone():
                return self._decided(now_us)
            case CommitReply():
                return self._committed(now_us, event)
            case TasksSubmitted():
                return self._submitted(now_us, QueuedTasks.new(event.task, 1))
            case RoundDue():
                return self._start_round(now_us)
            case SyncDue(k):
                return self._sync_due(now_us, k)
            case DemandReply():
                self._demand.on_reply(now_us, event)
                return []
            case SampleDue(sample):
                return self._sample(now_us, sample)
            case RequeueDue(key):
                return self._rejoin(now_us, key)
            case RetryDue(number):
                return (
                    self._next(now_us, True)
                    if self._activity is Activity.BLOCKED_ON_CAPACITY and number == self._rounds
                    else []
                )
            case TasksEnded():
                return self._ended(now_us, event)
            case TasksAdopted():
                self._observer.on_adopted(now_us, event)
                self._quota.on_adopted(event)
                self._queue.on_adopted(event.task)
                return []
            case RunningReply() if self._view.preemptible is not None:
                self._view.preemptible.on_reply(event)
                return []
            case Started():
                return self._start(now_us)
            case QuotaRequest(number):
                return self._quota.on_request(number)
            case QuotaGrant():
                return self._granted(now_us, event)
        raise TypeError(f"agent cannot handle {type(event).__name__}")

    def decide(self, decision: int, now_us: int) -> None:
        """Plan the open round on the view as it stands and take the planned claims out of the
        view."""
        round_ = self._round
        assert round_ is not None and round_.number == decision, (
            "StartDecision and the open round go together"
        )
        self._planner.plan(round_, now_us)

    def decision_us(self, elapsed_ns: int) -> int:
        """How long the round just planned takes to decide.

        Args:
            elapsed_ns: Wall time of decide(), used by Measured clocks only.
        """
        round_ = self._round
        assert round_ is not None and round_.plan is not None, "decide() comes first"
        return self._planner.decision_us(round_, elapsed_ns)

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        self._log_sample(now_us)
        if self._holds is not None:
            self._holds.end(now_us, 0)
        waiting = self._queue.waiting(now_us)
        record_waiting(self._log, waiting, *self._of_tasks, self.view, self._view.unseen)
        return self._log.flush() + self._demand.flush()

    def _start(self, now_us: int) -> list[Effect]:
        sample = SampleDue(now_us // self._sample_us + 1)
        return [
            *self._demand.request(now_us),
            *self._view.start(now_us),
            SetTimer(now_us + self._sample_us, sample),
            *self._sync.start(now_us),
        ]

    def _sync_due(self, now_us: int, k: int) -> list[Effect]:
        partitions, effects = self._sync.on_due(
            now_us, k, self._average.us, self.queued, self._view.used_permille
        )
        return self._demand.request(now_us) + self._view.request(partitions) + effects

    def _synced(self, now_us: int, event: SyncReply) -> list[Effect]:
        effects = self._view.on_reply(now_us, event, self._rounds, self._log, self._sync)
        if effects:
            return effects
        self._quota.on_synced()
        if self._activity is Activity.SYNCING:
            return self._open_round(now_us)
        if self._activity in (Activity.BLOCKED_ON_CAPACITY, Activity.IDLE):
            return self._next(now_us)
        return []

    def _submitted(self, now_us: int, work: QueuedTasks) -> list[Effect]:
        work = self._sorting_out.placeable(now_us, work)
        if not len(work):
            return []
        self._queue.add(work)
        self.queued += len(work)
        return self._look_again(now_us)

    def _look_again(self, now_us: int) -> list[Effect]:
        """Begin the next round because of new tasks, unless one is under way."""
        # What is new is a reason to look again only for those to whom that may show more than the
        # last look did.
        looks = self._queue.has_new(now_us) or self._syncs_at_every_attempt
        if self._activity is Activity.IDLE or (
            self._activity is Activity.BLOCKED_ON_CAPACITY and looks and self._view.is_synced
        ):
            return self._next(now_us, self._syncs_at_every_attempt)
        return []

    def _next(self, now_us: int, may_have_changed: bool = False) -> list[Effect]:
        """Begin the next round at the end of this instant, if there is anything to decide.

        Args:
            may_have_changed: The synchronisation before the round may show a change of the view.
        """
        if not self._view.is_synced:
            self._activity = Activity.BLOCKED_ON_CAPACITY
            return []
        asked = self._retries.is_due(now_us)
        self._view_may_have_changed = self._view_may_have_changed or may_have_changed or asked
        changed = self._view.changed or self._view_may_have_changed
        if not self._queue.has_next(now_us, changed):
            if self._queue.has_waiting:
                return self._block_on_capacity(now_us)
            self._activity = Activity.IDLE
            return []
        may_begin_us = self._begun_us + self._policy.min_retry_interval_us
        if may_begin_us > now_us and self._queue.has_waiting and not self._queue.has_new(now_us):
            self._activity = Activity.BLOCKED_ON_CAPACITY
            return self._retries.at(may_begin_us, self._rounds)
        self._activity = Activity.STARTING
        return [SetTimer(now_us, RoundDue())]

    def _start_round(self, now_us: int) -> list[Effect]:
        """Everything of this instant has been handled: freed slots, syncs and commits."""
        if self._syncs_at_every_attempt:
            self._activity = Activity.SYNCING
            return self._demand.request(now_us) + self._view.request_all()
        return self._open_round(now_us)

    def _open_round(self, now_us: int) -> list[Effect]:
        """Compose the round's batch and ask for the decision."""
        changed = self._view.changed or self._view_may_have_changed
        begun = self._queue.next_batch(now_us, changed)
        self._view_may_have_changed = False
        if begun is None:  # a smaller grant of quota has come since has_next()
            self._activity = Activity.IDLE
            return []
        if begun:
            self._batch_size = begun
            self._rankings.begin_batch(self._average.us)
        self._ranking = self._rankings.ranking
        alike: int | None = None
        if self._rankings.tells_lengths:
            self._ranking, alike = self._rankings.of(self._queue.current().task)
        end_us = self._sync.next_us if self._cuts else None
        in_time = self._planner.most_tasks(now_us, end_us, self._ranking)
        limits = [limit for limit in (alike, in_time) if limit is not None]
        offered = self._queue.take(min(limits, default=None))
        self._rounds += 1
        self._begun_us = now_us
        self._retries.wanted_us = None
        self._round = Round(self._rounds, now_us, self._ranking, offered, self._batch_size)
        self._activity = Activity.DECIDING
        self._view.changed = False
        return [StartDecision(self._rounds)]

    def _decided(self, now_us: int) -> list[Effect]:
        round_ = self._round
        assert round_ is not None and round_.plan is not None, "DecisionDone follows decide()"
        plan = round_.plan
        self._retries.wanted_us = plan.retry_at_us
        self._log.round(now_us, plan, round_.decision_us)
        self._round = None
        exits = self._queue.on_planned(round_)
        effects = [] if exits is NO_EXITS else self._record_exits(now_us, exits)
        effects += self._demand.report()
        if self._holds is not None:
            waiting = self.queued - self._commits.claims - len(plan.task)
            self._holds.see(now_us, self._queue.holder(now_us), waiting)
        if len(plan.task) == 0 and len(plan.evict) == 0:
            self._log.attempts(round_.start_us, round_.decision_us, round_.tasks)
            return effects + self._end_round(now_us, round_, NO_TASKS)
        effects.append(self._commits.send(round_))
        if self._pipelines:
            return effects + self._begin_next(now_us, round_)
        self._activity = Activity.COMMITTING
        return effects

    def _committed(self, now_us: int, event: CommitReply) -> list[Effect]:
        settled = self._commits.on_reply(now_us, event)
        if settled is None:
            return []
        round_, losers, placed = settled
        self.queued -= placed
        return self._end_round(now_us, round_, losers)

    def _record_exits(self, now_us: int, exits: QueueExits) -> list[Effect]:
        """Record tasks that will never be placed, and set the timer of those that are requeued."""
        self.queued -= len(exits.too_large) + len(exits.abandoned)
        if len(exits.too_large):
            self._sorting_out.record(now_us, exits.too_large)
        if len(exits.abandoned):
            self._log.unplaceable(now_us, exits.abandoned, Unplaceable.ABANDONED)
        return (
            [SetTimer(now_us + self._policy.requeue_us, RequeueDue(exits.retry))]
            if exits.retry
            else []
        )

    def _end_round(self, now_us: int, round_: Round, losers: QueuedTasks) -> list[Effect]:
        """Put the losers where they belong, and go on unless the agent has done so already."""
        exits = self._queue.on_committed(round_, losers)
        effects = [] if exits is NO_EXITS else self._record_exits(now_us, exits)
        if self._activity in (Activity.DECIDING, Activity.COMMITTING) and self._round is None:
            return effects + self._begin_next(now_us, round_)
        can_go_on = self._activity is Activity.IDLE or (
            self._activity is Activity.BLOCKED_ON_CAPACITY
            and (self._view.changed or self._queue.has_new(now_us))
        )
        return effects + (self._next(now_us) if can_go_on else [])

    def _begin_next(self, now_us: int, round_: Round) -> list[Effect]:
        """After a round: where the view had no room left, only a change of it helps."""
        if round_.blocked and not self._view.changed and not self._queue.has_new(now_us):
            return self._block_on_capacity(now_us)
        return self._next(now_us)

    def _block_on_capacity(self, now_us: int) -> list[Effect]:
        """Wait for the view to change, and for the time to decide again in any case."""
        self._activity = Activity.BLOCKED_ON_CAPACITY
        return self._retries.after(now_us, self._rounds)

    def _rejoin(self, now_us: int, key: int) -> list[Effect]:
        self._queue.on_requeue_due(key)
        return self._next(now_us) if self._activity is Activity.IDLE else []

    def _granted(self, now_us: int, grant: QuotaGrant) -> list[Effect]:
        """Begin a round, as what was held back may have room now, and end tasks if some are to
        go."""
        effects: list[Effect] = [*self._commits.on_grant(grant)]
        return effects + (self._next(now_us) if self._activity is Activity.IDLE else [])

    def _ended(self, now_us: int, event: TasksEnded) -> list[Effect]:
        self._quota.on_ended(event)
        if self._observer.on_ended(now_us, event) is ChangeKind.FINISHED:
            admits = self._queue.on_finished(event.task)
            if self._policy.freed_at_once:
                self.view.released(event.machine, event.request, event.version)
                self._view.changed = True
                if self._activity is Activity.BLOCKED_ON_CAPACITY:
                    return self._next(now_us)
            return self._look_again(now_us) if admits else []
        return self._submitted(now_us, QueuedTasks.new(event.task, 0))

    def _log_sample(self, now_us: int) -> None:
        latency_first = self._ranking is PartitionRanking.LATENCY_FIRST
        staleness_us = self._view.staleness_us(now_us)
        self._log.sample(now_us, self.queued, self._average.us, latency_first, staleness_us)

    def _sample(self, now_us: int, sample: int) -> list[Effect]:
        self._log_sample(now_us)
        effects: list[Effect] = [*self._log.flush(), *self._demand.flush()]
        following = max(sample + 1, now_us // self._sample_us + 1)
        effects.append(SetTimer(following * self._sample_us, SampleDue(following)))
        return effects
