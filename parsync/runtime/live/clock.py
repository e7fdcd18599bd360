"""The run's clock: microseconds since an origin that every actor of a run shares, never going back
within an actor."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a loop needs of time; tests put a hand-driven one in its place."""

    def now_us(self) -> int: ...


class LiveClock:
    """Wall time is read once, then the monotonic clock carries on. Before begin() it shows
    BEFORE_US."""

    BEFORE_US = -1_000_000_000

    def __init__(self) -> None:
        self._shift_ns: int | None = None

    def begin(self, origin_ns: int) -> None:
        """Set the run's time 0, from which on times are run times.

        Args:
            origin_ns: The wall-clock time of the run's time 0, in ns since the Unix epoch; it may
                lie ahead.
        """
        self._shift_ns = time.time_ns() - time.monotonic_ns() - origin_ns

    def now_us(self) -> int:
        """The run time, negative before the run begins."""
        if self._shift_ns is None:
            return self.BEFORE_US
        return (time.monotonic_ns() + self._shift_ns) // 1000
