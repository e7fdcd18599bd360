"""The consoles of commands: no result is lost because nobody reads what they print."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, TextIO, cast

from rich.console import Console


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
