"""Which queue an agent has."""

from __future__ import annotations

from collections.abc import Set

from parsync.core.head_of_line import SkippedUnits, UnitSizes
from parsync.protocols.agent_quota import QuotaAccount
from parsync.protocols.optimistic.options import AgentPolicy
from parsync.protocols.pending_queue import (
    AgentQueue,
    LoserPolicy,
    SchedulerQueue,
)
from schedulers.capability import Capability
from shared_state.tasks import NO_GANG, PreferenceCatalog, TaskBatch


def make_queue(
    policy: AgentPolicy,
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
    queue = _make(policy, capabilities, table, catalog, account)
    if policy.limits.jobs_max is not None:
        queue.limit_jobs(table.job, policy.limits.jobs_max)
    return queue


def _make(
    policy: AgentPolicy,
    capabilities: Set[Capability],
    table: TaskBatch,
    catalog: PreferenceCatalog,
    account: QuotaAccount | None,
) -> AgentQueue | SchedulerQueue:
    """The queue of an agent that admits all jobs."""
    whole_queue = Capability.PLANS_WHOLE_QUEUE in capabilities
    gangs = table.gang if (table.gang != NO_GANG).any() else None
    if Capability.KEEPS_PENDING in capabilities:
        assert account is None, "check_protocols() refuses such a scheduler under quotas"
        return SchedulerQueue(whole_queue, gangs)
    chances = policy.losers, policy.attempts_max, policy.attempts_max_unplaced
    skipped: SkippedUnits | None = None
    sizes = UnitSizes(table, catalog)
    # Requeued tasks, and those of a whole queue, hold up no other; nor is there anything to choose
    # where all units are alike.
    passes = policy.losers is LoserPolicy.BLOCK and not whole_queue and not sizes.are_alike
    if passes and policy.head_of_line_us != 0:
        skipped = SkippedUnits(sizes, policy.head_of_line_us, gangs, account)
    if account is None:
        return AgentQueue(*chances, gangs, whole_queue, skipped)
    limits_itself = policy.limits.hold_permille is not None
    # tasks that share a limit go in order of submission
    priority = None if limits_itself else table.priority
    return AgentQueue(*chances, gangs, whole_queue, skipped, account, priority, limits_itself)
