"""Whether a run kept its quotas: an audit of what the coordinator granted and what agents claimed.

It keeps its own accounts, from messages alone. In every run these rules hold exactly:

- In each round of the coordinator no quota group's limit exceeds the group's maximum, the limits of
  all groups sum to at most the capacity of the machines that are up, and what the agents are
  granted of a group sums to at most its limit.
- No agent reports that its tasks hold less than they do.
- After a commit request an agent's tasks hold, of each group that it claims for, at most what the
  agent was granted when the round of these claims began. Claims that the cell has not answered
  count as held.

What the tasks of a group hold on the cell may be above its limit for a while all the same, because
grants rest on reports that are a message old (docs/quotas.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from parsync.core.effects import Effect, Send, StartDecision
from parsync.core.event import Event
from parsync.core.events import CommitReply, CommitRequest, Started, TasksAdopted, TasksEnded
from parsync.core.quota_events import QuotaGrant, QuotaReport, QuotaShares
from parsync.core.quotas import ENTIRE, Capacity, QuotaSpec, TaskQuotas
from shared_state.invariants import InvariantViolation
from shared_state.tasks import Int64, TaskBatch
from shared_state.transaction import Reason

_ACCEPTED = int(Reason.ACCEPTED)
_ALL_GROUPS = ("all quota groups",)


class QuotaAudit:
    """Call handled() for everything that the coordinator and the agents handle, each of them in the
    order in which it did.

    Args:
        spec: The quota groups.
        quotas: The group of each task.
        capacity: Of the cell.
        table: Every task (row = id).
        dimensions: The names of the R resources.
        agent_name: The name of an agent by address, for messages.

    Attributes:
        rounds: Of the coordinator, that were settled.
        commits: Requests of agents that were checked.
    """

    def __init__(
        self,
        spec: QuotaSpec,
        quotas: TaskQuotas,
        capacity: Capacity,
        table: TaskBatch,
        dimensions: Sequence[str],
        agent_name: Callable[[int], str],
    ) -> None:
        self._names = [f"quota group '{group.name}'" for group in spec.groups]
        self._dimensions = dimensions
        self._agent_name = agent_name
        self._capacity = capacity
        permille = np.array([group.maximum_permille for group in spec.groups], np.int64)
        self._maximum = permille[:, None] * capacity.amount.max(axis=0) // ENTIRE
        self._agents: defaultdict[int, _AgentAccount] = defaultdict(
            lambda: _AgentAccount(quotas, table)
        )
        self.rounds = self.commits = 0

    def handled(self, address: int, now_us: int, event: Event, effects: Sequence[Effect]) -> None:
        """Check what came of an event.

        Args:
            address: Of the participant that handled it.
            now_us: When.
            event: The event.
            effects: Its effects, in order.

        Raises:
            InvariantViolation: A quota was not kept. It names who, when, the group, the amounts.
        """
        sent = [effect.event for effect in effects if isinstance(effect, Send)]
        shares = [event for event in sent if isinstance(event, QuotaShares)]
        if shares:
            grants = [event.amount for event in sent if isinstance(event, QuotaGrant)]
            self._check_round(now_us, shares[0].limit, sum(grants, np.zeros_like(shares[0].limit)))
        if address >= 0:
            self._agent_handled(address, now_us, event, effects)

    def _check_round(self, now_us: int, limit: Int64, granted: Int64) -> None:
        who = f"coordinator at {now_us} us"
        self._require(limit, self._maximum, f"{who}: the limit of", "its maximum")
        self._require(granted, limit, f"{who}: all grants of", "its limit")
        capacity, total = self._capacity.at(now_us)[None], limit.sum(axis=0)[None]
        self._require(total, capacity, f"{who}: the limits of", "the capacity", _ALL_GROUPS)
        self.rounds += 1

    def _agent_handled(
        self, agent: int, now_us: int, event: Event, effects: Sequence[Effect]
    ) -> None:
        if isinstance(event, Started):
            self._agents.pop(agent, None)  # in a new process it learns anew what its tasks hold
        account = self._agents[agent]
        account.on_event(event)
        who = f"scheduler '{self._agent_name(agent)}' at {now_us} us"
        for effect in effects:
            if isinstance(effect, StartDecision):
                account.at_round_begin = account.granted
            elif not isinstance(effect, Send):
                continue
            elif isinstance(effect.event, QuotaReport):
                held = effect.event.held
                self._require(account.held, held, f"{who}: what it holds of", "what it reports")
            elif isinstance(effect.event, CommitRequest):
                claimed_for = account.claim(effect.event)
                most = account.at_round_begin
                if most is not None:
                    most = np.where(claimed_for[:, None], most, account.held)
                    what = f"{who}: what it holds and claims of"
                    self._require(account.held, most, what, "its grant as the round began")
                    self.commits += 1

    def _require(
        self,
        amount: Int64,
        most: Int64,
        what: str,
        name: str,
        groups: Sequence[str] | None = None,
    ) -> None:
        """Raise InvariantViolation unless each amount, int64[G, R], is at most its limit."""
        over = np.argwhere(amount > most)
        if len(over):
            group, resource = over[0].tolist()
            unit = self._dimensions[resource]
            raise InvariantViolation(
                f"{what} {(groups or self._names)[group]}: {amount[group, resource]:,} {unit}, "
                f"expected at most {most[group, resource]:,} {unit}, {name}"
            )


class _AgentAccount:
    """What the tasks of one agent hold, and what it was granted.

    Attributes:
        held: int64[G, R], from the request to commit a claim until that fails or the task ends.
        granted: int64[G, R], its last grant.
        at_round_begin: int64[G, R], the grant as its last decision round began; None before that.
            Agents that drive no scheduler have no rounds.
    """

    def __init__(self, quotas: TaskQuotas, table: TaskBatch) -> None:
        self._quotas = quotas
        self._request = table.request
        self.held = self._amount(np.zeros(0, np.int64))
        self.granted = self._amount(np.zeros(0, np.int64))
        self.at_round_begin: Int64 | None = None
        self._claimed: dict[int, Int64] = {}  # tasks by transaction that was not answered yet

    def on_event(self, event: Event) -> None:
        """Take in what the agent learns."""
        match event:
            case QuotaGrant():
                self.granted = event.amount
            case TasksAdopted():
                self.held += self._amount(event.task)
            case TasksEnded():
                # of a task without an allocation a new process learns only that it has to run again
                self.held -= self._amount(event.task[event.allocation >= 0])
            case CommitReply(result=result):
                task = self._claimed.pop(result.sequence, None)
                if task is not None:
                    self.held -= self._amount(task[result.reason != _ACCEPTED])

    def claim(self, request: CommitRequest) -> NDArray[np.bool_]:
        """Enter the claims of a request. Which groups they are of, bool[G]."""
        transaction = request.transaction
        claimed = self._amount(transaction.task)
        self.held += claimed
        self._claimed[transaction.sequence] = transaction.task
        return np.asarray(claimed.any(axis=1))

    def _amount(self, task: Int64) -> Int64:
        return self._quotas.held(task, self._request[task])
