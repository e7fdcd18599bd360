"""Generated workloads, calibrated on ParSync's figures (sections 2, 4.3 and 6).

Every random number comes from a stream named after what it decides, so that an option changes
nothing but what it names. The same options and seed give the same workload on any machine.

Arrival times: the offered load is a clock that counts work. A cell that holds S tasks at once is
offered S * load_percent units of work per microsecond; a unit is a hundredth of a task-microsecond.
A batch brings 100 * tasks * mean duration units, so batch b is due when the clock has counted b
times that. The offered load of every phase is therefore exact up to one batch, whatever the loads
and lengths of the phases. All numbers are integers.

The warm-up, which an arm runs in virtual time before time 0, begins in a cell in equilibrium
(equilibrium.py), drawn without regard to any scheduler, and goes on for five mean run times at the
first phase's load. After it the cell is as the arm's own schedulers fill it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from experiments.workloads.draws import bounded_pareto_table, draw, exponential, zipf_table
from experiments.workloads.equilibrium import (
    NOT_RUNNING,
    length_biased_durations,
    remaining_times,
    running_machines,
)
from experiments.workloads.groups import (
    QuotaGroupJobs,
    check_quota_groups,
    disjoint_groups,
    group_catalog,
    membership,
    mixed_group,
    spread_machines,
)
from experiments.workloads.registry import WARM_UP_S, ExpectedRates, Outline, WorkloadSpec
from experiments.workloads.resources import MachineType, Resources, TaskShape
from parsync.strict_model import Strict
from parsync.workload.workload import (
    InitialPlacement,
    MachineEvents,
    Phase,
    QuotaMembership,
    Workload,
    joined_quotas,
    joined_tasks,
)
from shared_state.errors import AgoraError
from shared_state.random import Stream, stream_key
from shared_state.tasks import (
    NO_GANG,
    CellSpec,
    Int32,
    Int64,
    PreferenceCatalog,
    TaskBatch,
    TaskClass,
)

SLOTS_PER_MACHINE = 10
WARM_UP_LENGTHS = 5  # mean run times


class SyntheticOptions(Strict):
    """What to generate. The defaults are the demo's: ParSync's ratios at a tenth of its size."""

    machines: int = Field(2_000, ge=1, le=10_000_000, description="machines in the cell")
    slots_per_machine: int = Field(
        SLOTS_PER_MACHINE,
        ge=1,
        le=1_000_000,
        description="without machine_types: capacity of each machine; a task takes one slot",
    )
    machine_types: tuple[MachineType, ...] = Field(
        (),
        strict=False,
        max_length=100,
        description="capacities, e.g. {capacity = {cpu_milli = 8000, mem_mib = 32768}, weight = 2}",
    )
    task_shapes: tuple[TaskShape, ...] = Field(
        (),
        strict=False,
        max_length=1000,
        description="requests, e.g. {request = {cpu_milli = [100, 900], gpu = 0}}; tasks that "
        "request 0 of a resource use machines without it, too",
    )
    machines_per_rack: int = Field(40, ge=1, description="racks are this many consecutive machines")
    slot_score_variance: float = Field(
        0.0,
        ge=0,
        le=64,
        description="V of ParSync section 4.3: a machine's weight is exp(score - mean) with score "
        "~ N(mean, V); 0 = no scores",
    )
    mean_duration_s: float = Field(
        2.0, ge=0.001, le=1e6, description="mean run time away from preferred machines"
    )
    duration_sigma: float = Field(
        1.18,
        ge=0,
        le=4,
        description="sigma of the lognormal run time (1.18 at mean 5 s: 88 % under 10 s); 0 = "
        "every task runs exactly the mean",
    )
    batch_tasks: int = Field(
        100, ge=1, le=1_000_000, description="tasks of a batch; a batch is of one job"
    )
    job_batches_max: int = Field(8, ge=1, le=100_000, description="batches of the largest job")
    job_size_alpha: float = Field(
        1.14,
        gt=0,
        le=10,
        description="tail exponent of the bounded Pareto number of batches in a job (minimum 1)",
    )
    phase_s: float = Field(6.0, gt=0, le=1e6, description="length of each load phase")
    load_percent: tuple[Annotated[int, Field(ge=0, le=1000)], ...] = Field(
        (50, 80, 95, 80, 50),
        min_length=1,
        strict=False,
        description="offered load of each phase, in per cent of the tasks that the cell holds at "
        "once (of the tightest resource, with mean requests) / mean duration",
    )
    start: Literal["steady", "cold"] = Field(
        "steady",
        description="steady: each arm begins in a cell in equilibrium at the first phase's load, "
        "after a warm-up of its own in virtual time; cold: the cell is empty",
    )
    arrival_jitter_percent: int = Field(
        100,
        ge=0,
        le=100,
        description="batches are evenly spaced, each late by up to this share of the spacing",
    )
    poisson_arrivals: bool = Field(
        False, description="exponential gaps between batches instead of even spacing"
    )
    service_permille: int = Field(
        0,
        ge=0,
        le=1000,
        description="share of jobs that are services, which never end and so add to the load for "
        "the rest of the run",
    )
    production_permille: int = Field(
        0,
        ge=0,
        le=1000,
        description="share of jobs of production priority; in an arm with quotas a scheduler "
        "decides on them first within their quota group",
    )
    gang_permille: int = Field(
        0,
        ge=0,
        le=1000,
        description="share of jobs whose batches are gangs: planned whole, and placed whole unless "
        "commit_mode is incremental",
    )
    quota_groups: tuple[QuotaGroupJobs, ...] = Field(
        (),
        strict=False,
        max_length=1000,
        description='quota groups that jobs belong to, e.g. {name = "ads", share = 0.3}; their '
        "shares sum to 1 in each phase",
    )
    preference_groups: int = Field(
        16,
        ge=0,
        le=100_000,
        description="groups of preferred machines; 0 = no job prefers any machine",
    )
    preference_zipf: float = Field(
        0.5,
        ge=0,
        le=8,
        description="popularity of group g is proportional to g ** -preference_zipf",
    )
    preferred_fraction: float = Field(
        0.0625, gt=0, le=1, description="share of the cell's machines in each group"
    )
    preference_overlap_percent: int | None = Field(
        None,
        ge=0,
        le=100,
        description="0: no machine is in two groups; p: so many per cent of each group's machines "
        "are drawn without regard to the other groups; unset: all are, as with 100",
    )
    preference_drift_s: float = Field(
        0,
        ge=0,
        le=1e6,
        description="how often the groups exchange their popularity at random; 0 = never",
    )
    no_preference_permille: int = Field(
        0, ge=0, le=1000, description="share of jobs that prefer no machine"
    )
    preferred_permille: int = Field(
        700,
        ge=1,
        le=1000,
        description="run time on a preferred machine, relative (alpha of ParSync section 6.4)",
    )
    rack_cost: int | None = Field(
        None,
        ge=0,
        le=1 << 30,
        description="cost of a place in a rack with preferred machines; unset = as elsewhere",
    )
    elsewhere_cost: int = Field(
        1_000, ge=0, le=1 << 30, description="cost of any other place (a preferred machine costs 0)"
    )
    unscheduled_cost: int = Field(
        2_000, ge=0, le=1 << 30, description="cost of waiting, before the waiting time"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rack_cost is not None and self.rack_cost > self.elsewhere_cost:
            raise ValueError(
                "rack_cost: a place near preferred machines cannot cost more than elsewhere_cost"
            )
        if bool(self.machine_types) != bool(self.task_shapes):
            raise ValueError("machine_types and task_shapes: expected both or none of them")
        if self.machine_types and self.slots_per_machine != SLOTS_PER_MACHINE:
            raise ValueError("slots_per_machine: has no effect with machine_types")
        chosen = self.machines_per_group
        if self.preference_overlap_percent is not None and (
            chosen * self.preference_groups > self.machines
        ):
            raise ValueError(
                f"preference_overlap_percent: {self.preference_groups} groups of {chosen} machines "
                f"cannot be disjoint in a cell of {self.machines}"
            )
        resources = self.resources()
        if self.gang_permille:
            resources.check_gang(self.batch_tasks)
        check_quota_groups(self.quota_groups, len(self.load_percent))
        if not any(self.load_percent):
            raise ValueError("load_percent: at least one phase must offer load")
        return self

    @property
    def tasks_per_s(self) -> float:
        """Arrivals at a load of 100 %."""
        return float(self.resources().tasks_at_once()[1]) / self.mean_duration_s

    @property
    def machines_per_group(self) -> int:
        """The size of each group of preferred machines."""
        return max(1, round(self.preferred_fraction * self.machines))

    def resources(self) -> Resources:
        """What machines have and tasks ask for. Raises ValueError if they do not fit together."""
        slots = MachineType(capacity={"slots": self.slots_per_machine})
        one = TaskShape(request={"slots": (1, 1)})
        return Resources.of(
            self.machines, self.machine_types or (slots,), self.task_shapes or (one,)
        )

    @property
    def warm_up_s(self) -> float:
        """How long each arm's warm-up before time 0 lasts; 0 where it begins in an empty cell:
        where it shall, no load is offered, or hardly any task would arrive."""
        length_s = WARM_UP_LENGTHS * self.mean_duration_s
        arriving = self.tasks_per_s * length_s * self.load_percent[0] / 100
        return 0.0 if self.start == "cold" or arriving < self.batch_tasks else length_s

    def outline(self) -> Outline:
        """What is known before any task is drawn."""
        return Outline(
            machines=self.machines,
            tasks=round(self.tasks_per_s * self.phase_s * sum(self.load_percent) / 100),
            phase_s=self.phase_s,
            tasks_per_s=self.tasks_per_s,
            batch_tasks=self.batch_tasks,
            service_share=self.service_permille / 1000,
            quota_groups=tuple(group.name for group in self.quota_groups),
        )

    def with_duration(self, duration_s: float) -> SyntheticOptions:
        """These options with the phases scaled so that together they take duration_s."""
        return SyntheticOptions.model_validate(
            {**self.model_dump(), **self.phase_length(duration_s)}
        )

    def phase_length(self, duration_s: float) -> dict[str, float]:
        """The option to change so that all phases together take duration_s."""
        return {"phase_s": duration_s / len(self.load_percent)}

    def cell_size(self, machines: int) -> dict[str, int]:
        """The option to change so that the cell has this many machines; loads are relative to it,
        so arrivals follow."""
        return {"machines": machines}


def demo_options(quick: bool = False) -> SyntheticOptions:
    """A tenth of ParSync's cell at its ratios: 2,000 machines x 10 slots in racks of 40, tasks of
    mean 2 s; phases of 6 s.

    Args:
        quick: Half of that cell and tasks of half the length, so as many tasks per second; a phase
            can be two task lengths then, of which one settles, in 2 s.
    """
    if not quick:
        return SyntheticOptions()
    return SyntheticOptions(
        machines=1_000, mean_duration_s=1.0, load_percent=(50, 95, 50), phase_s=2.0
    )


def paper_options() -> SyntheticOptions:
    """ParSync's cell (section 6): 200,000 machines of one slot, tasks of mean 5 s, 40,000 tasks/s
    at 100 %, phases of 60 s.

    104 groups that together prefer every machine once are calibrated on Table 1: in the five phases
    of 60 s, tau = 1 s, latency-first gets 33 % of tasks onto preferred machines, adaptive 72 % and
    quality-first 76 %. The paper's mean execution times imply 33, 64 and 74 % over all its alphas.
    The cell is empty when a run begins, as in the paper.
    """
    return SyntheticOptions(
        machines=200_000,
        slots_per_machine=1,
        mean_duration_s=5.0,
        phase_s=60.0,
        preference_groups=104,
        preferred_fraction=1 / 104,
        start="cold",
    )


# The weight of a slot of median score. Scores more than 13 below it all have weight 1.
SLOT_SCORE_ONE = 1 << 20
SERVICE_PRIORITY = 1
PRODUCTION_PRIORITY = 2


def generate(options: SyntheticOptions, seed: int, name: str = "synthetic") -> Workload:
    """The workload of these options and this seed, in a cell that is empty at time 0; what else
    runs then, options.start says (warm_up()).

    Offered load counts run times away from preferred machines: with preferred_permille = 700 and
    every task on a preferred machine, a load of 100 % occupies 70 % of the slots. Jobs arrive one
    after the other, and the batches of a job are consecutive. All batches are full; the end of the
    last phase cuts the last job short. Columns whose values are all alike are read-only broadcasts
    that take no memory.

    Raises:
        ValueError: no batch or more than 2^31 tasks would arrive.
    """
    cell = make_cell(options, seed)
    return arriving_tasks(options, cell, make_catalog(options, cell, seed), seed, name)


def arriving_tasks(
    options: SyntheticOptions, cell: CellSpec, catalog: PreferenceCatalog, seed: int, name: str
) -> Workload:
    """As generate, on a cell that is made already."""
    resources = options.resources()
    at_once = resources.tasks_at_once()[1]
    # Arrivals are counted in integers: whole tasks, or hundredths where they do not divide evenly.
    scale = 1 if at_once.denominator == 1 else 100
    mean_us = round(options.mean_duration_s * 1e6)
    phase_us = max(1, round(options.phase_s * 1e6))
    phases = tuple(
        Phase(k * phase_us, (k + 1) * phase_us, load) for k, load in enumerate(options.load_percent)
    )
    clock = WorkClock(phases, int(at_once * scale))
    work_per_batch = 100 * scale * mean_us * options.batch_tasks
    if clock.total // work_per_batch * options.batch_tasks >= 1 << 31:
        raise ValueError("phases: more than 2^31 tasks; shorten the phases or shrink the cell")
    stream = _stream(seed, "arrivals")
    if options.poisson_arrivals:
        arrival_us = poisson_arrivals(clock, work_per_batch, stream)
    else:
        arrival_us = even_arrivals(clock, work_per_batch, options.arrival_jitter_percent, stream)
    batches = len(arrival_us)
    if batches == 0:
        raise ValueError(
            "phase_s: no batch arrives in phases this short; lengthen them or make batches smaller"
        )

    job, preference, service, in_gangs = draw_jobs(options, batches, catalog.sets - 1, seed)
    first_us = arrival_us[np.searchsorted(job, np.arange(len(preference)))]  # of each job
    if options.preference_drift_s and catalog.sets > 1:
        preference = _drifted(options, preference, first_us, catalog.sets - 1, seed)
    rows = np.arange(batches * options.batch_tasks, dtype=np.int64)
    duration_us = _durations(options, mean_us, len(rows), seed)
    task_class = np.broadcast_to(np.int8(TaskClass.BATCH), len(rows))
    priority = np.broadcast_to(np.int32(0), len(rows))
    if options.service_permille > 0:
        is_service = np.repeat(service[job], options.batch_tasks)
        duration_us[is_service] = -1
        task_class = np.where(is_service, np.int8(TaskClass.SERVICE), np.int8(TaskClass.BATCH))
        priority = np.where(is_service, np.int32(SERVICE_PRIORITY), np.int32(0))
    if options.production_permille > 0:
        stream = _stream(seed, "production")
        is_production = production_jobs(options, len(preference), stream)[job]
        is_production = np.repeat(is_production, options.batch_tasks)
        priority = np.where(is_production, np.int32(PRODUCTION_PRIORITY), priority)
    gang = np.broadcast_to(np.int64(NO_GANG), len(rows))
    if options.gang_permille > 0:
        gang_of_batch = np.where(
            in_gangs[job], np.arange(batches, dtype=np.int64), np.int64(NO_GANG)
        )
        gang = np.repeat(gang_of_batch, options.batch_tasks)
    tasks = TaskBatch(
        task=rows,
        job=np.repeat(job, options.batch_tasks),
        request=resources.requests(len(rows), seed),
        priority=priority,
        submit_us=np.repeat(arrival_us, options.batch_tasks),
        preference=np.repeat(preference[job], options.batch_tasks),
        gang=gang,
        task_class=task_class,
    )
    phase_of_job = np.minimum(first_us // phase_us, len(phases) - 1)
    none64, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Workload(
        name=name,
        cell=cell,
        catalog=catalog,
        tasks=tasks,
        duration_us=duration_us,
        preferred_permille=options.preferred_permille,
        arrival_us=arrival_us,
        arrival_offsets=np.arange(batches + 1, dtype=np.int64) * options.batch_tasks,
        arrival_rows=rows,
        initial=InitialPlacement(none64, none32),
        machine_events=MachineEvents(none64, none32, np.zeros(0, np.bool_)),
        phases=phases,
        end_us=phases[-1].end_us,
        facts={
            "jobs": int(job[-1]) + 1,
            "tasks_in_gangs": int(np.count_nonzero(gang != NO_GANG)),
            "tasks_larger_than_every_machine": 0,
            **({WARM_UP_S: options.warm_up_s} if options.warm_up_s else {}),
            **resources.facts(),
        },
        quotas=membership(
            options.quota_groups,
            phase_of_job,
            tasks.job,
            _stream(seed, "quota_group"),
        ),
    )


def make_cell(options: SyntheticOptions, seed: int) -> CellSpec:
    """The machines."""
    resources, machines = options.resources(), options.machines
    score = np.zeros(machines, np.int64)
    if options.slot_score_variance > 0:
        # exp(N(0, V)) is lognormal of mean exp(V / 2) and median 1.
        mean = round(exponential(options.slot_score_variance / 2) * SLOT_SCORE_ONE)
        stream = _stream(seed, "slot_score")
        score = np.maximum(
            stream.lognormal(machines, mean, math.sqrt(options.slot_score_variance)), 1
        )
    return CellSpec(
        dimensions=resources.dimensions,
        capacity=resources.machine_capacity(seed),
        rack=(np.arange(machines, dtype=np.int64) // options.machines_per_rack).astype(np.int32),
        slot_score=score,
        overcommit_permille=np.full(len(resources.dimensions), 1000, np.int64),
    )


def make_catalog(options: SyntheticOptions, cell: CellSpec, seed: int) -> PreferenceCatalog:
    """What jobs prefer."""
    streams = [
        _stream(seed, "preferred_machines", group) for group in range(options.preference_groups)
    ]
    groups = [
        spread_machines(stream, options.machines, options.machines_per_group) for stream in streams
    ]
    if options.preference_overlap_percent is not None:
        disjoint = disjoint_groups(
            _stream(seed, "disjoint_groups"),
            options.machines,
            options.machines_per_group,
            options.preference_groups,
        )
        overlap = options.preference_overlap_percent
        groups = [
            mixed_group(stream, own, drawn, overlap)
            for stream, own, drawn in zip(streams, disjoint, groups, strict=True)
        ]
    return group_catalog(
        groups, cell.rack, options.rack_cost, options.elsewhere_cost, options.unscheduled_cost
    )


def draw_jobs(
    options: SyntheticOptions, batches: int, groups: int, seed: int
) -> tuple[Int64, Int32, NDArray[np.bool_], NDArray[np.bool_]]:
    """Draw the jobs: the job of each batch int64[batches]; of each job its preference set
    int32[jobs], whether it is a service, and whether its batches are gangs, bool[jobs]."""
    table = bounded_pareto_table(options.job_batches_max, options.job_size_alpha)
    size = 1 + draw(_stream(seed, "job_size"), table, batches)
    jobs = int(np.searchsorted(np.cumsum(size), batches)) + 1
    job = np.repeat(np.arange(jobs, dtype=np.int64), size[:jobs])[:batches]

    def some(what: str, permille: int) -> NDArray[np.bool_]:
        drawn: NDArray[np.bool_] = _stream(seed, what).integers(jobs, 1000) < permille
        return drawn

    preference = np.zeros(jobs, np.int32)
    if groups > 0:
        popularity = zipf_table(groups, options.preference_zipf)
        preference += (1 + draw(_stream(seed, "preference_group"), popularity, jobs)).astype("i4")
        preference[some("no_preference", options.no_preference_permille)] = 0
    return (
        job,
        preference,
        some("service", options.service_permille),
        some("gang", options.gang_permille),
    )


def _stream(seed: int, what: str, *numbers: int) -> Stream:
    """The random numbers that decide this, and nothing else."""
    return Stream(stream_key(seed, f"workload/{what}", *numbers))


def production_jobs(options: SyntheticOptions, jobs: int, stream: Stream) -> NDArray[np.bool_]:
    """Draw which jobs are of production priority, bool[jobs]."""
    drawn: NDArray[np.bool_] = stream.integers(jobs, 1000) < options.production_permille
    return drawn


def _drifted(
    options: SyntheticOptions, preference: Int32, arrival_us: Int64, groups: int, seed: int
) -> Int32:
    """The preference sets int32[jobs] of jobs that arrive at arrival_us int64[jobs], where every
    preference_drift_s the groups exchange their popularity at random."""
    drifted = preference.copy()
    drifts = arrival_us // max(1, round(options.preference_drift_s * 1e6))
    for drift in np.unique(drifts[drifts > 0]).tolist():
        order = _stream(seed, "preference_drift", drift).permutation(groups)
        now = np.flatnonzero((drifts == drift) & (preference > 0))
        drifted[now] = 1 + order[preference[now] - 1]
    return drifted


def _durations(options: SyntheticOptions, mean_us: int, n: int, seed: int) -> Int64:
    if options.duration_sigma == 0:
        return np.full(n, mean_us, np.int64)
    duration = _stream(seed, "duration").lognormal(n, mean_us, options.duration_sigma)
    return np.maximum(duration, 1, out=duration)


class WorkClock:
    """Cumulative offered work over phases, and its inverse.

    Args:
        phases: one after the other, from time 0.
        slots: how many tasks the cell holds at once.

    Raises:
        ValueError: the work overflows an int64.
    """

    def __init__(self, phases: tuple[Phase, ...], slots: int) -> None:
        work = [(phase.end_us - phase.start_us) * phase.load_percent * slots for phase in phases]
        if sum(work) >= 1 << 62:
            raise ValueError(
                "phases: tasks x load x time exceeds 2^62 task-microseconds; "
                "shorten the phases or shrink the cell"
            )
        self._start_us = np.array([phase.start_us for phase in phases], np.int64)
        self._rate = np.array([phase.load_percent * slots for phase in phases], np.int64)
        self._work_end = np.cumsum(np.array(work, np.int64))
        self._work_start = self._work_end - np.array(work, np.int64)
        self.total = int(self._work_end[-1])

    def time_us(self, work: Int64) -> Int64:
        """The times at which the clock reaches `work`: int64[n] of int64[n] in [0, total)."""
        phase = np.searchsorted(self._work_end, work, side="right")
        time: Int64 = self._start_us[phase] + (work - self._work_start[phase]) // self._rate[phase]
        return time


def even_arrivals(
    clock: WorkClock, work_per_batch: int, jitter_percent: int, stream: Stream
) -> Int64:
    """The arrival times of evenly spaced batches: int64[batches], ascending. Batch b is due at
    b * work_per_batch plus a uniform jitter of up to jitter_percent of the spacing."""
    batches = clock.total // work_per_batch
    due = np.arange(batches, dtype=np.int64) * work_per_batch
    jitter = work_per_batch * jitter_percent // 100
    if jitter > 0:
        due += stream.integers(batches, jitter)
    return clock.time_us(due)


def poisson_arrivals(clock: WorkClock, work_per_batch: int, stream: Stream) -> Int64:
    """The arrival times of a Poisson process in each phase: int64[batches], ascending. The gaps on
    the work clock are exponential with mean work_per_batch."""
    due = np.zeros(0, np.int64)
    reached = 0
    while reached < clock.total:
        missing = (clock.total - reached) // work_per_batch + 64
        gaps = (stream.exponential(missing) * work_per_batch).astype(np.int64)
        more = reached + np.cumsum(gaps)
        due = np.concatenate([due, more])
        reached = int(more[-1])
    return clock.time_us(due[due < clock.total])


def warm_up(options: SyntheticOptions, seed: int) -> Workload | None:
    """The warm-up before the workload of these options and this seed, on its cell.

    Tasks that run as it begins come last in its table. They are grouped into jobs as their arrivals
    would have been, of which service_permille are services; no service arrives in the warm-up, so
    that the run begins at the first phase's load. None for a cold start, for a first phase without
    load, and where arrivals are so rare that none falls into the warm-up.
    """
    length_s, load = options.warm_up_s, options.load_percent[0]
    if not length_s:
        return None
    cell = make_cell(options, seed)
    catalog = make_catalog(options, cell, seed)
    short = options.model_copy(
        update={
            "load_percent": (load,),
            "phase_s": length_s,
            "service_permille": 0,
            "preference_drift_s": 0,  # the popularity at time 0
        }
    )
    own_seed = stream_key(seed, "warm_up")
    try:
        arriving = arriving_tasks(short, cell, catalog, own_seed, "warm-up")
    except ValueError:  # of Poisson arrivals that all come later
        return None
    running, remaining_us, machine, quotas = _running(options, cell, catalog, seed)
    n, k = len(arriving.tasks), len(running)
    running = replace(
        running,
        task=running.task + n,
        job=running.job + (int(arriving.tasks.job[-1]) + 1),
    )
    return replace(
        arriving,
        tasks=joined_tasks(arriving.tasks, running),
        duration_us=np.concatenate([arriving.duration_us, remaining_us]),
        initial=InitialPlacement(np.arange(n, n + k, dtype=np.int64), machine),
        quotas=joined_quotas(arriving.quotas, None if quotas is None else quotas.group),
    )


def _running(
    options: SyntheticOptions, cell: CellSpec, catalog: PreferenceCatalog, seed: int
) -> tuple[TaskBatch, Int64, Int32, QuotaMembership | None]:
    """The k tasks that run in equilibrium at the first phase's load: their table (ids and jobs from
    0), what remains of their run times int64[k], their machines int32[k], and their quota
    groups."""
    resources = options.resources()
    n = round(resources.tasks_at_once()[1] * options.load_percent[0] / 100)
    mean_us = round(options.mean_duration_s * 1e6)

    def stream(what: str) -> Stream:
        return Stream(stream_key(seed, f"equilibrium/{what}"))

    duration_us = length_biased_durations(stream("duration"), n, mean_us, options.duration_sigma)
    remaining_us = remaining_times(stream("remaining"), duration_us)
    # Tasks of one age came together. Batches of which nothing is left are not drawn.
    batches_us = mean_us * options.batch_tasks // max(1, n) + 1  # between batches
    batch = np.unique((duration_us - remaining_us) // batches_us, return_inverse=True)[1]
    own_seed = stream_key(seed, "equilibrium")
    job_of_batch, preference, service, _ = draw_jobs(
        options, int(batch.max(initial=0)) + 1, catalog.sets - 1, own_seed
    )
    job = job_of_batch[batch]
    request = resources.requests(n, own_seed)
    machine = running_machines(
        cell, catalog, preference[job], request, options.preferred_permille, stream("machine")
    )
    runs = np.flatnonzero(machine != NOT_RUNNING)
    # ids in the order of jobs, as those of arriving tasks
    rows = runs[np.argsort(job[runs], kind="stable")]
    k, is_service = len(rows), service[job[rows]]
    remaining_us = remaining_us[rows]
    remaining_us[is_service] = -1
    priority = np.where(is_service, np.int32(SERVICE_PRIORITY), np.int32(0))
    is_production = production_jobs(options, len(preference), stream("production"))[job[rows]]
    tasks = TaskBatch(
        task=np.arange(k, dtype=np.int64),
        job=job[rows],
        request=request[rows],
        priority=np.where(is_production, np.int32(PRODUCTION_PRIORITY), priority),
        submit_us=np.zeros(k, np.int64),
        preference=preference[job[rows]],
        gang=np.full(k, NO_GANG, np.int64),
        task_class=np.where(is_service, np.int8(TaskClass.SERVICE), np.int8(TaskClass.BATCH)),
    )
    at_start = np.zeros(len(preference), np.int64)  # the phase of each job
    quotas = membership(options.quota_groups, at_start, tasks.job, stream("quota_group"))
    return tasks, remaining_us, machine[rows], quotas


def expected_rates(options: SyntheticOptions) -> ExpectedRates | None:
    """The rates of a generated workload. None where they are not constant in a phase: with
    services, which never end, and with a popularity that drifts."""
    if options.service_permille or options.preference_drift_s:
        return None
    groups = options.preference_groups
    share = np.ones(1)
    if groups:
        weight = np.diff(zipf_table(groups, options.preference_zipf), prepend=0).astype(np.float64)
        without = options.no_preference_permille / 1000
        share = np.concatenate([[without], (1 - without) * weight / weight.sum()])
    load = np.array(options.load_percent, np.float64) / 100
    return ExpectedRates(
        per_s=np.outer(load * options.tasks_per_s, share), mean_us=options.mean_duration_s * 1e6
    )


def _load(options: SyntheticOptions, seed: int) -> Workload:
    try:
        return generate(options, seed)
    except ValueError as error:
        raise AgoraError(f"workload: {error}") from error


SPEC = WorkloadSpec(
    "synthetic",
    SyntheticOptions,
    _load,
    outline=SyntheticOptions.outline,
    with_duration=SyntheticOptions.phase_length,
    with_machines=SyntheticOptions.cell_size,
    warm_up=warm_up,
    expected_rates=expected_rates,
    seeds_vary=lambda options: (
        "A seed draws the whole workload: machines' scores, preferences, run times, and arrivals "
        "as far as the options leave them open. Intervals are about workloads with these options."
    ),
)
