"""`agora extra-slots`: S_extra of ParSync's section 4.3 over one axis, by the slot simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.registry import Long, SeedCount
from experiments.studies.model_settings import ReproduceScale

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


def _sync_modes(incomplete: str) -> list[str]:
    from parsync.model.slot_settings import SyncMode

    return [mode.value for mode in SyncMode if mode.value.startswith(incomplete)]


@app.command()
def extra_slots_command(
    sync: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            autocompletion=_sync_modes,
            help="Sync policies: state_aligned, state_staggered, diff_block, diff_single, "
            "same_block. Each is a line of the plot.",
        ),
    ] = "state_aligned",
    factor: Annotated[
        str,
        typer.Option(
            metavar="A,...",
            help="A times 10 schedulers share the tasks. Each A is a line, or a point of "
            "the axis if no other option has several values.",
        ),
    ] = "2,4,8",
    rate: Annotated[
        str,
        typer.Option(metavar="R,...", help="Tasks that arrive per second in the paper's cell."),
    ] = "40000",
    gap: Annotated[str, typer.Option(metavar="SECONDS,...", help="Synchronisation gap G.")] = "0.5",
    variance: Annotated[
        str, typer.Option(metavar="V,...", help="Variance of the slots' scores.")
    ] = "2",
    partitions: Annotated[
        str | None,
        typer.Option(
            metavar="P,...",
            help="Partitions of the cell. Default: 1 for state_aligned and state_staggered, "
            "otherwise one for each scheduler.",
        ),
    ] = None,
    latency: Annotated[
        str,
        typer.Option(metavar="MS,...", help="One-way time of a message to the master."),
    ] = "0",
    service: Annotated[
        str,
        typer.Option(
            metavar="US,...",
            help="The master's time per claim, at the slot's partition, in the paper's cell.",
        ),
    ] = "0",
    scale: Annotated[
        ReproduceScale,
        typer.Option(
            help="smoke: a tenth of the paper's cell and arrivals, for 30 s; decisions and the "
            "master take ten times as long. paper: 200,000 slots, arrivals for 90 s."
        ),
    ] = ReproduceScale.SMOKE,
    seeds: SeedCount = 1,
    long: Long = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory for the results. Searches that it already holds are not repeated. "
            "Default: runs/extra-slots-SCALE.",
        ),
    ] = None,
) -> None:
    """Find how many extra slots ParSync's schedulers need.

    S_extra is the least number of slots, beyond those that the tasks fill, with which all tasks are
    committed within 110 % of the time in which they arrive. If one of the options from --rate to
    --service has several values, it is the axis; otherwise A is. The defaults are ParSync's
    setting (section 4.3). The results are a table, a plot (PNG and SVG), and a CSV file.

    Every search is kept as soon as it is done. After Ctrl-C or a crash, the same command continues.

    Exit status 0 if everything ran, even where no number of slots suffices; 2 for bad input; 130
    after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
    """
    from experiments.studies.extra_slots import ExtraSlotsOptions, start

    texts = {
        "factor": factor,
        "rate": rate,
        "gap": gap,
        "variance": variance,
        "partitions": partitions,
        "latency": latency,
        "service": service,
    }
    raise typer.Exit(start(ExtraSlotsOptions(sync, texts, scale, seeds, out, long)))
