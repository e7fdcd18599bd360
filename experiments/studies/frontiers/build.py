"""From the figures of a grid's points to its frontiers: intervals, dominated areas, who is best.

An architecture can trade delay for quality, so it is a set of points and not one. A point dominates
another that is no better in either figure and worse in one (Pareto). The *dominated area* of a set
is the part of a box in which every place is dominated by one of its points: the hypervolume
indicator (Zitzler and Thiele, IEEE Transactions on Evolutionary Computation 3(4), 1999) with the
box's worst corner as its reference point, over the area of the box.

Delays span decades, so the box measures them by their logarithm. Thus the dominated area has a
plain meaning: it is the mean quality, between the box's worst and best, that a user gets whose
limit on the delay may be anything in the box, every decade being as likely as another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.analysis.cell_watch import settle_us
from experiments.analysis.frontier_model import (
    BESIDE,
    DELAYS,
    QUALITIES,
    FrontierArchitecture,
    FrontierArea,
    FrontierBest,
    FrontierBox,
    FrontierCondition,
    FrontierPoint,
    FrontierSummary,
    pair_key,
)
from experiments.analysis.statistics import corrected_level, median_interval, seeds_needed
from experiments.analysis.summary_model import PhaseBound, SeedFigures, bound_over
from experiments.campaign.running import make_workload
from experiments.config.decision_basis import by_basis
from experiments.config.frontier_config import setting_text
from experiments.config.price_settings import prices_of_arm
from experiments.studies.frontiers.grid import Grid
from experiments.studies.run.fluid_bound import phase_bounds
from experiments.version import version_text
from parsync.metrics.quantity import quantities_of
from parsync.metrics.summary import ScopeFigures
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

Place = tuple[float, float]  # delay and quality in a box: 0 is its best end, 1 its worst


@dataclass(frozen=True, slots=True)
class Box:
    """The delays and qualities that frontiers are measured in.

    Attributes:
        fastest_us: The least delay in microseconds; shorter ones count as this.
        slowest_us: The largest delay; a point at it or beyond dominates nothing.
        best: The best value of the quality; better ones count as this.
        worst: The worst value; a point at it or beyond dominates nothing. It is below `best` where
            higher values are better.

    Raises:
        ValueError: The box has no area.
    """

    fastest_us: float
    slowest_us: float
    best: float
    worst: float

    def __post_init__(self) -> None:
        if not 0 < self.fastest_us < self.slowest_us or self.best == self.worst:
            raise ValueError("a box needs 0 < fastest_us < slowest_us, and best other than worst")

    def place(self, delay_us: float, quality: float) -> Place:
        """The place of a point in the box: from 0, as good as counts, upwards; 1 and more is
        outside."""
        decades = math.log(self.slowest_us / self.fastest_us)
        delay = math.log(max(delay_us, self.fastest_us) / self.fastest_us) / decades
        return delay, max(0.0, (quality - self.best) / (self.worst - self.best))


def non_dominated(places: Sequence[Place]) -> list[bool]:
    """Whether no other place dominates it, for each place. Equal places do not dominate each
    other."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    kept = [False] * len(places)
    lowest = math.inf  # of the qualities at shorter delays
    start = 0
    while start < len(order):
        delay = places[order[start]][0]
        end = start
        while end < len(order) and places[order[end]][0] == delay:
            end += 1
        best = places[order[start]][1]
        if best < lowest:
            for index in order[start:end]:
                kept[index] = places[index][1] == best
            lowest = best
        start = end
    return kept


def dominated_area(places: Sequence[Place]) -> float:
    """The part of the box that the places dominate, from 0 to 1; 0 without places."""
    inside = sorted(
        (max(0.0, delay), max(0.0, quality))
        for delay, quality in places
        if delay < 1 and quality < 1
    )
    area, lowest = 0.0, 1.0
    for (delay, quality), (end, _) in pairwise([*inside, (1.0, 1.0)]):
        lowest = min(lowest, quality)
        area += (end - delay) * (1 - lowest)
    return area


PRICES_KNOB = "options.prices"  # says itself which prices each point has

Results = Mapping[tuple[int, int], SeedFigures]  # by the spot's place in the grid and the seed


@dataclass(frozen=True, slots=True)
class _Pair:
    """A delay and a quality, and the box that they span."""

    delay: str
    quality: str
    box: Box

    def place(self, figures: ScopeFigures) -> Place | None:
        """The place of a run; None for one that left so many tasks unplaced that its delay is a
        lower bound, or that lacks a figure: it dominates nothing."""
        delay, quality = figures.value(self.delay), figures.value(self.quality)
        if delay is None or quality is None or figures.is_bound(self.delay):
            return None
        return self.box.place(delay, quality)


def build_frontier(
    grid: Grid, results: Results, workload: Workload, partial: str
) -> FrontierSummary:
    """The frontiers of what was run.

    Args:
        grid: What was to be run.
        results: What was run.
        workload: Of the first seed, under the first condition.
        partial: Why not everything was run; "" if it was.

    Raises:
        AgoraError: There is no seed under which every point was run.
    """
    spots = range(len(grid.spots))
    seeds = [seed for seed in grid.seeds if all((spot, seed) in results for spot in spots)]
    if not seeds:
        raise AgoraError("no seed has run at every point, so there is nothing to compare")
    pairs = _pairs(grid, results, seeds, workload)
    areas = [
        _area(grid, results, seeds, architecture, condition, pair)
        for condition in range(len(grid.conditions))
        for architecture in range(len(grid.architectures))
        for pair in pairs
    ]
    runs = [run.overall for run in results.values()]
    beside = [key for key in BESIDE if any(run.plain_value(key) is not None for run in runs)]
    keys = (*DELAYS, *QUALITIES, *beside)
    known = {one.key: one for one in quantities_of(ScopeFigures)}
    return FrontierSummary(
        version=version_text(),
        partial=partial,
        workload=workload.name,
        machines=workload.cell.machines,
        seeds=seeds,
        seeds_vary=grid.config.workload.seeds_vary(),
        quantities=[known[key] for key in keys],
        conditions=[
            FrontierCondition(load_percent=one.load_percent, gap_s=one.gap_s, bound=bound)
            for one, bound in zip(grid.conditions, condition_bounds(grid, workload), strict=True)
        ],
        architectures=[
            FrontierArchitecture(
                name=one.title,
                arm=one.arm,
                knob=one.knob,
                prices="" if one.knob == PRICES_KNOB else prices_of_arm(grid.arm(one.arm)),
                basis=basis,
            )
            for one, basis in zip(grid.architectures, grid.bases, strict=True)
        ],
        points=_points(grid, results, seeds, keys, pairs),
        box=_box(pairs),
        areas=areas,
        bests=[best for pair in pairs for best in _bests(grid, areas, pair)],
    )


def elsewhere_cost(workload: Workload) -> float:
    """What the arriving tasks cost on average away from the machines and racks that they prefer."""
    sets = workload.tasks.preference[workload.arrival_rows]
    return float(np.mean(workload.catalog.elsewhere_cost[sets])) if len(sets) else 0.0


def _pairs(grid: Grid, results: Results, seeds: Sequence[int], workload: Workload) -> list[_Pair]:
    """The pairs of figures that every point has; without a worst cost, those without costs."""
    frontier = grid.config.frontier
    worst_cost = frontier.dearest_cost or elsewhere_cost(workload)
    runs = [results[spot, seed].overall for spot in range(len(grid.spots)) for seed in seeds]
    pairs = []
    for delay in DELAYS:
        for quality in QUALITIES:
            known = any(run.plain_value(quality) is not None for run in runs)
            best, worst = (1.0, 0.0) if quality == "preferred_share" else (0.0, worst_cost)
            if known and best != worst:
                fastest_us, slowest_us = frontier.fastest_s * 1e6, frontier.slowest_s * 1e6
                pairs.append(_Pair(delay, quality, Box(fastest_us, slowest_us, best, worst)))
    return pairs


def _box(pairs: Sequence[_Pair]) -> FrontierBox:
    boxes = {pair.quality: pair.box for pair in pairs}
    if not boxes:
        raise AgoraError("no task of this workload prefers any machine: there is no quality")
    any_box = pairs[0].box
    return FrontierBox(
        fastest_us=any_box.fastest_us,
        slowest_us=any_box.slowest_us,
        worst={quality: box.worst for quality, box in boxes.items()},
        best={quality: box.best for quality, box in boxes.items()},
    )


def _points(
    grid: Grid,
    results: Results,
    seeds: Sequence[int],
    keys: Sequence[str],
    pairs: Sequence[_Pair],
) -> list[FrontierPoint]:
    points = []
    for condition in range(len(grid.conditions)):
        for number, architecture in enumerate(grid.architectures):
            spots = _spots(grid, number, condition)
            runs = [[results[spot, seed] for seed in seeds] for spot in spots]
            figures = [
                {
                    key: median_interval([run.overall.value(key) for run in its])
                    for key in keys
                    if any(run.overall.plain_value(key) is not None for run in its)
                }
                for its in runs
            ]
            bounds = [
                [key for key in keys if any(run.overall.is_bound(key) for run in its)]
                for its in runs
            ]
            kept = {
                pair_key(pair.delay, pair.quality): _not_dominated(pair, figures, bounds)
                for pair in pairs
            }
            points += [
                FrontierPoint(
                    architecture=number,
                    condition=condition,
                    value=grid.spots[spot].value,
                    text=setting_text(architecture.knob, grid.spots[spot].value),
                    figures=figures[place],
                    bounds=bounds[place],
                    transient=sum(
                        any(phase.transient for phase in run.phases) for run in runs[place]
                    ),
                    not_dominated={pair: flags[place] for pair, flags in kept.items()},
                )
                for place, spot in enumerate(spots)
            ]
    return points


def _not_dominated(
    pair: _Pair, figures: Sequence[Mapping[str, object]], bounds: Sequence[Sequence[str]]
) -> list[bool]:
    """Which points are on the frontier of their architecture, by their medians."""
    places: dict[int, Place] = {}
    for index, its in enumerate(figures):
        delay = getattr(its.get(pair.delay), "estimate", None)
        quality = getattr(its.get(pair.quality), "estimate", None)
        if delay is not None and quality is not None and pair.delay not in bounds[index]:
            places[index] = pair.box.place(delay, quality)
    kept = dict(zip(places, non_dominated(list(places.values())), strict=True))
    return [kept.get(index, False) for index in range(len(figures))]


def _area(
    grid: Grid,
    results: Results,
    seeds: Sequence[int],
    architecture: int,
    condition: int,
    pair: _Pair,
) -> FrontierArea:
    spots = _spots(grid, architecture, condition)
    by_seed = []
    for seed in seeds:
        places = [pair.place(results[spot, seed].overall) for spot in spots]
        by_seed.append(dominated_area([place for place in places if place is not None]))
    return FrontierArea(
        architecture=architecture,
        condition=condition,
        delay=pair.delay,
        quality=pair.quality,
        area=median_interval(by_seed),
        by_seed=by_seed,
    )


def _spots(grid: Grid, architecture: int, condition: int) -> list[int]:
    wanted = (architecture, condition)
    return [
        place
        for place, spot in enumerate(grid.spots)
        if (spot.architecture, spot.condition) == wanted
    ]


def _bests(grid: Grid, areas: Sequence[FrontierArea], pair: _Pair) -> list[FrontierBest]:
    """The best of every set of comparable architectures with two or more, under each condition."""
    sets = [one for one in by_basis(list(enumerate(grid.bases))) if len(one) > 1]
    found = []
    for condition in range(len(grid.conditions)):
        for members in sets:
            its = {
                area.architecture: area
                for area in areas
                if area.condition == condition
                and area.architecture in members
                and (area.delay, area.quality) == (pair.delay, pair.quality)
            }
            best, tied = best_of({member: area.by_seed for member, area in its.items()})
            found.append(
                FrontierBest(
                    condition=condition,
                    delay=pair.delay,
                    quality=pair.quality,
                    members=list(members),
                    best=best,
                    tied=tied,
                    seeds_needed=seeds_needed(len(members) - 1),
                )
            )
    return found


def best_of(by_seed: Mapping[int, Sequence[float]]) -> tuple[int | None, list[int]]:
    """The member with the largest median, None if none is above 0; and those that may be as large.

    Args:
        by_seed: The values of each member, paired by seed.
    """
    medians = {
        member: median_interval(values).estimate or 0.0 for member, values in by_seed.items()
    }
    best = max(medians, key=lambda member: medians[member])
    if medians[best] <= 0:
        return None, []
    others = [member for member in by_seed if member != best]
    level = corrected_level(len(others))
    tied = []
    for member in others:
        differences = [a - b for a, b in zip(by_seed[best], by_seed[member], strict=True)]
        low = median_interval(differences, level).low
        if low is None or low <= 0:
            tied.append(member)
    return best, tied


def condition_bounds(grid: Grid, workload: Workload) -> list[PhaseBound | None]:
    """The bound over all phases of each condition, each phase counting by the tasks that are
    submitted in it while figures count. None where there is none.

    Args:
        grid: The conditions.
        workload: Of the first seed, under the first condition.
    """
    by_load: dict[int | None, PhaseBound | None] = {}
    for condition in grid.conditions:
        if condition.load_percent not in by_load:
            is_first = condition is grid.conditions[0]
            its = workload if is_first else make_workload(condition.config, grid.seeds[0])
            settled_us = settle_us(condition.config)
            bounds = phase_bounds(condition.config.workload, its, settled_us)
            by_load[condition.load_percent] = bound_over(bounds, _counted_tasks(its, settled_us))
    return [by_load[condition.load_percent] for condition in grid.conditions]


def _counted_tasks(workload: Workload, settled_us: int) -> list[int]:
    """How many tasks are submitted in each phase while figures count."""
    counted = []
    for phase in workload.phases:
        counting_us = [phase.start_us + settled_us, phase.end_us]
        first, end = workload.arrival_us.searchsorted(counting_us)
        counted.append(int(workload.arrival_offsets[end] - workload.arrival_offsets[first]))
    return counted
