"""Whether schedulers kept the limits that they set themselves: an audit of what agents claimed.

It keeps its own accounts, from messages alone. After each request to commit claims these rules
hold:

- The tasks of the agent hold at most its limit of resources. Claims that the cell has not answered
  count as held.
- Tasks of at most `jobs_max` jobs hold resources, or of as many as ran when the agent began. (A job
  is admitted for longer than its tasks hold anything, so an agent may admit fewer.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import CommitReply, CommitRequest, Started, TasksAdopted, TasksEnded
from parsync.core.limits import SchedulerLimits
from shared_state.invariants import InvariantViolation
from shared_state.tasks import CellSpec, Int64, TaskBatch
from shared_state.transaction import Reason

_ACCEPTED = int(Reason.ACCEPTED)


class LimitAudit:
    """Call handled() for everything that the agents handle, each of them in the order in which it
    did.

    Args:
        limits: Of each agent that has any, by address.
        cell: The cell.
        table: Every task (row = id).
        agent_name: The name of an agent by address, for messages.

    Attributes:
        commits: Requests of agents that were checked.
    """

    def __init__(
        self,
        limits: Mapping[int, SchedulerLimits],
        cell: CellSpec,
        table: TaskBatch,
        agent_name: Callable[[int], str],
    ) -> None:
        self._limits, self._cell, self._table = limits, cell, table
        self._agent_name = agent_name
        self._accounts = {agent: _Account(table) for agent in limits}
        self.commits = 0

    def handled(self, address: int, now_us: int, event: Event, effects: Sequence[Effect]) -> None:
        """Check what came of an event.

        Args:
            address: Of the participant that handled it.
            now_us: When.
            event: The event.
            effects: Its effects, in order.

        Raises:
            InvariantViolation: A limit was not kept. It names who, when, and the amounts.
        """
        limits = self._limits.get(address)
        if limits is None:
            return
        if isinstance(event, Started):
            self._accounts[address] = _Account(self._table)
        account = self._accounts[address]
        account.on_event(event)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.event, CommitRequest):
                account.claim(effect.event)
                if len(effect.event.transaction.task):
                    who = f"scheduler '{self._agent_name(address)}' at {now_us} us"
                    self._check(who, limits, account)
                    self.commits += 1

    def _check(self, who: str, limits: SchedulerLimits, account: _Account) -> None:
        most = limits.amount(self._cell)
        for unit, held, allowed in zip(
            self._cell.dimensions, account.held.tolist(), most.tolist(), strict=True
        ):
            if limits.hold_permille is not None and held > allowed:
                raise InvariantViolation(
                    f"{who}: holds and claims {held:,} {unit}, expected at most "
                    f"{allowed:,} {unit}, its own limit"
                )
        if limits.jobs_max is not None and len(account.tasks_of) > max(
            limits.jobs_max, account.jobs_adopted
        ):
            raise InvariantViolation(
                f"{who}: tasks of {len(account.tasks_of)} jobs hold resources, expected at most "
                f"{limits.jobs_max} jobs, its own limit"
            )


class _Account:
    """What the tasks of one agent hold, from the request to commit a claim until that fails or the
    task ends.

    Attributes:
        held: int64[R].
        tasks_of: By job, how many of its tasks hold something.
        jobs_adopted: Of how many jobs tasks ran when the agent began.
    """

    def __init__(self, table: TaskBatch) -> None:
        self._table = table
        self.held: Int64 = np.zeros(table.request.shape[1], np.int64)
        self.tasks_of: dict[int, int] = {}
        self.jobs_adopted = 0
        self._claimed: dict[int, Int64] = {}  # tasks by transaction that was not answered yet

    def on_event(self, event: Event) -> None:
        """Take in what the agent learns."""
        match event:
            case TasksAdopted():
                self._count(event.task, +1)
                self.jobs_adopted = len(self.tasks_of)
            case TasksEnded():
                # of a task without an allocation a new process learns only that it has to run again
                self._count(event.task[event.allocation >= 0], -1)
            case CommitReply(result=result):
                task = self._claimed.pop(result.sequence, None)
                if task is not None:
                    self._count(task[result.reason != _ACCEPTED], -1)

    def claim(self, request: CommitRequest) -> None:
        """Enter the claims of a request."""
        self._claimed[request.transaction.sequence] = request.transaction.task
        self._count(request.transaction.task, +1)

    def _count(self, task: Int64, sign: int) -> None:
        self.held += sign * self._table.request[task].sum(axis=0)
        jobs, tasks = np.unique(self._table.job[task], return_counts=True)
        for job, number in zip(jobs.tolist(), tasks.tolist(), strict=True):
            left = self.tasks_of.get(job, 0) + sign * number
            if left:
                self.tasks_of[job] = left
            else:
                self.tasks_of.pop(job, None)
