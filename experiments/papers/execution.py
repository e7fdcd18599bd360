"""The execution of `agora reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.table import Table as RichTable
from rich.text import Text

from experiments.campaign.directories import run_continued
from experiments.campaign.expected_time import check_length, expected_run_s, on_this_machine_s
from experiments.campaign.preconditions import check_memory
from experiments.campaign.progress import Progress, ProgressReport, time_text
from experiments.campaign.running import make_workload
from experiments.command_line import error_console, output_console
from experiments.interruption import Interruption
from experiments.papers.chapter import FigureRun, Paper, PaperFigure, Results, Table
from experiments.papers.claims import ClaimResult, Verdict, judge, judge_live
from experiments.papers.page import (
    PAGE,
    Reproduction,
    Shown,
    beside_virtual_time,
    beyond_slots,
    beyond_the_paper,
    ours_text,
    show,
    write_claims,
    write_page,
)
from experiments.papers.registry import paper_of
from experiments.papers.runs import LiveRuns, PlatformRuns
from experiments.studies.model_runs import ModelRun, ModelRuns, numbered_seeds
from experiments.studies.model_settings import ReproduceScale
from experiments.studies.run.execution import ACTORS_S
from experiments.version import version_text
from parsync.metrics.quantity import counted

RUNS, MODELS, LIVE_RUNS = "runs", "models", "live_runs"
_COLOURS = {Verdict.HOLDS: "green", Verdict.DOES_NOT_HOLD: "red", Verdict.NOT_COMPARABLE: "yellow"}


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """The options of `agora reproduce`, which `agora reproduce --help` explains."""

    paper: str
    figures: list[str]
    scale: ReproduceScale
    seeds: int
    out: Path | None
    long: bool = False

    @property
    def seed_numbers(self) -> list[int]:
        """1 to N."""
        return numbered_seeds(self.seeds)


def start(options: ReproduceOptions) -> int:
    """Run the figures, draw them, judge the claims, write the page. Return the exit status.

    Raises:
        AgoraError: An option is wrong, a run does not finish, or nothing can be written.
    """
    paper = paper_of(options.paper)
    figures, left_out = paper.possible(options.figures)
    directory = options.out or Path("runs") / f"reproduce-{options.paper}-{options.scale}"
    return run_continued(
        directory,
        "reproduction",
        "runs",
        partial(_reproduce, options, paper, figures, left_out, directory),
    )


class _Runs:
    """The runs of some figures: those on the platform, in virtual time and live, and those of
    models. AgoraError if this machine has clearly too little memory for one of them."""

    def __init__(
        self, options: ReproduceOptions, figures: Sequence[PaperFigure], directory: Path
    ) -> None:
        self._scale = options.scale
        self._seeds = options.seed_numbers
        self._platform = PlatformRuns(directory / RUNS)
        self._live = LiveRuns(directory / LIVE_RUNS)
        self._models = ModelRuns(directory / MODELS)
        runs = [run for figure in figures for run in figure.runs(self._scale)]
        arms = [run for run in runs if isinstance(run, FigureRun)]
        self.work = self._platform.missing([run for run in arms if not run.live], self._seeds)
        self.live_work = self._live.missing([run for run in arms if run.live], self._seeds)
        self.model_work = self._models.missing(
            [run for run in runs if isinstance(run, ModelRun)], self._seeds
        )
        for config in {id(point.config): point.config for point in self.work}.values():
            check_memory(config, None)

    def unusable(self) -> list[str]:
        """What is kept of missing runs and cannot be used, in sentences."""
        found = (
            self._models.unusable(self.model_work),
            self._platform.unusable(self.work),
            self._live.unusable(self.live_work),
        )
        return [text for text in found if text]

    def run(
        self, interruption: Interruption, progress: Progress, show: Callable[[str], None]
    ) -> None:
        """Run what is missing of all but live runs."""

        def on_done() -> None:
            show(f"reproduce: {progress.step()}")

        self._models.run(self.model_work, interruption, on_done)
        self._platform.run(self.work, interruption, on_done)

    def run_live(self, report: ProgressReport, interruption: Interruption) -> None:
        """Run what is missing of live runs, one after the other."""
        self._live.run_live(self.live_work, report, interruption)

    def show(self, figure: PaperFigure, folder: Path) -> Shown:
        """Judge the claims of a figure, and draw it."""
        runs = figure.runs(self._scale)
        models = tuple(run for run in runs if isinstance(run, ModelRun))
        if models:
            results = Results(models, self._models.results(models, self._seeds), {})
            return self._shown(figure, results, beyond_slots(results), folder)
        arms = tuple(run for run in runs if isinstance(run, FigureRun))
        if any(run.live for run in arms):
            return self._shown_live(figure, arms, folder)
        results = self._platform.results(arms, self._seeds)
        beyond = beyond_the_paper(results)
        if any(run.keeps_mapreduce for run in arms):
            results = self._platform.mapreduce_results(arms, self._seeds)
        return self._shown(figure, results, beyond, folder)

    def _shown_live(self, figure: PaperFigure, runs: tuple[FigureRun, ...], folder: Path) -> Shown:
        virtual = self._platform.results(tuple(run for run in runs if not run.live), self._seeds)
        live, evidence = self._live.results(tuple(run for run in runs if run.live), self._seeds)
        results = Results(
            runs,
            tuple(
                {**of_seed, **also} for of_seed, also in zip(live.seeds, virtual.seeds, strict=True)
            ),
            {**live.series, **virtual.series},
        )
        claims = [judge_live(claim, results.seeds, evidence) for claim in figure.claims]
        beside = beside_virtual_time(results, evidence)
        return show(figure, results, claims, folder, beyond_the_paper(results), beside)

    def _shown(
        self,
        figure: PaperFigure,
        results: Results,
        beyond: Table | None,
        folder: Path,
    ) -> Shown:
        at_paper_scale = self._scale is ReproduceScale.PAPER
        claims = [judge(claim, results.seeds, at_paper_scale) for claim in figure.claims]
        return show(figure, results, claims, folder, beyond)


def _reproduce(
    options: ReproduceOptions,
    paper: Paper,
    figures: tuple[PaperFigure, ...],
    left_out: dict[str, str],
    directory: Path,
    interruption: Interruption,
) -> None:
    with ProgressReport(error_console()) as report:
        with report.stage("what has to run"):
            runs = _Runs(options, figures, directory)
            text, expected_s = _announcement(options, figures, runs)
        check_length(expected_s, options.long)
        skipped = [f"{id} is left out. {reason}" for id, reason in left_out.items()]
        for line in (text, *skipped, *runs.unusable()):
            report.console.print(Text(line), soft_wrap=True)
        progress = Progress(len(runs.work) + len(runs.model_work))
        with report.stage("reproduce") as show:
            runs.run(interruption, progress, show)
        runs.run_live(report, interruption)
        shown = []
        with report.stage("figures") as show:
            for figure in figures:
                interruption.check()
                show(f"figures: {figure.id}")
                shown.append(runs.show(figure, directory / "figures"))
    claims = [claim for one in shown for claim in one.claims]
    reproduction = Reproduction(
        version=version_text(),
        paper=paper.id,
        scale=options.scale.value,
        seeds=options.seed_numbers,
        figures=[figure.id for figure in figures],
        left_out=left_out,
        claims=claims,
    )
    write_claims(directory, reproduction)
    write_page(directory, paper, reproduction, shown)
    output_console().print(_table(claims))
    if any(claim.scale == "demo" for claim in claims):
        output_console().print(
            "Claims on live figures are judged at the demo's scale, not the paper's."
        )
    error_console().print(Text(f"page: {directory / PAGE}"), soft_wrap=True)


def _announcement(
    options: ReproduceOptions, figures: tuple[PaperFigure, ...], runs: _Runs
) -> tuple[str, float]:
    """What will run, with about how long that takes on this machine, and that time in seconds."""
    what = counted(len(figures), "figure")
    if any(not figure.only_by_name for figure in figures):
        what += f" at {options.scale} scale"
    work, model_work, live_work = runs.work, runs.model_work, runs.live_work
    if not work and not model_work and not live_work:
        return f"{what}: all runs are done already.", 0.0
    expected_s = sum(task.run.expected_s for task in model_work)
    workloads = {}
    for point in work:
        key = point.config.workload.model_dump_json()
        if key not in workloads:
            workloads[key] = point.config.workload.make(point.seed)
        expected_s += expected_run_s(point.arm, workloads[key], None)
    all_s = on_this_machine_s(expected_s, len(work) + len(model_work)) if work or model_work else 0
    for point in live_work:
        workload = make_workload(point.config, point.seed)
        all_s += workload.end_us / 1e6 + ACTORS_S
    parts = [
        text
        for count, text in (
            (len(model_work), counted(len(model_work), "run") + " of a model"),
            (len(work), counted(len(work), "run") + " in virtual time"),
            (len(live_work), counted(len(live_work), "live run") + " at the demo's scale"),
        )
        if count
    ]
    return f"{what}: {' and '.join(parts)}, about {time_text(all_s)}.", all_s


def _table(claims: list[ClaimResult]) -> RichTable:
    table = RichTable(box=None, pad_edge=False)
    for name in ("claim", "ours", "limits", "verdict"):
        table.add_column(name)
    for claim in claims:
        verdict = Text(claim.verdict.replace("_", " "), style=_COLOURS[Verdict(claim.verdict)])
        table.add_row(claim.id, ours_text(claim), claim.limits, verdict)
    return table
