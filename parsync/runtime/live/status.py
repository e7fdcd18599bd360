"""The line that shows people which actor it is, and what it is doing.

Ray asks an actor for its `repr` once, when it is made, and always shows that: it says who the
actor is. What it is doing is the answer of its method `status`, and the last line of its log, which
the dashboard's Actors page shows.
"""

from __future__ import annotations

STATUS_US = 2_000_000  # between two lines in an actor's log


class StatusLine:
    """An actor's name with its arm, and what is known of its state."""

    def __init__(self, name: str, arm: str) -> None:
        # one line, whatever the arm's name is: it goes into a process title
        self._status_line = f"{name} (arm {' '.join(arm.split())})"
        self._next_us = 0

    def __str__(self) -> str:
        return self._status_line

    def status(self, now_us: int, finished: bool, doing: str) -> str:
        """The status in one line.

        Args:
            now_us: Run time, negative before the run begins.
        """
        at = f"{now_us / 1e6:.1f} s into the run" if now_us >= 0 else "before the run"
        return f"{self._status_line}, {'finished' if finished else at}: {doing}"

    def log(self, now_us: int, status: str) -> None:
        """Print the status, unless the last line is fresh."""
        if now_us >= self._next_us:
            self._next_us = now_us + STATUS_US
            print(status, flush=True)
