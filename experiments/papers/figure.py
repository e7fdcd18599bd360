"""A figure or table of a paper: what has to run for it, how it is drawn, and what the paper says.

A new figure has its texts and claims in the file of its chapter (chapter.py), and its runs,
statistics and drawing in the module beside it. A new chapter has a place in registry.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.config.run_config import RunConfig
from experiments.papers.claims import Claim, RunsOfSeed
from experiments.studies.model_runs.run import ModelRun
from experiments.studies.model_runs.settings import ReproduceScale
from parsync.spec.arm import ArmConfig
from shared_state.errors import AgoraError

Series = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class FigureRun:
    """An arm that a figure needs, on the workload of a configuration.

    Attributes:
        label: Its name in the figure; unique there.
        config: Everything but the arm and the seed.
        arm: The arm.
        draws_series: Whether its time series of the first seed are drawn.
        keeps_mapreduce: Whether it keeps, under every seed, how long its MapReduce jobs ran and how
            much of the cell was in use (mapreduce_arrays.py).
        live: It runs on Ray, in real time.
    """

    label: str
    config: RunConfig
    arm: ArmConfig
    draws_series: bool = True
    keeps_mapreduce: bool = False
    live: bool = False


Run = FigureRun | ModelRun


@dataclass(frozen=True, slots=True)
class Results:
    """What a figure's runs measured.

    Attributes:
        runs: The runs of the figure.
        seeds: What they measured by label, seed by seed: figures of an arm (SeedFigures), or the
            arrays of a run that keeps its MapReduce jobs, or of a run of a model.
        series: The time series of the first seed, by label (parsync.metrics.summary.series); none
            of runs of a model.
    """

    runs: tuple[Run, ...]
    seeds: tuple[RunsOfSeed, ...]
    series: Mapping[str, Series]

    def first(self, label: str) -> Any:
        """What a run measured under the first seed."""
        return self.seeds[0][label]

    def of(self, label: str) -> list[Any]:
        """What a run measured, seed by seed."""
        return [runs[label] for runs in self.seeds]


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the paper's form, ours beside the paper's.

    Attributes:
        header: The names of the columns.
        rows: The cells of each row, as text.
        note: What a reader has to know about the table.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure or table of a paper.

    Attributes:
        id: Such as "fig5" or "table1".
        title: What it shows.
        source: Its place in the paper.
        runs: What has to run, at a scale: all of them arms on the platform, or all runs of models.
        claims: What the paper says of it.
        draw: Draws it in the paper's form; None for a table.
        table: Makes it, or for a figure the table of its numbers; None if there is none.
        notes: The paper's inconsistencies, and choices where the paper is silent.
        only_by_name: It is not made unless it is asked for by its id.
    """

    id: str
    title: str
    source: str
    runs: Callable[[ReproduceScale], tuple[Run, ...]]
    claims: tuple[Claim, ...]
    draw: Callable[[Results], Figure] | None = None
    table: Callable[[Results], Table] | None = None
    notes: tuple[str, ...] = ()
    only_by_name: bool = False


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose figures can be reproduced.

    Attributes:
        id: As the command takes it.
        title: How the page calls it.
        smoke_note: What the runs at smoke scale are, in one sentence.
        figures: In the paper's order; their claims have ids of their own.
    """

    id: str
    title: str
    smoke_note: str
    figures: tuple[PaperFigure, ...]

    def chosen(self, ids: Sequence[str]) -> tuple[PaperFigure, ...]:
        """Some figures, in the paper's order; if no ids are given, all but those that are made only
        by name.

        Raises:
            AgoraError: There is no such figure.
        """
        known = [figure.id for figure in self.figures]
        for one in ids:
            if one not in known:
                raise AgoraError(f"FIGURE {one!r}: expected some of {', '.join(known)}")
        return tuple(
            figure
            for figure in self.figures
            if (figure.id in ids if ids else not figure.only_by_name)
        )
