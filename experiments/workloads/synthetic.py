"""Generated workloads, calibrated on ParSync's figures (sections 2, 4.3 and 6).

Every random number comes from a stream named after what it decides, so that an option changes
nothing but what it names. The same options and seed give the same workload on any machine.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from experiments.strict_model import Strict
from experiments.workloads.arrivals import WorkClock, even_arrivals, poisson_arrivals
from experiments.workloads.draws import bounded_pareto_table, draw, exponential, zipf_table
from experiments.workloads.preference_groups import group_catalog, spread_machines
from experiments.workloads.registry import WARM_UP_S, Outline
from experiments.workloads.resources import MachineType, Resources, TaskShape
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
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
        description="requests, e.g. {request = {cpu_milli = [100, 900], mem_mib = 512}}",
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
    gang_permille: int = Field(
        0,
        ge=0,
        le=1000,
        description="share of jobs whose batches are gangs: planned whole, and placed whole where "
        "commits are all_or_nothing",
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
        resources = self.resources()
        if self.gang_permille:
            resources.check_gang(self.batch_tasks)
        if not any(self.load_percent):
            raise ValueError("load_percent: at least one phase must offer load")
        return self

    @property
    def tasks_per_s(self) -> float:
        """Arrivals at a load of 100 %."""
        return float(self.resources().tasks_at_once()[1]) / self.mean_duration_s

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
        )

    def with_duration(self, duration_s: float) -> SyntheticOptions:
        """These options with the phases scaled so that together they take duration_s."""
        return SyntheticOptions.model_validate(
            {**self.model_dump(), **self.phase_length(duration_s)}
        )

    def phase_length(self, duration_s: float) -> dict[str, float]:
        """The option to change so that all phases together take duration_s."""
        return {"phase_s": duration_s / len(self.load_percent)}


def generate(options: SyntheticOptions, seed: int, name: str = "synthetic") -> Workload:
    """The workload of these options and this seed, in a cell that is empty at time 0; what else
    runs then, options.start says (steady_state.py).

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
    rows = np.arange(batches * options.batch_tasks, dtype=np.int64)
    duration_us = _durations(options, mean_us, len(rows), seed)
    task_class = np.broadcast_to(np.int8(TaskClass.BATCH), len(rows))
    priority = np.broadcast_to(np.int32(0), len(rows))
    if options.service_permille > 0:
        is_service = np.repeat(service[job], options.batch_tasks)
        duration_us[is_service] = -1
        task_class = np.where(is_service, np.int8(TaskClass.SERVICE), np.int8(TaskClass.BATCH))
        priority = np.where(is_service, np.int32(SERVICE_PRIORITY), np.int32(0))
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
    chosen = max(1, round(options.preferred_fraction * options.machines))
    groups = [
        spread_machines(
            Stream(stream_key(seed, "workload/preferred_machines", group)), options.machines, chosen
        )
        for group in range(options.preference_groups)
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


def _durations(options: SyntheticOptions, mean_us: int, n: int, seed: int) -> Int64:
    if options.duration_sigma == 0:
        return np.full(n, mean_us, np.int64)
    duration = Stream(stream_key(seed, "workload/duration")).lognormal(
        n, mean_us, options.duration_sigma
    )
    return np.maximum(duration, 1, out=duration)
