"""Figs. 3 and 7 to 13 of Firmament (Gog et al., OSDI 2016; figures.toml).

Every run is of the flow scheduler with the options that a user has (../flow_rounds.py). Cells of
the paper's simulations: 12,500 machines, of 24 slots in Figs. 3, 7, 11 (Quincy's policy) and 12b,
of 13 slots in Figs. 8, 10, 11 (load spreading) and 13; 10,000 machines of 24 slots in Figs. 9 and
12a. At smoke scale they have a fifth of the machines, and jobs a fifth of the tasks.

Figs. 14 to 18 replay the trace, and Fig. 19 needs execution models: they would be chapters beside
this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from experiments.analysis.statistics import median_interval
from experiments.campaign.task import Arrays
from experiments.figures import style
from experiments.papers.chapter import Chapter, Like, Results, Table, like
from experiments.papers.claims import RunsOfSeed, Value
from experiments.papers.flow_rounds import (
    CellRun,
    JobRun,
    Options,
    Setting,
    SteadyRun,
    StoppedRun,
    SwitchingRun,
)
from experiments.papers.statistics import (
    US_PER_S,
    Reader,
    difference,
    growths,
    least,
    of,
    over,
    quotient,
    quotient_of,
    ratio,
)
from experiments.studies.model_settings import ReproduceScale

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
NS_PER_S = 1e9
SMOKE_PART = 5
MACHINES = 12_500

RELAXATION, COST_SCALING, SHORTEST_PATHS = "Relaxation", "Cost scaling", "Shortest paths"
TEXTBOOK_PATHS, CANCELLING = "Shortest paths, textbook", "Cycle cancelling"
PLAIN = "Relaxation without arc prioritisation"

_WIDE_IN, _HIGH_IN = 9.2, 4.2
_TIMES_NOTE = "Times are in ms of the processor, and depend on the machine; operations do not."


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


def _times(arrays: Arrays, name: str) -> NDArray[np.float64]:
    return arrays[name].astype(np.float64) / NS_PER_S


def mean_s(arrays: Arrays) -> float:
    """The mean time of the solver."""
    return float(_times(arrays, "solve_ns").mean())


def median_s(arrays: Arrays) -> float:
    """The median time of the solver."""
    return float(np.median(_times(arrays, "solve_ns")))


def mean_round_s(arrays: Arrays) -> float:
    """The mean time of whole rounds."""
    return float(_times(arrays, "round_ns").mean())


def round_s(quantile: float) -> Callable[[Arrays], float]:
    """A quantile of the time of whole rounds."""
    return lambda arrays: float(np.quantile(_times(arrays, "round_ns"), quantile))


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


# Drawing


def _medians(
    results: Results, labels: Sequence[str], read: Callable[[Arrays], float]
) -> list[float]:
    """What is read of each run: the median over the seeds."""
    found = [median_interval([read(run) for run in results.of(label)]) for label in labels]
    return [float("nan") if one.estimate is None else one.estimate for one in found]


def _line(
    axes: Axes, place: int, name: str, x: Sequence[float], y: Sequence[float], **look: Any
) -> None:
    axes.plot(x, y, label=name, **{**style.marked_line(place, len(x)), **look})


def _time_line(
    axes: Axes, results: Results, place: int, x: Sequence[float], name: str, labels: Sequence[str]
) -> None:
    """The mean time of the solver in some runs."""
    times = _medians(results, labels, mean_s)
    _line(axes, place, name, x, [US_PER_S * one for one in times])


def _solver_times(axes: Axes, log: bool) -> None:
    """The y axis is the time of the solver; finish it when all is drawn."""
    if not log:
        axes.set_ylim(bottom=0)
    style.duration_axis(axes, "y", log=log)
    axes.set_ylabel("Time of the solver (processor)")


def _microseconds(results: Results, label: str, name: str) -> NDArray[np.float64]:
    """The times of a run's rounds under all seeds."""
    return US_PER_S * np.concatenate([_times(run, name) for run in results.of(label)])


def _machines(results: Results, label: str) -> int:
    """The machines of the cell of a run."""
    (run,) = (one for one in results.runs if one.label == label)
    assert isinstance(run, CellRun)
    return run.setting.machines


def _table(results: Results, labels: Sequence[str]) -> Table:
    """A row for each run: its rounds, its times, and what it counted."""
    rows = []
    for label in labels:
        runs = results.of(label)
        counts = [int(np.median([np.median(run[name]) for run in runs])) for name in _COUNTS]
        times = _medians(results, [label], median_s) + _medians(results, [label], mean_s)
        whole = [*times, *_medians(results, [label], round_s(0.5))]
        rows.append(
            (
                label,
                f"{_machines(results, label):,}",
                f"{len(runs[0]['solve_ns']):,}",
                *(f"{1000 * one:,.3g}" for one in whole),
                *(f"{count:,}" for count in counts),
            )
        )
    header = (
        *("", "machines", "rounds", "solver, median", "solver, mean", "round, median"),
        *("operations", "tasks", "placed", "migrated", "preempted"),
    )
    return Table(header, tuple(rows), f"{_TIMES_NOTE} Counts are medians of the rounds.")


_COUNTS = ("operations", "tasks", "placed", "migrated", "preempted")


def whole_table(results: Results) -> Table:
    """All runs of a figure."""
    return _table(results, [run.label for run in results.runs])


# Figs. 3 and 7: the size of the cell

SIZES = (4, 36, 68, 100, 200, 400, 600, 800, 1000)  # permille of the cell: 50 to 12,500 machines
QUINCY = "Quincy"
ALPHAS = {"alpha = 2": 2, "alpha = 9": 9}
# The textbook's algorithms would take minutes a round on larger cells.
LARGEST = {TEXTBOOK_PATHS: 100, CANCELLING: 4}
_HALF, _SLOTS = 500, 24
_FEW_ROUNDS = 3


def at_size(name: str, size: int) -> str:
    """The label of a run on a part of the cell."""
    return f"{name}, {size / 10:g} % of the machines"


def sizes_of(name: str) -> tuple[int, ...]:
    """The sizes of the cells that an algorithm runs on."""
    return tuple(size for size in SIZES if size <= LARGEST.get(name, SIZES[-1]))


def _sized(
    scale: ReproduceScale, name: str, size: int, kind: str, options: Options, rounds: int
) -> SteadyRun:
    setting = Setting(MACHINES * size // 1000 // part(scale), _SLOTS, _HALF, kind, options)
    return SteadyRun(at_size(name, size), setting, rounds, cost_s(setting, rounds))


def fig3_runs(scale: ReproduceScale) -> tuple[SteadyRun, ...]:
    """Quincy, by the size of the cell; on the whole cell also with two alphas."""
    runs = [_sized(scale, QUINCY, size, "quincy", {}, 40) for size in SIZES]
    for name, alpha in ALPHAS.items():
        options = algorithm("cost_scaling", from_scratch=True, alpha=alpha)
        runs.append(_sized(scale, name, SIZES[-1], "quincy", options, 10))
    return tuple(runs)


def fig7_runs(scale: ReproduceScale) -> tuple[SteadyRun, ...]:
    """Each algorithm from scratch, by the size of the cell."""
    return tuple(
        _sized(scale, name, size, "firmament", options, _FEW_ROUNDS if name in LARGEST else 10)
        for name, options in FROM_SCRATCH.items()
        for size in sizes_of(name)
    )


QUINCY_LABELS = tuple(at_size(QUINCY, size) for size in SIZES)
LARGEST_QUINCY = QUINCY_LABELS[-1]


def _whole(name: str) -> str:
    return at_size(name, SIZES[-1])


def _smallest(name: str) -> str:
    return at_size(name, SIZES[0])


FIG3_CLAIMS: dict[str, Value] = {
    "grows": least(growths(round_s(0.5), QUINCY_LABELS)),
    "narrow": ratio(round_s(0.99), LARGEST_QUINCY, LARGEST_QUINCY, round_s(0.5)),
    "mean_and_median": ratio(mean_round_s, LARGEST_QUINCY, LARGEST_QUINCY, round_s(0.5)),
    "median": of(round_s(0.5), LARGEST_QUINCY),
    "p99": of(round_s(0.99), LARGEST_QUINCY),
    "mean": of(mean_round_s, LARGEST_QUINCY),
    "tuned": saved(mean_s, _whole("alpha = 9"), _whole("alpha = 2")),
    "misses_the_goal": of(round_s(0.5), LARGEST_QUINCY),
}
_OTHERS = [name for name in FROM_SCRATCH if name not in LARGEST and name != RELAXATION]
_NOT_CANCELLING = [name for name in FROM_SCRATCH if name != CANCELLING]
_TEXTBOOK_LARGEST = at_size(TEXTBOOK_PATHS, LARGEST[TEXTBOOK_PATHS])
FIG7_CLAIMS: dict[str, Value] = {
    "relaxation_best": least([ratio(mean_s, _whole(one), _whole(RELAXATION)) for one in _OTHERS]),
    "two_orders": ratio(mean_s, _whole(COST_SCALING), _whole(RELAXATION)),
    "relaxation_before_cost_scaling": least(
        [ratio(mean_s, at_size(COST_SCALING, one), at_size(RELAXATION, one)) for one in SIZES]
    ),
    "shortest_paths_slow": ratio(mean_s, _whole(SHORTEST_PATHS), _whole(COST_SCALING)),
    "textbook_slow": ratio(
        mean_s, _TEXTBOOK_LARGEST, at_size(COST_SCALING, LARGEST[TEXTBOOK_PATHS])
    ),
    "cancelling_slowest": least(
        [ratio(mean_s, _smallest(CANCELLING), _smallest(one)) for one in _NOT_CANCELLING]
    ),
    "sub_second": of(mean_s, _whole(RELAXATION)),
    "shortest_paths_100_s": of(mean_s, _TEXTBOOK_LARGEST),
    "cost_scaling_mean": of(mean_s, _whole(COST_SCALING)),
}


def _fig3(results: Results) -> Figure:
    """Boxes of 25, 50 and 75 %, whiskers at 1 and 99 %, a star at the maximum."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
        for place, label in enumerate(QUINCY_LABELS):
            box(axes, place, _microseconds(results, label, "round_ns"))
        names = [f"{_machines(results, label):,}" for label in QUINCY_LABELS]
        axes.set_xticks(range(len(SIZES)), names)
        style.duration_axis(axes, "y", log=True)
        axes.set_xlabel("Machines")
        axes.set_ylabel("Time of a round (processor)")
    return figure


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


def _fig7(results: Results) -> Figure:
    """The mean time of each algorithm over the size of the cell, both logarithmic."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
        for place, name in enumerate(FROM_SCRATCH):
            labels = [at_size(name, size) for size in sizes_of(name)]
            x = [_machines(results, label) for label in labels]
            _time_line(axes, results, place, x, name, labels)
        axes.set_xscale("log")
        every = [_machines(results, at_size(RELAXATION, size)) for size in SIZES]
        axes.xaxis.set_major_locator(FixedLocator(every))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="x", rotation=30)
        axes.set_xlabel("Machines")
        _solver_times(axes, log=True)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


# Fig. 8: close to full use; incremental cost scaling there for slide 56

BEGIN_PERMILLE = 895  # 144,339 of 161,256 slots run tasks before the job arrives
USES = (910, 926, 942, 957, 973, 988, 1004)  # permille of the slots, with the job: as in the paper
HIGH = tuple(use for use in USES if use > 940)
INCREMENTALLY = "Cost scaling, incremental"
_FULL_SLOTS = 13


def at_use(name: str, use: int) -> str:
    """The label of a run in which a job fills the cell so far."""
    return f"{name}, {use / 10:g} %"


def _job_at(scale: ReproduceScale, name: str, use: int, options: Options) -> JobRun:
    setting = firmament(scale, _FULL_SLOTS, BEGIN_PERMILLE, options, MACHINES)
    slots = setting.machines * _FULL_SLOTS
    job = slots * use // 1000 - setting.tasks
    return JobRun(at_use(name, use), setting, 1, cost_s(setting, 2), job)


def fig8_runs(scale: ReproduceScale) -> tuple[JobRun, ...]:
    """The algorithms from scratch as a job arrives, by how far it fills the cell."""
    return tuple(
        _job_at(scale, name, use, options) for name, options in RACERS.items() for use in USES
    )


def _faster(use: int) -> Value:
    return least([of(mean_s, at_use(name, use)) for name in BOTH])


def _fig8_claims(name: str) -> dict[str, Value]:
    """The claims about a form of relaxation."""
    ratios = [ratio(mean_s, at_use(name, use), at_use(COST_SCALING, use)) for use in USES]
    lowest = at_use(name, USES[0])
    return {
        "relaxation_grows": ratio(mean_s, at_use(name, USES[-1]), lowest),
        "relaxation_loses": ratios[-1],
        "relaxation_wins_below": ratio(mean_s, at_use(COST_SCALING, USES[0]), lowest),
        "crossover": equal_at([use / 10 for use in USES], ratios),
    }


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


FIG8_CLAIMS: dict[str, Value | Like] = {
    **of_both_forms(_fig8_claims),
    "cost_scaling_flat": ratio(
        mean_s, at_use(COST_SCALING, USES[-1]), at_use(COST_SCALING, USES[0])
    ),
    "both_stay_high": quotient_of(least([_faster(use) for use in HIGH]), _faster(USES[0])),
    "relaxation_400_s": of(mean_s, at_use(RELAXATION, USES[-1])),
}


def _fig8(results: Results) -> Figure:
    """The time of the algorithms over the use of the cell."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
        for place, name in enumerate(RACERS):
            labels = [at_use(name, use) for use in USES]
            _time_line(axes, results, place, [use / 10 for use in USES], name, labels)
        axes.set_xlabel("Slots in use with the job (%)")
        _solver_times(axes, log=True)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


# Figs. 9 and 12a: load spreading as jobs of many tasks arrive

JOBS = (200, 1_000, 2_000, 3_000, 4_000, 5_000)  # tasks, at paper scale
_MIDDLE_JOB = 2_000
_AP_JOB = 4_000
_SPREAD_MACHINES, _SPREAD_PERMILLE, _JOB_ROUNDS = 10_000, 900, 10
PRIORITISED, UNPRIORITISED = "With arc prioritisation", "Without it"


def at_job(name: str, tasks: int) -> str:
    """The label of a run in which jobs of so many tasks, at paper scale, arrive."""
    return f"{name}, {tasks:,} tasks"


def _spread_job(scale: ReproduceScale, label: str, tasks: int, options: Options) -> JobRun:
    setting = firmament(scale, _SLOTS, _SPREAD_PERMILLE, {**SPREADING, **options}, _SPREAD_MACHINES)
    cost = cost_s(setting, 2 * _JOB_ROUNDS, 3.0)
    return JobRun(label, setting, _JOB_ROUNDS, cost, tasks // part(scale))


def fig9_runs(scale: ReproduceScale) -> tuple[JobRun, ...]:
    """The algorithms from scratch as jobs arrive, by how many tasks they have."""
    return tuple(
        _spread_job(scale, at_job(name, tasks), tasks, options)
        for name, options in RACERS.items()
        for tasks in JOBS
    )


def fig12a_runs(scale: ReproduceScale) -> tuple[JobRun, ...]:
    """Relaxation from scratch with and without arc prioritisation."""
    return tuple(
        _spread_job(
            scale,
            label,
            _AP_JOB,
            algorithm("relaxation", from_scratch=True, arc_prioritisation=prioritises),
        )
        for label, prioritises in ((PRIORITISED, True), (UNPRIORITISED, False))
    )


def _per_task(name: str, small: int, large: int) -> Value:
    """The time of an algorithm per further task."""

    def value(runs: RunsOfSeed) -> float | None:
        times = [mean_s(runs[at_job(name, tasks)]) for tasks in (small, large)]
        return (times[1] - times[0]) / (large - small)

    return value


def _fig9_claims(name: str) -> dict[str, Value]:
    """The claims about a form of relaxation."""
    ratios = [ratio(mean_s, at_job(name, tasks), at_job(COST_SCALING, tasks)) for tasks in JOBS]
    return {
        "linear": quotient_of(
            _per_task(name, _MIDDLE_JOB, JOBS[-1]), _per_task(name, JOBS[0], _MIDDLE_JOB)
        ),
        "relaxation_loses_large": ratios[-1],
        "crossover": equal_at([float(tasks) for tasks in JOBS], ratios),
    }


FIG9_CLAIMS: dict[str, Value | Like] = {
    "relaxation_wins_small": ratio(
        mean_s, at_job(COST_SCALING, JOBS[0]), at_job(RELAXATION, JOBS[0])
    ),
    **of_both_forms(_fig9_claims),
}
FIG12A_CLAIMS: dict[str, Value] = {
    "gains": saved(median_s, PRIORITISED, UNPRIORITISED),
    "by_45_percent": saved(median_s, PRIORITISED, UNPRIORITISED),
}


def _fig9(results: Results) -> Figure:
    """The mean time of the algorithms over the tasks of the job."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
        for place, name in enumerate(RACERS):
            labels = [at_job(name, tasks) for tasks in JOBS]
            runs = [run for run in results.runs if run.label in labels]
            x = [run.job_tasks for run in runs if isinstance(run, JobRun)]
            _time_line(axes, results, place, x, name, labels)
        axes.set_xlim(left=0)
        axes.set_xlabel("Tasks of the arriving job")
        _solver_times(axes, log=False)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


# Fig. 10: the solver stops early

PARTS = (
    *(1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 3, 3 / 8, 1 / 2),
    *(5 / 8, 3 / 4, 13 / 16, 7 / 8, 15 / 16, 31 / 32),
)
STOPPED_PERMILLE = 957  # with a job of 10,000 tasks


def fig10_runs(scale: ReproduceScale) -> tuple[StoppedRun, ...]:
    """The algorithms from scratch, stopped after parts of their work."""
    runs = []
    for name, options in RACERS.items():
        setting = firmament(scale, _FULL_SLOTS, BEGIN_PERMILLE, options, MACHINES)
        job = setting.machines * _FULL_SLOTS * STOPPED_PERMILLE // 1000 - setting.tasks
        cost = cost_s(setting, 0) * (1 + len(PARTS))
        runs.append(StoppedRun(name, setting, 1, cost, job, PARTS))
    return tuple(runs)


def misplaced_share(at: float) -> Reader:
    """The share of the tasks that are misplaced at a part of the work."""
    return lambda arrays: float(arrays["misplaced"][PARTS.index(at)] / arrays["tasks"])


def misplaced(at: float) -> Reader:
    """The tasks that are misplaced at a part of the work."""
    return lambda arrays: float(arrays["misplaced"][PARTS.index(at)])


def whole_solve_s(arrays: Arrays) -> float:
    """The time of the whole solve."""
    return float(arrays["solve_ns"]) / NS_PER_S


_UP_TO_A_THIRD = [one for one in PARTS if one <= 1 / 3]


def _fig10_claims(name: str) -> dict[str, Value]:
    """The claims about a form of relaxation."""
    return {
        "relaxation_fewer": ratio(misplaced(PARTS[0]), COST_SCALING, name),
        "relaxation_longer": ratio(whole_solve_s, name, COST_SCALING),
    }


FIG10_CLAIMS: dict[str, Value | Like] = {
    "cost_scaling_most": least([of(misplaced_share(at), COST_SCALING) for at in _UP_TO_A_THIRD]),
    "cost_scaling_drops": of(misplaced_share(5 / 8), COST_SCALING),
    "thousands": least([of(misplaced(1 / 2), name) for name in BOTH]),
    "until_the_end": least([of(misplaced_share(15 / 16), name) for name in BOTH]),
    **of_both_forms(_fig10_claims),
}


def _fig10(results: Results) -> Figure:
    """Misplaced tasks over the budget; dashed, what the scheduler makes of it."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
        for place, name in enumerate(RACERS):
            for which, text, look in (
                ("misplaced", name, "-"),
                ("moved", f"{name}: after the round", "--"),
            ):
                share = np.median([run[which] / run["tasks"] for run in results.of(name)], axis=0)
                _line(axes, place, text, [*PARTS, 1.0], [*share, 0.0], linestyle=look)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("Budget, as a share of the work of the whole solve")
        axes.set_ylabel("Tasks misplaced")
        style.share_axis(axes)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


def fig10_table(results: Results) -> Table:
    """The numbers of Fig. 10, of the first seed."""
    rows = []
    for name in RACERS:
        arrays = results.first(name)
        for which, text in (
            ("misplaced", "misplaced"),
            ("unrouted", "without flow"),
            ("moved", "elsewhere after the round"),
        ):
            counts = (f"{count:,}" for count in arrays[which])
            rows.append((f"{name}: {text}", *counts, f"{int(arrays['tasks']):,}"))
    header = ("", *(f"{at:.3g}" for at in PARTS), "of")
    times = ", ".join(
        f"{name.lower()} {1000 * whole_solve_s(results.first(name)):,.1f} ms and "
        f"{int(results.first(name)['operations']):,} operations"
        for name in RACERS
    )
    return Table(header, tuple(rows), f"First seed. The whole solve: {times}. {_TIMES_NOTE}")


# Figs. 11 and 12b: incremental cost scaling

OF_QUINCY, OF_SPREADING = "Quincy’s policy", "Load spreading"
POLICIES = (OF_QUINCY, OF_SPREADING)
INCREMENTAL_RUN, SCRATCH_RUN = "incremental", "from scratch"
_WAYS = {INCREMENTAL_RUN: INCREMENTAL, SCRATCH_RUN: FROM_SCRATCH[COST_SCALING]}
WITH_REMOVAL, WITHOUT_REMOVAL = "With efficient removal", "Without it"
_HIGH_PERMILLE = 950
_STEADY_ROUNDS = 15


def in_way(policy: str, way: str) -> str:
    """The label of a run of Fig. 11."""
    return f"{policy}, {way}"


def fig11_runs(scale: ReproduceScale) -> tuple[SteadyRun | JobRun, ...]:
    """Incremental cost scaling and from scratch, under two policies, and as jobs arrive."""
    runs: list[SteadyRun | JobRun] = []
    for way, options in _WAYS.items():
        quincy = firmament(scale, _SLOTS, _HIGH_PERMILLE, options, MACHINES)
        spreading = {**SPREADING, **options}
        spread = firmament(scale, _FULL_SLOTS, _SPREAD_PERMILLE, spreading, MACHINES)
        for policy, setting in ((OF_QUINCY, quincy), (OF_SPREADING, spread)):
            cost = cost_s(setting, _STEADY_ROUNDS)
            runs.append(SteadyRun(in_way(policy, way), setting, _STEADY_ROUNDS, cost))
    for use in HIGH:
        runs.append(_job_at(scale, INCREMENTALLY, use, INCREMENTAL))
        runs.append(_job_at(scale, COST_SCALING, use, FROM_SCRATCH[COST_SCALING]))
    return tuple(runs)


def _gain(policy: str) -> Value:
    return saved(median_s, in_way(policy, INCREMENTAL_RUN), in_way(policy, SCRATCH_RUN))


def _left(policy: str) -> Value:
    return ratio(median_s, in_way(policy, INCREMENTAL_RUN), in_way(policy, SCRATCH_RUN))


def _times_as_fast(runs: RunsOfSeed) -> float | None:
    ratios = [ratio(mean_s, at_use(COST_SCALING, use), at_use(INCREMENTALLY, use)) for use in HIGH]
    return over(lambda known: float(np.median(known)), [one(runs) for one in ratios])


FIG11_CLAIMS: dict[str, Value] = {
    "quincy_gains": _gain(OF_QUINCY),
    "quincy_25": _gain(OF_QUINCY),
    "spreading_gains": _gain(OF_SPREADING),
    "spreading_50": _gain(OF_SPREADING),
    "spreading_gains_more": quotient_of(_left(OF_QUINCY), _left(OF_SPREADING)),
    "twice_at_high_use": _times_as_fast,
}


def fig12b_runs(scale: ReproduceScale) -> tuple[SteadyRun, ...]:
    """Incremental cost scaling with and without efficient task removal."""
    runs = []
    for label, removes in ((WITH_REMOVAL, True), (WITHOUT_REMOVAL, False)):
        options = algorithm("cost_scaling", task_removal=removes)
        setting = firmament(scale, _SLOTS, _HIGH_PERMILLE, options, MACHINES)
        runs.append(SteadyRun(label, setting, _STEADY_ROUNDS, cost_s(setting, _STEADY_ROUNDS)))
    return tuple(runs)


FIG12B_CLAIMS: dict[str, Value] = {
    "gains": saved(median_s, WITH_REMOVAL, WITHOUT_REMOVAL),
    "by_10_percent": saved(median_s, WITH_REMOVAL, WITHOUT_REMOVAL),
}


def _boxes(results: Results, labels: Sequence[str]) -> Figure:
    """The times of the rounds of some runs as boxes."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
        for place, label in enumerate(labels):
            box(axes, place, _microseconds(results, label, "solve_ns"))
        axes.set_xticks(range(len(labels)), [label.replace(", ", "\n") for label in labels])
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.grid(visible=False, axis="x")
        _solver_times(axes, log=False)
    return figure


def _fig11(results: Results) -> Figure:
    return _boxes(results, [in_way(policy, way) for policy in POLICIES for way in _WAYS])


def _all_boxes(results: Results) -> Figure:
    return _boxes(results, [run.label for run in results.runs])


# Fig. 13: price refine between relaxation and cost scaling

REFINED, UNREFINED = "With price refine", "Without it"


def fig13_runs(scale: ReproduceScale) -> tuple[SwitchingRun, ...]:
    """Incremental cost scaling on solutions of relaxation, with and without price refine."""
    rounds = 20
    runs = []
    for label, refines in ((REFINED, True), (UNREFINED, False)):
        setting = firmament(
            scale, _FULL_SLOTS, _SPREAD_PERMILLE, FROM_SCRATCH[RELAXATION], MACHINES
        )
        second = {"name": "cost_scaling", "price_refine": refines}
        cost = cost_s(setting, 2 * rounds)
        runs.append(SwitchingRun(label, setting, rounds, cost, second=second))
    return tuple(runs)


def speed_ups(runs: RunsOfSeed) -> NDArray[np.float64]:
    """How many times as fast each round is with price refine."""
    ratios: NDArray[np.float64] = runs[UNREFINED]["solve_ns"] / runs[REFINED]["solve_ns"]
    return ratios


FIG13_CLAIMS: dict[str, Value] = {
    "gains": lambda runs: float(np.median(speed_ups(runs))),
    "four_times": lambda runs: float((speed_ups(runs) >= 4).mean()),
}


def _fig13(results: Results) -> Figure:
    """The distribution of the times of the rounds, with and without price refine."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(_WIDE_IN, _HIGH_IN)
        for place, label in enumerate((REFINED, UNREFINED)):
            times = np.sort(_microseconds(results, label, "solve_ns"))
            share = np.arange(1, len(times) + 1) / len(times)
            axes.step(times, share, where="post", label=label, **style.line_style(place))
        style.duration_axis(axes, "x", log=True)
        axes.set_ylim(0, 1.02)
        style.share_axis(axes)
        axes.set_xlabel("Time of cost scaling (processor)")
        axes.set_ylabel("Rounds that take at most so long")
        figure.legend(loc="outside upper center", ncols=2)
    return figure


FIGURES = (
    CHAPTER.figure("fig3", fig3_runs, FIG3_CLAIMS, _fig3, whole_table),
    CHAPTER.figure("fig7", fig7_runs, FIG7_CLAIMS, _fig7, whole_table),
    CHAPTER.figure("fig8", fig8_runs, FIG8_CLAIMS, _fig8, whole_table),
    CHAPTER.figure("fig9", fig9_runs, FIG9_CLAIMS, _fig9, whole_table),
    CHAPTER.figure("fig10", fig10_runs, FIG10_CLAIMS, _fig10, fig10_table),
    CHAPTER.figure("fig11", fig11_runs, FIG11_CLAIMS, _fig11, whole_table),
    CHAPTER.figure("fig12a", fig12a_runs, FIG12A_CLAIMS, _all_boxes, whole_table),
    CHAPTER.figure("fig12b", fig12b_runs, FIG12B_CLAIMS, _all_boxes, whole_table),
    CHAPTER.figure("fig13", fig13_runs, FIG13_CLAIMS, _fig13, whole_table),
)
