"""The models of frontier.json: the points of every architecture, what they dominate, and who is
best where."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from experiments.analysis.model_files import read_model, write_model
from experiments.analysis.statistics import Interval
from experiments.analysis.summary_model import FORMAT, PhaseBound, Version
from experiments.config.decision_basis import DecisionBasis
from parsync.metrics.quantity import Count, Figures, Number, Quantity

FRONTIER = "frontier.json"
POINTS = "points.parquet"  # a row for each run

# The figures that span a frontier: a delay and a quality.
DELAYS = ("delay_mean_us", "delay_p99_us")
QUALITIES = ("preferred_share", "cost_mean")
# Further figures of every point, as far as there are any.
BESIDE = (
    "set_preferred_share_worst",
    "set_preferred_share_mean",
    "jct_mean_us",
    "conflict_rate",
    "utilisation_mean",
)


class FrontierCondition(Figures):
    """What all architectures meet alike.

    Attributes:
        load_percent, gap_s: None where it is the workload's or the arms' own.
        bound: What schedulers could reach at most over all phases, under the first seed; None where
            that is not known, or there is no steady state.
    """

    load_percent: Count | None
    gap_s: Number | None
    bound: PhaseBound | None = None


class FrontierArchitecture(Figures):
    """An architecture.

    Attributes:
        arm: The name of the run's arm whose knob it turns.
        knob: The path of the setting; None if there is none.
        prices: The slot prices of the arm as configured, in words; "" if it has none, or if the
            knob chooses them.
        basis: What its delays rest on, and so which architectures it is ranked beside.
    """

    name: str
    arm: str
    knob: str | None
    prices: str
    basis: DecisionBasis


class FrontierPoint(Figures):
    """An architecture at one value of its knob, under one condition.

    Attributes:
        architecture, condition: Indices.
        value: Of the knob; None if there is none.
        text: The value for people.
        figures: The median over the seeds, by quantity.
        bounds: The delays and job completion times among them that are lower bounds, for tasks or
            jobs were left.
        transient: Of how many seeds a load phase drifted.
        not_dominated: By delay and quality joined by "/": whether no other point of its
            architecture under its condition is better in both.
    """

    architecture: Count
    condition: Count
    value: bool | int | float | str | None
    text: str
    figures: dict[str, Interval]
    bounds: list[str]
    transient: Count
    not_dominated: dict[str, bool]


class FrontierBox(Figures):
    """The box of the dominated areas (studies/frontiers/build.py): its delays, and the worst
    and best value of a quality."""

    fastest_us: Number
    slowest_us: Number
    worst: dict[str, Number]
    best: dict[str, Number]


class FrontierArea(Figures):
    """The dominated area of an architecture under a condition, in parts of the box.

    Attributes:
        delay, quality: The figures that span the box.
        area: The median over the seeds, each with its own points.
        by_seed: In the order of the seeds.
    """

    architecture: Count
    condition: Count
    delay: str
    quality: str
    area: Interval
    by_seed: list[Number]


class FrontierBest(Figures):
    """Who dominates most under a condition, among architectures that may be ranked beside each
    other.

    Attributes:
        members: Their indices.
        best: The one with the largest median area; None where all areas are 0.
        tied: Those whose area is not certainly smaller: the interval of the paired difference
            includes 0, corrected for the number of comparisons (Bonferroni).
        seeds_needed: How many seeds so many corrected comparisons take. With fewer, all others are
            tied.
    """

    condition: Count
    delay: str
    quality: str
    members: list[Count]
    best: Count | None
    tied: list[Count]
    seeds_needed: Count


class FrontierSummary(Figures):
    """A frontier, frontier.json.

    Attributes:
        format: summary_model.FORMAT.
        version: Of Agora.
        partial: Why not all of it was run; "" if it was.
        workload: The name of the first seed's.
        machines: In the cell.
        seeds: Those that all points were run under.
        seeds_vary: What a seed draws of the workload, in sentences; "" if that is not known.
        quantities: The figures of the points.
    """

    format: Version = FORMAT
    version: str
    partial: str
    workload: str
    machines: Count
    seeds: list[int] = Field(min_length=1)
    seeds_vary: str
    quantities: list[Quantity]
    conditions: list[FrontierCondition] = Field(min_length=1)
    architectures: list[FrontierArchitecture] = Field(min_length=1)
    points: list[FrontierPoint]
    box: FrontierBox
    areas: list[FrontierArea]
    bests: list[FrontierBest]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("points", "areas"):
            for number, one in enumerate(getattr(self, name)):
                if one.architecture >= len(self.architectures):
                    raise ValueError(f"{name}[{number}].architecture: there is no such one")
                if one.condition >= len(self.conditions):
                    raise ValueError(f"{name}[{number}].condition: there is no such one")
        return self

    def quantity(self, key: str) -> Quantity:
        """The quantity of a key."""
        return next(one for one in self.quantities if one.key == key)

    def points_of(self, architecture: int, condition: int) -> list[FrontierPoint]:
        """The points of an architecture under a condition, in the order of its knob."""
        return [
            point
            for point in self.points
            if (point.architecture, point.condition) == (architecture, condition)
        ]

    def area_of(
        self, architecture: int, condition: int, delay: str, quality: str
    ) -> FrontierArea | None:
        """The dominated area; None where it is not known."""
        wanted = (architecture, condition, delay, quality)
        return next(
            (
                area
                for area in self.areas
                if (area.architecture, area.condition, area.delay, area.quality) == wanted
            ),
            None,
        )


def pair_key(delay: str, quality: str) -> str:
    """The key of a pair of figures in FrontierPoint.not_dominated."""
    return f"{delay}/{quality}"


def write_frontier(path: Path, summary: FrontierSummary) -> None:
    """Write frontier.json, whole or not at all. Raises AgoraError if it cannot be written."""
    write_model(path, summary)


def read_frontier(path: Path) -> FrontierSummary:
    """Read frontier.json. Raises AgoraError naming the file and what is wrong with it."""
    return read_model(path, FrontierSummary)
