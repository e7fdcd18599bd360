"""The runs of figures on the platform, kept as soon as they are done.

In virtual time, runs that several figures need are done once. Under the first seed a run also keeps
its time series, which plots are drawn from. Runs whose figures need it keep what became of their
MapReduce jobs, under every seed. Runs on Ray are kept with whether they are valid.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.arm_runners import ArmJob, arm_runner, live_validity, run_and_show
from experiments.campaign.loop import KeptRuns, missing, this_process
from experiments.campaign.points import Point
from experiments.campaign.preconditions import check_memory
from experiments.campaign.progress import ProgressReport
from experiments.campaign.running import ArmRunner, figures_of_run, make_workload
from experiments.campaign.task import ARRAYS, Arrays, Measured, Store, Task
from experiments.interruption import Interruption
from experiments.papers.chapter import FigureRun, Results
from experiments.results.mapreduce import run_times_us
from parsync.metrics.kinds.jobs import UNKNOWN, JobMetric
from parsync.metrics.kinds.validity import Validity
from parsync.metrics.quantity import Count, Figures, counted
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import series
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

RUN_US, USED_AT_US, USED_PERMILLE = "run_us", "used_at_us", "used_permille"


def mapreduce_arrays(metrics: RunMetrics, workload: Workload) -> dict[str, NDArray[Any]]:
    """The arrays of a run in which messages take no time: a task starts when it is committed.

    Returns:
        run_us: int64[j], of each MapReduce job (experiments.results.mapreduce.run_times_us).
        used_at_us, used_permille: int64[s], samples of the use of the cell's first resource
            (processors), while jobs arrive.

    Raises:
        AgoraError: The workload has no MapReduce jobs, or the run has no times of jobs.
    """
    times = metrics.get(JobMetric).task_times()
    if workload.mapreduce is None or times is None:
        raise AgoraError("the workload has no MapReduce jobs")
    commit_us, finish_us = times
    started, finished = np.flatnonzero(commit_us != UNKNOWN), np.flatnonzero(finish_us != UNKNOWN)
    run_us = run_times_us(
        workload.mapreduce, started, commit_us[started], finished, finish_us[finished]
    )
    cell = metrics.samples("cell")
    arriving = cell["at_us"] <= workload.phases[-1].end_us
    return {
        RUN_US: run_us,
        USED_AT_US: cell["at_us"][arriving].astype(np.int64),
        USED_PERMILLE: cell["used_permille"][arriving].astype(np.int64),
    }


MAPREDUCE = "mapreduce"


class PlatformRuns(KeptRuns[SeedFigures]):
    """The runs that are kept in a folder, with the arrays ARRAYS of those whose series are drawn,
    and MAPREDUCE of those that keep their MapReduce jobs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Store(folder, SeedFigures))

    def missing(self, runs: Sequence[FigureRun], seeds: Sequence[int]) -> list[Point]:
        """What has not run yet, seed by seed, each once."""
        points = []
        for seed in seeds:
            for run in runs:
                arrays = {ARRAYS: _series} if run.draws_series and seed == seeds[0] else {}
                if run.keeps_mapreduce:
                    arrays[MAPREDUCE] = mapreduce_arrays
                points.append(Point(run.config, run.arm, seed, arrays))
        return missing(points, self._store)

    def results(self, runs: tuple[FigureRun, ...], seeds: Sequence[int]) -> Results:
        """What the runs of a figure measured; all of them are done. Raises AgoraError if a kept
        file cannot be read."""
        return Results(
            runs,
            tuple(
                {run.label: self.result(_key(run, seed)).figures for run in runs} for seed in seeds
            ),
            {run.label: self._arrays(run, seeds[0], ARRAYS) for run in runs if run.draws_series},
        )

    def mapreduce_results(self, runs: tuple[FigureRun, ...], seeds: Sequence[int]) -> Results:
        """The arrays of mapreduce_arrays of the runs of a figure; all of them are done. Raises
        AgoraError if a kept file cannot be read."""
        of_seeds = (
            {run.label: self._arrays(run, seed, MAPREDUCE) for run in runs} for seed in seeds
        )
        return Results(runs, tuple(of_seeds), {})

    def _arrays(self, run: FigureRun, seed: int, name: str) -> Arrays:
        return self.result(_key(run, seed), (name,)).arrays[name]


def _key(run: FigureRun, seed: int) -> str:
    return Point(run.config, run.arm, seed).key()


def _series(metrics: RunMetrics, workload: Workload) -> Arrays:
    return series(metrics)


class LiveEvidence(Figures):
    """Whether the figures of a live run can be trusted.

    Attributes:
        validity: Whether it was disturbed.
        restarts: How many times an actor was started again.
    """

    validity: Validity
    restarts: Count

    def why_not_valid(self) -> str:
        """Why they cannot, in one sentence; "" if they can."""
        if self.restarts:
            return f"{counted(self.restarts, 'restart')} of an actor."
        if not self.validity.seconds:
            return "nothing is known of disturbances."
        if not self.validity.is_disturbed:
            return ""
        number = len(self.validity.disturbed)
        return f"{number} of {counted(self.validity.seconds, 'second')} were disturbed."


EvidenceOfSeed = Mapping[str, LiveEvidence]  # by the run's label


class LiveFigures(Figures):
    """What a live run measured. evidence: whether its figures can be trusted."""

    figures: SeedFigures
    evidence: LiveEvidence


@dataclass(frozen=True)
class LiveTask(Task[LiveFigures]):
    """A run on Ray, in this process: it needs what only this process has.

    Attributes:
        point: What runs.
        folder: Receives its logs and measurements, which go once it is done.
        title: For people who watch it.
        runner, report, interruption: Of the command.
    """

    point: Point
    folder: Path
    title: str
    runner: ArmRunner
    report: ProgressReport
    interruption: Interruption

    def named(self) -> tuple[str, int]:
        return self.point.named()

    def key(self) -> str:
        return self.point.key()

    @property
    def keeps(self) -> Collection[str]:
        return (ARRAYS,)

    def accepts(self, kept: Measured[LiveFigures]) -> bool:
        return not kept.figures.evidence.why_not_valid()

    def measure(self, before: Measured[LiveFigures] | None) -> Measured[LiveFigures]:
        point, folder = self.point, self.folder
        shutil.rmtree(folder, ignore_errors=True)  # of a run that did not get to its end
        config = point.config.model_copy(update={"runtime": "ray", "seed": point.seed})
        workload = make_workload(config, point.seed)
        job = ArmJob(point.arm, self.runner, folder)
        run = run_and_show(config, job, workload, self.title, self.report, self.interruption)
        self.interruption.check()
        if run.stopped:
            raise AgoraError(f"{point}, live: {run.stopped}; its logs: {folder}")
        evidence = LiveEvidence(validity=live_validity(config, run), restarts=len(run.restarts))
        figures = LiveFigures(figures=figures_of_run(run, workload), evidence=evidence)
        shutil.rmtree(folder, ignore_errors=True)
        return Measured(figures, {ARRAYS: series(run.metrics)})


class LiveRuns(KeptRuns[LiveFigures]):
    """The live runs that are kept in a folder, with their series."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Store(folder, LiveFigures), this_process)
        self._folder = folder

    def missing(self, runs: Sequence[FigureRun], seeds: Sequence[int]) -> list[Point]:
        """What has not run yet, or not validly: seed by seed, each once."""
        found: dict[str, Point] = {}
        for seed in seeds:
            for run in runs:
                point = Point(run.config, run.arm, seed)
                kept = self._store.get(point.key(), (ARRAYS,))
                if kept is None or kept.figures.evidence.why_not_valid():
                    found[point.key()] = point
        return list(found.values())

    def run_live(
        self, points: Sequence[Point], report: ProgressReport, interruption: Interruption
    ) -> None:
        """Run what is missing on one Ray, one after the other, and show how far each is.

        Args:
            points: What `missing` returned.
            report: Receives the progress.
            interruption: Looked at several times a second.

        Raises:
            KeyboardInterrupt: A stop signal was received. What is done is kept.
            AgoraError: Ray does not start, a run does not finish, or cannot be kept.
        """
        if not points:
            return
        first = points[0].config.model_copy(update={"runtime": "ray"})
        check_memory(first, None)
        self._store.make()
        with arm_runner(first, hold=False, report=report) as runner:
            tasks = []
            for number, point in enumerate(points, start=1):
                folder = self._folder / point.key()
                title = f"{number}/{len(points)} {point}, live"
                tasks.append(LiveTask(point, folder, title, runner, report, interruption))
            self.run(tasks, interruption, lambda: None)

    def results(
        self, runs: tuple[FigureRun, ...], seeds: Sequence[int]
    ) -> tuple[Results, tuple[EvidenceOfSeed, ...]]:
        """What the live runs of a figure measured, and whether that can be trusted, seed by seed;
        all of them are done. Raises AgoraError if a kept file cannot be read."""
        kept = [{run.label: self._of(run, seed) for run in runs} for seed in seeds]
        figures = tuple({label: its.figures.figures for label, its in of.items()} for of in kept)
        evidence = tuple({label: its.figures.evidence for label, its in of.items()} for of in kept)
        drawn = {label: its.arrays[ARRAYS] for label, its in kept[0].items()}
        return Results(runs, figures, drawn), evidence

    def _of(self, run: FigureRun, seed: int) -> Measured[LiveFigures]:
        return self.result(Point(run.config, run.arm, seed).key(), (ARRAYS,))
