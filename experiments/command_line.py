"""How the commands of this package end (parsync/runtime/command_line.py)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import typer

from parsync.runtime import command_line
from parsync.runtime.command_line import BAD_INPUT
from parsync.strict_model import RenamedOption

__all__ = ["BAD_INPUT", "run_command"]


def run_command(app: typer.Typer, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command on these arguments (default: the process's) and exit with its status."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", RenamedOption)
        warnings.showwarning = partial(_show, warnings.showwarning)
        sys.exit(command_line.run(app, arguments, "choose a smaller scale or a shorter duration"))


def _show(
    usual: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any
) -> None:
    """Show a warning as Python does; one about the name of an option in a line of its own."""
    if issubclass(category, RenamedOption):
        print(f"note: {message}", file=sys.stderr)
    else:
        usual(message, category, *place)
