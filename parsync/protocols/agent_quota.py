"""An agent's part in quotas: its account, its answers to the coordinator, what it gives back; and
the account of a scheduler that limits itself."""

from __future__ import annotations

import numpy as np

from parsync.core import _native
from parsync.core.addresses import COORDINATOR
from parsync.core.effects import Effect, Send
from parsync.core.events import QuotaGrant, QuotaReport, TasksAdopted, TasksEnded
from parsync.core.quotas import SchedulerLimits, TaskQuotas
from parsync.protocols.spec import AgentEnvironment
from schedulers.interface import Plan
from schedulers.running_tasks import OwnAllocations
from shared_state.tasks import Int32, Int64, TaskBatch
from shared_state.transaction import CommitResult, Reason, Transaction

_ACCEPTED, _DUPLICATE = int(Reason.ACCEPTED), int(Reason.DUPLICATE)


class QuotaAccount(_native.QuotaAccount):
    """What the tasks of one agent hold and wait for, by quota group and resource.

    A task waits from its submission on. It holds its request from when the agent begins to decide
    on it, so that what is being decided on or committed counts, until it ends or its claim fails.
    Nothing may be held before the first grant.

    The room that ended tasks leave is used from the next look on, which the agent takes when it
    synchronises or gets a grant. At once, it would be a decision round for nearly every task.

    Args:
        quotas: The quota group of each task.
        table: Every task (row = id).

    Attributes:
        held, waiting: int64[G, R]; they change with the account.
        granted: int64[G, R], up to which tasks may hold resources.
    """

    def __init__(self, quotas: TaskQuotas, table: TaskBatch) -> None:
        resources = table.request.shape[1]
        super().__init__(quotas.of_task, quotas.groups, table.request, resources, table.gang)

    def report(self, agent: int, number: int) -> QuotaReport:
        """The answer to the request of a round."""
        return QuotaReport(agent, number, self.held.copy(), self.waiting.copy())


class Reclaimer:
    """Which of its running tasks an agent ends to give back what its quota groups hold above their
    grants.

    Args:
        quotas: The quota group of each task.
        table: Every task (row = id).
    """

    def __init__(self, quotas: TaskQuotas, table: TaskBatch) -> None:
        self._quotas = quotas
        self._table = table
        self._own = OwnAllocations()

    def on_started(self, allocation: Int64, task: Int64, machine: Int32) -> None:
        """Tasks of the agent run, int64[n], int64[n] and int32[n]."""
        self._own.add(allocation, task, machine)

    def on_ended(self, allocation: Int64) -> None:
        """Tasks of the agent run no more."""
        self._own.remove(allocation)

    def transaction(self, agent: int, sequence: int, amount: Int64) -> Transaction | None:
        """What the agent asks of the cell to give amounts back; None if it runs nothing that is to
        end.

        Of each group the tasks of lowest priority end first, and among these the ones that were
        submitted last, until they hold the amount in each resource. Tasks that hold nothing of
        what has to be given back run on.

        Args:
            agent: Its address.
            sequence: The number of the transaction.
            amount: int64[G, R], by quota group and resource.
        """
        victims = self._victims(amount)
        if not len(victims):
            return None
        none64, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
        request = np.zeros((0, amount.shape[1]), np.int64)
        return Transaction(agent, sequence, none64, none32, request, none64, evict=victims)

    def _victims(self, amount: Int64) -> Int64:
        """The allocations to end, int64[n]."""
        allocation, task = self._own.everything()
        table, group = self._table, self._quotas.of_task[task]
        chosen: list[Int64] = [np.zeros(0, np.int64)]
        for present in np.flatnonzero(amount.any(axis=1)).tolist():
            holds = table.request[task][:, amount[present] > 0].any(axis=1)
            rows = np.flatnonzero((group == present) & holds)
            of_rows = task[rows]
            order = np.lexsort((-of_rows, -table.submit_us[of_rows], table.priority[of_rows]))
            freed = np.cumsum(table.request[of_rows[order]], axis=0)
            enough = (freed >= amount[present]).all(axis=1)
            chosen.append(allocation[rows[order[: np.count_nonzero(~enough) + 1]]])
        return np.concatenate(chosen)


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
