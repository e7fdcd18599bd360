"""The thread that draws a run's reports: while processes run arms, this one has only to wait for
them, and drawing takes seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

POLL_S = 0.1  # for a stop signal

T = TypeVar("T")


class Stopped(Exception):
    """What is drawn is no longer wanted."""


class DrawingThread:
    """Draws one thing after the other. Matplotlib draws in one thread at a time, so nobody else
    draws before wait() has returned.

    It is a daemon: a command that has to end at once does not wait for it.
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._begun: list[Future[Any]] = []
        self._stopped = threading.Event()

    def begin(self, draw: Callable[[], T]) -> Future[T]:
        """Draw when all that was begun before is done."""
        if not self._begun:
            threading.Thread(target=self._run, name="drawing", daemon=True).start()
        done: Future[T] = Future()
        self._begun.append(done)
        self._waiting.put((done, draw))
        return done

    def check(self) -> None:
        """Raise Stopped after stop(): what is drawn may call it from time to time."""
        if self._stopped.is_set():
            raise Stopped

    def stop(self) -> None:
        """Draw nothing more; what is under way may end."""
        self._stopped.set()

    def wait(self, check: Callable[[], None]) -> None:
        """Wait until nothing is being drawn. check is called several times a second, and what it
        raises ends the wait."""
        while wait(self._begun, POLL_S).not_done:
            check()

    def _run(self) -> None:
        while True:
            done, draw = self._waiting.get()
            try:
                self.check()
                result = draw()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(result)
