"""How the commands end: exit statuses, and one line on standard error for an error.

A command calls parsync.runtime.stop_signals.exit_on_stop_signals before its imports.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import typer

from parsync.runtime.stop_signals import STOP_SIGNALS, STOP_TEXT, exit_status
from shared_state.errors import AgoraError, printable

BAD_INPUT = 2
BROKEN_PIPE = 1  # as typer has it
_NAME_PART = 40  # characters around the one that is no text
INTERRUPTED = exit_status(signal.SIGINT)
STOPPED = {exit_status(number): STOP_TEXT[number] for number in STOP_SIGNALS}

# typer brings UsageError along, but under no public name
_USAGE_ERRORS: tuple[Any, ...] = typer.BadParameter.__bases__


def run(app: typer.Typer, arguments: Sequence[str] | None = None, with_less: str = "") -> int:
    """Run a command. Return its exit status.

    Bad options and AgoraError are reported in one line, with status 2; a stop signal too, with
    status 128 + its number.

    Args:
        arguments: By default those of the process.
        with_less: What to do if there is not enough memory.
    """
    if sys.stdout is None:  # its descriptor was closed before Python started
        return print_error("standard output is closed")
    print_what_can_be_encoded()
    try:
        status: int = app(args=arguments, standalone_mode=False) or 0
        sys.stdout.flush()
    except _USAGE_ERRORS as error:
        status = print_error(
            f"{error.format_message().replace('Value error, ', '').rstrip('.')} (--help lists "
            "the options)"
        )
    except AgoraError as error:
        status = print_error(str(error))
    except MemoryError:
        advice = f"; {with_less}" if with_less else ""
        status = print_error(f"not enough memory on this machine{advice}")
    except UnicodeEncodeError as error:  # names of files that are bytes and no text
        name = error.object[max(0, error.start - _NAME_PART) : error.end + _NAME_PART]
        status = print_error(f"{name!r}: names of files must be UTF-8 text")
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except OSError as error:
        # discard what is still buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
            status = BROKEN_PIPE
        else:
            status = print_error(f"{error.filename or 'standard output'}: {error.strerror}")
    if status in STOPPED:
        print(STOPPED[status], file=sys.stderr)
    return status


def print_what_can_be_encoded() -> None:
    """Let standard output and error print ? for characters that their encoding lacks: printing
    never ends a command. In UTF-8, names of files that are not text stay as they are."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            keeps_bytes = stream.errors == "surrogateescape"
            if not (keeps_bytes and stream.encoding.lower().replace("-", "") == "utf8"):
                stream.reconfigure(errors="replace")


def print_error(message: str) -> int:
    """Print an error in one line, with what files and arguments brought into it escaped. Return the
    exit status for bad input."""
    print("error: " + printable(" ".join(message.split())), file=sys.stderr)
    return BAD_INPUT
