"""Stop signals (parsync.runtime.stop_signals) that wait until work can stop cleanly."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from types import FrameType

from parsync.runtime.stop_signals import STOP_SIGNALS, exit_at_once, exit_status, is_exiting

_STDOUT, _STDERR = 1, 2


class Interruption:
    """The stop signal that was received, if any.

    note is printed when a second signal ends the command immediately.
    """

    def __init__(self) -> None:
        self.number = 0  # of the signal
        self.note = ""
        self._raises = False
        self._before: dict[int, signal._HANDLER] = {}
        self._terminals = [number for number in (_STDOUT, _STDERR) if os.isatty(number)]

    @property
    def received(self) -> bool:
        return self.number != 0

    @property
    def exit_status(self) -> int:
        """The exit status of a command that this signal stopped."""
        return exit_status(self.number or signal.SIGINT)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal was received."""
        if self.received:
            raise KeyboardInterrupt

    def forget_ctrl_c(self) -> None:
        """Forget a Ctrl-C, where the user was asked for it. Any other signal stays."""
        if self.number == signal.SIGINT:
            self.number = 0

    @contextlib.contextmanager
    def raised_at_once(self) -> Iterator[None]:
        """Let a signal raise KeyboardInterrupt immediately, for example in a wait for input."""
        self._raises = True
        try:
            self.check()
            yield
        finally:
            self._raises = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: note the first one; the next one does what it did before."""
        if self.received:
            before = self._before[number]
            if is_exiting(before):
                exit_at_once(self.number, self.note)
            if callable(before):
                before(number, frame)
            else:
                raise KeyboardInterrupt
            return
        self.number = number
        if number == signal.SIGHUP:
            self._leave_terminal()
        if self._raises:
            raise KeyboardInterrupt

    def _install(self) -> None:
        for number in STOP_SIGNALS:
            before = signal.getsignal(number)
            # None: set by somebody else than Python; there is nothing to go back to
            if before is not signal.SIG_IGN and before is not None:
                self._before[number] = before
                signal.signal(number, self)

    def _remove(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _leave_terminal(self) -> None:
        """Discard all further output.

        Writing to a closed terminal fails, and would keep the results from being written.
        """
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in self._terminals:
            os.dup2(nowhere, descriptor)
        os.close(nowhere)


@contextlib.contextmanager
def stop_signals_noted() -> Iterator[Interruption]:
    """Note stop signals instead of stopping: work calls check() where it can stop cleanly.

    A second signal ends the process immediately. A nested use shares the outer one's signal. In
    other threads than the main one, and for signals that the process ignores, nothing changes.
    """
    outer = _noting()
    if outer is not None or threading.current_thread() is not threading.main_thread():
        yield outer or Interruption()
        return
    interruption = Interruption()
    interruption._install()
    try:
        yield interruption
    finally:
        interruption._remove()


@contextlib.contextmanager
def stop_signals_held() -> Iterator[None]:
    """Delay stop signals to the end of the block, which must not be left half done."""
    within = _noting() is not None
    interruption = Interruption()
    try:
        with stop_signals_noted() as interruption:
            yield
    finally:
        if interruption.received and not within:
            signal.raise_signal(interruption.number)


@contextlib.contextmanager
def stop_signals_kept_from_children() -> Iterator[None]:
    """Delay stop signals to the end of the block, and block them in processes started inside.

    Whoever starts such a process also ends it.
    """
    with stop_signals_held():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # children inherit it
        try:
            # It lets signals through again when it starts, so it must not start below.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _noting() -> Interruption | None:
    """Return the object that notes stop signals now, if any."""
    for number in STOP_SIGNALS:
        handler = signal.getsignal(number)
        if isinstance(handler, Interruption):
            return handler
    return None
