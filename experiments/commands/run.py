"""`agora run`: run schedulers on one shared cell and write a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.registry import Long
from experiments.studies.run.run_options import RunOptions, RuntimeName, ScaleName

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def run_command(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with the whole configuration. Every run writes its own as config.toml.",
        ),
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(
            metavar="MIX",
            help="Run one arm with these schedulers: [PROTOCOL:]KIND=COUNT,... For example "
            '"latency_first=8,flow=1". KIND is a kind of scheduler (such as flow, load_spreading '
            "or kubernetes), or a strategy by which random placement ranks partitions: optimistic "
            "(not at all), quality_first, latency_first, adaptive, freshest_preferred or prompt. "
            "PROTOCOL is how they get places on the cell: optimistic (the default: they claim "
            "places by their view of the cell, and rivals may be faster), locking, or offers (an "
            'allocator offers them room, as in Mesos): "offers:kubernetes=2". A protocol that runs '
            "no kinds of scheduler has no colon, such as probing (tasks wait in queues at the "
            'machines, as in Sparrow): "probing=4,random=4". Default without '
            "--mix: several arms to compare.",
        ),
    ] = None,
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="SPEC[=N]",
            help="Add an arm with N schedulers of your own, or N flow schedulers with a policy of "
            "your own (default: 1), which together can decide as many tasks per second as those of "
            "the other arms. Without =N, none is added if an arm of --config or --mix uses what "
            "SPEC defines. SPEC is a file that defines SPEC, or package.module:SPEC. May be "
            "repeated.",
        ),
    ] = None,
    scale: Annotated[
        ScaleName | None,
        typer.Option(help="Size of the cell: 20,000 (demo) or 200,000 slots. Default: demo."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:PATH",
            help="Trace to run, for example google2011:DIR. Default: a synthetic workload.",
        ),
    ] = None,
    speedup: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Divide all times of the trace by this number. Default: 50."
        ),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(
            metavar="slots=N|requests",
            help="Resources of a trace's machines: N equal slots, or CPU and memory as requested. "
            "Default: slots=13.",
        ),
    ] = None,
    overcommit: Annotated[
        float | None,
        typer.Option(
            metavar="FACTOR",
            help="Multiply the capacity of machines, with --resources requests. Default: 2.0.",
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            help="Total length of all phases, or of the part of a trace to run. "
            "Default: 30 (6 with --quick, 300 with --scale paper), or the whole trace.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Root seed of all random streams. Default: 1."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of paired seeds. Five give 93.75 % intervals; fewer give none. Comparing "
            "many arms together takes about ten. Default: 5 (2 with --quick, 1 with --scale "
            "paper).",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Half the cell, short tasks and phases, two seeds: about a minute."
        ),
    ] = False,
    runtime: Annotated[
        RuntimeName | None,
        typer.Option(
            help="Ray actors in real time, or simulated time. Default: ray. "
            "Paired seeds always run in virtual time.",
        ),
    ] = None,
    live: Annotated[
        list[str] | None,
        typer.Option(
            "--live",
            metavar="ARM|all",
            help="Arm that also runs live: on Ray in real time, for as long as the phases last. "
            "all: every arm. May be repeated. Default: ParSync adaptive; with --mix: its arm.",
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Ray cluster to attach to; auto: the one that this machine is a node of. "
            "Default: start Ray for this run.",
        ),
    ] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Run directory with live arms. Virtual time then steps and ticks as the live "
            "runtime did there, with the times measured there. Default: no ticks, and messages "
            "that all take the same time.",
        ),
    ] = None,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold",
            help="Keep Ray and the last arm's actors after the run, until you press Enter.",
        ),
    ] = False,
    long: Long = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Run directory to create; it must not exist. Default: runs/TIME."
        ),
    ] = None,
) -> None:
    """Run schedulers on one shared cell and write a report.

    Without options, several arms place the same tasks in virtual time: ways to synchronise many
    schedulers, Mesos' offers, Sparrow's probes, and single greedy and flow schedulers. One of them
    also runs live, on a cell as large as this computer can serve in real time. Results go to a new
    run directory; open its report.html.

    Exit status 0 if everything ran; 2 for bad input, or if an arm failed; 130 after Ctrl-C,
    143 after SIGTERM, 129 after SIGHUP.
    """
    from experiments.config.flags import given_schedulers
    from experiments.studies.run.execution import start

    with given_schedulers(with_) as added:
        options = RunOptions(
            config=config,
            mix=mix,
            added=added,
            scale=scale,
            trace=trace,
            speedup=speedup,
            resources=resources,
            overcommit=overcommit,
            duration_s=duration,
            seed=seed,
            seeds=seeds,
            quick=quick,
            runtime=runtime,
            live=tuple(live or ()),
            address=address,
            calibrate=calibrate,
            hold=hold,
            long=long,
            out=out,
        )
        raise typer.Exit(start(options))
