"""SIGINT (Ctrl-C), SIGTERM and SIGHUP: a command ends with one line and status 128 + the signal's
number, and leaves nothing half written.

Imports nothing that takes time: the command line sees to the signals before its other imports.
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
    """From now on a stop signal ends this process at once; those that are ignored (nohup) stay
    so."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit)
    # Python removes its handlers before it has ended; a signal would then kill it without a word.
    atexit.register(_ignore_stop_signals)


def _ignore_stop_signals() -> None:
    """The last that is called: whatever was to be done is done."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is _exit:
            signal.signal(number, signal.SIG_IGN)


def _exit(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(_STDERR, f"{_TEXT[signal.Signals(number)]}\n".encode())
    os._exit(128 + number)


class Noted:
    """The stop signal that was received, 0 if none was."""

    def __init__(self) -> None:
        self.number = 0

    @property
    def exit_status(self) -> int:
        return 128 + self.number

    def check(self) -> None:
        """Raises KeyboardInterrupt if a signal was received."""
        if self.number:
            raise KeyboardInterrupt


@contextlib.contextmanager
def stop_signals_noted() -> Iterator[Noted]:
    """Inside, the first stop signal is noted; a second one does what it did before. Outside the
    main thread, which alone gets signals, nothing changes.

    After SIGHUP what is printed goes nowhere: writing to a closed terminal fails.
    """
    noted = Noted()
    terminals = [descriptor for descriptor in (_STDOUT, _STDERR) if os.isatty(descriptor)]
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def note(number: int, frame: FrameType | None) -> None:
        noted.number = noted.number or number
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
        signal.signal(number, note)
    try:
        yield noted
    finally:
        for number in caught:
            signal.signal(number, before[number])


@contextlib.contextmanager
def stop_signals_held() -> Iterator[None]:
    """Inside, a stop signal waits for the end: for what must not be left half written."""
    noted = Noted()
    try:
        with stop_signals_noted() as noted:
            yield
    finally:
        if noted.number:
            signal.raise_signal(noted.number)
