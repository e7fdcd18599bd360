"""`python -m flowsolver`: the solver, its generators, file formats and benchmark on the command
line (commands/)."""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take a while
    from flowsolver.commands.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from flowsolver.commands.bench import bench_command
from flowsolver.commands.common import BAD_INPUT, INTERRUPTED, UNREAD
from flowsolver.commands.convert import convert_command
from flowsolver.commands.generate import generate
from flowsolver.commands.solve import ALGORITHMS_TEXT, solve_command
from flowsolver.commands.stop_signals import STOPPED

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

# typer brings UsageError along, but under no public name
_USAGE_ERRORS: tuple[Any, ...] = typer.BadParameter.__bases__


@app.callback()
def main() -> None:
    """Min-cost max-flow on integer networks: a solver, graphs to try it on, and a benchmark against
    other solvers."""


app.command("solve", epilog=ALGORITHMS_TEXT)(solve_command)
app.add_typer(generate, name="generate")
app.command("convert")(convert_command)
app.command("bench")(bench_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """The command on these arguments (unset: the process's). One line on standard error tells what
    is wrong. Returns its exit status."""
    if sys.stdout is None:
        print("standard output is closed", file=sys.stderr)
        return BAD_INPUT
    try:
        status: int = app(args=arguments, standalone_mode=False) or 0
        sys.stdout.flush()
    except _USAGE_ERRORS as error:
        print(f"{error.format_message().rstrip('.')} (--help tells the options)", file=sys.stderr)
        return BAD_INPUT
    except MemoryError as error:
        print(str(error) or "not enough memory for a network of this size", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        # what is still held goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever read the answer has seen enough
            return UNREAD
        print(f"standard output: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    if status in STOPPED:
        print(STOPPED[status], file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(run())
