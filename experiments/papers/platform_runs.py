"""The runs of figures on the platform, in virtual time, kept as soon as they are done.

Runs that several figures need are done once. Under the first seed a run also keeps its time
series, which plots are drawn from. Runs whose figures need it keep what became of their MapReduce
jobs, under every seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.loop import KeptRuns, missing
from experiments.campaign.points import Point
from experiments.campaign.store import ARRAYS, Store
from experiments.campaign.task import Arrays
from experiments.papers.figure import FigureRun, Results
from experiments.papers.mapreduce_arrays import mapreduce_arrays
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import series
from parsync.workload.workload import Workload

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
        """The arrays of mapreduce_arrays.py of the runs of a figure; all of them are done. Raises
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
