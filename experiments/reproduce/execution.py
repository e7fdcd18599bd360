"""The execution of `agora reproduce`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from experiments.interruption import Interruption, stop_signals_noted
from experiments.reproduce.claims import ClaimResult, Verdict, judge
from experiments.reproduce.figure import FigureRun, PaperFigure, ReproduceScale
from experiments.reproduce.page import (
    PAGE,
    Reproduction,
    ours_text,
    show,
    write_claims,
    write_page,
)
from experiments.reproduce.platform_runs import PlatformRuns, Work
from experiments.reproduce.registry import chosen
from experiments.sweeps.expected_time import expected_run_s, on_this_machine_s
from experiments.sweeps.progress import Progress, time_text
from experiments.sweeps.shared_directories import locked
from experiments.version import version_text
from parsync.metrics.quantity import counted
from shared_state.errors import AgoraError

RUNS = "runs"
_FIRST_SEED = 1
_COLOURS = {Verdict.HOLDS: "green", Verdict.DOES_NOT_HOLD: "red", Verdict.NOT_COMPARABLE: "yellow"}


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """The options of `agora reproduce`, which `agora reproduce --help` explains."""

    paper: str
    figures: list[str]
    scale: ReproduceScale
    seeds: int
    out: Path | None


def start(options: ReproduceOptions) -> int:
    """Run the figures, draw them, judge the claims, write the page. Return the exit status.

    Raises:
        AgoraError: An option is wrong, a run does not finish, or nothing can be written.
    """
    figures = chosen(options.paper, options.figures)
    seeds = [_FIRST_SEED + place for place in range(options.seeds)]
    directory = options.out or Path("runs") / f"reproduce-{options.paper}-{options.scale}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AgoraError(f"--out {directory}: {error.strerror}") from error
    with stop_signals_noted() as interruption, locked(directory, "reproduction"):
        interruption.note = f"runs that are done are kept; --out {quote(str(directory))} continues"
        try:
            _reproduce(options, figures, seeds, directory, interruption)
        except KeyboardInterrupt:
            Console(stderr=True).print(Text(f"Stopped: {interruption.note}."), soft_wrap=True)
    return interruption.exit_status if interruption.received else 0


def _reproduce(
    options: ReproduceOptions,
    figures: tuple[PaperFigure, ...],
    seeds: list[int],
    directory: Path,
    interruption: Interruption,
) -> None:
    console = Console(stderr=True)
    runs = PlatformRuns(directory / RUNS)
    needed = {figure.id: figure.runs(options.scale) for figure in figures}
    every = [run for figure in figures for run in needed[figure.id]]
    work = runs.missing(every, seeds)
    console.print(Text(_announcement(options, figures, every, work)), soft_wrap=True)
    progress = Progress(len(work))
    with console.status("reproduce") as status:
        runs.run(work, interruption, lambda: status.update(f"reproduce: {progress.step()}"))
    shown, claims = [], []
    for figure in figures:
        interruption.check()
        results = runs.results(needed[figure.id], seeds)
        its = [
            judge(claim, results.seeds, options.scale is ReproduceScale.PAPER)
            for claim in figure.claims
        ]
        shown.append(show(figure, results, its, directory / "figures"))
        claims += its
    reproduction = Reproduction(
        version=version_text(),
        paper=options.paper,
        scale=options.scale.value,
        seeds=seeds,
        figures=[figure.id for figure in figures],
        claims=claims,
    )
    write_claims(directory, reproduction)
    write_page(directory, reproduction, shown)
    Console().print(_table(claims))
    console.print(Text(f"page: {directory / PAGE}"), soft_wrap=True)


def _announcement(
    options: ReproduceOptions,
    figures: tuple[PaperFigure, ...],
    every: list[FigureRun],
    work: list[Work],
) -> str:
    what = f"{counted(len(figures), 'figure')} at {options.scale} scale"
    if not work:
        return f"{what}: all runs are done already."
    expected_s = 0.0
    workloads = {}
    for one in work:
        key = one.point.config.workload.model_dump_json()
        if key not in workloads:
            workloads[key] = one.point.config.workload.make(one.point.seed)
        expected_s += expected_run_s(one.point.arm, workloads[key], None)
    time = time_text(on_this_machine_s(expected_s, len(work)))
    return f"{what}: {counted(len(work), 'run')} in virtual time, about {time}."


def _table(claims: list[ClaimResult]) -> RichTable:
    table = RichTable(box=None, pad_edge=False)
    for name in ("claim", "ours", "limits", "verdict"):
        table.add_column(name)
    for claim in claims:
        verdict = Text(claim.verdict.replace("_", " "), style=_COLOURS[Verdict(claim.verdict)])
        table.add_row(claim.id, ours_text(claim), claim.limits, verdict)
    return table
