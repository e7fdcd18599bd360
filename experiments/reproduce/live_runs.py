"""The runs of figures on Ray, kept as soon as they are done, each with whether it is valid."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.campaign.points import Point
from experiments.campaign.progress import ProgressReport
from experiments.execution import arm_runner
from experiments.interruption import Interruption
from experiments.live_validity import live_validity
from experiments.model_files import read_model, write_model, writing
from experiments.preconditions import check_memory
from experiments.reproduce.figure import FigureRun, Results
from experiments.running import figures_of_run, make_workload
from experiments.series_files import read_arrays, write_arrays
from experiments.stages import Job, run_and_show
from experiments.summary_model import VERSION, SeedFigures, Version
from experiments.version import version_text
from parsync.metrics.figures import Count, Figures
from parsync.metrics.quantity import counted
from parsync.metrics.summary import series
from parsync.metrics.validity import Validity
from shared_state.errors import AgoraError


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


class KeptLiveRun(Figures):
    """A live run that was done.

    Attributes:
        version: The version of Agora that did it.
        arm, seed: Of the run, for people who read the file.
        evidence: Whether its figures can be trusted.
    """

    format: Version = VERSION
    version: str
    arm: str
    seed: int
    figures: SeedFigures
    evidence: LiveEvidence


class LiveRuns:
    """The live runs in a folder: <key>.json (the model KeptLiveRun), and <key>.npz, the series."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._version = version_text()
        self._kept: dict[str, KeptLiveRun] = {}

    def missing(self, runs: Sequence[FigureRun], seeds: Sequence[int]) -> list[Point]:
        """What has not run yet, or not validly: seed by seed, each once."""
        found: dict[str, Point] = {}
        for seed in seeds:
            for run in runs:
                point = Point(run.config, run.arm, seed)
                kept = self._read(point.key())
                if kept is None or kept.evidence.why_not_valid():
                    found[point.key()] = point
        return list(found.values())

    def run(
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
        with writing(self._folder):
            self._folder.mkdir(exist_ok=True)
        with arm_runner(first, hold=False, report=report) as runner:
            for number, point in enumerate(points, start=1):
                interruption.check()
                job = Job(point.arm, runner, self._folder / point.key())
                title = f"{number}/{len(points)} {point}, live"
                self._run(point, job, title, report, interruption)
                shutil.rmtree(job.folder, ignore_errors=True)  # logs and measurements

    def _run(
        self,
        point: Point,
        job: Job,
        title: str,
        report: ProgressReport,
        interruption: Interruption,
    ) -> None:
        shutil.rmtree(job.folder, ignore_errors=True)  # of a run that did not get to its end
        config = point.config.model_copy(update={"runtime": "ray", "seed": point.seed})
        workload = make_workload(config, point.seed)
        run = run_and_show(config, job, workload, title, report, interruption)
        interruption.check()
        if run.stopped:
            raise AgoraError(f"{point}, live: {run.stopped}; its logs: {job.folder}")
        key = point.key()
        kept = KeptLiveRun(
            version=self._version,
            arm=point.arm.name,
            seed=point.seed,
            figures=figures_of_run(run, workload),
            evidence=LiveEvidence(validity=live_validity(config, run), restarts=len(run.restarts)),
        )
        with writing(self._path(key)):
            write_arrays(self._path(key), series(run.metrics))
        write_model(self._folder / f"{key}.json", kept)
        self._kept[key] = kept

    def results(
        self, runs: tuple[FigureRun, ...], seeds: Sequence[int]
    ) -> tuple[Results, tuple[EvidenceOfSeed, ...]]:
        """What the live runs of a figure measured, and whether that can be trusted, seed by seed;
        all of them are done. Raises AgoraError if a kept file cannot be read."""
        of_seeds = [
            {run.label: self._kept[Point(run.config, run.arm, seed).key()] for run in runs}
            for seed in seeds
        ]
        figures = tuple(
            {label: kept.figures for label, kept in of_seed.items()} for of_seed in of_seeds
        )
        evidence = tuple(
            {label: kept.evidence for label, kept in of_seed.items()} for of_seed in of_seeds
        )
        keys = {run.label: Point(run.config, run.arm, seeds[0]).key() for run in runs}
        drawn = {label: read_arrays(self._path(key)) for label, key in keys.items()}
        return Results(runs, figures, drawn), evidence

    def _read(self, key: str) -> KeptLiveRun | None:
        """What is kept of a run; None if nothing is, or it cannot be used."""
        path = self._folder / f"{key}.json"
        if not path.exists():
            return None
        try:
            kept = read_model(path, KeptLiveRun)
            read_arrays(self._path(key))
        except AgoraError:
            return None
        if kept.version != self._version:
            return None
        self._kept[key] = kept
        return kept

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.npz"
