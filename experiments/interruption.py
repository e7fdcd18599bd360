"""Ctrl-C that waits until work can stop without being torn, or that is not heard at all."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker


class Interruption:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.asked = False

    def check(self) -> None:
        """Raises KeyboardInterrupt if it was."""
        if self.asked:
            raise KeyboardInterrupt


@contextlib.contextmanager
def ctrl_c_deferred() -> Iterator[Interruption]:
    """Ctrl-C waits for check(), so that it tears no event and no file in two; pressed again it
    interrupts at once.

    Only a process's main thread gets signals, and a process may ignore them: there nothing changes.
    """
    interruption = Interruption()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def note(number: int, frame: object) -> None:
        if interruption.asked:
            raise KeyboardInterrupt
        interruption.asked = True

    signal.signal(signal.SIGINT, note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def ctrl_c_kept_from_children() -> Iterator[None]:
    """Ctrl-C waits for the end, and never reaches processes started meanwhile: who started them
    ends them."""
    with ctrl_c_deferred() as interruption:
        # which would let signals through again if it was started below
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # children inherit it
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    interruption.check()


@contextlib.contextmanager
def ctrl_c_ignored() -> Iterator[None]:
    """Ctrl-C changes nothing. Main thread only."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
