"""`agora frontier [FILE]`: architectures compared by what quality costs them in delay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.registry import ClusterAddress, KnownSchedulers, Long

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def frontier_command(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", hidden=True),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of paired seeds. Default: as in FILE, or 5 (2 with --quick).",
        ),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT,...",
            help="Constant loads to run at, for example 50,80,95. Default: as in FILE, or 80.",
        ),
    ] = None,
    gap: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS,...",
            help="Synchronisation gaps G to run at, for example 0.05,0.2,0.8. Default: as in FILE, "
            "or the gaps of the arms.",
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
            help="Directory to create. If it holds a frontier of the same configuration, with any "
            "number of seeds, the command continues it. Default: runs/TIME.",
        ),
    ] = None,
    long: Long = False,
    with_: KnownSchedulers = None,
) -> None:
    """Compare architectures by what quality costs them in delay.

    FILE is a run's configuration with a section [frontier]. Default: the architectures of the main
    comparison. Each architecture has a knob that trades delay for quality: how long tasks wait for
    preferred machines (patience_s), the interval of Mesos' allocator, or the share of Sparrow's
    probes that goes to preferred machines. Every value of every knob runs in virtual time, under
    the same seeds. The result is a page, frontier.html: delay against quality, the area that each
    architecture dominates, and who is best at which load and gap.

    Every run is kept as soon as it is done. After Ctrl-C or a crash, the same command with --out
    DIR continues. With more --seeds it adds those.

    Exit status 0 if everything ran; 2 for bad input, or if a run failed; 130 after Ctrl-C, 143
    after SIGTERM, 129 after SIGHUP.
    """
    from experiments.studies.frontiers.execution import FrontierOptions, start
    from schedulers.registry import registered

    options = FrontierOptions(file, seeds, load, gap, quick, address, out, long)
    with registered(with_ or ()):
        raise typer.Exit(start(options))
