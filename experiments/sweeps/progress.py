"""How far many runs are, and how long the others will take."""

from __future__ import annotations

import time


class Progress:
    """Counts runs that are done, and estimates the time left from those before."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._begun_s = time.monotonic()

    def step(self) -> str:
        """Count one more; the state in words, such as "3 of 8 runs, about 20 s left"."""
        self._done += 1
        elapsed_s = time.monotonic() - self._begun_s
        left_s = elapsed_s * (self._total - self._done) / self._done
        return f"{self._done} of {self._total} runs, about {time_text(left_s)} left"


def time_text(seconds: float) -> str:
    """A time as people say it, such as "40 s", "12 minutes" or "3.5 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
