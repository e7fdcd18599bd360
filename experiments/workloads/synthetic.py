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

import numpy as np
from numpy.typing import NDArray

from experiments.workloads.draws import bounded_pareto_table, draw, exponential, zipf_table
from experiments.workloads.equilibrium import (
    NOT_RUNNING,
    length_biased_durations,
    remaining_times,
    running_machines,
)
from experiments.workloads.groups import (
    disjoint_groups,
    group_catalog,
    membership,
    mixed_group,
    spread_machines,
)
from experiments.workloads.registry import WARM_UP_S, ExpectedRates, WorkloadSpec
from experiments.workloads.synthetic_options import SyntheticOptions
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
    arrival_us = _arrivals(options, clock, work_per_batch, seed)
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
        stream = Stream(stream_key(seed, "workload/production"))
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
            Stream(stream_key(seed, "workload/quota_group")),
        ),
    )


def _arrivals(options: SyntheticOptions, clock: WorkClock, work_per_batch: int, seed: int) -> Int64:
    stream = Stream(stream_key(seed, "workload/arrivals"))
    if options.poisson_arrivals:
        return poisson_arrivals(clock, work_per_batch, stream)
    return even_arrivals(clock, work_per_batch, options.arrival_jitter_percent, stream)


def make_cell(options: SyntheticOptions, seed: int) -> CellSpec:
    """The machines."""
    resources, machines = options.resources(), options.machines
    score = np.zeros(machines, np.int64)
    if options.slot_score_variance > 0:
        # exp(N(0, V)) is lognormal of mean exp(V / 2) and median 1.
        mean = round(exponential(options.slot_score_variance / 2) * SLOT_SCORE_ONE)
        stream = Stream(stream_key(seed, "workload/slot_score"))
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
        Stream(stream_key(seed, "workload/preferred_machines", group))
        for group in range(options.preference_groups)
    ]
    groups = [
        spread_machines(stream, options.machines, options.machines_per_group) for stream in streams
    ]
    if options.preference_overlap_percent is not None:
        disjoint = disjoint_groups(
            Stream(stream_key(seed, "workload/disjoint_groups")),
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
    size = 1 + draw(Stream(stream_key(seed, "workload/job_size")), table, batches)
    jobs = int(np.searchsorted(np.cumsum(size), batches)) + 1
    job = np.repeat(np.arange(jobs, dtype=np.int64), size[:jobs])[:batches]
    preference = np.zeros(jobs, np.int32)
    if groups > 0:
        popularity = zipf_table(groups, options.preference_zipf)
        preference = (
            1 + draw(Stream(stream_key(seed, "workload/preference_group")), popularity, jobs)
        ).astype(np.int32)
        indifferent = (
            Stream(stream_key(seed, "workload/no_preference")).integers(jobs, 1000)
            < options.no_preference_permille
        )
        preference[indifferent] = 0
    service = (
        Stream(stream_key(seed, "workload/service")).integers(jobs, 1000) < options.service_permille
    )
    in_gangs = (
        Stream(stream_key(seed, "workload/gang")).integers(jobs, 1000) < options.gang_permille
    )
    return job, preference, service, in_gangs


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
        order = Stream(stream_key(seed, "workload/preference_drift", drift)).permutation(groups)
        now = np.flatnonzero((drifts == drift) & (preference > 0))
        drifted[now] = 1 + order[preference[now] - 1]
    return drifted


def _durations(options: SyntheticOptions, mean_us: int, n: int, seed: int) -> Int64:
    if options.duration_sigma == 0:
        return np.full(n, mean_us, np.int64)
    duration = Stream(stream_key(seed, "workload/duration")).lognormal(
        n, mean_us, options.duration_sigma
    )
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


def _seeds_vary(options: SyntheticOptions) -> str:
    return (
        "A seed draws the whole workload: machines' scores, preferences, run times, and arrivals "
        "as far as the options leave them open. Intervals are about workloads with these options."
    )


SPEC = WorkloadSpec(
    "synthetic",
    SyntheticOptions,
    _load,
    outline=SyntheticOptions.outline,
    with_duration=SyntheticOptions.phase_length,
    with_machines=SyntheticOptions.cell_size,
    warm_up=warm_up,
    expected_rates=expected_rates,
    seeds_vary=_seeds_vary,
)
