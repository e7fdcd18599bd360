"""Mesos' offers beside what is public of them: dominant resource fairness, data locality, a slow
service framework beside Omega's public simulator, and gangs that hoard (figures.toml). The settings
are in settings.py.

At smoke scale runs are shorter and have fewer draws, and the large cell of `locality` is smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.campaign.task import Arrays
from experiments.figures import style
from experiments.papers import plots
from experiments.papers.chapter import Chapter, Like, Results, Table, like
from experiments.papers.claims import RunsOfSeed, Value
from experiments.papers.mesos.runs import offers_arm, offers_group
from experiments.papers.mesos.settings import (
    REPLICAS,
    GangRun,
    LocalityRun,
    ServiceRun,
    ShareRun,
)
from experiments.papers.omega.figures import decision_time, scheduler_group
from experiments.papers.plots import Line, Panel
from experiments.papers.sparrow.runs import AT_ONCE
from experiments.papers.statistics import (
    Reader,
    divided,
    furthest_from_one,
    less,
    mean_of,
    median_text,
    most,
    of,
    percent,
    ratio,
    size,
)
from experiments.studies.model_settings import ReproduceScale
from parsync.spec.arm import ArmConfig, GroupConfig

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
SMOKE, PAPER = ReproduceScale.SMOKE, ReproduceScale.PAPER


def known_mean(name: str) -> Reader:
    """The mean over the draws in which a number is known; None if it is in none."""

    def read(arrays: Arrays) -> float | None:
        known = arrays[name][~np.isnan(arrays[name])]
        return float(known.mean()) if len(known) else None

    return read


# Dominant resource fairness

GRANTS = "Task-sized grants"
A_FIRST, B_FIRST = "Whole machine, A first", "Whole machine, B first"
CELLS = 10
_TURNOVER_S = {SMOKE: 1_800.0, PAPER: 7_200.0}


def turnover(cells: int) -> str:
    """The label of a run in which tasks end."""
    return f"Whole machine{'s' if cells > 1 else ''}, tasks end, {cells} of them"


def share_runs(scale: ReproduceScale) -> tuple[ShareRun, ...]:
    """The worked example, and what whole machines make of it."""
    ends_s = _TURNOVER_S[scale]
    return (
        ShareRun(GRANTS, 1, _two_frameworks("AB", granularity="task"), 1, None, 100.0),
        ShareRun(A_FIRST, 1, _two_frameworks("AB"), 1, None, 100.0),
        ShareRun(B_FIRST, 1, _two_frameworks("BA"), 1, None, 100.0),
        *(
            ShareRun(turnover(cells), 1, _two_frameworks("AB"), cells, 60.0, ends_s)
            for cells in (1, CELLS)
        ),
    )


def _two_frameworks(order: str, **shared: Any) -> ArmConfig:
    """A and B, which are served in this order where their shares are equal."""
    takes = {"A": "batch", "B": "service"}
    groups = [
        offers_group(1, f"{place}-{name}", takes=takes[name], decision=AT_ONCE)
        for place, name in enumerate(order, start=1)
    ]
    return offers_arm(*groups, partitions=1, **shared)


TASKS_A, TASKS_B = mean_of("tasks_a"), mean_of("tasks_b")


def _off(label: str, a: int, b: int) -> list[Value]:
    """How far the running tasks are from these numbers."""
    return [
        size(lambda runs: TASKS_A(runs[label]) - a),
        size(lambda runs: TASKS_B(runs[label]) - b),
    ]


def _gap(arrays: Arrays) -> float:
    """The difference of the dominant shares of A and B."""
    return float(abs(arrays["share_a"].mean() - arrays["share_b"].mean()))


_SHARE_CLAIMS: dict[str, Value | Like] = {
    "grants": most(_off(GRANTS, 3, 2)),
    "first_asker": most([*_off(A_FIRST, 4, 1), *_off(B_FIRST, 0, 3)]),
    "turnover": most([ratio(_gap, turnover(cells), A_FIRST) for cells in (1, CELLS)]),
}


def _share_table(results: Results) -> Table:
    """Tasks and dominant shares of both frameworks."""
    rows = []
    for run in results.runs:
        texts = (
            *(median_text(results, of(read, run.label), "{:.2f}".format) for read in _TASKS),
            *(median_text(results, of(read, run.label), percent) for read in _SHARES),
        )
        rows.append((run.label, *texts))
    return Table(("", "tasks of A", "tasks of B", "share of A", "share of B"), tuple(rows))


_TASKS = TASKS_A, TASKS_B
_SHARES = mean_of("share_a"), mean_of("share_b")

# Data locality

WAITS_S = (0.0, 1.0, 2.0, 5.0, 10.0)
FRAMEWORKS, MACHINES, SLOTS = 16, 96, 8
PART = MACHINES // FRAMEWORKS
# at most so many tasks have a copy of their input on a machine of their framework's partition
BOUND = 1 - comb(MACHINES - PART, REPLICAS) / comb(MACHINES, REPLICAS)
STATIC = "Static partitions"
COUNTS = "input counts"
# one slot in place of 8: preferred machines have room an eighth as often
_LARGE_WAIT_S = 40.0
LARGE = f"Large cell, wait {_LARGE_WAIT_S:g} s"
# machines, of one slot, frameworks and jobs
_LARGE = {SMOKE: (1_000, 20, 160), PAPER: (50_000, 200, 8_000)}
_RUN_S, _SHORT_S = 60.0, 20.0
_LOAD, _LOAD_IF_COUNTS = 0.9, 0.5
_JOBS = {SMOKE: 300, PAPER: 2_000}


def at_wait(wait_s: float, run_s: float = _RUN_S) -> str:
    """The label of a run with this wait and this mean run time of tasks."""
    return f"Offers, tasks of {run_s:g} s, wait {wait_s:g} s"


def locality_runs(scale: ReproduceScale) -> tuple[LocalityRun, ...]:
    """Over the wait; static partitions; both where tasks with their input run half as long; and the
    large cell."""
    cell = (MACHINES, SLOTS)
    size = (*cell, _RUN_S)
    jobs = _JOBS[scale]
    machines, frameworks, many = _LARGE[scale]
    declining = {wait_s: _declining(FRAMEWORKS, wait_s) for wait_s in WAITS_S}
    return (
        *(
            LocalityRun(at_wait(wait_s, run_s), 1, arm, *cell, run_s, 1000, _LOAD, jobs)
            for run_s in (_RUN_S, _SHORT_S)
            for wait_s, arm in declining.items()
        ),
        LocalityRun(STATIC, 1, _partitions(), *size, 1000, _LOAD, jobs),
        *(
            LocalityRun(f"{label}, {COUNTS}", 1, arm, *size, 500, _LOAD_IF_COUNTS, jobs)
            for label, arm in ((at_wait(5), declining[5.0]), (STATIC, _partitions()))
        ),
        LocalityRun(
            LARGE, 1, _declining(frameworks, _LARGE_WAIT_S), machines, 1, _RUN_S, 1000, _LOAD, many
        ),
    )


def _declining(frameworks: int, wait_s: float) -> ArmConfig:
    """Frameworks that decline machines which none of their tasks prefers, for so long."""
    group = offers_group(
        frameworks, kind="preferred_first", decision=AT_ONCE, node_wait_s=float(wait_s)
    )
    return offers_arm(group, partitions=1)


def _partitions() -> ArmConfig:
    """Schedulers that have a part of the machines to themselves."""
    protocol = {"kind": "optimistic", "sync": "every_attempt", "retry_s": 0.1}
    groups = tuple(
        GroupConfig.model_validate(
            {
                "name": f"part-{number}",
                "count": 1,
                "kind": "preferred_first",
                "protocol": {**protocol, "only_partitions": (number,)},
                "decision": AT_ONCE,
            }
        )
        for number in range(FRAMEWORKS)
    )
    return ArmConfig(name="arm", partitions=FRAMEWORKS, groups=groups)


LOCAL, RESPONSE = mean_of("local"), mean_of("response_s")
_LOCALITY_CLAIMS: dict[str, Value | Like] = {
    "near_optimal": of(LOCAL, at_wait(5)),
    "large": of(LOCAL, LARGE),
    "five_seconds": of(LOCAL, at_wait(5)),
    "faster": ratio(RESPONSE, f"{STATIC}, {COUNTS}", f"{at_wait(5)}, {COUNTS}"),
    "static": divided(of(LOCAL, STATIC), BOUND),
    "short_wait": of(LOCAL, at_wait(2)),
    "waiting_helps": less(LOCAL, at_wait(5), at_wait(0)),
}


def _draw_locality(results: Results) -> Figure:
    """Local tasks, and the wait of tasks, over the time for which frameworks decline."""
    everywhere = [(wait_s, STATIC) for wait_s in WAITS_S]

    def lines(read: Reader) -> list[Line]:
        return [
            *(
                Line(
                    f"Offers, tasks of {run_s:g} s",
                    [(wait_s, at_wait(wait_s, run_s)) for wait_s in WAITS_S],
                    read,
                    look,
                )
                for look, run_s in enumerate((_RUN_S, _SHORT_S))
            ),
            Line(f"{STATIC}, tasks of {_RUN_S:g} s", everywhere, read, 2, dotted=True),
        ]

    return plots.draw(
        results,
        [
            Panel(
                f"{FRAMEWORKS} frameworks, load {_LOAD:.0%}",
                "Frameworks decline for (s)",
                "Tasks on a machine with their input",
                lines(LOCAL),
                _waits_x,
                plots.shares_y,
            ),
            Panel(
                f"{FRAMEWORKS} frameworks, load {_LOAD:.0%}",
                "Frameworks decline for (s)",
                "Mean wait of tasks (s)",
                lines(mean_of("wait_s")),
                _waits_x,
                plots.from_zero_y,
            ),
        ],
    )


def _waits_x(axes: Axes) -> None:
    axes.set_xticks(list(WAITS_S))


def _locality_table(results: Results) -> Table:
    """A row for each run."""
    columns: Sequence[tuple[str, Reader, Callable[[float], str]]] = (
        ("tasks with their input", LOCAL, percent),
        ("mean wait of tasks, s", mean_of("wait_s"), "{:.2f}".format),
        ("mean response of jobs, s", RESPONSE, "{:.1f}".format),
        ("offers declined", mean_of("declined"), percent),
        ("tasks placed", mean_of("placed"), percent),
    )
    return _table(results, columns)


def _table(
    results: Results, columns: Sequence[tuple[str, Reader, Callable[[float], str]]]
) -> Table:
    """A row for each run: medians over the seeds of what columns read, as text."""
    rows = tuple(
        (run.label, *(median_text(results, of(read, run.label), text) for _, read, text in columns))
        for run in results.runs
    )
    return Table(("", *(name for name, _, _ in columns)), rows)


# A slow service framework

T_JOBS_S = (0.1, 1.0, 10.0, 100.0)
CELL, MACHINE, TIMER = "Offers, cell", "Offers, machines", "Offers, cell, with the timer"
SHARED, SINGLE = "Shared state", "Single path"
BATCH, SERVICE = "batch", "service"
_HORIZON_S = {SMOKE: 1_200, PAPER: 14_400}
_T_JOB_BATCH_S = 0.01
# A run of the allocator begins with a request and takes 1.001 s, as the simulator's timer does. So
# the interval at which it runs in any case is long.
_TIMER_S, _LONG_S = 1.001, 60.0
_ALLOCATORS: dict[str, dict[str, Any]] = {
    CELL: {"granularity": "cell", "allocation_s": 0.001},
    MACHINE: {"allocation_s": 0.001},
    TIMER: {
        "granularity": "cell",
        "allocation_s": _TIMER_S,
        "interval_s": _LONG_S,
        "freed_room_triggers": True,
    },
}
_REFUSE_S = {CELL: 0.0, MACHINE: 5.0, TIMER: 0.0}
_GIVEN_UP = {"attempts_max": 1000, "attempts_max_unplaced": 100}  # as in the simulator

# What Omega's public simulator printed: mean waits to the first attempt in s, by t_job
MESOS_S = {(0.1, BATCH): 0.712, (0.1, SERVICE): 0.872, (1.0, BATCH): 0.762, (1.0, SERVICE): 0.906}
MESOS_LOCKED_PERCENT = {0.1: 3.3, 1.0: 5.8}
MESOS_SLOW_S = {BATCH: 76.1, SERVICE: 46.2}  # at 100 s, with decisions that overlap
SINGLE_S = {(0.1, BATCH): 0.015, (0.1, SERVICE): 0.014, (1.0, BATCH): 0.873, (1.0, SERVICE): 0.926}
SHARED_BATCH_S = 0.0057
# one digit, so that the first is known to about an eighth
SHARED_SERVICE_S = {0.1: (0.0004, 0.75, 1.25), 1.0: (0.0218, 0.85, 1.15)}


def at_t_job(architecture: str, t_job_s: float) -> str:
    """The label of a run with this t_job of services."""
    return f"{architecture}, t_job {t_job_s:g} s"


def service_runs(scale: ReproduceScale) -> tuple[ServiceRun, ...]:
    """The architectures over t_job."""
    horizon_s = _HORIZON_S[scale]
    return tuple(
        ServiceRun(at_t_job(name, t_job_s), 1, arm(t_job_s), horizon_s)
        for name, arm in _ARCHITECTURES.items()
        for t_job_s in T_JOBS_S
    )


def _offered(name: str) -> Callable[[float], ArmConfig]:
    def arm(t_job_s: float) -> ArmConfig:
        protocol = {"kind": "offers", "refuse_s": _REFUSE_S[name], **_GIVEN_UP}
        return offers_arm(
            *_two_schedulers(t_job_s, protocol=protocol), partitions=1, **_ALLOCATORS[name]
        )

    return arm


def _two_schedulers(t_job_s: float, **given: Any) -> tuple[GroupConfig, GroupConfig]:
    """One for batch jobs, and one for services with this t_job."""
    return (
        scheduler_group(BATCH, decision_time(_T_JOB_BATCH_S), task_class=BATCH, **given),
        scheduler_group(SERVICE, decision_time(t_job_s), task_class=SERVICE, **given),
    )


def _shared(t_job_s: float) -> ArmConfig:
    return ArmConfig(name="arm", partitions=1, groups=_two_schedulers(t_job_s))


def _single(t_job_s: float) -> ArmConfig:
    return ArmConfig(
        name="arm", partitions=1, groups=(scheduler_group("all", decision_time(t_job_s)),)
    )


_ARCHITECTURES: dict[str, Callable[[float], ArmConfig]] = {
    **{name: _offered(name) for name in (CELL, MACHINE, TIMER)},
    SHARED: _shared,
    SINGLE: _single,
}
WAIT = {kind: known_mean(f"{kind}_wait_s") for kind in (BATCH, SERVICE)}
HELD = mean_of("held")


def _wait_over(architecture: str, t_job_s: float, kind: str, recorded_s: float) -> Value:
    return divided(of(WAIT[kind], at_t_job(architecture, t_job_s)), recorded_s)


def _recorded(text: str, architecture: str, key: tuple[float, str], recorded_s: float) -> Like:
    t_job_s, kind = key
    value = _wait_over(architecture, t_job_s, kind, recorded_s)
    return like(text, value, t_job=f"{t_job_s:g}", kind=kind, recorded=f"{recorded_s:g}")


def _name(t_job_s: float) -> str:
    """A t_job in the name of a claim: in tenths of a second."""
    return f"{round(10 * t_job_s)}"


def _batch_growth(architecture: str, t_job_s: float) -> Value:
    return ratio(WAIT[BATCH], at_t_job(architecture, t_job_s), at_t_job(architecture, 0.1))


_SERVICE_CLAIMS: dict[str, Value | Like] = {
    **{
        f"mesos_{kind}_{_name(t_job)}": _recorded("mesos", TIMER, (t_job, kind), wait_s)
        for (t_job, kind), wait_s in MESOS_S.items()
    },
    **{
        f"locked_{_name(t_job)}": like(
            "locked",
            divided(of(HELD, at_t_job(TIMER, t_job)), locked / 100),
            t_job=f"{t_job:g}",
            recorded=f"{locked:g}",
        )
        for t_job, locked in MESOS_LOCKED_PERCENT.items()
    },
    "mesos_slow": of(WAIT[BATCH], at_t_job(TIMER, 100)),
    **{
        f"single_path_{kind}_{_name(t_job)}": _recorded(
            "single_path", SINGLE, (t_job, kind), wait_s
        )
        for (t_job, kind), wait_s in SINGLE_S.items()
    },
    "single_path_saturates": of(mean_of("batch_tried"), at_t_job(SINGLE, 100)),
    "shared_batch": furthest_from_one(
        [_wait_over(SHARED, t_job, BATCH, SHARED_BATCH_S) for t_job in (0.1, 1.0, 100.0)]
    ),
    **{
        f"shared_service_{_name(t_job)}": like(
            "shared_service",
            _wait_over(SHARED, t_job, SERVICE, wait_s),
            t_job=f"{t_job:g}",
            recorded=f"{wait_s:g}",
            at_least=low,
            at_most=high,
        )
        for t_job, (wait_s, low, high) in SHARED_SERVICE_S.items()
    },
    "shared_saturates": of(mean_of("service_done"), at_t_job(SHARED, 100)),
    "saturates": most(
        [
            of(mean_of("service_done"), at_t_job(name, 100))
            for name in (CELL, MACHINE, TIMER, SHARED)
        ]
    ),
    "starves_cell": like("starves", _batch_growth(CELL, 10), kind="the whole cell at a time"),
    "starves_machine": like("starves", _batch_growth(MACHINE, 10), kind="machine by machine"),
    "shared_does_not": _batch_growth(SHARED, 100),
}


def _draw_service(results: Results) -> Figure:
    """Waits of both classes and the held share over t_job of services."""

    def lines(read: Reader, names: Sequence[str]) -> list[Line]:
        return [
            Line(name, [(t_job, at_t_job(name, t_job)) for t_job in T_JOBS_S], read, look)
            for look, name in enumerate(_ARCHITECTURES)
            if name in names
        ]

    def recorded(of_t_job: dict[float, float]) -> Line:
        points = [(t_job, at_t_job(CELL, t_job)) for t_job in of_t_job]
        constants = [_constant(value) for value in of_t_job.values()]
        return Line("Omega’s simulator of Mesos", points, constants, 5, dotted=True)

    def waits(kind: str) -> dict[float, float]:
        found = {t_job: wait_s for (t_job, of), wait_s in MESOS_S.items() if of == kind}
        return found | {100.0: MESOS_SLOW_S[kind]}

    every = list(_ARCHITECTURES)
    locked = {t_job: value / 100 for t_job, value in MESOS_LOCKED_PERCENT.items()} | {100.0: 0.507}
    return plots.draw(
        results,
        [
            *(
                Panel(
                    title,
                    "t_job of services (s)",
                    "Mean wait to the first attempt (s)",
                    [*lines(WAIT[kind], every), recorded(waits(kind))],
                    _t_jobs_x,
                    plots.logarithmic_y,
                )
                for kind, title in ((BATCH, "Batch jobs"), (SERVICE, "Services"))
            ),
            Panel(
                "Room that offers hold",
                "t_job of services (s)",
                "Share of the processors, over time",
                [*lines(HELD, (CELL, MACHINE, TIMER)), recorded(locked)],
                _t_jobs_x,
                _held_y,
            ),
        ],
    )


def _constant(value: float) -> Reader:
    return lambda _: value


def _t_jobs_x(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xticks(list(T_JOBS_S), [f"{t_job:g}" for t_job in T_JOBS_S])
    axes.set_xticks([], minor=True)


def _held_y(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    style.share_axis(axes)


def _service_table(results: Results) -> Table:
    """A row for each run."""
    columns: Sequence[tuple[str, Reader, Callable[[float], str]]] = (
        ("batch wait, s", WAIT[BATCH], "{:.4g}".format),
        ("service wait, s", WAIT[SERVICE], "{:.4g}".format),
        ("batch jobs tried", mean_of("batch_tried"), percent),
        ("batch jobs placed", mean_of("batch_done"), percent),
        ("services tried", mean_of("service_tried"), percent),
        ("services placed", mean_of("service_done"), percent),
        ("attempts with a conflict", mean_of("retried"), "{:.0f}".format),
        ("held", HELD, percent),
    )
    return _table(results, columns)


# Gangs

HOARD, TIMEOUT, DECLINE = "Hoard", "Hoard, with a timeout", "Wait"
SHARED_GANGS = "Shared state, all or nothing"
_FOR_EVER = 1_000_000  # attempts after which a gang is given up
_GANG_MACHINES, _LARGEST = 40, 24
_GANGS, _GANG_DRAWS = {SMOKE: 40, PAPER: 200}, {SMOKE: 3, PAPER: 20}


def gang_runs(scale: ReproduceScale) -> tuple[GangRun, ...]:
    """Hoarders, and what may be done in their place."""
    shared = {
        "kind": "optimistic",
        "sync": "every_attempt",
        "losers": "requeue",
        "retry_s": 1.0,
        "commit_mode": "all_or_nothing",
        "attempts_max": _FOR_EVER,
        "attempts_max_unplaced": _FOR_EVER,
    }
    scheduler = GroupConfig.model_validate(
        {"name": "shared", "count": 2, "kind": "best_fit", "protocol": shared, "decision": AT_ONCE}
    )
    arms = {
        HOARD: _gang_frameworks("hoard"),
        TIMEOUT: _gang_frameworks("hoard", offer_timeout_s=3.0, sorter="random"),
        DECLINE: _gang_frameworks("wait"),
        SHARED_GANGS: ArmConfig(name="arm", partitions=1, groups=(scheduler,)),
    }
    return tuple(
        GangRun(
            label,
            _GANG_DRAWS[scale],
            arm,
            machines=_GANG_MACHINES,
            largest=_LARGEST,
            run_s=60.0,
            load=0.5,
            gangs=_GANGS[scale],
            patience_s=600.0,
        )
        for label, arm in arms.items()
    )


def _gang_frameworks(gangs: str, **shared: Any) -> ArmConfig:
    group = offers_group(2, kind="best_fit", decision=AT_ONCE, gangs=gangs)
    return offers_arm(group, partitions=1, **shared)


def _least_idle(runs: RunsOfSeed) -> float | None:
    """The least share of the cell that is held at the end of a draw in which gangs wait; None if
    there is no such draw."""
    hoarding = runs[HOARD]
    idle = hoarding["idle"][hoarding["waits"] > 0]
    return float(idle.min()) if len(idle) else None


_GANG_CLAIMS: dict[str, Value | Like] = {
    "deadlock": of(mean_of("waits"), HOARD),
    "idle": _least_idle,
    "shared": of(mean_of("waits"), SHARED_GANGS),
    "timeout": of(mean_of("waits"), TIMEOUT),
}


def _gang_table(results: Results) -> Table:
    """A row for each way."""
    columns: Sequence[tuple[str, Reader, Callable[[float], str]]] = (
        ("draws in which gangs wait for ever", mean_of("waits"), percent),
        ("gangs placed", mean_of("placed"), percent),
        ("held at the end", mean_of("idle"), percent),
        ("held, over time", mean_of("held"), percent),
        ("mean wait of gangs placed, s", known_mean("wait_s"), "{:.1f}".format),
    )
    return _table(results, columns)


FIGURES = (
    CHAPTER.figure("drf", share_runs, _SHARE_CLAIMS, table=_share_table, cells=CELLS),
    CHAPTER.figure(
        "locality",
        locality_runs,
        _LOCALITY_CLAIMS,
        _draw_locality,
        _locality_table,
        frameworks=FRAMEWORKS,
        machines=MACHINES,
        slots=SLOTS,
        part=PART,
        bound_percent=percent(BOUND),
        large=f"{_LARGE[PAPER][0]:,} (smoke scale: {_LARGE[SMOKE][0]:,})",
        large_frameworks=f"{_LARGE[PAPER][1]} (smoke scale: {_LARGE[SMOKE][1]})",
    ),
    CHAPTER.figure("starvation", service_runs, _SERVICE_CLAIMS, _draw_service, _service_table),
    CHAPTER.figure(
        "gangs",
        gang_runs,
        _GANG_CLAIMS,
        table=_gang_table,
        machines=_GANG_MACHINES,
        largest=_LARGEST,
        gangs=f"{_GANGS[PAPER]} (smoke scale: {_GANGS[SMOKE]})",
        draws=f"{_GANG_DRAWS[PAPER]} (smoke scale: {_GANG_DRAWS[SMOKE]})",
    ),
)
