"""`python -m flowsolver` and `agora solve`: solver, generators, file formats and benchmark
(commands/)."""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take a while
    from flowsolver.commands.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from flowsolver.commands.bench import bench_command
from flowsolver.commands.common import INTERRUPTED, UNREAD, print_error
from flowsolver.commands.generate import convert_command, generate
from flowsolver.commands.solve import ALGORITHMS_TEXT, solve_command
from flowsolver.commands.stop_signals import STOPPED


class SolveByDefault(TyperGroup):
    """A group that takes a first word which is no command as the arguments of `solve`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            ctx.fail("expected a FILE or a command")
        if args and args[0] not in (*self.commands, "--help"):
            args = ["solve", *args]
        return super().parse_args(ctx, args)


class DefaultCommand(TyperCommand):
    """The command that need not be named: its usage line does not name it."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.parent.command_path, " ".join(self.collect_usage_pieces(ctx)))


app = typer.Typer(
    cls=SolveByDefault,
    subcommand_metavar="FILE | COMMAND [ARGS]...",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# typer brings UsageError along, but under no public name
_USAGE_ERRORS: tuple[Any, ...] = typer.BadParameter.__bases__


@app.callback()
def main() -> None:
    """Solve min-cost-flow problems on integer networks.

    With a FILE, print its optimal flow. `agora solve FILE --help` lists the options. The other
    commands generate graphs to try the solver on, convert files, and time it against other solvers.
    """


app.command("solve", cls=DefaultCommand, epilog=ALGORITHMS_TEXT)(solve_command)
app.add_typer(generate, name="generate")
app.command("convert")(convert_command)
app.command("bench")(bench_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command on these arguments (default: the process's). Return its exit status.

    Bad input is reported in one line on standard error.
    """
    if sys.stdout is None:
        return print_error("standard output is closed")
    try:
        status: int = app(args=arguments, standalone_mode=False) or 0
        sys.stdout.flush()
    except _USAGE_ERRORS as error:
        return print_error(f"{error.format_message().rstrip('.')} (--help lists the options)")
    except MemoryError as error:
        return print_error(str(error) or "not enough memory for a network of this size")
    except OSError as error:
        # what is still held goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever read the answer has seen enough
            return UNREAD
        return print_error(f"standard output: {error.strerror}")
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    if status in STOPPED:
        print(STOPPED[status], file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(run())
