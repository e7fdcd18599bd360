"""The differences between two architectures of a frontier, seed by seed, at each value of the knob.

    python examples/questions/differences.py runs/DIR Flow Greedy --figure preferred_share

Prints a line for each load, gap and value that both have: their medians over the seeds, the
median of the first less the second, and its interval. The intervals hold together with 95 %
(Bonferroni). Where there are too few seeds for that, each line says how many it takes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import parquet

from experiments.analysis.frontier_model import FRONTIER, POINTS, read_frontier
from experiments.analysis.statistics import corrected_level, median_interval, seeds_needed
from experiments.studies.frontiers.wording import condition_text

AREA = "area"
BOX = ("delay_mean_us", "preferred_share")


@dataclass(frozen=True, slots=True)
class Pair:
    """The values of two architectures, seed by seed, and where they were measured."""

    where: str
    first: list[float]
    second: list[float]


def pairs_at_each_value(
    directory: Path, first: str, second: str, figure: str, values: list[str]
) -> list[Pair]:
    """A pair for each condition and each value of the knob (of these, if any are given)."""
    summary = read_frontier(directory / FRONTIER)
    rows = parquet.read_table(directory / POINTS).to_pylist()
    whole = set(summary.seeds)  # seeds that every point has run under
    found = []
    for condition in summary.conditions:
        here = [
            row
            for row in rows
            if row["seed"] in whole
            and (row["load_percent"], row["gap_s"]) == (condition.load_percent, condition.gap_s)
        ]
        ones, others = _by_value(here, first, figure), _by_value(here, second, figure)
        for value in ones:
            if value in others and (not values or value in values):
                where = f"{condition_text(condition)}, {value or 'no knob'}"
                found.append(Pair(where, ones[value], others[value]))
    return found


def pairs_of_areas(directory: Path, first: str, second: str, box: tuple[str, str]) -> list[Pair]:
    """A pair of dominated areas for each condition."""
    summary = read_frontier(directory / FRONTIER)
    index = {one.name: place for place, one in enumerate(summary.architectures)}
    found = []
    for place, condition in enumerate(summary.conditions):
        its = [summary.area_of(index[name], place, *box) for name in (first, second)]
        ones, others = [[] if area is None else list(area.by_seed) for area in its]
        found.append(Pair(condition_text(condition), ones, others))
    return found


def lines(pairs: list[Pair]) -> Iterator[str]:
    """What each pair says, with intervals that are corrected for their number."""
    level, needed = corrected_level(len(pairs)), seeds_needed(len(pairs))
    for pair in pairs:
        differences = [a - b for a, b in zip(pair.first, pair.second, strict=True)]
        interval = median_interval(differences, level)
        limits = f"{_text(interval.low)}, {_text(interval.high)}"
        if interval.low is None:
            limits = f"not enough seeds: {len(differences)} of {needed}"
        medians = [_text(median_interval(values).estimate) for values in (pair.first, pair.second)]
        yield f"{pair.where}: {medians[0]} and {medians[1]}, {_text(interval.estimate)} [{limits}]"


def _by_value(rows: list[dict[str, Any]], architecture: str, figure: str) -> dict[str, list[float]]:
    """The figure by the value of the knob, in the order of the seeds."""
    found: dict[str, list[float]] = {}
    for row in sorted(rows, key=lambda row: (row["value"] or 0, row["seed"])):
        if row["architecture"] == architecture:
            value = math.nan if row[figure] is None else row[figure]
            found.setdefault(row["value_text"], []).append(value)
    return found


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="of a frontier")
    parser.add_argument("first", help="an architecture")
    parser.add_argument("second", help="the one that it is compared with")
    parser.add_argument(
        "--figure", default="preferred_share", help=f"a column of {POINTS}, or {AREA!r}"
    )
    parser.add_argument("--quality", default=BOX[1], help=f"with --figure {AREA}: of the box")
    parser.add_argument("--values", nargs="*", default=[], help="of the knob; unset: all")
    given = parser.parse_args()
    if given.figure == AREA:
        pairs = pairs_of_areas(given.directory, given.first, given.second, (BOX[0], given.quality))
    else:
        pairs = pairs_at_each_value(
            given.directory, given.first, given.second, given.figure, given.values
        )
    print(*lines(pairs), sep="\n")


if __name__ == "__main__":
    main()
