"""Which queue an agent has."""

from __future__ import annotations

from collections.abc import Set

from parsync.core.head_of_line import PassedOver, UnitSizes
from parsync.core.quota_account import QuotaAccount
from parsync.protocols.optimistic.admission import AdmittingQueue
from parsync.protocols.optimistic.choices import LoserPolicy
from parsync.protocols.optimistic.limit_queue import LimitQueue
from parsync.protocols.optimistic.options import AgentPolicy
from parsync.protocols.optimistic.pending_queue import AgentQueue, PendingQueue, SchedulerQueue
from parsync.protocols.optimistic.quota_queue import QuotaQueue
from schedulers.capability import Capability
from shared_state.tasks import NO_GANG, PreferenceCatalog, TaskBatch


def make_queue(
    policy: AgentPolicy,
    capabilities: Set[Capability],
    table: TaskBatch,
    catalog: PreferenceCatalog,
    account: QuotaAccount | None = None,
) -> PendingQueue:
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
    jobs_max = policy.limits.jobs_max
    return queue if jobs_max is None else AdmittingQueue(queue, table.job, jobs_max)


def _make(
    policy: AgentPolicy,
    capabilities: Set[Capability],
    table: TaskBatch,
    catalog: PreferenceCatalog,
    account: QuotaAccount | None,
) -> PendingQueue:
    """The queue of an agent that admits all jobs."""
    whole_queue = Capability.PLANS_WHOLE_QUEUE in capabilities
    gangs = table.gang if (table.gang != NO_GANG).any() else None
    if Capability.KEEPS_PENDING in capabilities:
        assert account is None, "check_protocols() refuses such a scheduler under quotas"
        return SchedulerQueue(whole_queue, gangs)
    chances = policy.losers, policy.attempts_max, policy.attempts_max_unplaced
    passed: PassedOver | None = None
    sizes = UnitSizes(table, catalog)
    # Requeued tasks, and those of a whole queue, hold up no other; nor is there anything to choose
    # where all units are alike.
    passes = policy.losers is LoserPolicy.BLOCK and not whole_queue and not sizes.are_alike
    if passes and policy.head_of_line_us != 0:
        may_offer = None if account is None else account.within
        passed = PassedOver(sizes, policy.head_of_line_us, gangs, may_offer)
    if account is not None and policy.limits.hold_permille is not None:
        return LimitQueue(account, len(table), *chances, gangs, whole_queue, passed)
    if account is not None:
        return QuotaQueue(account, table.priority, *chances, gangs, whole_queue, passed)
    return AgentQueue(*chances, gangs, whole_queue, passed)
