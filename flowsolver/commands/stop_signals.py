"""SIGINT (Ctrl-C), SIGTERM and SIGHUP: a command ends with one line and status 128 + the signal
number.

Nothing is left half written. This module imports nothing slow, because the command line installs
the handlers before its other imports.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TEXT = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated (SIGTERM)",
    signal.SIGHUP: "hung up (SIGHUP)",
}
STOPPED = {128 + number: text for number, text in _TEXT.items()}  # by exit status
_STDOUT, _STDERR = 1, 2


def exit_on_stop_signals() -> None:
    """Make stop signals end this process at once. Signals that are ignored (nohup) stay ignored."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit)
    # Python removes its handlers before it has ended; a signal would then kill it without a word.
    atexit.register(_ignore_stop_signals)


def _ignore_stop_signals() -> None:
    """Ignore stop signals from now on. Registered first with atexit, so it is called last."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is _exit:
            signal.signal(number, signal.SIG_IGN)


def _exit(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(_STDERR, f"{_TEXT[signal.Signals(number)]}\n".encode())
    os._exit(128 + number)


class ReceivedSignal:
    """The stop signal that was received; 0 if none was."""

    def __init__(self) -> None:
        self.number = 0

    @property
    def exit_status(self) -> int:
        return 128 + self.number

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal was received."""
        if self.number:
            raise KeyboardInterrupt


@contextlib.contextmanager
def recording_stop_signals() -> Iterator[ReceivedSignal]:
    """Record the first stop signal within the block; a second one acts as before the block.

    Outside the main thread, which alone receives signals, nothing changes. After SIGHUP, output to
    the terminal is discarded, because writing to a closed terminal fails.
    """
    received = ReceivedSignal()
    terminals = [descriptor for descriptor in (_STDOUT, _STDERR) if os.isatty(descriptor)]
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def on_signal(number: int, frame: FrameType | None) -> None:
        received.number = received.number or number
        for each in caught:
            signal.signal(each, before[each])
        if number == signal.SIGHUP:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in terminals:
                os.dup2(nowhere, descriptor)
            os.close(nowhere)

    caught = [number for number, handler in before.items() if callable(handler)]
    if threading.current_thread() is not threading.main_thread():
        caught = []
    for number in caught:
        signal.signal(number, on_signal)
    try:
        yield received
    finally:
        for number in caught:
            signal.signal(number, before[number])


@contextlib.contextmanager
def holding_stop_signals() -> Iterator[None]:
    """Delay a stop signal to the end of the block: for what must not be left half written."""
    received = ReceivedSignal()
    try:
        with recording_stop_signals() as received:
            yield
    finally:
        if received.number:
            signal.raise_signal(received.number)
