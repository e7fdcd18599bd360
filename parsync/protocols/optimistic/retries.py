"""When an agent without room decides again, although nothing has shown it a change of the cell."""

from __future__ import annotations

from parsync.core.effects import Effect, SetTimer
from parsync.protocols.optimistic.events import RetryDue
from parsync.protocols.optimistic.sync.policy import SyncPolicy


class RetryTimer:
    """The timer of one agent for its next attempt. It counts unless a round begins before it.

    Args:
        sync: The agent's sync policy, which says how long to wait where no sync would tell of room.

    Attributes:
        wanted_us: When the scheduler wants to be called again; None if it does not say.
    """

    def __init__(self, sync: SyncPolicy) -> None:
        self._sync = sync
        self._last = (0, 0)  # the round and the time of the last timer that was set
        self.wanted_us: int | None = None

    def is_due(self, now_us: int) -> bool:
        """Whether the scheduler wants to be called by now."""
        return self.wanted_us is not None and self.wanted_us <= now_us

    def after(self, now_us: int, rounds: int) -> list[Effect]:
        """Set the timer for an agent that finds no room: the policy's time, or the scheduler's if
        that is earlier. Nothing if there is neither.

        Args:
            now_us: The time of the attempt that found none.
            rounds: The number of the agent's last round.
        """
        times_us = [] if self._sync.retry_us is None else [now_us + self._sync.retry_us]
        if self.wanted_us is not None:
            times_us.append(max(now_us, self.wanted_us))
        return self.at(min(times_us), rounds) if times_us else []

    def at(self, at_us: int, rounds: int) -> list[Effect]:
        """Set the timer to a time, unless it is set to that already."""
        if self._last == (rounds, at_us):
            return []
        self._last = (rounds, at_us)
        return [SetTimer(at_us, RetryDue(rounds))]
