"""The cells and algorithms of Firmament's figures, what is read of their runs, and how that is
drawn.

Every run is of the flow scheduler with the options that a user has (../flow_rounds.py). Cells of
the paper's simulations: 12,500 machines, of 24 slots in Figs. 3, 7, 11 (Quincy's policy) and 12b,
of 13 slots in Figs. 8, 10, 11 (load spreading) and 13; 10,000 machines of 24 slots in Figs. 9 and
12a. At smoke scale they have a fifth of the machines, and jobs a fifth of the tasks.

Figs. 14 to 18 replay the trace, and Fig. 19 needs execution models: they would be chapters beside
algorithms.py and optimisations.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from experiments.analysis.statistics import median_interval
from experiments.campaign.task import Arrays
from experiments.figures import style
from experiments.papers.chapter import Chapter, Like, Results, Table, like
from experiments.papers.claims import RunsOfSeed, Value
from experiments.papers.flow_rounds import (
    CellRun,
    Options,
    Setting,
)
from experiments.papers.statistics import (
    US_PER_S,
    Reader,
    difference,
    median_text,
    quotient,
)
from experiments.studies.model_settings import ReproduceScale
from parsync.metrics.quantity import duration

CHAPTER = Chapter(Path(__file__).with_name("figures.toml"))
NS_PER_S = 1e9
SMOKE_PART = 5
MACHINES = 12_500
SLOTS, FULL_SLOTS = 24, 13  # of a machine

RELAXATION, COST_SCALING, SHORTEST_PATHS = "Relaxation", "Cost scaling", "Shortest paths"
TEXTBOOK_PATHS, CANCELLING = "Shortest paths, textbook", "Cycle cancelling"
PLAIN = "Relaxation without arc prioritisation"

WIDE_IN, HIGH_IN = 9.2, 4.2
TIMES_NOTE = "Times are in ms of the processor, and depend on the machine; operations do not."


def algorithm(name: str, **settings: Any) -> Options:
    """The options that take one algorithm, with these settings, in place of Firmament's race."""
    return {"algorithm": [{"name": name, **settings}]}


FROM_SCRATCH = {
    RELAXATION: algorithm("relaxation", from_scratch=True),
    COST_SCALING: algorithm("cost_scaling", from_scratch=True),
    SHORTEST_PATHS: algorithm("incremental_ssp", from_scratch=True),
    TEXTBOOK_PATHS: algorithm("successive_shortest_path", from_scratch=True),
    CANCELLING: algorithm("cycle_cancelling", from_scratch=True),
}
BOTH = (RELAXATION, COST_SCALING)
RACERS = {
    **{name: FROM_SCRATCH[name] for name in BOTH},
    PLAIN: algorithm("relaxation", from_scratch=True, arc_prioritisation=False),
}
INCREMENTAL = algorithm("cost_scaling")
SPREADING: Options = {"policy": "load_spreading"}


def part(scale: ReproduceScale) -> int:
    """What part of the paper's cell a scale has: one of so many."""
    return SMOKE_PART if scale is ReproduceScale.SMOKE else 1


def firmament(
    scale: ReproduceScale, slots: int, used_permille: int, options: Options, machines: int
) -> Setting:
    """A cell at a scale, of so many machines at paper scale, whose flow scheduler has Firmament's
    settings but for these options."""
    return Setting(machines // part(scale), slots, used_permille, "firmament", options)


def cost_s(setting: Setting, rounds: float, us_per_task: float = 10.0) -> float:
    """About how many seconds of a processor rounds of a cell take. To make and to fill the cell
    takes as long as ten rounds do."""
    return setting.tasks * (rounds + 10) * us_per_task / 1e6


# What is read of a run, in seconds


def times(arrays: Arrays, name: str) -> NDArray[np.float64]:
    return arrays[name].astype(np.float64) / NS_PER_S


def mean_s(arrays: Arrays) -> float:
    """The mean time of the solver."""
    return float(times(arrays, "solve_ns").mean())


def median_s(arrays: Arrays) -> float:
    """The median time of the solver."""
    return float(np.median(times(arrays, "solve_ns")))


def mean_round_s(arrays: Arrays) -> float:
    """The mean time of whole rounds."""
    return float(times(arrays, "round_ns").mean())


def round_s(quantile: float) -> Callable[[Arrays], float]:
    """A quantile of the time of whole rounds."""
    return lambda arrays: float(np.quantile(times(arrays, "round_ns"), quantile))


def saved(read: Reader, label: str, other: str) -> Value:
    """What part of what is read of another run this one does without."""
    return lambda runs: difference(1.0, quotient(read(runs[label]), read(runs[other])))


def equal_at(xs: Sequence[float], ratios: Sequence[Value]) -> Value:
    """Where the ratio of two lines is 1 for the first time, linear between the points; the last
    point if it stays below 1.

    Args:
        xs: Ascending.
    """

    def value(runs: RunsOfSeed) -> float | None:
        known = [one(runs) for one in ratios]
        before: tuple[float, float] | None = None
        for x, y in zip(xs, known, strict=True):
            if y is None:
                return None
            if y >= 1:
                if before is None:
                    return x
                return before[0] + (x - before[0]) * (1 - before[1]) / (y - before[1])
            before = (x, y)
        return xs[-1]

    return value


def of_both_forms(claims: Callable[[str], dict[str, Value]]) -> dict[str, Like]:
    """The claims about relaxation, and the same about it without arc prioritisation."""
    return {
        f"{claim}{suffix}": like(claim, value, relaxation=words)
        for name, suffix, words in (
            (RELAXATION, "", "relaxation"),
            (PLAIN, "_plain", "relaxation without arc prioritisation"),
        )
        for claim, value in claims(name).items()
    }


# Drawing


def medians(
    results: Results, labels: Sequence[str], read: Callable[[Arrays], float]
) -> list[float]:
    """What is read of each run: the median over the seeds."""
    found = [median_interval([read(run) for run in results.of(label)]) for label in labels]
    return [float("nan") if one.estimate is None else one.estimate for one in found]


def line(
    axes: Axes, place: int, name: str, x: Sequence[float], y: Sequence[float], **look: Any
) -> None:
    axes.plot(x, y, label=name, **{**style.marked_line(place, len(x)), **look})


def time_line(
    axes: Axes, results: Results, place: int, x: Sequence[float], name: str, labels: Sequence[str]
) -> None:
    """The mean time of the solver in some runs."""
    times = medians(results, labels, mean_s)
    line(axes, place, name, x, [US_PER_S * one for one in times])


def solver_times(axes: Axes, log: bool) -> None:
    """The y axis is the time of the solver; finish it when all is drawn."""
    if not log:
        axes.set_ylim(bottom=0)
    style.duration_axis(axes, "y", log=log)
    axes.set_ylabel("Time of the solver (processor)")


def microseconds(results: Results, label: str, name: str) -> NDArray[np.float64]:
    """The times of a run's rounds under all seeds."""
    return US_PER_S * np.concatenate([times(run, name) for run in results.of(label)])


def box(axes: Axes, x: float, values: NDArray[np.float64], width: float = 0.4) -> None:
    """A box as the paper draws it: 25, 50 and 75 %, whiskers at 1 and 99 %, a star at the
    maximum."""
    low, first, median, third, high = np.quantile(values, (0.01, 0.25, 0.5, 0.75, 0.99))
    stats = {"med": median, "q1": first, "q3": third, "whislo": low, "whishi": high, "fliers": []}
    colour = style.colour(0)
    axes.bxp(
        [stats],
        positions=[x],
        widths=width,
        showfliers=False,
        manage_ticks=False,
        boxprops={"color": colour, "linewidth": 1.4},
        whiskerprops={"color": colour, "linewidth": 1.2},
        capprops={"color": colour, "linewidth": 1.2},
        medianprops={"color": style.colour(1), "linewidth": 1.6},
    )
    axes.plot([x], [values.max()], "*", color=colour, markersize=6)


def machines_of(results: Results, label: str) -> int:
    """The machines of the cell of a run."""
    (run,) = (one for one in results.runs if one.label == label)
    assert isinstance(run, CellRun)
    return run.setting.machines


def run_table(results: Results, labels: Sequence[str]) -> Table:
    """A row for each run: its rounds, its times, and what it counted."""
    rows = []
    for label in labels:
        runs = results.of(label)
        counts = [int(np.median([np.median(run[name]) for run in runs])) for name in _COUNTS]
        times = medians(results, [label], median_s) + medians(results, [label], mean_s)
        whole = [*times, *medians(results, [label], round_s(0.5))]
        rows.append(
            (
                label,
                f"{machines_of(results, label):,}",
                f"{len(runs[0]['solve_ns']):,}",
                *(f"{1000 * one:,.3g}" for one in whole),
                *(f"{count:,}" for count in counts),
            )
        )
    header = (
        *("", "machines", "rounds", "solver, median", "solver, mean", "round, median"),
        *("operations", "tasks", "placed", "migrated", "preempted"),
    )
    return Table(header, tuple(rows), f"{TIMES_NOTE} Counts are medians of the rounds.")


_COUNTS = ("operations", "tasks", "placed", "migrated", "preempted")


def whole_table(results: Results) -> Table:
    """All runs of a figure."""
    return run_table(results, [run.label for run in results.runs])


# For headlines: what runs measured, as text


def shown(value: Value) -> Callable[[Results], str]:
    """The median of a value over the seeds, to two digits or decimals."""

    def text(number: float) -> str:
        if number >= 10:
            return f"{number:,.0f}"
        return f"{number:.2f}" if number >= 0.1 else f"{number:.2g}"

    return lambda results: median_text(results, value, text)


def shown_ms(value: Value) -> Callable[[Results], str]:
    """The median of a time over the seeds."""
    return lambda results: median_text(results, value, lambda time: duration(US_PER_S * time))


def shown_machines(label: str) -> Callable[[Results], str]:
    """The machines of the cell of a run."""
    return lambda results: f"{machines_of(results, label):,}"
