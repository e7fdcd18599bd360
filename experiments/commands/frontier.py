"""`agora frontier [FILE]`: architectures compared by what quality costs them in delay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.shared_options import ClusterAddress

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def frontier_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="TOML file: the configuration of a run with a section [frontier]. Default: the "
            "architectures of the main comparison.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Number of paired seeds. Default: the file's, or 5 (2, quick)."
        ),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT,...",
            help="Constant loads to run at, for example 50,80,95. Default: the file's, or 80.",
        ),
    ] = None,
    gap: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS,...",
            help="Synchronisation gaps G to run at, for example 0.05,0.2,0.8. Default: the file's, "
            "or the arms' own.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Without FILE: half the cell, fewer points: about a minute on 2 cores."
        ),
    ] = False,
    address: ClusterAddress = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory to create. If it holds a frontier of the same configuration, that one "
            "is continued. Default: runs/TIME.",
        ),
    ] = None,
) -> None:
    """Compare architectures by what quality costs them in delay.

    Each architecture has a knob that trades delay for quality, for example patience_s. Every value
    of every knob runs in virtual time, under the same seeds. The result is a page, frontier.html:
    delay against quality, the area that each architecture dominates, and who is best at which load
    and gap.

    Ctrl-C keeps the runs that are done; the same command with --out DIR goes on.
    """
    from experiments.frontier import FrontierOptions, start

    options = FrontierOptions(
        file=file, seeds=seeds, load=load, gap=gap, quick=quick, address=address, out=out
    )
    raise typer.Exit(start(options))
