"""Firmament's Figs. 3 and 7 to 9: how long the algorithms of the solver take, by the size of the
cell, its use, and the size of an arriving job (Gog et al., OSDI 2016, sections 2 and 4;
figures.toml).
"""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from experiments.figures import style
from experiments.papers.chapter import Like, Results
from experiments.papers.claims import RunsOfSeed, Value
from experiments.papers.firmament.cells import (
    BOTH,
    CANCELLING,
    CHAPTER,
    COST_SCALING,
    FROM_SCRATCH,
    FULL_SLOTS,
    HIGH_IN,
    MACHINES,
    PLAIN,
    RACERS,
    RELAXATION,
    SHORTEST_PATHS,
    SLOTS,
    SPREADING,
    TEXTBOOK_PATHS,
    WIDE_IN,
    algorithm,
    box,
    cost_s,
    equal_at,
    firmament,
    machines_of,
    mean_round_s,
    mean_s,
    microseconds,
    of_both_forms,
    part,
    round_s,
    saved,
    shown,
    shown_machines,
    shown_ms,
    solver_times,
    time_line,
    whole_table,
)
from experiments.papers.flow_rounds import (
    JobRun,
    Options,
    Setting,
    SteadyRun,
)
from experiments.papers.statistics import (
    growths,
    least,
    of,
    quotient_of,
    ratio,
)
from experiments.studies.model_settings import ReproduceScale

# Figs. 3 and 7: the size of the cell

SIZES = (4, 36, 68, 100, 200, 400, 600, 800, 1000)  # permille of the cell: 50 to 12,500 machines
QUINCY = "Quincy"
ALPHAS = {"alpha = 2": 2, "alpha = 9": 9}
# The textbook's algorithms would take minutes a round on larger cells.
LARGEST = {TEXTBOOK_PATHS: 100, CANCELLING: 4}
_HALF = 500
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
    setting = Setting(MACHINES * size // 1000 // part(scale), SLOTS, _HALF, kind, options)
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
        figure.set_size_inches(WIDE_IN, HIGH_IN)
        for place, label in enumerate(QUINCY_LABELS):
            box(axes, place, microseconds(results, label, "round_ns"))
        names = [f"{machines_of(results, label):,}" for label in QUINCY_LABELS]
        axes.set_xticks(range(len(SIZES)), names)
        style.duration_axis(axes, "y", log=True)
        axes.set_xlabel("Machines")
        axes.set_ylabel("Time of a round (processor)")
    return figure


def _fig7(results: Results) -> Figure:
    """The mean time of each algorithm over the size of the cell, both logarithmic."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(WIDE_IN, HIGH_IN)
        for place, name in enumerate(FROM_SCRATCH):
            labels = [at_size(name, size) for size in sizes_of(name)]
            x = [machines_of(results, label) for label in labels]
            time_line(axes, results, place, x, name, labels)
        axes.set_xscale("log")
        every = [machines_of(results, at_size(RELAXATION, size)) for size in SIZES]
        axes.xaxis.set_major_locator(FixedLocator(every))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="x", rotation=30)
        axes.set_xlabel("Machines")
        solver_times(axes, log=True)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


# Fig. 8: close to full use; incremental cost scaling there for slide 56

BEGIN_PERMILLE = 895  # 144,339 of 161,256 slots run tasks before the job arrives
USES = (910, 926, 942, 957, 973, 988, 1004)  # permille of the slots, with the job: as in the paper
HIGH = tuple(use for use in USES if use > 940)


def at_use(name: str, use: int) -> str:
    """The label of a run in which a job fills the cell so far."""
    return f"{name}, {use / 10:g} %"


def job_at(scale: ReproduceScale, name: str, use: int, options: Options) -> JobRun:
    setting = firmament(scale, FULL_SLOTS, BEGIN_PERMILLE, options, MACHINES)
    slots = setting.machines * FULL_SLOTS
    job = slots * use // 1000 - setting.tasks
    return JobRun(at_use(name, use), setting, 1, cost_s(setting, 2), job)


def fig8_runs(scale: ReproduceScale) -> tuple[JobRun, ...]:
    """The algorithms from scratch as a job arrives, by how far it fills the cell."""
    return tuple(
        job_at(scale, name, use, options) for name, options in RACERS.items() for use in USES
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
        figure.set_size_inches(WIDE_IN, HIGH_IN)
        for place, name in enumerate(RACERS):
            labels = [at_use(name, use) for use in USES]
            time_line(axes, results, place, [use / 10 for use in USES], name, labels)
        axes.set_xlabel("Slots in use with the job (%)")
        solver_times(axes, log=True)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


# Fig. 9: load spreading as jobs of many tasks arrive

JOBS = (200, 1_000, 2_000, 3_000, 4_000, 5_000)  # tasks, at paper scale
_MIDDLE_JOB = 2_000
_SPREAD_MACHINES, SPREAD_PERMILLE, _JOB_ROUNDS = 10_000, 900, 10


def at_job(name: str, tasks: int) -> str:
    """The label of a run in which jobs of so many tasks, at paper scale, arrive."""
    return f"{name}, {tasks:,} tasks"


def spread_job(scale: ReproduceScale, label: str, tasks: int, options: Options) -> JobRun:
    setting = firmament(scale, SLOTS, SPREAD_PERMILLE, {**SPREADING, **options}, _SPREAD_MACHINES)
    cost = cost_s(setting, 2 * _JOB_ROUNDS, 3.0)
    return JobRun(label, setting, _JOB_ROUNDS, cost, tasks // part(scale))


def fig9_runs(scale: ReproduceScale) -> tuple[JobRun, ...]:
    """The algorithms from scratch as jobs arrive, by how many tasks they have."""
    return tuple(
        spread_job(scale, at_job(name, tasks), tasks, options)
        for name, options in RACERS.items()
        for tasks in JOBS
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


def _fig9(results: Results) -> Figure:
    """The mean time of the algorithms over the tasks of the job."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(WIDE_IN, HIGH_IN)
        for place, name in enumerate(RACERS):
            labels = [at_job(name, tasks) for tasks in JOBS]
            runs = [run for run in results.runs if run.label in labels]
            x = [run.job_tasks for run in runs if isinstance(run, JobRun)]
            time_line(axes, results, place, x, name, labels)
        axes.set_xlim(left=0)
        axes.set_xlabel("Tasks of the arriving job")
        solver_times(axes, log=False)
        figure.legend(loc="outside upper center", ncols=3)
    return figure


FIGURES = (
    CHAPTER.figure(
        "fig3",
        fig3_runs,
        FIG3_CLAIMS,
        _fig3,
        whole_table,
        headline={
            "median": shown_ms(of(round_s(0.5), LARGEST_QUINCY)),
            "machines": shown_machines(LARGEST_QUINCY),
        },
    ),
    CHAPTER.figure(
        "fig7",
        fig7_runs,
        FIG7_CLAIMS,
        _fig7,
        whole_table,
        headline={
            "shortest_paths": shown(FIG7_CLAIMS["shortest_paths_slow"]),
            "textbook": shown(FIG7_CLAIMS["textbook_slow"]),
            "small": shown_machines(_TEXTBOOK_LARGEST),
            "orders": shown(FIG7_CLAIMS["two_orders"]),
            "relaxation": shown_ms(of(mean_s, _whole(RELAXATION))),
            "cost_scaling": shown_ms(of(mean_s, _whole(COST_SCALING))),
            "machines": shown_machines(_whole(RELAXATION)),
        },
    ),
    CHAPTER.figure(
        "fig8",
        fig8_runs,
        FIG8_CLAIMS,
        _fig8,
        whole_table,
        headline={
            "times": shown(_fig8_claims(RELAXATION)["relaxation_loses"]),
            "plain_times": shown(_fig8_claims(PLAIN)["relaxation_loses"]),
            "grows": shown(_fig8_claims(RELAXATION)["relaxation_grows"]),
            "plain_grows": shown(_fig8_claims(PLAIN)["relaxation_grows"]),
        },
    ),
    CHAPTER.figure(
        "fig9",
        fig9_runs,
        FIG9_CLAIMS,
        _fig9,
        whole_table,
        headline={
            "times": shown(_fig9_claims(RELAXATION)["relaxation_loses_large"]),
            "plain_times": shown(_fig9_claims(PLAIN)["relaxation_loses_large"]),
        },
    ),
)
