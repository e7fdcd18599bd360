"""`agora sweep FILE`: run many combinations of parameters in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.registry import (
    ClusterAddress,
    CommandWithMetrics,
    KnownSchedulers,
    Long,
    metric_names,
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=CommandWithMetrics)
def sweep_command(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", hidden=True)] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory to create. If it holds this sweep, the command continues it. "
            "Default: runs/TIME.",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Continue the sweep in this directory."),
    ] = None,
    address: ClusterAddress = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Seeds of each combination. Default: as in FILE, or 10."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Run 10, 20 or 40 seeds, until every difference to the baseline is precise: both "
            "limits of its interval are at most this part of the baseline's median from the "
            "estimate, such as 2%. For shares: percentage points.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=metric_names,
            help="Metric of a table and of the first plots, by its key in summary.json; may be "
            "repeated. --until is about the first. Default: as in FILE, or delay_mean_us.",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARM",
            help="Arm that others are compared with; may be repeated. Default: as in FILE, or "
            "the first one.",
        ),
    ] = None,
    long: Long = False,
    with_: KnownSchedulers = None,
) -> None:
    """Run many combinations of parameters in virtual time, and plot the results.

    FILE is a run's configuration with a section [sweep], which lists the values of each parameter.
    Every run is kept as soon as it is done: after Ctrl-C or a crash, the same command with the same
    --out continues. Open sweep.html in the sweep's directory.

    Exit status 0 if everything ran; 2 for bad input, or if a run failed; 130 after Ctrl-C, 143
    after SIGTERM, 129 after SIGHUP.
    """
    from experiments.studies.sweeps.execution import SweepOptions, start
    from schedulers.registry import registered

    options = SweepOptions(file, out, resume, address, seeds, until, metric, baseline, long)
    with registered(with_ or ()):
        raise typer.Exit(start(options))
