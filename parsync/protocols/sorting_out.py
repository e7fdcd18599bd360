"""Remove tasks that can never be placed when an agent receives them, so that they hold up no
others."""

from __future__ import annotations

import numpy as np

from parsync.core.queued_tasks import QueuedTasks
from parsync.metrics.agent_log import AgentLog
from parsync.protocols.spec import AgentEnvironment
from schedulers.unplaceable import Unplaceable
from shared_state.tasks import Int64


class SortingOut:
    """Removes the units that one agent can never place, and records them.

    Args:
        environment: The agent's.
        log: The agent's.
    """

    def __init__(self, environment: AgentEnvironment, log: AgentLog) -> None:
        self._units = environment.unplaceable
        self._log = log

    def placeable(self, now_us: int, work: QueuedTasks) -> QueuedTasks:
        """Those of these tasks, submitted together, that are not recorded as unplaceable."""
        never = None if self._units is None else self._units.among(work.task, now_us)
        if never is None:
            return work
        self.record(now_us, work.task[never])
        return work.take(~never)

    def record(self, now_us: int, task: Int64) -> None:
        """Record tasks, int64[n], that can never be placed."""
        reason = Unplaceable.LARGER_THAN_EVERY_MACHINE
        self._log.unplaceable(
            now_us,
            task,
            np.full(len(task), reason, np.int8)
            if self._units is None
            else self._units.reason[task],
        )
