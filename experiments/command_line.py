"""How the commands of this package end (parsync/runtime/command_line.py), and their consoles: no
result is lost because nobody reads what they print.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn, TextIO, cast

import typer
from rich.console import Console

from parsync.runtime import command_line
from parsync.strict_model import RenamedOption


def run_command(app: typer.Typer, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command on these arguments (default: the process's) and exit with its status."""
    with warnings.catch_warnings():
        # Python's "once" says it again after any other catch_warnings.
        warnings.simplefilter("always", RenamedOption)
        warnings.showwarning = partial(_show, warnings.showwarning, set())
        sys.exit(command_line.run(app, arguments, "choose a smaller scale or a shorter duration"))


def _show(
    usual: Callable[..., None],
    said: set[str],
    message: Warning | str,
    category: type[Warning],
    *place: Any,
) -> None:
    """Show a warning as Python does; one about the name of an option once, in a line of its own."""
    if issubclass(category, RenamedOption):
        if str(message) not in said:
            said.add(str(message))
            print(f"note: {message}", file=sys.stderr)
    else:
        usual(message, category, *place)


class _Lenient:
    """A stream to which writing never fails: what nobody can read any more is dropped.

    Args:
        stream: The stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def error_console() -> Console:
    """The standard error, where commands say how far they are."""
    return Console(file=cast(TextIO, _Lenient(sys.stderr)))


class _OutputConsole(Console):
    """A console that raises the error of a closed pipe instead of ending the process."""

    def on_broken_pipe(self) -> None:
        raise  # it is called while the error is handled


def output_console() -> Console:
    """The standard output. OSError if nothing can be written to it."""
    return _OutputConsole()
