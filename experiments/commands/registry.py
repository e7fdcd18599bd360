"""The list of commands: a new command is a module with an `app`, and one line of COMMANDS.

A module is imported when its command is called, so `agora --help` and completion stay fast. What
commands share stands here, too: their options, and the names of metrics.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

ClusterAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Ray cluster to run on; auto: the one that this machine is a node of. "
        "Default: processes of this machine.",
    ),
]
SeedCount = Annotated[
    int,
    typer.Option(
        min=1,
        max=1000,
        metavar="N",
        help="Number of seeds; they are 1 to N. Five or more give intervals.",
    ),
]
Long = Annotated[
    bool,
    typer.Option("--long", help="Start it even if it is expected to take more than a day."),
]
KnownSchedulers = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="SPEC",
        help="Scheduler or flow policy of your own that is used in FILE: a file that defines SPEC, "
        "or package.module:SPEC. May be repeated.",
    ),
]


def metric_names(incomplete: str = "") -> list[str]:
    """The names of all metrics' figures that begin with this text, in the order of the metrics."""
    from parsync.metrics import registry

    names = (quantity.key for metric in registry.metrics() for quantity in metric.quantities())
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


class CommandWithMetrics(TyperCommand):
    """A command whose help ends with the names of all metrics."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # of click, as typer has it
        with formatter.section("Metrics"):
            formatter.write_text(", ".join(metric_names()))


# name: (module, what it does)
COMMANDS = {
    "run": ("experiments.commands.run", "Run schedulers on one shared cell and write a report."),
    "sweep": ("experiments.commands.sweep", "Run many combinations of parameters in virtual time."),
    "frontier": (
        "experiments.commands.frontier",
        "Compare architectures by what quality costs them in delay.",
    ),
    "reproduce": (
        "experiments.commands.reproduce",
        "Reproduce figures of papers, and say which claims hold.",
    ),
    "compare": ("experiments.commands.compare", "Put the arms of several runs in one table."),
    "report": ("experiments.commands.report", "Write the reports of runs again."),
    "replay": ("experiments.commands.replay", "Check that runs are complete and can be repeated."),
    "explain": ("experiments.commands.explain", "Tell what became of tasks and their conflicts."),
    "draw": ("experiments.commands.draw", "Draw the graph of a flow scheduler, round by round."),
    "actors": ("experiments.commands.actors", "Show what the actors of live runs are doing."),
    "model": ("experiments.commands.model", "Print how many conflicts ParSync's model expects."),
    "slots": (
        "experiments.commands.slots",
        "Simulate schedulers that share the slots of a cell.",
    ),
    "extra-slots": (
        "experiments.commands.extra_slots",
        "Find how many extra slots ParSync's schedulers need.",
    ),
    "solve": ("flowsolver.__main__", "Solve min-cost-flow problems."),
}


class LazyGroup(TyperGroup):
    """A group that shows its commands from COMMANDS and imports only the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command's name and description, for help and completion; None if unknown."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1], rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called, with its options. Typer prints errors for others."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in COMMANDS:
            command = get_command(import_module(COMMANDS[name][0]).app)
            command.name = name
        return name, command, rest


app = typer.Typer(
    cls=LazyGroup,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from experiments.version import version_text

        print(f"agora {version_text()}")
        raise typer.Exit


@app.callback()
def agora(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Compare cluster schedulers on one shared cell.

    `agora COMMAND --help` explains a command.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())
