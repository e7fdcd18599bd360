"""The optimistic scheduler agent: queue, view, decision rounds, commits and retries around one
scheduler.

It is native (parsync/protocols/native/optimistic_agent.cpp, with its states drawn in the header).
Here it is put together: from native parts, and from those in Python that only some agents have.
"""

from __future__ import annotations

from collections.abc import Set
from types import SimpleNamespace

from parsync.core.queued_tasks import SkippedUnits, UnitSizes
from parsync.metrics.record import Record
from parsync.protocols import _native
from parsync.protocols.agent_quota import QuotaAccount, make_quota
from parsync.protocols.agent_view import AgentView
from parsync.protocols.base import SortingOut
from parsync.protocols.optimistic.options import (
    OptimisticOptions,
    RoundRankings,
    Strategy,
    longest_round_us,
)
from parsync.protocols.optimistic.shared_demand import DemandExchange
from parsync.protocols.optimistic.sync import SyncContext, SyncPolicy
from parsync.protocols.pending_queue import (
    AgentQueue,
    LoserPolicy,
    SchedulerQueue,
)
from parsync.protocols.rounds import ScheduledRounds, native_planner
from parsync.protocols.scheduler_agent import NativeSchedulerAgent, TaskObserver
from parsync.protocols.spec import AgentEnvironment
from schedulers.interface import Capability, observes_changes
from shared_state.tasks import NO_GANG, PreferenceCatalog, TaskBatch
from shared_state.transaction import ConflictCheck


def make_queue(
    policy: OptimisticOptions,
    capabilities: Set[Capability],
    table: TaskBatch,
    catalog: PreferenceCatalog,
    account: QuotaAccount | None = None,
) -> AgentQueue | SchedulerQueue:
    """The queue of an agent: a SchedulerQueue if its scheduler remembers the waiting tasks.

    Args:
        policy: How the agent behaves.
        capabilities: Of its scheduler.
        table: Every task (row = id).
        catalog: The preference sets.
        account: Of the agent's quota, if the arm has quota groups, or of the limit on what its
            tasks hold; its scheduler does not remember waiting tasks then.
    """
    whole_queue = Capability.PLANS_WHOLE_QUEUE in capabilities
    gangs = table.gang if (table.gang != NO_GANG).any() else None
    queue: AgentQueue | SchedulerQueue
    if Capability.KEEPS_PENDING in capabilities:
        assert account is None, "check_protocols() refuses such a scheduler under quotas"
        queue = SchedulerQueue(whole_queue, gangs)
    else:
        sizes = UnitSizes(table, catalog)
        skipped: SkippedUnits | None = None
        # Requeued tasks, and those of a whole queue, hold up no other; nor is there anything to
        # choose where all units are alike.
        passes = policy.losers is LoserPolicy.BLOCK and not whole_queue and not sizes.are_alike
        if passes and policy.head_of_line_us != 0:
            skipped = SkippedUnits(sizes, policy.head_of_line_us, gangs, account)
        limits_itself = account is not None and policy.limits.hold_permille is not None
        queue = AgentQueue(
            policy.losers,
            policy.attempts_max,
            policy.attempts_max_unplaced,
            gangs,
            whole_queue,
            skipped,
            account,
            # tasks that share a limit go in order of submission
            None if account is None or limits_itself else table.priority,
            limits_itself,
        )
    if policy.limits.jobs_max is not None:
        queue.limit_jobs(table.job, policy.limits.jobs_max)
    return queue


class OptimisticAgent(_native.OptimisticAgent, NativeSchedulerAgent):
    """Drives one scheduler: an Agent (parsync.core.participant).

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
        policy: OptimisticOptions,
        strategy: Strategy,
        sync: SyncPolicy,
        context: SyncContext,
    ) -> None:
        shared, options = environment.shared, environment.member.options
        capabilities = environment.member.capabilities
        checks_seqnum = policy.conflict_check is ConflictCheck.SEQUENCE_NUMBER
        first_turn = context.index * context.partitions // context.agents
        view = AgentView(environment, options.only_partitions, first_turn, checks_seqnum)
        quota = make_quota(environment, policy.limits)
        account = None if quota is None else quota.account
        queue = make_queue(policy, capabilities, shared.table, shared.catalog, account)
        log = self.take_parts(environment, view, queue)
        scheduler = self.scheduler
        self._demand: DemandExchange | None = None
        if Capability.SHARES_DEMAND in capabilities:
            self._demand = DemandExchange(environment, scheduler, context.gap_us)
        observes = observes_changes(capabilities)
        long_strategy = options.make_long_strategy()
        super().__init__(
            log.records,
            _settings(environment, policy, strategy, sync, context),
            view,
            queue,
            log,
            SortingOut(environment, log),
            RoundRankings(strategy, long_strategy, shared.table.task_class),
            sync,
            native_planner(environment, view, policy.quality)
            or ScheduledRounds(environment, view, policy.quality),
            TaskObserver(scheduler, observes, shared.table) if observes else None,
            quota,
            self._demand,
            view.preemptible,
        )

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        records = NativeSchedulerAgent.finish(self, now_us)
        return records + ([] if self._demand is None else self._demand.flush())


def _settings(
    environment: AgentEnvironment,
    policy: OptimisticOptions,
    strategy: Strategy,
    sync: SyncPolicy,
    context: SyncContext,
) -> SimpleNamespace:
    """OptimisticAgent::Settings."""
    shared, capabilities = environment.shared, environment.member.capabilities
    whole_queue = Capability.PLANS_WHOLE_QUEUE in capabilities
    longest_us = longest_round_us(strategy, context.gap_us, context.agents)
    # A sync at every attempt has to show the last attempt's outcome, so it waits for that.
    waits = Capability.WAITS_FOR_OUTCOME in capabilities or sync.at_every_attempt
    return SimpleNamespace(
        index=environment.index,
        sample_us=shared.sample_us,
        longest_us=None if whole_queue else longest_us,
        most_tasks=policy.round_tasks,
        cuts_at_sync=policy.cut_at_sync and not whole_queue,
        pipelines=policy.commit_pipelining and not waits,
        freed_at_once=policy.freed_at_once,
        checks_seqnum=policy.conflict_check is ConflictCheck.SEQUENCE_NUMBER,
        unit=policy.claim_unit,
        requeue_us=policy.requeue_us,
        min_retry_interval_us=policy.min_retry_interval_us,
        average_permille=policy.average_permille,
        # where all units are alike, none that waits behind another would fit
        records_holds=not UnitSizes(shared.table, shared.catalog).are_alike,
        job=shared.table.job,
    )
