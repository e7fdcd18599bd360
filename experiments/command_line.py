"""How the commands end: their exit statuses, and one line on standard error for whatever is
wrong.

A command calls parsync.runtime.stop_signals.exit_on_stop_signals before its imports.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer

from parsync.runtime.stop_signals import STOP_SIGNALS, STOP_TEXT, exit_status
from shared_state.errors import AgoraError

BAD_INPUT = 2
UNREAD = 1  # as typer has it
INTERRUPTED = exit_status(signal.SIGINT)
STOPPED = {exit_status(number): STOP_TEXT[number] for number in STOP_SIGNALS}

# typer brings UsageError along, but under no public name
_USAGE_ERRORS: tuple[Any, ...] = typer.BadParameter.__bases__


def run_command(app: typer.Typer, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command on these arguments (unset: the process's) and leave.

    Bad options and AgoraError are reported in one line, with status 2; a stop signal is, too, with
    status 128 + its number.
    """
    try:
        status: int = app(args=arguments, standalone_mode=False) or 0
        sys.stdout.flush()
    except _USAGE_ERRORS as error:
        status = _refused(
            f"{error.format_message().replace('Value error, ', '').rstrip('.')} (--help lists the options)"
        )
    except AgoraError as error:
        status = _refused(str(error))
    except MemoryError:
        status = _refused(
            "not enough memory on this machine; choose a smaller scale or a shorter duration"
        )
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except OSError as error:
        # what is still held goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever read the output has seen enough
            status = UNREAD
        else:
            status = _refused(f"{error.filename or 'standard output'}: {error.strerror}")
    if status in STOPPED:
        print(STOPPED[status], file=sys.stderr)
    sys.exit(status)


def _refused(message: str) -> int:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT
