"""`agora model`: expected conflicts by ParSync's equations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def model_command(
    schedulers: Annotated[
        int, typer.Option(min=1, max=10**6, metavar="N", help="Number of schedulers.")
    ] = 10,
    tasks: Annotated[
        int,
        typer.Option(
            min=1,
            max=10**9,
            metavar="K",
            help="Tasks that each scheduler places in a round. The default is what it decides in "
            "a gap of 0.5 s, at 0.25 ms each.",
        ),
    ] = 2000,
    slots: Annotated[
        int, typer.Option(min=1, max=10**9, metavar="S", help="Slots of the cell.")
    ] = 200_000,
    load: Annotated[
        float,
        typer.Option(
            min=0,
            max=100,
            metavar="PERCENT",
            help="Share of the slots that are taken when the round begins.",
        ),
    ] = 90.0,
    factor: Annotated[
        str,
        typer.Option(
            metavar="A,...",
            help="One or more values: how many times as many schedulers share the same tasks.",
        ),
    ] = "1,2,4,8",
    variance: Annotated[
        float,
        typer.Option(
            min=0,
            max=1000,
            metavar="V",
            help="Variance of the slots' scores. Schedulers draw slots with weight exp(score). "
            "0: all slots are alike, as in the paper's equations.",
        ),
    ] = 2.0,
    gap: Annotated[
        float,
        typer.Option(
            min=0, max=10**6, metavar="SECONDS", help="Synchronisation gap G, for the staleness."
        ),
    ] = 0.5,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also draw the conflicts to this file, which must not exist: .png or .svg.",
        ),
    ] = None,
) -> None:
    """Print how many conflicts the equations of ParSync expect.

    In a round, N schedulers pick a slot for each of K tasks from the idle slots of one cell, all
    with the same fresh view. If several pick the same slot, one gets it, and the others conflict.
    The table varies the schedulers, the slots, the load, and A: how many times as many schedulers
    share the same tasks. The defaults are ParSync's setting (section 4.3) at 90 % load.

    Exit status 2 for bad input.
    """
    from experiments.studies.conflict_model import RoundSetting, show

    setting = RoundSetting(schedulers, tasks, slots, load, variance)
    show(setting, factor, gap, out)
