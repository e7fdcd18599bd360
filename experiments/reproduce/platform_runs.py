"""The runs of figures on the platform, in virtual time, kept as soon as they are done.

Runs that several figures need are done once. Under the first seed a run also keeps its time
series, which plots are drawn from. Runs whose figures need it keep what became of their MapReduce
jobs, under every seed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.campaign.points import Point
from experiments.campaign.pool import local_map
from experiments.campaign.store import KeptPoints
from experiments.campaign.task import PointFailed
from experiments.interruption import Interruption
from experiments.kept_arrays import keep_arrays, kept_arrays
from experiments.model_files import writing
from experiments.model_runs.run import Arrays
from experiments.reproduce.figure import FigureRun, MapReduceResults, Results, Series
from experiments.reproduce.mapreduce_arrays import mapreduce_arrays
from experiments.running import figures_of_run, run_arm_virtual
from experiments.series_files import read_arrays, write_arrays
from experiments.summary_model import SeedFigures
from experiments.sweeps.workload_cache import workload_cache
from parsync.metrics.summary import series
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class Work:
    """A run, and the files that receive its time series and the arrays of its MapReduce jobs; None
    if no figure needs them."""

    point: Point
    series: Path | None
    mapreduce: Path | None = None

    def __str__(self) -> str:
        return str(self.point)


class PlatformRuns:
    """The runs in a folder: <key>.json; <key>.npz for those whose series are drawn; and
    <key>-mapreduce.npz for those that keep their MapReduce jobs.

    Raises:
        AgoraError: The folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = KeptPoints(folder)
        self._figures: dict[str, SeedFigures] = {}
        self._mapreduce: dict[str, Arrays] = {}

    def missing(self, runs: Sequence[FigureRun], seeds: Sequence[int]) -> list[Work]:
        """What has not run yet, seed by seed, each once."""
        found: dict[str, Work] = {}
        for seed in seeds:
            for run in runs:
                point = Point(run.config, run.arm, seed)
                key = point.key()
                path = self._path(key) if run.draws_series and seed == seeds[0] else None
                jobs = self._mapreduce_path(key) if run.keeps_mapreduce else None
                known = found.get(key)
                if known is not None:
                    found[key] = Work(point, known.series or path, known.mapreduce or jobs)
                elif not (
                    self._has(key)
                    and (path is None or _is_readable(path))
                    and (jobs is None or self._has_mapreduce(key))
                ):
                    found[key] = Work(point, path, jobs)
        return list(found.values())

    def run(
        self, work: Sequence[Work], interruption: Interruption, on_done: Callable[[], None]
    ) -> None:
        """Run what is missing, one run for each processor at a time.

        Args:
            work: What `missing` returned.
            interruption: Looked at several times a second.
            on_done: Called after each run.

        Raises:
            KeyboardInterrupt: A stop signal was received. What is done is kept.
            AgoraError: A run does not finish, or cannot be kept.
        """
        with contextlib.closing(local_map(run_one, work, interruption.check)) as results:
            for index, result in results:
                if isinstance(result, PointFailed):
                    raise AgoraError(result.reason)
                point = work[index].point
                self._kept.put(point.key(), point, result)
                self._figures[point.key()] = result
                on_done()

    def results(self, runs: tuple[FigureRun, ...], seeds: Sequence[int]) -> Results:
        """What the runs of a figure measured; all of them are done. Raises AgoraError if a kept
        file cannot be read."""
        of_seeds = []
        for seed in seeds:
            keys = {run.label: Point(run.config, run.arm, seed).key() for run in runs}
            of_seeds.append({label: self._figures[key] for label, key in keys.items()})
        drawn = {
            run.label: self._series(Point(run.config, run.arm, seeds[0]).key())
            for run in runs
            if run.draws_series
        }
        return Results(runs, tuple(of_seeds), drawn)

    def mapreduce_results(
        self, runs: tuple[FigureRun, ...], seeds: Sequence[int]
    ) -> MapReduceResults:
        """The arrays of mapreduce_arrays.py of the runs of a figure; all of them are done. Raises
        AgoraError if a kept file cannot be read."""
        of_seeds = []
        for seed in seeds:
            keys = {run.label: Point(run.config, run.arm, seed).key() for run in runs}
            for key in keys.values():
                if not self._has_mapreduce(key):
                    raise AgoraError(f"{self._mapreduce_path(key)}: cannot read the arrays")
            of_seeds.append({label: self._mapreduce[key] for label, key in keys.items()})
        return MapReduceResults(runs, tuple(of_seeds), {})

    def _has_mapreduce(self, key: str) -> bool:
        if key not in self._mapreduce:
            arrays = kept_arrays(self._mapreduce_path(key))
            if arrays is None:
                return False
            self._mapreduce[key] = arrays
        return True

    def _mapreduce_path(self, key: str) -> Path:
        return self._folder / f"{key}-mapreduce.npz"

    def _has(self, key: str) -> bool:
        if key not in self._figures:
            figures = self._kept.get(key)
            if figures is None:
                return False
            self._figures[key] = figures
        return True

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.npz"

    def _series(self, key: str) -> Series:
        return read_arrays(self._path(key))


def _is_readable(path: Path) -> bool:
    """Whether time series can be read from a file; one that is missing or damaged is made anew."""
    try:
        read_arrays(path)
    except AgoraError:
        return False
    return True


def run_one(work: Work) -> SeedFigures | PointFailed:
    """Run one arm under one seed; in a process of its own."""
    point = work.point
    try:
        workload = workload_cache().make(point.config, point.seed)
        run = run_arm_virtual(
            point.config, point.arm, workload, point.seed, None, lambda _: None, Interruption()
        )
        if run.stopped:
            return PointFailed(f"{point}: {run.stopped}")
        if work.series is not None:
            with writing(work.series):
                write_arrays(work.series, series(run.metrics))
        if work.mapreduce is not None:
            keep_arrays(work.mapreduce, mapreduce_arrays(run.metrics, workload))
        return figures_of_run(run, workload)
    except AgoraError as error:
        return PointFailed(str(error))
    except MemoryError:
        return PointFailed(f"{point}: not enough memory")
