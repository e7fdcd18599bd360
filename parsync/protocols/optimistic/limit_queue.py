"""The queue of an agent whose scheduler limits the resources that its tasks hold (Omega section
3.4)."""

from __future__ import annotations

import numpy as np

from parsync.core.head_of_line import PassedOver
from parsync.core.quota_account import QuotaAccount
from parsync.protocols.optimistic.choices import LoserPolicy
from parsync.protocols.optimistic.quota_queue import QuotaQueue
from shared_state.tasks import Int64


class LimitQueue(QuotaQueue):
    """A QuotaQueue with all tasks in one group, in order of submission. Its limit does not change,
    so what is held back waits for own tasks to end.

    Args:
        account: Of the agent; one group.
        tasks: How many tasks there are.
        losers, attempts_max, attempts_max_unplaced, gang, whole_queue, passed: As for AgentQueue.
    """

    def __init__(
        self,
        account: QuotaAccount,
        tasks: int,
        losers: LoserPolicy,
        attempts_max: int,
        attempts_max_unplaced: int,
        gang: Int64 | None = None,
        whole_queue: bool = False,
        passed: PassedOver | None = None,
    ) -> None:
        alike = np.zeros(tasks, np.int32)
        chances = losers, attempts_max, attempts_max_unplaced
        super().__init__(account, alike, *chances, gang, whole_queue, passed)

    @property
    def has_waiting(self) -> bool:
        return len(self._current) > 0 or any(self._lines) or super().has_waiting

    def has_next(self, now_us: int, view_changed: bool) -> bool:
        if view_changed:
            self._account.look()
        return super().has_next(now_us, view_changed)
