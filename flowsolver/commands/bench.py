"""`python -m flowsolver bench`: peers and our algorithms on the same graphs in one run."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsolver.commands.common import (
    INTERRUPTED,
    SELF_CHECK_FAILED,
    algorithm_of,
    refuse,
    write_file,
)
from flowsolver.solution import algorithms

if TYPE_CHECKING:
    from flowsolver.benchmark.run import Plan, Result

_MACHINES, _MACHINES_QUICK = "100,300,1000,3000,12500", "50,150,400"
_LIMIT_S, _LIMIT_QUICK_S = 30.0, 1.0
_FIRMAMENT = "relaxation+cost_scaling"  # its race
_LARGEST = 200_000


def bench_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="folder for bench.json and the figures")],
    machines: Annotated[
        str | None,
        typer.Option(
            metavar="M,M,...",
            help=f"machines per cell; default: {_MACHINES}, quick {_MACHINES_QUICK}",
        ),
    ] = None,
    algorithm_names: Annotated[
        str | None,
        typer.Option(
            "--algorithms",
            metavar="A,A,...",
            help="our algorithms, A+B for a race; default: all, and Firmament's race",
        ),
    ] = None,
    peer_names: Annotated[
        str | None,
        typer.Option(
            "--peers",
            metavar="P,P,...",
            help="ortools, highs, networkx, or none; default: those installed",
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            metavar="F,F,...",
            help="machines, utilisation, job-size, others, incremental; default: all",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e6,
            metavar="S",
            help=f"seconds for one solve; default: {_LIMIT_S:g}, quick {_LIMIT_QUICK_S:g}",
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            min=1, max=1000, metavar="N", help="solves per graph, within 2 s; the median counts"
        ),
    ] = 3,
    changes: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="tasks that leave, and that arrive, in a round of changes"
        ),
    ] = 100,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="seed of the graphs and the changes")
    ] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="small cells and a short limit: a minute or two")
    ] = False,
) -> None:
    """Time other solvers and ours on the same graphs.

    \b
    Figures, each with its table:
    machines      Quincy's policy, half-used cells of 100 to 12,500 machines
    utilisation   the largest cell, at 50 % to 120 % of its slots
    job-size      one new job of 10 to 10,000 tasks under load spreading
    others        cold and contended cells, network-aware, NETGEN
    incremental   rounds of changes: incremental and from scratch

    Times are medians of the solve alone, by the clock. Our answers are
    certified afterwards, and all solvers must find the same cost. Ratios are to
    OR-tools (above 1: faster). A solver that exceeds the time limit is not run
    on the harder graphs of its figure. Writes bench.json and the figures as PNG
    and SVG; progress goes to standard error. All of it takes half an hour or
    more.

    Exit status 0 if all answers were right; 1 if one was wrong or a solver
    failed; 2 for bad input; 130 after Ctrl-C, 143 after SIGTERM and 129 after
    SIGHUP, and then the results so far are kept.
    """
    from flowsolver.benchmark.cases import series_of
    from flowsolver.benchmark.run import Plan
    from flowsolver.benchmark.solvers import PEERS

    sizes = _sizes(machines or (_MACHINES_QUICK if quick else _MACHINES))
    series = series_of(sizes, seed, quick)
    names = _chosen("--figures", figures, [each.figure for each in series])
    ours = list(algorithms())
    if set(_FIRMAMENT.split("+")) <= set(ours):
        ours.append(_FIRMAMENT)
    if algorithm_names is not None:
        ours = [
            "+".join(map(str, algorithm_of("--algorithms", name)))
            for name in dict.fromkeys(algorithm_names.split(","))
        ]
    if peer_names == "none":
        peers = []
    else:
        peers = _chosen("--peers", peer_names, list(PEERS))
    absent = [name for name in peers if not PEERS[name].importable]
    if peer_names is not None and absent:
        refuse(f"--peers: {absent[0]} is not installed")
    peers = [name for name in peers if name not in absent]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse(f"--out {out}: {error.strerror}")
    if absent:
        print(f"not installed, left out: {', '.join(absent)}", file=sys.stderr)
    limit_s = time_limit if time_limit is not None else (_LIMIT_QUICK_S if quick else _LIMIT_S)
    plan = Plan(
        [each for each in series if each.figure in names],
        [*peers, *ours],
        limit_s,
        repeats,
        3 if quick else 10,
        changes,
        seed,
    )
    raise typer.Exit(_run(plan, out))


def _run(plan: Plan, out: Path) -> int:
    from flowsolver.benchmark.run import Outcome, machine_facts, run_bench
    from flowsolver.commands.stop_signals import recording_stop_signals

    results: list[Result] = []
    machine = machine_facts()
    if machine["load_1min"] > machine["cores"] / 2:
        print(
            f"this machine is busy (load {machine['load_1min']}): times will be too long",
            file=sys.stderr,
        )
    begun = time.perf_counter()
    interrupted = 0  # the exit status for that
    with recording_stop_signals() as received:
        try:
            run_bench(
                plan,
                results,
                on_progress=lambda line: print(
                    f"{time.perf_counter() - begun:6.1f} s  {line}", file=sys.stderr
                ),
                save=lambda: _save(plan, machine, True, results, out),
                check=received.check,
            )
        except KeyboardInterrupt:
            interrupted = received.exit_status if received.number else INTERRUPTED
            print("Writing partial results; press Ctrl-C again to stop at once.", file=sys.stderr)
        _save(plan, machine, bool(interrupted), results, out)
    _report(plan, results, out)
    if interrupted:
        return interrupted
    bad = [result for result in results if result.outcome in (Outcome.WRONG, Outcome.FAILED)]
    for result in bad:
        print(f"{result.case}: {result.solver} {result.outcome}: {result.note}", file=sys.stderr)
    return SELF_CHECK_FAILED if bad else 0


def _save(
    plan: Plan, machine: dict[str, Any], partial: bool, results: list[Result], out: Path
) -> None:
    from flowsolver.benchmark.run import as_json

    options = {
        "solvers": plan.solvers,
        "time_limit_s": plan.limit_s,
        "repeats": plan.repeats,
        "rounds": plan.rounds,
        "changes": plan.changes,
        "seed": plan.seed,
    }
    write_file(str(out / "bench.json"), as_json(machine, options, partial, results).encode())


def _report(plan: Plan, results: list[Result], out: Path) -> None:
    from rich.console import Console

    from flowsolver.benchmark.plots import draw
    from flowsolver.benchmark.run import tables

    try:
        files = [
            path.name for each in plan.series for path in draw(each, results, plan.limit_s, out)
        ]
    except OSError as error:
        refuse(f"{error.filename or out}: {error.strerror}")
    console = Console(width=None if sys.stdout.isatty() else 200)
    for table in tables(plan.series, results, plan.limit_s):
        console.print(table)
    console.print(
        f"{out}: bench.json{''.join(', ' + name for name in files)}",
        highlight=False,
        soft_wrap=True,
    )


def _sizes(text: str) -> list[int]:
    sizes = []
    for word in text.split(","):
        if not word.strip().isdecimal() or not 1 <= int(word) <= _LARGEST:
            refuse(f'--machines: "{word}" is not a number within 1..{_LARGEST}')
        sizes.append(int(word))
    return sizes


def _chosen(option: str, text: str | None, known: list[str]) -> list[str]:
    if text is None:
        return known
    names = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for name in names:
        if name not in known:
            refuse(f'{option}: no "{name}"; known: {", ".join(known)}')
    return names
