"""The figures of Omega's sections 4 and 5 (Schwarzkopf et al., EuroSys 2013): their cells and arms,
what their claims are judged by, and how they are drawn (figures.toml).

An attempt to schedule a job takes t_job + t_task * n, where n is how many of its tasks are not
placed yet. Unless an experiment varies them, t_job = 0.1 s and t_task = 5 ms (section 4,
"Parameters"). Messages take no time.

The workloads of the paper's cells A, B and C are not public. The example of Omega's public
simulator stands in for them, in a cell of which 60 % is taken from the start, as in section 4. At
smoke scale these are the cells of examples/omega/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from matplotlib.figure import Figure

from experiments.analysis.summary_model import SeedFigures
from experiments.config.run_config import RunConfig, VirtualConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.papers import plots
from experiments.papers.chapter import Chapter, FigureRun, Results
from experiments.papers.claims import Value
from experiments.papers.plots import Line, Panel
from experiments.papers.statistics import (
    US_PER_S,
    Points,
    Reader,
    crossing,
    furthest_from_one,
    growth_above,
    growths,
    least,
    less,
    most,
    of,
    of_s,
    over,
    overall,
    quotient,
    quotient_of,
    ratio,
)
from experiments.studies.model_settings import ReproduceScale
from experiments.workloads.service_batch import (
    BatchJobs,
    ServiceBatchOptions,
    ServiceJobs,
)
from parsync.metrics.quantity import counted
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime, ServiceTime

T_JOB_S, T_TASK_S = 0.1, 0.005
T_JOBS_S = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
RATES = (1, 2, 4, 6, 8, 10)
SCHEDULERS = (1, 2, 4, 8, 16, 32)
RATES_OF_MANY = (1, 2, 4, 8)
SPLIT = (1, 3)
# t_job of batch jobs in Fig. 13, in parts of the mean time between two batch jobs
LOADS = (0.05, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
_SLOW_S = 10.0  # the t_job of service jobs at which architectures are compared
T_JOBS_OF_CONFLICTS_S = (0.1, 1.0, 10.0, 100.0)
SLOW_TASK_S = 1.0  # t_task of service jobs, section 5.1

SINGLE, MULTI, SHARED = "Monolithic, single path", "Monolithic, multi-path", "Shared state"
TWO_LEVEL = "Two-level, Mesos"
FINE_INCREMENTAL, FINE_GANG = "Fine, incremental", "Fine, all or nothing"
COARSE_INCREMENTAL, COARSE_GANG = "Coarse, incremental", "Coarse, all or nothing"
SLOW_TASKS = f"{SHARED}, t_task {SLOW_TASK_S:g} s"
COMMITS: dict[str, dict[str, str]] = {
    FINE_INCREMENTAL: {},
    FINE_GANG: {"commit_mode": "all_or_nothing", "atomic_unit": "job"},
    COARSE_INCREMENTAL: {"conflict_check": "sequence_number"},
    COARSE_GANG: {
        "conflict_check": "sequence_number",
        "commit_mode": "all_or_nothing",
        "atomic_unit": "job",
    },
}

ALL, BATCH, SERVICE = "all", "batch", "service"  # groups of schedulers

_DAY_S, _DAYS = 86_400.0, 7
_FILL_PERCENT = 60
_KIND = "randomized_first_fit"
_PROTOCOL = {
    "kind": "optimistic",
    "sync": "every_attempt",
    "retry_s": 1.0,
    "losers": "requeue",
    "head_of_line_s": 0.0,
    "commit_mode": "incremental",
}
# As the paper's simulator of Mesos: everything to one scheduler at a time, no filters.
_OFFERS = {
    "kind": "offers",
    "refuse_s": 0.0,
    "attempts_max": 1000,
    "attempts_max_unplaced": 100,
}
_ALLOCATOR = {"granularity": "cell", "interval_s": 1.0, "allocation_s": 0.001}
_SAMPLE_S, _HEARTBEAT_US = 10.0, 100_000


def at_t_job(label: str, t_job_s: float) -> str:
    """The label of a run with this t_job."""
    return f"{label}, t_job {t_job_s:g} s"


def at_rate(schedulers: int, rate: float) -> str:
    """The label of a run with so many batch schedulers, and batch jobs so many times as often."""
    return f"{schedulers} for batch jobs, {rate:g} x"


def at_load(schedulers: int, load: float) -> str:
    """The label of a run of Fig. 13."""
    return f"{schedulers} for batch jobs, t_job {load:g} of the time between them"


def architectures_cell(scale: ReproduceScale) -> ServiceBatchOptions:
    """Of Figs. 5 and 6: seven days, as in section 4."""
    if scale is ReproduceScale.PAPER:
        return _example(_DAYS * _DAY_S)
    return ServiceBatchOptions(
        machines=1_000,
        duration_s=7_200.0,
        batch=BatchJobs(interarrival_s=2.0, tasks_per_job=20.0, run_s=100.0),
        service=ServiceJobs(interarrival_s=20.0, tasks_per_job=10.0, run_s=2_000.0),
    )


def scaling_cell(scale: ReproduceScale, rate: float) -> ServiceBatchOptions:
    """Of Figs. 8, 9 and 13: one day, batch jobs `rate` times as often."""
    if scale is ReproduceScale.PAPER:
        return _example(_DAY_S, batch_rate=float(rate))
    return ServiceBatchOptions(
        machines=1_000,
        duration_s=3_600.0,
        batch=BatchJobs(interarrival_s=2.0, tasks_per_job=20.0, run_s=30.0),
        service=ServiceJobs(interarrival_s=20.0, tasks_per_job=10.0, run_s=500.0),
        batch_rate=float(rate),
    )


def conflicts_cell(scale: ReproduceScale) -> ServiceBatchOptions:
    """Of Figs. 12 and 14: one day of a cell with a high batch load, and with few enough service
    jobs that retries do not saturate their scheduler at t_job = 10 s."""
    if scale is ReproduceScale.PAPER:
        return _example(_DAY_S, batch_rate=4.0, service=ServiceJobs(interarrival_s=40.0))
    return ServiceBatchOptions(
        machines=1_000,
        duration_s=7_200.0,
        batch=BatchJobs(interarrival_s=2.0, tasks_per_job=20.0, run_s=100.0),
        service=ServiceJobs(interarrival_s=40.0, tasks_per_job=10.0, run_s=1_000.0),
        initial_fill_percent=30,
    )


def _example(duration_s: float, **changed: Any) -> ServiceBatchOptions:
    """The example of Omega's simulator: 10,000 machines."""
    return ServiceBatchOptions(duration_s=duration_s, initial_fill_percent=_FILL_PERCENT, **changed)


@dataclass(frozen=True, slots=True)
class Arms:
    """Makes the arms of a cell."""

    cell: ServiceBatchOptions

    def single_path(self, t_job_s: float) -> FigureRun:
        """One scheduler, one decision time."""
        group = scheduler_group(ALL, decision_time(t_job_s))
        return self._run(at_t_job(SINGLE, t_job_s), group)

    def multi_path(self, t_job_s: float) -> FigureRun:
        """One scheduler with a fast path for batch jobs; t_job_s is that of service jobs."""
        slow = ServiceTime(job_us=_us(t_job_s), task_us=T_TASK_S * 1e6)
        group = scheduler_group(ALL, decision_time(T_JOB_S).model_copy(update={"service": slow}))
        return self._run(at_t_job(MULTI, t_job_s), group)

    def shared(self, t_job_s: float) -> FigureRun:
        """A scheduler for each class; t_job_s is that of service jobs."""
        return self._shared(at_t_job(SHARED, t_job_s), service=decision_time(t_job_s))

    def two_level(self, t_job_s: float) -> FigureRun:
        """A scheduler for each class, which places on what Mesos' allocator offers it; t_job_s is
        that of service jobs."""
        groups = (
            scheduler_group(BATCH, decision_time(T_JOB_S), task_class="batch", protocol=_OFFERS),
            scheduler_group(
                SERVICE, decision_time(t_job_s), task_class="service", protocol=_OFFERS
            ),
        )
        tree = {
            "name": at_t_job(TWO_LEVEL, t_job_s),
            "partitions": 1,
            "groups": groups,
            "protocols": {"offers": _ALLOCATOR},
        }
        return self._of(ArmConfig.model_validate(tree))

    def committing(self, commits: str, t_job_s: float) -> FigureRun:
        """The same with one of COMMITS."""
        label = at_t_job(commits, t_job_s)
        return self._shared(label, service=decision_time(t_job_s), protocol=COMMITS[commits])

    def slow_tasks(self) -> FigureRun:
        """The same with slow decisions on each service task."""
        service = decision_time(T_JOB_S, SLOW_TASK_S)
        return self._shared(SLOW_TASKS, service=service)

    def many(self, schedulers: int) -> FigureRun:
        """So many batch schedulers beside one for service jobs."""
        label = at_rate(schedulers, self.cell.batch_rate)
        return self._shared(label, batch_schedulers=schedulers)

    def split(self, schedulers: int, load: float) -> FigureRun:
        """So many batch schedulers, and a t_job of batch jobs in parts of the mean time between
        two batch jobs."""
        batch = decision_time(self.split_t_job_s(load))
        return self._shared(at_load(schedulers, load), batch=batch, batch_schedulers=schedulers)

    def split_t_job_s(self, load: float) -> float:
        """The t_job of batch jobs of `split`."""
        return load * self.cell.interarrival_s(BATCH)

    def _shared(
        self,
        label: str,
        *,
        batch: ModelledTime | None = None,
        service: ModelledTime | None = None,
        batch_schedulers: int = 1,
        protocol: Mapping[str, str] = MappingProxyType({}),
    ) -> FigureRun:
        default = decision_time(T_JOB_S)
        return self._run(
            label,
            scheduler_group(
                BATCH,
                batch or default,
                count=batch_schedulers,
                task_class="batch",
                protocol={**_PROTOCOL, **protocol},
            ),
            scheduler_group(
                SERVICE,
                service or default,
                task_class="service",
                protocol={**_PROTOCOL, **protocol},
            ),
        )

    def _run(self, label: str, *groups: GroupConfig) -> FigureRun:
        return self._of(ArmConfig(name=label, partitions=1, groups=groups))

    def _of(self, arm: ArmConfig) -> FigureRun:
        return FigureRun(arm.name, run_config(self.cell, arm), arm, draws_series=False)


def run_config(cell: ServiceBatchOptions, arm: ArmConfig, **changed: Any) -> RunConfig:
    """The configuration of a run of an arm on a cell, some of its fields changed."""
    fields: dict[str, Any] = {
        "settle_s": 0.0,
        "drain_s": 0.0,
        "sample_s": _SAMPLE_S,
        "heartbeat_us": _HEARTBEAT_US,
        **changed,
    }
    return RunConfig(
        name="reproduce",
        workload=WorkloadConfig.of("service_batch", cell),
        arms=(arm,),
        virtual=VirtualConfig(message_us=0),
        **fields,
    )


def scheduler_group(name: str, decision: ModelledTime, **given: Any) -> GroupConfig:
    """A scheduler for some jobs, by randomised first fit; its fields may be given otherwise."""
    fields: dict[str, Any] = {"count": 1, "kind": _KIND, "protocol": _PROTOCOL, **given}
    return GroupConfig(name=name, decision=decision, **fields)


def decision_time(t_job_s: float, t_task_s: float = T_TASK_S) -> ModelledTime:
    """The decision time with this t_job and t_task."""
    return ModelledTime(job_us=_us(t_job_s), task_us=t_task_s * 1e6)


def _us(time_s: float) -> int:
    return round(time_s * 1e6)


def architecture_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Of Figs. 5 and 6: each architecture over t_job."""
    of = Arms(architectures_cell(scale))
    made = (of.single_path, of.multi_path, of.shared)
    return tuple(make(t_job_s) for make in made for t_job_s in T_JOBS_S)


def two_level_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Of Fig. 7: Mesos over t_job, and what it is compared with."""
    of = Arms(architectures_cell(scale))
    compared = (of.multi_path(T_JOBS_S[0]), of.shared(_SLOW_S))
    return (*(of.two_level(t_job_s) for t_job_s in T_JOBS_S), *compared)


def rate_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Of Fig. 8: one batch scheduler over the rate of batch jobs."""
    return tuple(Arms(scaling_cell(scale, rate)).many(1) for rate in RATES)


def scheduler_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Of Fig. 9: 1 to 32 batch schedulers over the rate of batch jobs."""
    return tuple(
        Arms(scaling_cell(scale, rate)).many(schedulers)
        for schedulers in SCHEDULERS
        for rate in RATES_OF_MANY
    )


def interference_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Of Fig. 12 and section 5.1: shared state over t_job, and slow decisions on each task."""
    of = Arms(conflicts_cell(scale))
    return (*(of.committing(FINE_INCREMENTAL, t_job_s) for t_job_s in T_JOBS_S), of.slow_tasks())


def split_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Of Fig. 13: one and three batch schedulers over t_job of batch jobs; one day."""
    of = Arms(scaling_cell(scale, rate=1))
    return tuple(of.split(schedulers, load) for schedulers in SPLIT for load in LOADS)


def commit_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Of Fig. 14: ways to detect and to resolve conflicts, over t_job."""
    of = Arms(conflicts_cell(scale))
    return tuple(
        of.committing(commits, t_job_s) for commits in COMMITS for t_job_s in T_JOBS_OF_CONFLICTS_S
    )


# What claims are judged by

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
SLO_S = 30.0  # "a common production service level objective", section 4
HIGH_RATE = 8  # the highest at which every cell keeps up
SATURATED = 0.9  # busyness
ONE, THREE = SPLIT
# the largest t_job of Fig. 13 at which the schedulers keep up
KEEPS_UP = {ONE: 0.7, THREE: 2.0}

BATCH_WAIT, SERVICE_WAIT = (overall(f"job_wait_{name}_mean_us") for name in (BATCH, SERVICE))
ALL_BUSY, BATCH_BUSY = (overall("busyness_median", group) for group in (ALL, BATCH))
BATCH_CONFLICTS, SERVICE_CONFLICTS = (
    overall(f"{name}_conflict_fraction") for name in (BATCH, SERVICE)
)
DAILY_BATCH_CONFLICTS, DAILY_SERVICE_CONFLICTS = (
    overall(f"{name}_conflict_fraction_median") for name in (BATCH, SERVICE)
)


def service_share(run: SeedFigures) -> float | None:
    """The share of the time that was spent on attempts of service jobs, with and without
    conflicts."""
    parts = [run.overall.value(f"service_{part}_share") for part in ("useful", "wasted")]
    return over(sum, parts)


def wasted_part(run: SeedFigures) -> float | None:
    """The part of the time spent on attempts of service jobs that went into attempts with a
    conflict."""
    return quotient(run.overall.value("service_wasted_share"), service_share(run))


def without_conflicts(t_job_s: float) -> Reader:
    """The share of the time that the service scheduler would spend if no attempt had to be
    repeated: Fig. 12c's approximation.

    Args:
        t_job_s: Of service jobs.
    """

    def read(run: SeedFigures) -> float | None:
        (service,) = (one.overall for one in run.groups if one.name == SERVICE)
        if service.jobs is None or service.submitted is None:
            return None
        decided_s = service.jobs * t_job_s + service.submitted * T_TASK_S
        return decided_s / sum((phase.end_us - phase.start_us) / 1e6 for phase in run.phases)

    return read


def given_up(run: SeedFigures) -> float:
    """Tasks that were given up."""
    return run.totals.abandoned


# What the panels of the figures have in common

_NAMES = {ALL: "One scheduler for both", BATCH: "Batch", SERVICE: "Service"}
_CLASSES = (BATCH, SERVICE)
_LOOKS = {ALL: 2, BATCH: 0, SERVICE: 1}
_ARCHITECTURES = (SINGLE, MULTI, SHARED)


def _over_t_job(label: str, t_jobs_s: Sequence[float] = T_JOBS_S) -> Points:
    return [(t_job_s * US_PER_S, at_t_job(label, t_job_s)) for t_job_s in t_jobs_s]


def _over_rate(schedulers: int, rates: Sequence[int]) -> Points:
    return [(rate, at_rate(schedulers, rate)) for rate in rates]


def _over_load(schedulers: int) -> Points:
    return [(load, at_load(schedulers, load)) for load in LOADS]


def _batch_schedulers(count: int) -> str:
    return counted(count, "batch scheduler")


def _wait(name: str, points: Points, of_class: str, look: int) -> Line:
    """The mean wait of the jobs of a class."""
    key = f"job_wait_{of_class}_mean_us"

    def is_bound(run: SeedFigures) -> bool:
        return run.overall.is_bound(key)

    return Line(name, points, overall(key), look, is_bound=is_bound)


def _daily(name: str, points: Points, key: str, group: str | None, look: int) -> Line:
    """The median of daily values, with their deviation."""
    read, deviation = (overall(f"{key}_{part}", group) for part in ("median", "mad"))
    return Line(name, points, read, look, deviation=deviation)


def _waits(title: str, x_label: str, lines: Sequence[Line], x_axis: plots.Axis) -> Panel:
    """Mean waits, and the SLO."""
    return Panel(
        title,
        x_label,
        "Mean job wait time",
        lines,
        x_axis,
        plots.durations_y,
        level=SLO_S * US_PER_S,
        level_name="SLO",
    )


def _class_waits(title: str, x_label: str, points: Points, x_axis: plots.Axis) -> Panel:
    """The mean waits of both classes."""
    lines = [_wait(_NAMES[name], points, name, _LOOKS[name]) for name in _CLASSES]
    return _waits(title, x_label, lines, x_axis)


def _busyness(title: str, x_label: str, lines: Sequence[Line], x_axis: plots.Axis) -> Panel:
    return Panel(title, x_label, "Busyness", lines, x_axis, plots.shares_y)


def _group_busyness(points: Points, groups: Sequence[str] = _CLASSES) -> list[Line]:
    """The daily busyness of groups of schedulers."""
    return [_daily(_NAMES[group], points, "busyness", group, _LOOKS[group]) for group in groups]


def _conflicts(
    title: str, x_label: str, lines: Sequence[Line], x_axis: plots.Axis, y_axis: plots.Axis
) -> Panel:
    return Panel(title, x_label, "Conflict fraction", lines, x_axis, y_axis)


# Figs. 5 and 6: three architectures


def _t_job_of(label: str) -> str:
    return "t_job" if label == SINGLE else "t_job(service)"


def _draw_fig5(results: Results) -> Figure:
    """The wait of jobs over t_job, a panel for each architecture."""
    panels = [
        _class_waits(label, _t_job_of(label), _over_t_job(label), plots.durations_x)
        for label in _ARCHITECTURES
    ]
    return plots.draw(results, panels, same_y=True)


def _draw_fig6(results: Results) -> Figure:
    """The busyness of schedulers over t_job, a panel for each architecture."""
    panels = [
        _busyness(
            label,
            _t_job_of(label),
            _group_busyness(_over_t_job(label), _CLASSES if label == SHARED else (ALL,)),
            plots.durations_x,
        )
        for label in _ARCHITECTURES
    ]
    return plots.draw(results, panels, same_y=True)


def _single_to_multi(read: Reader) -> Value:
    """The least ratio of the two at t_job = 1 and 10 s."""
    return least([ratio(read, at_t_job(SINGLE, one), at_t_job(MULTI, one)) for one in (1.0, 10.0)])


_FIG5 = CHAPTER.figure(
    "fig5",
    architecture_runs,
    {
        "single_path_tracks": furthest_from_one(
            [
                ratio(SERVICE_WAIT, at_t_job(SINGLE, one), at_t_job(SINGLE, one), BATCH_WAIT)
                for one in (0.1, 1.0)
            ]
        ),
        "multi_path_lower": _single_to_multi(BATCH_WAIT),
        "multi_path_blocks": ratio(BATCH_WAIT, at_t_job(MULTI, 10.0), at_t_job(MULTI, 0.1)),
        "shared_state_independent": furthest_from_one(
            [
                ratio(BATCH_WAIT, at_t_job(SHARED, one), at_t_job(SHARED, T_JOBS_S[0]))
                for one in T_JOBS_S[1:]
            ]
        ),
        "shared_state_comparable": most(
            [
                ratio(wait, at_t_job(SHARED, one), at_t_job(MULTI, one))
                for wait in (BATCH_WAIT, SERVICE_WAIT)
                for one in T_JOBS_S
                if one <= 10
            ]
        ),
        "shared_state_places_all": most([of(given_up, at_t_job(SHARED, one)) for one in T_JOBS_S]),
    },
    _draw_fig5,
)
_FIG6 = CHAPTER.figure(
    "fig6",
    architecture_runs,
    {
        "single_path_linear": growth_above(
            ALL_BUSY, at_t_job(SINGLE, 1.0), at_t_job(SINGLE, 0.1), at_t_job(SINGLE, 0.001)
        ),
        "single_path_saturates": of(ALL_BUSY, at_t_job(SINGLE, 100.0)),
        "multi_path_lower": _single_to_multi(ALL_BUSY),
        "shared_state_few_conflicts": most(
            [of(wasted_part, at_t_job(SHARED, one)) for one in T_JOBS_S if one <= 1]
        ),
    },
    _draw_fig6,
)


# Fig. 7: two-level scheduling


def _draw_fig7(results: Results) -> Figure:
    """Wait, busyness and abandoned jobs over t_job of service jobs."""
    points, x_label = _over_t_job(TWO_LEVEL), _t_job_of(TWO_LEVEL)
    lines = [
        Line(_NAMES[name], points, overall("jobs_abandoned", name), _LOOKS[name])
        for name in _CLASSES
    ]
    abandoned = Panel(
        "Abandoned jobs", x_label, "Jobs given up", lines, plots.durations_x, plots.from_zero_y
    )
    panels = [
        _class_waits("Job wait time", x_label, points, plots.durations_x),
        _busyness("Scheduler busyness", x_label, _group_busyness(points), plots.durations_x),
        abandoned,
    ]
    return plots.draw(results, panels)


_SLOW_TWO_LEVEL = at_t_job(TWO_LEVEL, _SLOW_S)
_FIG7 = CHAPTER.figure(
    "fig7",
    two_level_runs,
    {
        "batch_busier": ratio(BATCH_BUSY, _SLOW_TWO_LEVEL, at_t_job(MULTI, T_JOBS_S[0]), ALL_BUSY),
        "batch_blocked": ratio(BATCH_WAIT, _SLOW_TWO_LEVEL, at_t_job(TWO_LEVEL, 0.1)),
        "jobs_abandoned": most(
            [of(overall("jobs_abandoned"), at_t_job(TWO_LEVEL, one)) for one in T_JOBS_S]
        ),
        "shared_state_does_not_block": ratio(
            BATCH_WAIT, _SLOW_TWO_LEVEL, at_t_job(SHARED, _SLOW_S)
        ),
    },
    _draw_fig7,
)


# Figs. 8 and 9: more batch jobs, and more schedulers for them


def _draw_fig8(results: Results) -> Figure:
    """Wait and busyness over the rate of batch jobs."""
    points = _over_rate(1, RATES)
    x_label, x_axis = "Rate of batch jobs", plots.times_x(RATES)
    panels = [
        _class_waits("Job wait time", x_label, points, x_axis),
        _busyness("Scheduler busyness", x_label, _group_busyness(points), x_axis),
    ]
    return plots.draw(results, panels)


def _draw_fig9(results: Results) -> Figure:
    """Conflicts and busyness over the rate of batch jobs, a line for each number of schedulers."""
    x_label, x_axis = "Rate of batch jobs", plots.times_x(RATES_OF_MANY)

    def lines(key: str, group: str | None) -> list[Line]:
        return [
            _daily(_batch_schedulers(count), _over_rate(count, RATES_OF_MANY), key, group, look)
            for look, count in enumerate(SCHEDULERS)
        ]

    conflicts, busyness = lines(f"{BATCH}_conflict_fraction", None), lines("busyness", BATCH)
    panels = [
        _conflicts("Conflicts of batch jobs", x_label, conflicts, x_axis, plots.from_zero_y),
        _busyness("Busyness of each batch scheduler", x_label, busyness, x_axis),
    ]
    return plots.draw(results, panels)


_RISING = [at_rate(1, rate) for rate in RATES if rate <= HIGH_RATE]
_BASE, _HIGH = at_rate(1, 1), at_rate(1, HIGH_RATE)
_FIG8 = CHAPTER.figure(
    "fig8",
    rate_runs,
    {
        "batch_wait_grows": least(growths(BATCH_WAIT, _RISING)),
        "batch_busyness_grows": least(growths(BATCH_BUSY, _RISING)),
        "service_wait_grows": ratio(SERVICE_WAIT, _HIGH, _BASE),
        "service_busyness_grows": ratio(service_share, _HIGH, _BASE),
        "service_conflicts_grow": less(SERVICE_CONFLICTS, _HIGH, _BASE),
        "saturation": crossing(BATCH_BUSY, _over_rate(1, RATES), SATURATED),
    },
    _draw_fig8,
    high=HIGH_RATE,
    saturated=SATURATED,
)
_MORE_SCHEDULERS = [at_rate(count, HIGH_RATE) for count in SCHEDULERS]
_FIG9 = CHAPTER.figure(
    "fig9",
    scheduler_runs,
    {
        "conflicts_grow": ratio(DAILY_BATCH_CONFLICTS, _MORE_SCHEDULERS[-1], _MORE_SCHEDULERS[1]),
        "busyness_falls": most(growths(BATCH_BUSY, _MORE_SCHEDULERS)),
        "service_well_served": of_s(SERVICE_WAIT, _MORE_SCHEDULERS[-1]),
    },
    _draw_fig9,
    high=HIGH_RATE,
)


# Figs. 12 to 14: interference, more schedulers, and ways to commit


def _at_most_one(read: Reader) -> Reader:
    """A share of the time that cannot exceed all of it."""
    return lambda run: over(lambda known: min(*known, 1.0), [read(run)])


def _draw_fig12(results: Results) -> Figure:
    """Wait, conflicts and busyness over t_job(service), and the busyness without conflicts."""
    points = _over_t_job(FINE_INCREMENTAL)
    x_label, x_axis = "t_job(service)", plots.durations_x
    ideal: list[Reader] = [_at_most_one(without_conflicts(t_job_s)) for t_job_s in T_JOBS_S]
    conflicts = [
        _daily(_NAMES[name], points, f"{name}_conflict_fraction", None, _LOOKS[name])
        for name in _CLASSES
    ]
    busyness = [
        *_group_busyness(points),
        Line("Service, no conflicts", points, ideal, 3, dotted=True),
    ]
    panels = [
        _class_waits("Job wait time", x_label, points, x_axis),
        _conflicts("Conflicts", x_label, conflicts, x_axis, plots.from_zero_y),
        _busyness("Scheduler busyness", x_label, busyness, x_axis),
    ]
    return plots.draw(results, panels)


def _draw_fig13(results: Results) -> Figure:
    """Busyness and wait over t_job of batch jobs, with one batch scheduler and with three."""
    x_label, x_axis = "t_job(batch) / time between batch jobs", plots.from_zero_x
    lines = [(_batch_schedulers(count), _over_load(count)) for count in SPLIT]
    busyness = [
        _daily(name, points, "busyness", BATCH, look) for look, (name, points) in enumerate(lines)
    ]
    waits = [_wait(name, points, BATCH, look) for look, (name, points) in enumerate(lines)]
    panels = [
        _busyness("Busyness of each batch scheduler", x_label, busyness, x_axis),
        _waits("Wait of batch jobs", x_label, waits, x_axis),
    ]
    return plots.draw(results, panels)


def _draw_fig14(results: Results) -> Figure:
    """Busyness and conflicts over t_job of service jobs, a line for each way to commit."""
    x_label, x_axis = "t_job(service)", plots.durations_x

    def lines(read: Reader) -> list[Line]:
        return [
            Line(commits, _over_t_job(commits, T_JOBS_OF_CONFLICTS_S), read, look)
            for look, commits in enumerate(COMMITS)
        ]

    conflicts = lines(SERVICE_CONFLICTS)
    panels = [
        _busyness("Busyness of the service scheduler", x_label, lines(service_share), x_axis),
        _conflicts("Conflicts of service jobs", x_label, conflicts, x_axis, plots.logarithmic_y),
    ]
    return plots.draw(results, panels)


_FINE_1_S, _FINE_10_S = (at_t_job(FINE_INCREMENTAL, one) for one in (1.0, 10.0))
_GANG, _COARSE, _BOTH = (
    at_t_job(one, 10.0) for one in (FINE_GANG, COARSE_INCREMENTAL, COARSE_GANG)
)
_FIG12 = CHAPTER.figure(
    "fig12",
    interference_runs,
    {
        "conflicts_grow": ratio(SERVICE_CONFLICTS, _FINE_10_S, _FINE_1_S),
        "above_one": of(DAILY_SERVICE_CONFLICTS, _FINE_10_S),
        "busier_than_without": ratio(
            service_share, _FINE_10_S, _FINE_10_S, without_conflicts(10.0)
        ),
        "slow_tasks": of(DAILY_SERVICE_CONFLICTS, SLOW_TASKS),
    },
    _draw_fig12,
)
_FIG13 = CHAPTER.figure(
    "fig13",
    split_runs,
    {
        "three_times": quotient_of(
            crossing(BATCH_BUSY, _over_load(THREE), SATURATED),
            crossing(BATCH_BUSY, _over_load(ONE), SATURATED),
        ),
        "conflicts_low": most(
            [of(BATCH_CONFLICTS, at_load(THREE, one)) for one in LOADS if one <= KEEPS_UP[THREE]]
        ),
        "within_slo": most(
            [
                of_s(wait, at_load(schedulers, load))
                for wait in (BATCH_WAIT, SERVICE_WAIT)
                for schedulers, load in KEEPS_UP.items()
            ]
        ),
    },
    _draw_fig13,
    saturated=SATURATED,
)
_FIG14 = CHAPTER.figure(
    "fig14",
    commit_runs,
    {
        "more_conflicts": least(
            [ratio(SERVICE_CONFLICTS, other, _FINE_10_S) for other in (_GANG, _COARSE, _BOTH)]
        ),
        "all_or_nothing_conflicts": ratio(SERVICE_CONFLICTS, _GANG, _FINE_10_S),
        "all_or_nothing_busyness": ratio(service_share, _GANG, _FINE_10_S),
        "coarse_conflicts": ratio(SERVICE_CONFLICTS, _COARSE, _FINE_10_S),
        "coarse_busyness": ratio(service_share, _COARSE, _FINE_10_S),
    },
    _draw_fig14,
)

FIGURES = (_FIG5, _FIG6, _FIG7, _FIG8, _FIG9, _FIG12, _FIG13, _FIG14)
