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
        warnings.formatwarning = partial(_in_one_line, warnings.formatwarning)
        sys.exit(command_line.run(app, arguments, "choose a smaller scale or a shorter duration"))


def _in_one_line(
    usual: Callable[..., str], message: Warning | str, category: type[Warning], *place: Any
) -> str:
    """A warning as Python prints it; a note about an option without the place in the code."""
    if issubclass(category, RenamedOption):
        return f"note: {message}\n"
    return usual(message, category, *place)
