"""The signals that ask a command to stop: SIGINT (Ctrl-C), SIGTERM (a cluster manager's), SIGHUP (a
closed terminal).

A command ends with status 128 + the number of the signal, as a shell reports it. Imports nothing
that takes time: a command calls exit_on_stop_signals before its other imports.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
from types import FrameType
from typing import NoReturn

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_TEXT = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated (SIGTERM)",
    signal.SIGHUP: "hung up (SIGHUP)",
}
_STDERR = 2
_SHOW_CURSOR = "\x1b[?25h"  # a live display may have hidden it


def exit_on_stop_signals() -> None:
    """Let a stop signal end this process at once from now on, with one line on standard error.

    Nothing is unwound: for commands that have nothing to lose yet. Signals that the process was
    started with ignored (nohup) stay ignored. Main thread only.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit)
    # Python removes its handlers before it has ended; a signal would then kill it without a word.
    atexit.register(_ignore_stop_signals)


def exit_at_once(number: int, note: str = "") -> NoReturn:
    """End this process as the signal asks, with one line on standard error.

    No `finally` runs and no `atexit`: processes of ours that are left end with their parent.

    Args:
        note: The end of that line.
    """
    line = STOP_TEXT[signal.Signals(number)] + (f"; {note}" if note else "") + "\n"
    with contextlib.suppress(OSError):  # the terminal may be gone
        if os.isatty(_STDERR):
            line = _SHOW_CURSOR + line
        os.write(_STDERR, line.encode())
    os._exit(exit_status(number))


def exit_status(number: int) -> int:
    """The exit status of a command that was stopped by this signal."""
    return 128 + number


def is_exiting(handler: object) -> bool:
    """Whether this handler of a signal is the one that exit_on_stop_signals sets."""
    return handler is _exit


def _ignore_stop_signals() -> None:
    """The last that is called: whatever was to be done is done."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is _exit:
            signal.signal(number, signal.SIG_IGN)


def _exit(number: int, frame: FrameType | None) -> None:
    exit_at_once(number)
