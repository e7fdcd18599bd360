"""An agent's account of its quota: what its tasks hold and want, and what they may hold."""

from __future__ import annotations

from parsync.core import _native
from parsync.core.quota_events import QuotaReport
from parsync.core.quotas import TaskQuotas
from shared_state.tasks import TaskBatch


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
