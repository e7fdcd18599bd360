"""Where each architecture is the best, from the sweeps of this folder: tables and one picture.

    python examples/questions/architectures/regimes.py runs/lengths runs/costs --figure regimes.png
    python examples/questions/architectures/regimes.py runs/lengths runs/costs --calibrated
    python examples/questions/architectures/regimes.py runs/long_beside_short --by jsd_mean_us

A point is a cell, a load, a length of tasks and a cost of a decision. Of each arm the table has the
median over seeds of its delay, in per cent of the mean run time. The best has the least; others are
as good if their median difference to it, seed by seed, is at most 1 %. The best is alone if the
intervals of its differences to all arms of other architectures are below -1 %. They hold together
with 95 % within a point (Bonferroni). Saturated arms left more than one task in a thousand unplaced
in some run. A point is overloaded if all cores together decide no more tasks than arrive.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Patch, Rectangle
from pyarrow import parquet

from experiments.analysis.statistics import Interval, corrected_level, median_interval
from experiments.figures import style

DISTRIBUTED, EQUAL, ONE_CORE = "Distributed", "Central", "Central, one core"
FAMILIES = (DISTRIBUTED, "Two-level", "Shared state", "Central")
COLOURS = dict(zip(FAMILIES, ("#E69F00", "#CC79A7", "#009E73", "#0072B2"), strict=True))
DARK = ("Shared state", "Central")  # colours on which white is read best
CALIBRATION = 10
AS_GOOD, UNPLACED = 0.01, 0.001
CORES, SLOTS_PER_MACHINE = 8, 4
MACHINES = 500  # where the sweep does not change them
COST_US = 100.0  # of a decision, where the sweep does not change it
MAP_LOADS = (80, 95)
WIDTH_IN, HEIGHT_IN = 10.5, 4.0
LENGTH, SHORT_S = "workload.mean_duration_s", 1.0  # where the sweep does not change it
SIZE = "workload.machines"
SHORT_JOBS = "workload.batch.interarrival_s"
LONG_BESIDE_SHORT = {0.04: 50, 0.025: 80, 0.021052632: 95, 0.02020202: 99}  # loads, in per cent


@dataclass(frozen=True, slots=True, order=True)
class Point:
    load: int
    cost_us: float
    length_s: float
    slots: int = MACHINES * SLOTS_PER_MACHINE

    @property
    def is_overloaded(self) -> bool:
        arrive_per_s = self.load / 100 * self.slots / self.length_s
        return CORES / (self.cost_us / 1e6) <= arrive_per_s

    def __str__(self) -> str:
        return f"{self.load} % | {_time(self.cost_us / 1e6)} | {_time(self.length_s)}"


# The rows of each point and arm, by seed.
Points = dict[Point, dict[str, list[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Judged:
    """The arms of a point.

    Attributes:
        share: By arm, of those that are not saturated: the delays over the run time, by seed; empty
            where the point is overloaded.
        saturated: The saturated ones.
    """

    share: dict[str, list[float]]
    saturated: list[str]

    @property
    def best(self) -> str | None:
        return min(self.share, key=lambda arm: median(self.share[arm]), default=None)

    def less(self, one: str, other: str) -> Interval:
        """The delay of one arm less that of another, in parts of the run time."""
        differences = [a - b for a, b in zip(self.share[one], self.share[other], strict=True)]
        return median_interval(differences, corrected_level(len(self.share) - 1))

    @property
    def as_good(self) -> list[str]:
        """The best and those that are as good."""
        best = self.best
        if best is None:
            return []
        return [arm for arm in self.share if arm == best or self._estimate(arm, best) <= AS_GOOD]

    @property
    def alone(self) -> bool:
        best = self.best
        if best is None:
            return False
        rivals = [arm for arm in self.share if family(arm) != family(best)]
        highs = [self.less(best, arm).high for arm in rivals]
        return all(high is not None and high < -AS_GOOD for high in highs)

    def _estimate(self, one: str, other: str) -> float:
        found = self.less(one, other).estimate
        return math.inf if found is None else found


def read(directory: Path, figure: str) -> Points:
    """What a sweep found."""
    found: Points = {}
    for row in sorted(parquet.read_table(directory / "points.parquet").to_pylist(), key=_seed):
        cost_us = next((row[name] for name in row if name.endswith(".decision.task_us")), COST_US)
        if SHORT_JOBS in row:
            point = Point(LONG_BESIDE_SHORT[row[SHORT_JOBS]], COST_US, SHORT_S)
        else:
            slots = int(row.get(SIZE, MACHINES)) * SLOTS_PER_MACHINE
            length_s = row.get(LENGTH, SHORT_S)
            point = Point(int(row["workload.load_percent"]), cost_us, length_s, slots)
        of_arm = found.setdefault(point, {}).setdefault(row["arm"], [])
        of_arm.append({**row, "share": _share(row[figure], point)})
    return found


def calibrated(points: Points) -> Points:
    """The points with what decisions cost on one processor: a tenth of the others' time for those
    of Distributed, and ten times as much for those of Central. These two arms are taken from the
    points of that cost; where there is none, the point is left out."""
    found: Points = {}
    for point, arms in points.items():
        cheap = points.get(replace(point, cost_us=point.cost_us / CALIBRATION), {})
        dear = points.get(replace(point, cost_us=point.cost_us * CALIBRATION), {})
        if DISTRIBUTED in cheap and ONE_CORE in dear:
            of_others = {DISTRIBUTED: cheap[DISTRIBUTED], ONE_CORE: dear[ONE_CORE]}
            found[point] = {arm: of_others.get(arm, arms[arm]) for arm in arms if arm != EQUAL}
    return found


def _share(delay_us: float | None, point: Point) -> float:
    return math.inf if delay_us is None else delay_us / 1e6 / point.length_s


def _seed(row: dict[str, Any]) -> int:
    return int(row["seed"])


def judged(point: Point, arms: dict[str, list[dict[str, Any]]]) -> Judged:
    if point.is_overloaded:
        return Judged({}, [])
    saturated = [arm for arm, rows in arms.items() if any(_is_saturated(row) for row in rows)]
    share = {
        arm: [row["share"] for row in rows] for arm, rows in arms.items() if arm not in saturated
    }
    return Judged(share, saturated)


def _is_saturated(row: dict[str, Any]) -> bool:
    return bool(row["censored"] > UNPLACED * row["submitted"])


def table(points: Points) -> Iterable[str]:
    arms = list(dict.fromkeys(arm for of in points.values() for arm in of))
    sized = len({point.slots for point in points}) > 1
    heads = ["load", "decision", "run time", *arms, "best, less the best of another architecture"]
    heads = ["slots"] * sized + heads
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for point in sorted(points, key=lambda point: (point.slots, point)):
        here = judged(point, points[point])
        cells = [_cell(here, arm, points[point]) for arm in arms]
        size = f"{point.slots:,} | " * sized
        yield f"| {size}{point} | {' | '.join(cells)} | {_margin(here)} |"


def _cell(here: Judged, arm: str, arms: dict[str, list[dict[str, Any]]]) -> str:
    if arm not in arms:
        return ""
    if arm in here.saturated:
        return "saturated"
    if arm not in here.share:
        return "overloaded"
    text = _percent(median(here.share[arm]))
    return f"**{text}**" if arm in here.as_good else text


def _margin(here: Judged) -> str:
    """The best and how much less it adds than any other architecture, with the interval."""
    best = here.best or ""
    others = [arm for arm in here.share if family(arm) != family(best)]
    others.sort(key=lambda arm: median(here.share[arm]))
    if here.best is None or not others:
        return here.best or "none"
    less = here.less(here.best, others[0])
    limits = "no interval" if less.low is None else f"{_percent(less.low)}, {_percent(less.high)}"
    alone = ", alone" if here.alone else ""
    return f"{here.best}{alone}: {_percent(less.estimate)} [{limits}]"


def _percent(share: float | None) -> str:
    if share is None:
        return "?"
    percent = 100 * share
    if abs(percent) < 0.001:
        return "0 %"
    return f"{percent:.0f} %" if abs(percent) >= 10 else f"{percent:.2g} %"


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1e3:g} ms"


def family(arm: str) -> str:
    return next((name for name in FAMILIES if arm.startswith(name)), "")


def draw(points: Points, path: Path) -> None:
    """Who is the best: by run time and the cost of a decision at two loads, where a central
    scheduler has one core; and by run time and load, where it is as fast as all others."""
    equal, one_core = dict[Point, Judged](), dict[Point, Judged]()
    for point, arms in points.items():
        if point.cost_us == COST_US:
            here = {arm: rows for arm, rows in arms.items() if arm != ONE_CORE}
            equal[point] = judged(point, here)
        if point.load in MAP_LOADS:
            one_core[point] = judged(point, {a: r for a, r in arms.items() if a != EQUAL})
    with style.drawing(1, 3, HEIGHT_IN) as (figure, axes):
        figure.set_size_inches(WIDTH_IN, HEIGHT_IN)
        for ax, load in zip(axes, MAP_LOADS, strict=False):
            by_cost = {(p.length_s, p.cost_us): j for p, j in one_core.items() if p.load == load}
            _panel(ax, by_cost, f"{load} % load, central on one core", _cost)
        axes[0].set_ylabel("time of a decision per task")
        by_load = {(p.length_s, float(p.load)): found for p, found in equal.items()}
        _panel(axes[2], by_load, "decisions of 0.1 ms, equal capacity", _load)
        axes[2].set_ylabel("load")
        patches = [Patch(color=COLOURS[name], label=name) for name in FAMILIES]
        figure.legend(handles=patches, loc="outside lower center", ncols=4, frameon=False)
        FigureCanvasAgg(figure).print_png(path, metadata={"Software": None})


def _added(point: Judged) -> str:
    """What the best adds to a run time."""
    if point.best is None:
        return "none"
    share = median(point.share[point.best])
    return "< 0.1 %" if share < 0.001 else f"+{_percent(share)}"


def _cost(cost_us: float) -> str:
    return _time(cost_us / 1e6)


def _load(percent: float) -> str:
    return f"{percent:g} %"


def _panel(
    ax: Axes,
    here: dict[tuple[float, float], Judged],
    title: str,
    name_of_row: Callable[[float], str],
) -> None:
    """A map by run time and another quantity. A field has the colours of all that are the best or
    as good, strong if one is alone the best, and what the best adds to a run time."""
    columns = sorted({x for x, _ in here})
    rows = sorted({y for _, y in here})
    for (x, y), point in here.items():
        left, bottom = columns.index(x), rows.index(y)
        found = [name for name in FAMILIES if any(family(a) == name for a in point.as_good)]
        for number, name in enumerate(found):
            width = 0.94 / len(found)
            ax.add_patch(
                Rectangle(
                    (left + 0.03 + number * width, bottom + 0.03),
                    width,
                    0.94,
                    color=COLOURS[name],
                    alpha=1.0 if point.alone else 0.45,
                    linewidth=0,
                )
            )
        colour = style.PAPER if point.alone and family(point.best or "") in DARK else style.INK
        middle = left + 0.5, bottom + 0.5
        ax.text(*middle, _added(point), ha="center", va="center", fontsize=8, color=colour)
    ax.set_xlim(0, len(columns))
    ax.set_ylim(0, len(rows))
    ax.set_xticks([i + 0.5 for i in range(len(columns))], [_time(x) for x in columns])
    ax.set_yticks([i + 0.5 for i in range(len(rows))], [name_of_row(y) for y in rows])
    ax.set_xlabel("mean run time of a task")
    ax.set_title(title)
    ax.grid(False)


def merged(
    parts: Sequence[Points],
) -> Points:
    found: Points = {}
    for part in parts:
        for point, arms in part.items():
            found.setdefault(point, {}).update(arms)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", nargs="+", type=Path, help="of the sweeps")
    parser.add_argument("--by", default="delay_mean_us", help="the delay that decides")
    parser.add_argument("--figure", type=Path, help="where to draw the picture")
    parser.add_argument("--calibrated", action="store_true", help="costs by kind of decision")
    given = parser.parse_args()
    points = merged([read(directory, given.by) for directory in given.directories])
    if given.calibrated:
        points = calibrated(points)
    for line in table(points):
        print(line)
    if given.figure:
        draw(points, given.figure)


if __name__ == "__main__":
    main()
