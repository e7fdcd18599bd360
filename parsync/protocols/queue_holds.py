"""Which unit holds the queue of an agent, since when, and how many tasks wait behind it."""

from __future__ import annotations

import numpy as np

from parsync.metrics.agent_log import AgentLog
from shared_state.tasks import Int64


class QueueHolds:
    """Records the holds of one agent's queue that keep tasks waiting.

    Args:
        log: The agent's.
    """

    def __init__(self, log: AgentLog) -> None:
        self._log = log
        self._holder = np.zeros(0, np.int64)
        self._from_us = 0
        self._behind = 0

    def see(self, now_us: int, holder: Int64, queued: int) -> None:
        """A round is decided.

        Args:
            now_us: The agent's time.
            holder: The tasks of the unit that holds the queue, int64[n]; none if no unit does.
            queued: The tasks that wait, those included.
        """
        if len(self._holder) and not self._goes_on(holder):
            self.end(now_us, queued)
        if not len(holder):
            return
        if not len(self._holder):
            self._from_us, self._behind = now_us, 0
        self._holder = holder
        self._behind = max(self._behind, queued - len(holder))

    def _goes_on(self, holder: Int64) -> bool:
        """Whether these tasks, int64[n], are of the unit that held the queue before."""
        if not len(holder):
            return False
        return bool(holder[0] == self._holder[0] or np.isin(holder, self._holder).any())

    def end(self, now_us: int, queued: int) -> None:
        """The hold is over, with so many tasks that wait; or the run is."""
        behind = max(self._behind, queued)
        if len(self._holder) and behind > 0:
            self._log.hold(int(self._holder[0]), self._from_us, now_us, behind)
        self._holder, self._behind = self._holder[:0], 0
