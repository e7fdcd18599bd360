"""Figs. 15 and 16 of Omega's section 6, the MapReduce scheduler (Schwarzkopf et al., EuroSys 2013;
mapreduce.toml).

The paper's runs replay traces of clusters A and C, whose use is usually above 60 %, and of D, which
is lightly loaded and about a quarter as large as C. These are not public. A busy cell stands in for
A and C, and a lightly used one, a quarter as large, for D. Their jobs are assumptions. At both
scales jobs occupy about 74 % of the busy cell and 38 % of the other one; MapReduce jobs have 16 %
of each, and the largest of them ask for 2.5 and 10 %.

Claims and drawings rest on what a run keeps of its MapReduce jobs (../runs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from experiments.campaign.task import Arrays
from experiments.figures import style
from experiments.papers.chapter import Chapter, FigureRun, Results, Table
from experiments.papers.claims import RunsOfSeed, Value
from experiments.papers.omega.figures import (
    BATCH,
    SERVICE,
    T_JOB_S,
    decision_time,
    run_config,
    scheduler_group,
)
from experiments.papers.runs import RUN_US, USED_AT_US, USED_PERMILLE
from experiments.papers.statistics import least, median_text, percent, quotient_of
from experiments.results.mapreduce import speedups_of
from experiments.studies.model_settings import ReproduceScale
from experiments.workloads.service_batch import (
    BatchJobs,
    MapReduceJobClass,
    ServiceBatchOptions,
    ServiceJobs,
)
from parsync.spec.arm import ArmConfig
from schedulers.mapreduce.scheduler import PolicyKind

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
BUSY, LIGHT = "Busy cell", "Lightly used cell"
CELLS = (BUSY, LIGHT)
REQUESTED, MAX_PARALLELISM = "as requested", "max-parallelism"
GLOBAL_CAP, RELATIVE = "global cap", "relative job size"
POLICIES = {
    REQUESTED: PolicyKind.REQUESTED,
    MAX_PARALLELISM: PolicyKind.MAX_PARALLELISM,
    GLOBAL_CAP: PolicyKind.GLOBAL_CAP,
    RELATIVE: PolicyKind.RELATIVE_JOB_SIZE,
}
WITH_EXTRA = (MAX_PARALLELISM, GLOBAL_CAP, RELATIVE)
TARGET_USE = 0.6  # of the global cap, section 6.2

_MAPREDUCE = "mapreduce"
# an activity costs little: its scheduler charges all activities of a job when it arrives
_T_ACTIVITY_S = 50e-6
_PROTOCOL = {
    "kind": "optimistic",
    "sync": "every_attempt",
    "retry_s": 1.0,
    "freed_at_once": True,
    "head_of_line_s": 0.0,
    "commit_mode": "incremental",
}


def at_policy(cell: str, policy: str) -> str:
    """The label of a run."""
    return f"{cell}, {policy}"


def cells(scale: ReproduceScale) -> dict[str, ServiceBatchOptions]:
    """The busy cell and the lightly used one."""
    if scale is ReproduceScale.PAPER:
        jobs = MapReduceJobClass(map_s=60.0, reduce_s=120.0)
        return {
            BUSY: _cell(10_000, 86_400.0, 55, (10.0, 20.0, 40.0), ServiceBatchOptions(), jobs),
            LIGHT: _cell(2_500, 86_400.0, 20, (40.0, 80.0, 160.0), ServiceBatchOptions(), jobs),
        }
    small = ServiceBatchOptions(
        batch=BatchJobs(tasks_per_job=20.0), service=ServiceJobs(tasks_per_job=5.0, run_s=200.0)
    )
    # the largest jobs ask for a tenth of the workers, as the cell has a tenth of the machines
    jobs = MapReduceJobClass(workers=(5, 11, 20, 100), map_s=20.0, reduce_s=40.0)
    return {
        BUSY: _cell(1_000, 5_400.0, 45, (5.0, 10.0, 15.0), small, jobs),
        LIGHT: _cell(250, 5_400.0, 10, (20.0, 40.0, 60.0), small, jobs),
    }


def _cell(
    machines: int,
    duration_s: float,
    fill_percent: int,
    interarrivals_s: tuple[float, float, float],
    like: ServiceBatchOptions,
    mapreduce: MapReduceJobClass,
) -> ServiceBatchOptions:
    """A cell with jobs like some others, that arrive as often as this: batch, service, MapReduce
    jobs."""
    batch_s, service_s, mapreduce_s = interarrivals_s
    return ServiceBatchOptions(
        machines=machines,
        duration_s=duration_s,
        initial_fill_percent=fill_percent,
        batch=like.batch.model_copy(update={"interarrival_s": batch_s}),
        service=like.service.model_copy(update={"interarrival_s": service_s}),
        mapreduce=mapreduce.model_copy(update={"interarrival_s": mapreduce_s}),
    )


def mapreduce_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Of Figs. 15 and 16: each policy on each cell, and the same jobs with the workers that their
    users asked for. After the last arrival, jobs have a third of that time to end."""
    return tuple(
        _run(at_policy(name, policy), kind, cell, scale)
        for name, cell in cells(scale).items()
        for policy, kind in POLICIES.items()
    )


def _run(
    label: str, policy: PolicyKind, cell: ServiceBatchOptions, scale: ReproduceScale
) -> FigureRun:
    arm = ArmConfig(
        name=label,
        partitions=1,
        groups=(
            *(
                scheduler_group(name, decision_time(T_JOB_S), task_class=name)
                for name in (BATCH, SERVICE)
            ),
            scheduler_group(
                _MAPREDUCE,
                decision_time(T_JOB_S, _T_ACTIVITY_S),
                kind=_MAPREDUCE,
                task_class=_MAPREDUCE,
                options={"policy": policy.value},
                protocol=_PROTOCOL,
            ),
        ),
    )
    config = run_config(
        cell,
        arm,
        drain_s=cell.duration_s / 3,
        sample_s=60.0 if scale is ReproduceScale.PAPER else 10.0,
    )
    return FigureRun(label, config, arm, draws_series=False, keeps_mapreduce=True)


# Statistics of speed-ups, and of the use of the cell

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], np.floating[Any]]

LEAST_GAIN = 1.05  # times as fast: a job gains if it is at least that
FILLING = 0.1  # of the time of arrivals, in which the cell fills up: not part of its use
CONFIDENT = 0.8  # the percentile in which the paper has more confidence
HIGH_USE = 0.95  # the quantile of the use of a cell when jobs have extra workers


def speedups(runs: RunsOfSeed, cell: str, policy: str) -> Floats:
    """The speed-up of each job over its run with the workers that were asked for: float64[k]."""
    arrays, before = runs[at_policy(cell, policy)], runs[at_policy(cell, REQUESTED)]
    return speedups_of(arrays[RUN_US], before[RUN_US])


def use(arrays: Arrays) -> Floats:
    """The use of the cell at each sample, without the first part of the run: float64[s]."""
    at_us = arrays[USED_AT_US]
    if not len(at_us):
        return np.zeros(0)
    used: Floats = arrays[USED_PERMILLE][at_us >= FILLING * at_us[-1]] / 1000
    return used


def gaining_share(cell: str, policy: str) -> Value:
    """The share of the jobs that gain."""
    return _of_speedups(cell, policy, lambda found: np.mean(found >= LEAST_GAIN))


def speedup_at(cell: str, policy: str, share: float = CONFIDENT) -> Value:
    """The quantile of the speed-ups at a share of the jobs."""
    return _of_speedups(cell, policy, lambda found: np.quantile(found, share))


def use_above(label: str, level: float) -> Value:
    """The share of the time in which more of the cell is in use than this."""
    return _of_use(label, lambda found: np.mean(found > level))


def use_mean(label: str) -> Value:
    """The mean use of the cell over time."""
    return _of_use(label, np.mean)


def use_at(label: str, share: float = HIGH_USE) -> Value:
    """The quantile of the use of the cell over time."""
    return _of_use(label, lambda found: np.quantile(found, share))


def use_deviation(label: str) -> Value:
    """The standard deviation of the use of the cell over time."""
    return _of_use(label, np.std)


def _of_speedups(cell: str, policy: str, statistic: Statistic) -> Value:
    return lambda runs: _known(speedups(runs, cell, policy), statistic)


def _of_use(label: str, statistic: Statistic) -> Value:
    return lambda runs: _known(use(runs[label]), statistic)


def _known(found: Floats, statistic: Statistic) -> float | None:
    """A statistic of some numbers; None if there are none."""
    return float(statistic(found)) if len(found) else None


def _to_most(cell: str, policy: str) -> Value:
    """The speed-up at the 80th percentile over that of max-parallelism."""
    return quotient_of(speedup_at(cell, policy), speedup_at(cell, MAX_PARALLELISM))


# Fig. 15: the speed-ups of MapReduce jobs

GAINING = (0.5, 0.7)  # of the jobs
SPEEDUPS = (3.0, 4.0)  # at the 80th percentile, with max-parallelism
_CLUSTERS = {BUSY: "for clusters A and C", LIGHT: "for cluster D"}
_SLOWEST, _TICKS = 0.7, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_PAPER_SAYS = {
    (BUSY, MAX_PARALLELISM): "50 to 70 % gain; 80th percentile: 3 to 4 x",
    (BUSY, GLOBAL_CAP): "little or no benefit",
    (BUSY, RELATIVE): "quite well",
    (LIGHT, MAX_PARALLELISM): "50 to 70 % gain; 80th percentile: 3 to 4 x",
    (LIGHT, GLOBAL_CAP): "almost as well as max-parallelism",
    (LIGHT, RELATIVE): "quite well",
}


def _draw_fig15(results: Results) -> Figure:
    """The distribution of the speed-ups of all seeds, a panel for each cell and a line for each
    policy."""
    with style.drawing(rows=1, columns=len(CELLS)) as (figure, made):
        figure.set_size_inches(9.6, 4.2)
        made[1].sharex(made[0])
        for axes, cell in zip(made, CELLS, strict=True):
            for index, policy in enumerate(WITH_EXTRA):
                found = np.sort(
                    np.concatenate([speedups(runs, cell, policy) for runs in results.seeds])
                )
                share = np.arange(1, len(found) + 1) / max(1, len(found))
                axes.plot(found, share, label=policy.capitalize(), **style.line_style(index))
            _paper_values(axes)
            style.share_axis(axes)
            axes.set_ylim(0, 1.02)
            axes.set_title(f"{cell} ({_CLUSTERS[cell]})")
            axes.set_ylabel("Share of the MapReduce jobs")
        for axes in made:
            _speedup_axis(axes)
        style.legend(figure, made[0])
    return figure


def _paper_values(axes: Axes) -> None:
    """The share of the jobs that do not gain, and the speed-up at the 80th percentile."""
    look: dict[str, Any] = {
        "color": style.INK,
        "linewidth": 5.0,
        "alpha": 0.45,
        "solid_capstyle": "butt",
        "zorder": 1.5,  # below the lines
    }
    axes.plot(SPEEDUPS, (CONFIDENT, CONFIDENT), label="Paper, max-parallelism", **look)
    axes.plot((1, 1), [1 - share for share in GAINING], **look)
    for text, at, aside, side in (
        ("3 to 4 x", (SPEEDUPS[0], CONFIDENT), -5, "right"),
        ("50 to\n70 %\ngain", (1, 1 - sum(GAINING) / 2), 5, "left"),
    ):
        axes.annotate(
            text, at, (aside, 0), textcoords="offset points", ha=side, va="center", fontsize=8
        )


def _speedup_axis(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xlim(_SLOWEST, max(_TICKS[2], axes.get_xlim()[1]))
    axes.xaxis.set_major_locator(FixedLocator(list(_TICKS)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} x"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("Speed-up of the job")


def _table15(results: Results) -> Table:
    """Speed-ups on each cell with each policy, and what the paper says of them."""

    def row(cell: str, policy: str) -> tuple[str, ...]:
        jobs = [float(len(speedups(runs, cell, policy))) for runs in results.seeds]
        return (
            at_policy(cell, policy),
            f"{np.mean(jobs):.0f}",
            median_text(results, gaining_share(cell, policy), percent),
            median_text(results, speedup_at(cell, policy, 0.5), "{:.2f} x".format),
            median_text(results, speedup_at(cell, policy), "{:.2f} x".format),
            _PAPER_SAYS[cell, policy],
        )

    return Table(
        ("", "jobs", "at least 5 % faster", "median", "80th percentile", "paper"),
        tuple(row(cell, policy) for cell in CELLS for policy in WITH_EXTRA),
        "Speed-ups over the same job with the workers that its user asked for, of the jobs that "
        "ended in both runs; medians over the seeds.",
    )


_FIG15 = CHAPTER.figure(
    "fig15",
    mapreduce_runs,
    {
        "jobs_gain": least([gaining_share(cell, MAX_PARALLELISM) for cell in CELLS]),
        "speedup": least([speedup_at(cell, MAX_PARALLELISM) for cell in CELLS]),
        "max_parallelism_most": least(
            [
                quotient_of(speedup_at(cell, MAX_PARALLELISM), speedup_at(cell, policy))
                for cell in CELLS
                for policy in (GLOBAL_CAP, RELATIVE)
            ]
        ),
        "relative_size_well": least([_to_most(cell, RELATIVE) for cell in CELLS]),
        "cap_on_light_cell": _to_most(LIGHT, GLOBAL_CAP),
        "cap_on_busy_cell": speedup_at(BUSY, GLOBAL_CAP),
        "use_above_cap": use_above(at_policy(BUSY, REQUESTED), TARGET_USE),
    },
    _draw_fig15,
    _table15,
    least_gain=GAINING[0],
    most_gain=GAINING[1],
    least_speedup=SPEEDUPS[0],
    most_speedup=SPEEDUPS[1],
)


# Fig. 16: the use of the cell


def _draw_fig16(results: Results) -> Figure:
    """The use of the busy cell over time under the first seed, without extra workers above and with
    max-parallelism below."""
    with style.drawing(rows=2, columns=1) as (figure, made):
        figure.set_size_inches(9.6, 5.0)
        above, below = made
        below.sharex(above)
        for axes, policy in ((above, REQUESTED), (below, MAX_PARALLELISM)):
            arrays = results.first(at_policy(BUSY, policy))
            at_us = arrays[USED_AT_US]
            axes.plot(at_us, arrays[USED_PERMILLE] / 1000, color=style.colour(0), linewidth=1.1)
            end_us = at_us[-1] if len(at_us) else 1
            axes.axvspan(0, FILLING * end_us, color=style.INK, alpha=0.08, linewidth=0)
            axes.set_xlim(0, end_us)
            axes.set_ylim(0, 1.02)
            axes.set_ylabel("Use of the cell")
            style.share_axis(axes)
            style.duration_axis(axes, "x", log=False)
        above.set_title("Without extra workers")
        below.set_title("Max-parallelism")
        below.set_xlabel("Time")
    return figure


def _table16(results: Results) -> Table:
    """The use of each cell with each policy."""
    rows = tuple(
        (
            label,
            median_text(results, use_mean(label), percent),
            median_text(results, use_deviation(label), percent),
            median_text(results, use_at(label), percent),
        )
        for label in (at_policy(cell, policy) for cell in CELLS for policy in POLICIES)
    )
    return Table(
        ("", "mean use", "standard deviation", "95th percentile"),
        rows,
        "Use of the cell over time, without the first tenth of the run; medians over the seeds. "
        "The paper states no numbers.",
    )


_WITHOUT, _EXTRA = at_policy(BUSY, REQUESTED), at_policy(BUSY, MAX_PARALLELISM)
_FIG16 = CHAPTER.figure(
    "fig16",
    mapreduce_runs,
    {
        "use_higher": quotient_of(use_at(_EXTRA), use_at(_WITHOUT)),
        "use_more_variable": quotient_of(use_deviation(_EXTRA), use_deviation(_WITHOUT)),
    },
    _draw_fig16,
    _table16,
)

FIGURES = (_FIG15, _FIG16)
