"""`agora draw RUN`: the flow graph of a small cell, round by round, as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.registry import KnownSchedulers

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def draw_command(
    source: Annotated[Path | None, typer.Argument(metavar="RUN|FILE", hidden=True)] = None,
    example: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Draw the graph of this policy on four machines with two jobs, as Fig. 5 of the "
            "Firmament paper. Instead of RUN or FILE. It may be one given by --with.",
        ),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Arm to draw, by its name or that of its folder. Default: the first that has a "
            "flow scheduler.",
        ),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Scheduler of the arm, such as flow-0. Default: its first flow scheduler.",
        ),
    ] = "",
    rounds: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST:END",
            help="Rounds to draw, counted from 0; END is not drawn. At most 200. Default: 0:20; "
            "with --task: all that have the task in the graph.",
        ),
    ] = None,
    task: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            metavar="ID",
            help="Draw only what is around this task: its paths to machines, and what is full on "
            "them. For cells that are too large to be drawn whole. May be repeated.",
        ),
    ] = None,
    with_: KnownSchedulers = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Page to write; an existing file is replaced. With a name that ends in .svg: an "
            "image of the first of the rounds instead.",
        ),
    ] = Path("flow_graph.html"),
) -> None:
    """Draw the graph of a flow scheduler with its flow, round by round, as an HTML page.

    RUN is a run directory, or one arm of it. The arm is run again in virtual time, and the digest
    of its events is compared, so the rounds are those of the run. FILE is the configuration of a
    run (TOML); one of its arms is run until the rounds are drawn.

    The page is one file that needs no network: step through the rounds, see what changed, and why
    a task waits. Whole graphs have at most 300 nodes and 2,500 arcs.

    Exit status 0 if the page was written; 2 for bad input.
    """
    from experiments.flow_graphs.command import draw

    print(draw(source, example, arm, scheduler, rounds, task or [], with_ or [], out))
