"""`agora explain RUN`: what became of single tasks, and what their conflicts cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def explain_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    task: Annotated[
        int | None,
        typer.Option(metavar="ID", help="Task to explain, by its id in the Parquet tables."),
    ] = None,
    worst: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Explain the N tasks whose conflicts added most delay, of each set of arms that "
            "may be compared. Default without --task: 10.",
        ),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Look at this arm only, by its name or that of its folder."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a list of tasks with all they went through.")
    ] = False,
) -> None:
    """Tell what became of tasks: their claims, their conflicts and rivals, and what these cost.

    RUN is a run directory; of a run in progress, the arms that have ended are looked at. With
    --task, every arm tells what became of that task. Exit status 2 if there is no such task or
    arm, or the run has no tables to tell it.
    """
    from experiments.explain.command import explain

    print(explain(run, task, worst, arm, as_json))
