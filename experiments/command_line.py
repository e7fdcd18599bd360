"""How the commands of this package end (parsync/runtime/command_line.py), and their consoles: no
result is lost because nobody reads what they print.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from parsync.runtime import command_line
from parsync.runtime.arm_directory import run_of
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


@contextlib.contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar, if standard error is a terminal, and yield what moves it: it is called
    with how much is done, and of how much."""
    console = error_console()
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(label, total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield show


def forget_code_in(directories: Sequence[Path]) -> None:
    """Remove run directories from sys.path.

    Python imports modules and finds entry points in the working directory, which may be the run of
    a stranger.
    """
    runs = [run_of(directory) for directory in directories if directory.is_dir()]
    sys.path[:] = [
        entry
        for entry in sys.path
        if not any(Path(entry or os.curdir).resolve().is_relative_to(run) for run in runs)
    ]
