"""`agora reproduce PAPER [FIGURE ...]`: figures and tables of a paper, and whether its claims
hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.registry import Long, SeedCount
from experiments.studies.model_settings import ReproduceScale

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def reproduce_command(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER", help="The paper: parsync, omega, firmament, quincy, sparrow or mesos."
        ),
    ],
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...",
            help="For example fig5. Default: all of the paper but the live ones (fig5_live to "
            "fig8_live).",
        ),
    ] = None,
    scale: Annotated[
        ReproduceScale,
        typer.Option(
            help="Scale of all figures but the live ones. smoke: a small cell and short runs. "
            "paper: the paper's cell at full length; where that is not public, what stands in for "
            "it."
        ),
    ] = ReproduceScale.SMOKE,
    seeds: SeedCount = 1,
    long: Long = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory for the results. Runs that it holds already are not done again. "
            "Default: runs/reproduce-PAPER-SCALE.",
        ),
    ] = None,
) -> None:
    """Reproduce figures and tables of a paper, and say which of its claims hold.

    Makes the runs that each figure needs, draws it in the paper's form, and judges every claim by a
    statistic and limits that were set before the first run. The results are a page, reproduce.html,
    and the claims with their verdicts, claims.json. Runs of parsync, omega, sparrow and
    mesos are in virtual time; those of firmament and quincy are timed rounds of the flow scheduler.

    The figures fig5_live to fig8_live of ParSync run on Ray, in real time, at the demo's scale.
    They take about five minutes and need a quiet machine, so they are made only if they are named.

    The figure google of sparrow needs part 0 of the Google trace of 2011 below $AGORA_TRACES, in
    google2011/task_events/. Without this file it is left out.

    Every run is kept as soon as it is done. After Ctrl-C or a crash, the same command continues.

    Exit status 0 if everything ran, whatever the verdicts; 2 for bad input, or if a run failed;
    130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
    """
    from experiments.papers.execution import ReproduceOptions, start

    raise typer.Exit(start(ReproduceOptions(paper, figures or [], scale, seeds, out, long)))
