"""`agora slots`: one simulation of ParSync's slots (sections 4.3 and 5.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.studies.model_settings import ReproduceScale

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def slots_command(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", hidden=True)] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Change a setting, such as gap_s=0.25 or sync=diff_block; may be repeated. "
            "groups.FIELD and phases.FIELD are changed in every group or phase.",
        ),
    ] = None,
    scale: Annotated[
        ReproduceScale | None,
        typer.Option(
            help="Without FILE: smoke (default), a tenth of the paper's cell and arrivals for "
            "30 s, with decisions that take ten times as long; or paper, 200,000 slots and "
            "arrivals for 90 s."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Also write the settings, the time series (CSV) and their plot (PNG and SVG) to "
            "this directory, which must not exist.",
        ),
    ] = None,
) -> None:
    """Simulate schedulers that share the slots of a cell.

    FILE holds the settings as TOML. Without it they are ParSync's (section 4.3) with A = 2:
    StateSync, and a load that fills every slot. The table has a row for each phase: conflicts per
    claim, the mean delay and within what time 90 % were committed, the mean score of the slots
    used, the utilisation, and the tasks that waited at the end. A second table says why claims
    conflicted, and how good the slots in use were beside the best possible.

    Exit status 0 even if tasks were left; 2 for bad input; 130 after Ctrl-C.
    """
    from experiments.studies.slots import SlotsOptions, start

    start(SlotsOptions(file, change or (), scale, out))
