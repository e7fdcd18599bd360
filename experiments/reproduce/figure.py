"""A figure or table of a paper: what has to run for it, how it is drawn, and what the paper says.

A new figure is a PaperFigure (of the figures of runs on the platform), a MapReduceFigure (of the
MapReduce jobs of such runs) or a ModelFigure (of runs of a model) in the module of its section, and
a place in registry.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.config import RunConfig
from experiments.model_runs.run import Arrays, ModelRun
from experiments.reproduce.claims import ClaimOf
from experiments.summary_model import SeedFigures
from parsync.spec.arm import ArmConfig
from shared_state.errors import AgoraError

R = TypeVar("R")  # what has to run
M = TypeVar("M")  # what it measures

Series = Mapping[str, NDArray[np.generic]]


class ReproduceScale(StrEnum):
    """The size of the runs.

    SMOKE: a small cell and short runs, to see that a figure can be made.
    PAPER: the paper's cell and phases; where these are not public, what stands in for them.
    """

    SMOKE = "smoke"
    PAPER = "paper"


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


@dataclass(frozen=True)  # slots and a generic alias do not go together
class ResultsOf(Generic[R, M]):
    """What a figure's runs measured.

    Attributes:
        runs: The runs of the figure.
        seeds: What they measured by label, seed by seed.
        series: The time series of the first seed, by label (parsync.metrics.summary.series); none
            of runs of a model.
    """

    runs: tuple[R, ...]
    seeds: tuple[Mapping[str, M], ...]
    series: Mapping[str, Series]

    def first(self, label: str) -> M:
        """What a run measured under the first seed."""
        return self.seeds[0][label]

    def of(self, label: str) -> list[M]:
        """What a run measured, seed by seed."""
        return [runs[label] for runs in self.seeds]


Results = ResultsOf[FigureRun, SeedFigures]
ModelResults = ResultsOf[ModelRun, Arrays]
MapReduceResults = ResultsOf[FigureRun, Arrays]


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


@dataclass(frozen=True)  # slots and a generic alias do not go together
class FigureOf(Generic[R, M]):
    """A figure or table of a paper.

    Attributes:
        id: Such as "fig5" or "table1".
        title: What it shows.
        source: Its place in the paper.
        runs: What has to run, at a scale.
        claims: What the paper says of it.
        draw: Draws it in the paper's form; None for a table.
        table: Makes it, or for a figure the table of its numbers; None if there is none.
        notes: The paper's inconsistencies, and choices where the paper is silent.
        only_by_name: It is not made unless it is asked for by its id.
    """

    id: str
    title: str
    source: str
    runs: Callable[[ReproduceScale], tuple[R, ...]]
    claims: tuple[ClaimOf[M], ...]
    draw: Callable[[ResultsOf[R, M]], Figure] | None = None
    table: Callable[[ResultsOf[R, M]], Table] | None = None
    notes: tuple[str, ...] = ()
    only_by_name: bool = False


@dataclass(frozen=True)
class PaperFigure(FigureOf[FigureRun, SeedFigures]):
    """A figure or table whose runs are arms on the platform."""


@dataclass(frozen=True)
class ModelFigure(FigureOf[ModelRun, Arrays]):
    """A figure or table whose runs are those of a model."""


@dataclass(frozen=True)
class MapReduceFigure(FigureOf[FigureRun, Arrays]):
    """A figure whose runs are arms on the platform that keep the arrays of mapreduce_arrays.py, on
    which its claims and its drawing rest."""


AnyFigure = PaperFigure | ModelFigure | MapReduceFigure


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
    figures: tuple[AnyFigure, ...]

    def chosen(self, ids: Sequence[str]) -> tuple[AnyFigure, ...]:
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
