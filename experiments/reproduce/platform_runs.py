"""The runs of figures on the platform, in virtual time, kept as soon as they are done.

Runs that several figures need are done once. Under the first seed a run also keeps its time
series, which plots are drawn from. Runs whose figures need it keep what became of their MapReduce
jobs, under every seed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.campaign.loop import missing, run_tasks
from experiments.campaign.points import Point
from experiments.campaign.store import ARRAYS, Store
from experiments.campaign.task import Arrays
from experiments.interruption import Interruption
from experiments.reproduce.figure import FigureRun, MapReduceResults, Results
from experiments.reproduce.mapreduce_arrays import mapreduce_arrays
from experiments.summary_model import SeedFigures
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import series
from parsync.workload.workload import Workload

MAPREDUCE = "mapreduce"


class PlatformRuns:
    """The runs in a folder, with the arrays ARRAYS of those whose series are drawn, and MAPREDUCE
    of those that keep their MapReduce jobs."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(folder, SeedFigures)
        self._figures: dict[str, SeedFigures] = {}
        self._mapreduce: dict[str, Arrays] = {}

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

    def run(
        self, work: Sequence[Point], interruption: Interruption, on_done: Callable[[], None]
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
        with contextlib.closing(run_tasks(work, interruption, store=self._store)) as results:
            for _ in results:
                on_done()

    def results(self, runs: tuple[FigureRun, ...], seeds: Sequence[int]) -> Results:
        """What the runs of a figure measured; all of them are done. Raises AgoraError if a kept
        file cannot be read."""
        of_seeds = tuple({run.label: self._of(_key(run, seed)) for run in runs} for seed in seeds)
        drawn = {
            run.label: self._store.result(_key(run, seeds[0]), (ARRAYS,)).arrays[ARRAYS]
            for run in runs
            if run.draws_series
        }
        return Results(runs, of_seeds, drawn)

    def mapreduce_results(
        self, runs: tuple[FigureRun, ...], seeds: Sequence[int]
    ) -> MapReduceResults:
        """The arrays of mapreduce_arrays.py of the runs of a figure; all of them are done. Raises
        AgoraError if a kept file cannot be read."""
        of_seeds = tuple({run.label: self._jobs(_key(run, seed)) for run in runs} for seed in seeds)
        return MapReduceResults(runs, of_seeds, {})

    def _of(self, key: str) -> SeedFigures:
        if key not in self._figures:
            self._figures[key] = self._store.result(key).figures
        return self._figures[key]

    def _jobs(self, key: str) -> Arrays:
        if key not in self._mapreduce:
            self._mapreduce[key] = self._store.result(key, (MAPREDUCE,)).arrays[MAPREDUCE]
        return self._mapreduce[key]


def _key(run: FigureRun, seed: int) -> str:
    return Point(run.config, run.arm, seed).key()


def _series(metrics: RunMetrics, workload: Workload) -> Arrays:
    return series(metrics)
