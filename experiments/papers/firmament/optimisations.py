"""Firmament's Figs. 10 to 13: solves that stop early, incremental cost scaling, and what makes the
algorithms faster (Gog et al., OSDI 2016, sections 5 and 6; figures.toml).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.campaign.task import Arrays
from experiments.figures import style
from experiments.papers.chapter import Like, Results, Table
from experiments.papers.claims import RunsOfSeed, Value
from experiments.papers.firmament.algorithms import (
    BEGIN_PERMILLE,
    HIGH,
    SPREAD_PERMILLE,
    at_use,
    job_at,
    spread_job,
)
from experiments.papers.firmament.cells import (
    BOTH,
    CHAPTER,
    COST_SCALING,
    FROM_SCRATCH,
    FULL_SLOTS,
    HIGH_IN,
    INCREMENTAL,
    MACHINES,
    NS_PER_S,
    RACERS,
    RELAXATION,
    SLOTS,
    SPREADING,
    TIMES_NOTE,
    WIDE_IN,
    algorithm,
    box,
    cost_s,
    firmament,
    line,
    mean_s,
    median_s,
    microseconds,
    of_both_forms,
    saved,
    shown,
    solver_times,
    whole_table,
)
from experiments.papers.flow_rounds import (
    JobRun,
    SteadyRun,
    StoppedRun,
    SwitchingRun,
)
from experiments.papers.statistics import (
    Reader,
    least,
    of,
    over,
    quotient_of,
    ratio,
)
from experiments.studies.model_settings import ReproduceScale

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
        setting = firmament(scale, FULL_SLOTS, BEGIN_PERMILLE, options, MACHINES)
        job = setting.machines * FULL_SLOTS * STOPPED_PERMILLE // 1000 - setting.tasks
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
        figure.set_size_inches(WIDE_IN, HIGH_IN)
        for place, name in enumerate(RACERS):
            for which, text, look in (
                ("misplaced", name, "-"),
                ("moved", f"{name}: after the round", "--"),
            ):
                share = np.median([run[which] / run["tasks"] for run in results.of(name)], axis=0)
                line(axes, place, text, [*PARTS, 1.0], [*share, 0.0], linestyle=look)
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
    return Table(header, tuple(rows), f"First seed. The whole solve: {times}. {TIMES_NOTE}")


# Figs. 11 and 12b: incremental cost scaling

INCREMENTALLY = "Cost scaling, incremental"
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
        quincy = firmament(scale, SLOTS, _HIGH_PERMILLE, options, MACHINES)
        spreading = {**SPREADING, **options}
        spread = firmament(scale, FULL_SLOTS, SPREAD_PERMILLE, spreading, MACHINES)
        for policy, setting in ((OF_QUINCY, quincy), (OF_SPREADING, spread)):
            cost = cost_s(setting, _STEADY_ROUNDS)
            runs.append(SteadyRun(in_way(policy, way), setting, _STEADY_ROUNDS, cost))
    for use in HIGH:
        runs.append(job_at(scale, INCREMENTALLY, use, INCREMENTAL))
        runs.append(job_at(scale, COST_SCALING, use, FROM_SCRATCH[COST_SCALING]))
    return tuple(runs)


def _gain(policy: str) -> Value:
    return saved(median_s, in_way(policy, INCREMENTAL_RUN), in_way(policy, SCRATCH_RUN))


def _left(policy: str) -> Value:
    return ratio(median_s, in_way(policy, INCREMENTAL_RUN), in_way(policy, SCRATCH_RUN))


def _times_as_fast(policy: str) -> Value:
    return ratio(median_s, in_way(policy, SCRATCH_RUN), in_way(policy, INCREMENTAL_RUN))


def _as_jobs_arrive(runs: RunsOfSeed) -> float | None:
    ratios = [ratio(mean_s, at_use(COST_SCALING, use), at_use(INCREMENTALLY, use)) for use in HIGH]
    return over(lambda known: float(np.median(known)), [one(runs) for one in ratios])


FIG11_CLAIMS: dict[str, Value] = {
    "quincy_gains": _gain(OF_QUINCY),
    "quincy_25": _gain(OF_QUINCY),
    "spreading_gains": _gain(OF_SPREADING),
    "spreading_50": _gain(OF_SPREADING),
    "spreading_gains_more": quotient_of(_left(OF_QUINCY), _left(OF_SPREADING)),
    "twice_at_high_use": _as_jobs_arrive,
}


def fig12b_runs(scale: ReproduceScale) -> tuple[SteadyRun, ...]:
    """Incremental cost scaling with and without efficient task removal."""
    runs = []
    for label, removes in ((WITH_REMOVAL, True), (WITHOUT_REMOVAL, False)):
        options = algorithm("cost_scaling", task_removal=removes)
        setting = firmament(scale, SLOTS, _HIGH_PERMILLE, options, MACHINES)
        runs.append(SteadyRun(label, setting, _STEADY_ROUNDS, cost_s(setting, _STEADY_ROUNDS)))
    return tuple(runs)


FIG12B_CLAIMS: dict[str, Value] = {
    "gains": saved(median_s, WITH_REMOVAL, WITHOUT_REMOVAL),
    "by_10_percent": saved(median_s, WITH_REMOVAL, WITHOUT_REMOVAL),
}


def _boxes(results: Results, labels: Sequence[str]) -> Figure:
    """The times of the rounds of some runs as boxes."""
    with style.drawing() as (figure, axes):
        figure.set_size_inches(WIDE_IN, HIGH_IN)
        for place, label in enumerate(labels):
            box(axes, place, microseconds(results, label, "solve_ns"))
        axes.set_xticks(range(len(labels)), [label.replace(", ", "\n") for label in labels])
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.grid(visible=False, axis="x")
        solver_times(axes, log=False)
    return figure


def _fig11(results: Results) -> Figure:
    return _boxes(results, [in_way(policy, way) for policy in POLICIES for way in _WAYS])


def _all_boxes(results: Results) -> Figure:
    return _boxes(results, [run.label for run in results.runs])


# Fig. 12a: arc prioritisation

PRIORITISED, UNPRIORITISED = "With arc prioritisation", "Without it"
_AP_JOB = 4_000


def fig12a_runs(scale: ReproduceScale) -> tuple[JobRun, ...]:
    """Relaxation from scratch with and without arc prioritisation."""
    return tuple(
        spread_job(
            scale,
            label,
            _AP_JOB,
            algorithm("relaxation", from_scratch=True, arc_prioritisation=prioritises),
        )
        for label, prioritises in ((PRIORITISED, True), (UNPRIORITISED, False))
    )


FIG12A_CLAIMS: dict[str, Value] = {
    "gains": saved(median_s, PRIORITISED, UNPRIORITISED),
    "by_45_percent": saved(median_s, PRIORITISED, UNPRIORITISED),
}


# Fig. 13: price refine between relaxation and cost scaling

REFINED, UNREFINED = "With price refine", "Without it"


def fig13_runs(scale: ReproduceScale) -> tuple[SwitchingRun, ...]:
    """Incremental cost scaling on solutions of relaxation, with and without price refine."""
    rounds = 20
    runs = []
    for label, refines in ((REFINED, True), (UNREFINED, False)):
        setting = firmament(scale, FULL_SLOTS, SPREAD_PERMILLE, FROM_SCRATCH[RELAXATION], MACHINES)
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
        figure.set_size_inches(WIDE_IN, HIGH_IN)
        for place, label in enumerate((REFINED, UNREFINED)):
            times = np.sort(microseconds(results, label, "solve_ns"))
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
    CHAPTER.figure(
        "fig10",
        fig10_runs,
        FIG10_CLAIMS,
        _fig10,
        fig10_table,
        headline={
            "cost_scaling": shown(of(misplaced_share(5 / 8), COST_SCALING)),
            "relaxation_half": shown(of(misplaced_share(1 / 2), RELAXATION)),
            "relaxation_end": shown(of(misplaced_share(PARTS[-1]), RELAXATION)),
            "cost_scaling_end": shown(of(misplaced_share(PARTS[-1]), COST_SCALING)),
        },
    ),
    CHAPTER.figure(
        "fig11",
        fig11_runs,
        FIG11_CLAIMS,
        _fig11,
        whole_table,
        headline={
            "quincy": shown(_times_as_fast(OF_QUINCY)),
            "spreading": shown(_times_as_fast(OF_SPREADING)),
            "jobs": shown(_as_jobs_arrive),
        },
    ),
    CHAPTER.figure("fig12a", fig12a_runs, FIG12A_CLAIMS, _all_boxes, whole_table),
    CHAPTER.figure("fig12b", fig12b_runs, FIG12B_CLAIMS, _all_boxes, whole_table),
    CHAPTER.figure("fig13", fig13_runs, FIG13_CLAIMS, _fig13, whole_table),
)
