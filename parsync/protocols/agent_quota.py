"""An agent's part in quotas: its account, its answers to the coordinator, what it gives back; and
the account of a scheduler that limits itself."""

from __future__ import annotations

import numpy as np

from parsync.core.addresses import COORDINATOR
from parsync.core.effects import Effect, Send
from parsync.core.events import TasksAdopted, TasksEnded
from parsync.core.limits import SchedulerLimits
from parsync.core.quota_account import QuotaAccount
from parsync.core.quota_events import QuotaGrant
from parsync.core.quota_reclaim import Reclaimer
from parsync.core.quotas import TaskQuotas
from parsync.protocols.spec import AgentEnvironment
from schedulers.interface import Plan
from shared_state.transaction import CommitResult, Reason, Transaction

_ACCEPTED, _DUPLICATE = int(Reason.ACCEPTED), int(Reason.DUPLICATE)


class AgentLimit:
    """The limit of one scheduler on the resources that its tasks hold: a grant that never changes,
    for all of its tasks.

    Args:
        environment: The agent's.
        limits: The scheduler's.
    """

    def __init__(self, environment: AgentEnvironment, limits: SchedulerLimits) -> None:
        shared = environment.shared
        one_group = TaskQuotas(1, np.zeros(len(shared.table), np.int32))
        self.account = QuotaAccount(one_group, shared.table)
        self.account.granted = limits.amount(shared.cell)[None]

    def on_adopted(self, event: TasksAdopted) -> None:
        """Tasks of the agent run already."""
        self.account.adopt(event.task)

    def on_outcome(self, claims: Plan | Transaction, result: CommitResult) -> None:
        """The cell answered a transaction."""
        self.account.end(claims.task[result.reason == _DUPLICATE])

    def on_ended(self, event: TasksEnded) -> None:
        """Tasks of the agent ended."""
        self.account.end(event.task[event.allocation >= 0])

    def on_synced(self) -> None:
        """The agent's view was refreshed."""
        self.account.look()

    def on_request(self, number: int) -> list[Effect]:
        """Refuse a request: the coordinator has nothing to ask."""
        raise TypeError("an agent without quotas cannot handle QuotaRequest")

    def on_grant(self, grant: QuotaGrant, sequence: int) -> Transaction | None:
        """Refuse a grant."""
        raise TypeError("an agent without quotas cannot handle QuotaGrant")


class AgentQuota:
    """The quota of one agent.

    Args:
        environment: The agent's.

    Attributes:
        account: What its tasks hold, want and may hold. Its queue enters what becomes of tasks
            until they are committed.
    """

    def __init__(self, environment: AgentEnvironment) -> None:
        shared = environment.shared
        assert shared.quotas is not None, "make_quota() sees to that"
        self._agent = environment.index
        self.account = QuotaAccount(shared.quotas, shared.table)
        self._reclaimer = Reclaimer(shared.quotas, shared.table) if shared.quotas.reclaims else None

    def on_adopted(self, event: TasksAdopted) -> None:
        """Tasks of the agent run already."""
        self.account.adopt(event.task)
        if self._reclaimer is not None:
            self._reclaimer.on_started(event.allocation, event.task, event.machine)

    def on_outcome(self, claims: Plan | Transaction, result: CommitResult) -> None:
        """The cell answered a transaction. Losers are the queue's to enter; tasks that ran
        already hold nothing besides."""
        self.account.end(claims.task[result.reason == _DUPLICATE])
        if self._reclaimer is not None:
            won = result.reason == _ACCEPTED
            started = claims.task[won], claims.machine[won]
            self._reclaimer.on_started(result.allocation[won], *started)

    def on_ended(self, event: TasksEnded) -> None:
        """Tasks of the agent ended."""
        # of tasks without an allocation a restarted agent learns only that they have to run again
        self.account.end(event.task[event.allocation >= 0])
        if self._reclaimer is not None:
            self._reclaimer.on_ended(event.allocation)

    def on_synced(self) -> None:
        """The agent's view was refreshed."""
        self.account.look()

    def on_request(self, number: int) -> list[Effect]:
        """Tell the coordinator what tasks hold and want."""
        return [Send(COORDINATOR, self.account.report(self._agent, number))]

    def on_grant(self, grant: QuotaGrant, sequence: int) -> Transaction | None:
        """Keep a grant.

        Args:
            grant: The grant.
            sequence: The number of the agent's next transaction.

        Returns:
            A transaction without claims that ends running tasks, if some are to be given back.
        """
        self.account.granted = grant.amount
        self.account.look()
        if self._reclaimer is None or not np.any(grant.reclaim):
            return None
        return self._reclaimer.transaction(self._agent, sequence, grant.reclaim)


def make_quota(
    environment: AgentEnvironment, limits: SchedulerLimits
) -> AgentQuota | AgentLimit | None:
    """The quota of an agent, or what stands for it where its scheduler limits itself: an arm has
    one or the other, or none."""
    if environment.shared.quotas is not None:
        return AgentQuota(environment)
    return None if limits.hold_permille is None else AgentLimit(environment, limits)
