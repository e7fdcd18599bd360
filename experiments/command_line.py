"""How the commands of this package end (parsync/runtime/command_line.py)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from parsync.runtime import command_line
from parsync.runtime.command_line import BAD_INPUT

__all__ = ["BAD_INPUT", "run_command"]


def run_command(app: typer.Typer, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command on these arguments (default: the process's) and exit with its status."""
    sys.exit(command_line.run(app, arguments, "choose a smaller scale or a shorter duration"))
