"""How far many runs are, and how long the others will take."""

from __future__ import annotations

import time

from experiments.processors import processors


class Progress:
    """Counts runs that are done, and estimates the time left from the pace of those before.

    The first ones do not count for the pace: their processes had to start.

    Args:
        total: All runs.
        at_once: The first of them, which are done already and take no time.
    """

    def __init__(self, total: int, at_once: int = 0) -> None:
        self._total = total
        self._slow = at_once + processors()
        self._done = 0
        self._begun_s = 0.0

    def step(self) -> str:
        """Count one more; the state in words, such as "3 of 8 runs, about 20 s left"."""
        self._done += 1
        done = f"{self._done} of {self._total} runs"
        if self._done <= self._slow:
            self._begun_s = time.monotonic()
            return done
        pace_s = (time.monotonic() - self._begun_s) / (self._done - self._slow)
        return f"{done}, about {time_text(pace_s * (self._total - self._done))} left"


def time_text(seconds: float) -> str:
    """A time as people say it, such as "40 s", "12 minutes" or "3.5 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
