"""`agora compare RUN...`: the arms of several runs in one table, paired by seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.registry import CommandWithMetrics, metric_names

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=CommandWithMetrics)
def compare_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", hidden=True)],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=metric_names,
            help="Metric to compare, by its name in summary.json; may be repeated. "
            "Default: the main ones.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the table to this file, which must not exist: .html, .csv or .md.",
        ),
    ] = None,
) -> None:
    """Put the arms of several runs in one table, paired by seed.

    Each RUN is a run directory. The runs must have had the same workload, settling time and
    draining time.
    """
    from experiments.studies.compare import compare

    compare(runs, metric or [], out)
