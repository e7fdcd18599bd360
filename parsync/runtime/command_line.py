"""How the commands end: their exit statuses, and one line on standard error for whatever is
wrong.

A command calls parsync.runtime.stop_signals.exit_on_stop_signals before its imports.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import typer

from parsync.runtime.stop_signals import STOP_SIGNALS, STOP_TEXT, exit_status
from shared_state.errors import AgoraError

BAD_INPUT = 2
UNREAD = 1  # as typer has it
INTERRUPTED = exit_status(signal.SIGINT)
STOPPED = {exit_status(number): STOP_TEXT[number] for number in STOP_SIGNALS}

# typer brings UsageError along, but under no public name
_USAGE_ERRORS: tuple[Any, ...] = typer.BadParameter.__bases__


def run(app: typer.Typer, arguments: Sequence[str] | None = None, with_less: str = "") -> int:
    """Run a command on these arguments (unset: the process's); its exit status.

    Bad options and AgoraError are reported in one line, with status 2; a stop signal is, too, with
    status 128 + its number. with_less: what to do where memory is short.
    """
    try:
        status: int = app(args=arguments, standalone_mode=False) or 0
        sys.stdout.flush()
    except _USAGE_ERRORS as error:
        status = refused(
            f"{error.format_message().replace('Value error, ', '').rstrip('.')} (--help lists the options)"
        )
    except AgoraError as error:
        status = refused(str(error))
    except MemoryError:
        advice = f"; {with_less}" if with_less else ""
        status = refused(f"not enough memory on this machine{advice}")
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except OSError as error:
        # what is still held goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever read the output has seen enough
            status = UNREAD
        else:
            status = refused(f"{error.filename or 'standard output'}: {error.strerror}")
    if status in STOPPED:
        print(STOPPED[status], file=sys.stderr)
    return status


def refused(message: str) -> int:
    """Say what is wrong in one line; the exit status for that."""
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT
