"""The commits of one agent: the transactions that the cell has not answered yet, and who learns of
the answers."""

from __future__ import annotations

from parsync.core.addresses import MASTER
from parsync.core.effects import Send
from parsync.core.events import CommitReply, CommitRequest
from parsync.core.queued_tasks import NO_TASKS, QueuedTasks
from parsync.core.quota_events import QuotaGrant
from parsync.metrics.agent_log import AgentLog
from parsync.protocols.optimistic.agent_quota import AgentQuota, NoQuota
from parsync.protocols.optimistic.agent_view import AgentView
from parsync.protocols.optimistic.options import AgentPolicy
from parsync.protocols.optimistic.pending_queue import PendingQueue
from parsync.protocols.optimistic.rounds import Round
from parsync.protocols.optimistic.strategies import DelayAverage
from parsync.protocols.optimistic.sync.schedule import SyncSchedule
from parsync.protocols.spec import AgentEnvironment
from parsync.protocols.task_observer import TaskObserver
from shared_state.transaction import ConflictCheck, Reason, is_conflict

# numpy compares with plain numbers three times as fast as with enums
_ACCEPTED, _DUPLICATE = int(Reason.ACCEPTED), int(Reason.DUPLICATE)


class Commits:
    """Sends the transactions of one agent, and passes the cell's answers on.

    Args:
        environment: The agent's.
        policy: How the agent behaves.
        view, queue, quota, observer, sync, log: The agent's; they learn of outcomes.

    Attributes:
        average: The average delay of first commits.
    """

    def __init__(
        self,
        environment: AgentEnvironment,
        policy: AgentPolicy,
        view: AgentView,
        queue: PendingQueue,
        quota: AgentQuota | NoQuota,
        observer: TaskObserver,
        sync: SyncSchedule,
        log: AgentLog,
    ) -> None:
        self.average = DelayAverage(policy.average_permille)
        self._agent = environment.index
        self._job = environment.shared.table.job
        self._partitioning = environment.shared.partitioning
        self._policy = policy
        self._checks_seqnum = policy.conflict_check is ConflictCheck.SEQUENCE_NUMBER
        self._view, self._queue, self._quota = view, queue, quota
        self._observer, self._sync, self._log = observer, sync, log
        # by transaction: those whose outcome is not known yet
        self._in_flight: dict[int, Round] = {}
        self._transactions = 0

    @property
    def claims(self) -> int:
        """The claims whose outcome is not known yet."""
        plans = (round_.plan for round_ in self._in_flight.values())
        return sum(len(plan.task) for plan in plans if plan is not None)

    def send(self, round_: Round) -> Send:
        """Commit what a round plans."""
        self._transactions += 1
        transaction = round_.transaction(self._agent, self._transactions, self._policy, self._job)
        self._in_flight[self._transactions] = round_
        return Send(MASTER, CommitRequest(self._agent, transaction))

    def on_grant(self, grant: QuotaGrant) -> list[Send]:
        """Keep a grant of quota, and end tasks if some are to be given back. The answer to that
        transaction has nothing to settle."""
        reclaim = self._quota.on_grant(grant, self._transactions + 1)
        if reclaim is None:
            return []
        self._transactions += 1
        return [Send(MASTER, CommitRequest(self._agent, reclaim))]

    def on_reply(self, now_us: int, event: CommitReply) -> tuple[Round, QueuedTasks, int] | None:
        """Take in the cell's answer.

        Returns:
            The round that was committed, the tasks whose claims were rejected, and the number of
            those that wait no more; None for an answer that was repeated after a restart, or to a
            transaction without claims.
        """
        round_ = self._in_flight.pop(event.result.sequence, None)
        if round_ is None or round_.plan is None:
            return None
        result, plan = event.result, round_.plan
        self._view.cell.settle(round_.ticket, result.reason, result.version)
        # While they were under way, claims with sequence numbers kept their machines closed.
        self._view.changed = self._view.changed or self._checks_seqnum
        work = self._queue.claimed_tasks(round_)
        claimed = QueuedTasks(work.task, work.attempts + 1, work.first)
        assert round_.synced_us is not None, "a round is planned before it is committed"
        claims, first_commits, delay_sum_us = self._log.commit(
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
        if self._sync.policy.wants_feedback:
            conflict = is_conflict(result.reason)
            self._sync.on_committed(self._partitioning.of(plan.machine), conflict)
        count = claims[_ACCEPTED]
        self.average.add(delay_sum_us, first_commits, round_.batch_size)
        self._quota.on_outcome(plan, result)
        rejected = self._observer.on_outcome(now_us, plan, result, count)
        losers = NO_TASKS if rejected is None else claimed.take(rejected)
        return round_, losers, count + claims[_DUPLICATE]
