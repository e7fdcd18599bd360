"""A figure or table of a paper: what has to run for it, how it is drawn, and what the paper says.

A new figure is a PaperFigure in the module of its section, and a place in registry.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.arm_config import ArmConfig
from experiments.config import RunConfig
from experiments.reproduce.claims import ArmsOfSeed, Claim
from experiments.summary_model import SeedFigures

Series = Mapping[str, NDArray[np.generic]]


class ReproduceScale(StrEnum):
    """The size of the runs.

    SMOKE: a tenth of the paper's cell and shorter phases, to see that a figure can be made.
    PAPER: the paper's cell and phases.
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
    """

    label: str
    config: RunConfig
    arm: ArmConfig
    draws_series: bool = True


@dataclass(frozen=True, slots=True)
class Results:
    """What a figure's runs measured.

    Attributes:
        runs: The runs of the figure.
        seeds: The figures of its runs by label, seed by seed.
        series: The time series of the first seed, by label (parsync.metrics.summary.series).
    """

    runs: tuple[FigureRun, ...]
    seeds: tuple[ArmsOfSeed, ...]
    series: Mapping[str, Series]

    def first(self, label: str) -> SeedFigures:
        """The figures of a run under the first seed."""
        return self.seeds[0][label]


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
        runs: What has to run, at a scale.
        claims: What the paper says of it.
        draw: Draws it in the paper's form; None for a table.
        table: Makes it; None for a figure.
        notes: The paper's inconsistencies, and choices where the paper is silent.
    """

    id: str
    title: str
    source: str
    runs: Callable[[ReproduceScale], tuple[FigureRun, ...]]
    claims: tuple[Claim, ...]
    draw: Callable[[Results], Figure] | None = None
    table: Callable[[Results], Table] | None = None
    notes: tuple[str, ...] = ()
