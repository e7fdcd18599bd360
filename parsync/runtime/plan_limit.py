"""A limit on the wall time of a scheduler's calls, for runtimes whose only thread makes them.

A timer ticks about once a second. A tick that finds the same call under way as the ticks before it,
limit_s long, raises Overdue inside it: that interrupts Python code, sleeping and waiting. Counting
ticks, not time, spares a process that was stopped meanwhile (Ctrl-Z, a suspended machine).

C code that does not return to Python hears of no signal: the live runtime ends the process it runs
in (parsync.runtime.live.liveness), here it holds up the run.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from schedulers.checked import Overdue

PLAN_LIMIT_S = 60.0  # unless a run says otherwise
LONGEST_TICK_S = 1.0


@contextlib.contextmanager
def plan_limit(limit_s: float, call_under_way: Callable[[], int | None]) -> Iterator[None]:
    """Raise Overdue in a call of a scheduler, within the block, that takes longer than limit_s (to
    a quarter, at most a second, more).

    Takes SIGALRM. Only a process's main thread gets signals: elsewhere nothing is limited.

    Args:
        call_under_way: Returns the number of the call under way, another one for each; None while
            there is none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    tick_s = min(LONGEST_TICK_S, limit_s / 4)
    seen: int | None = None
    ticks = 0

    def tick(number: int, frame: FrameType | None) -> None:
        nonlocal seen, ticks
        call = call_under_way()
        ticks = ticks + 1 if call == seen else 0
        seen = call
        if call is not None and ticks * tick_s >= limit_s:
            raise Overdue(limit_s)

    handler_before = signal.signal(signal.SIGALRM, tick)
    timer_before = signal.setitimer(signal.ITIMER_REAL, tick_s, tick_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer_before)
        signal.signal(signal.SIGALRM, handler_before)
