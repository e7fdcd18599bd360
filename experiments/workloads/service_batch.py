"""Omega's workload: batch jobs of many short tasks, and service jobs of few long ones (Schwarzkopf
et al., EuroSys 2013, section 4; the generator of its simulator); MapReduce jobs beside them
(section 6).

Jobs of each class arrive as a Poisson process. The number of tasks of a job is geometric, which is
the exponential distribution's counterpart on 1, 2, ...; the run time, which all tasks of a job have
in common, is exponential. Every random number comes from a stream named after its class and what it
decides, so that an option changes nothing but what it names.

Constrained jobs may run on some of the machines only. These are drawn once, the same for all jobs
of a class; those of a pickier class are among those of the other, as in Omega's simulator.

The paper's MapReduce jobs come from traces that are not public. It gives the numbers of workers
that users often ask for (5, 11, 200 and 1,000), and says that large jobs have many more activities
than workers, and that about a fifth of all jobs are MapReduce jobs. All else of them is an
assumption: the numbers of workers are equally likely, the numbers of activities are geometric and
the run times exponential, as those of the other classes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from experiments.workloads.building import equal_machines
from experiments.workloads.draws import geometric, poisson_times
from experiments.workloads.equilibrium import NOT_RUNNING, running_machines
from experiments.workloads.registry import Outline, WorkloadSpec
from experiments.workloads.resources import Amount, Dimension, MachineType, Resources, TaskShape
from parsync.strict_model import Strict
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload, joined_tasks
from schedulers.mapreduce.jobs import MapReduceJobs
from shared_state.errors import AgoraError
from shared_state.random import Stream, stream_key
from shared_state.tasks import (
    NO_GANG,
    NO_PREFERENCE,
    NOWHERE_ELSE,
    CellSpec,
    Int32,
    Int64,
    PreferenceCatalog,
    TaskBatch,
    TaskClass,
)


class JobClass(Strict):
    """One class of jobs. The tasks of a job are alike, and are submitted together."""

    interarrival_s: float = Field(
        gt=0, le=1e6, description="mean time between two jobs (exponential)"
    )
    tasks_per_job: float = Field(
        ge=1, le=1e6, description="mean number of tasks of a job (geometric)"
    )
    run_s: float = Field(
        ge=0.001, le=1e6, description="mean run time of the tasks of a job (exponential)"
    )
    request: dict[Dimension, Amount] = Field(
        default_factory=lambda: {"cpu_milli": 1_000, "mem_mib": 2_048},
        min_length=1,
        max_length=8,
        description="what each task asks for; 0: also on machines without the resource",
    )
    pickiness: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the machines on which constrained jobs may not run",
    )
    constrained_permille: int = Field(
        1000, ge=0, le=1000, description="share of the jobs that are constrained, by pickiness"
    )


class BatchJobs(JobClass):
    """Batch jobs, as in Omega's example."""

    interarrival_s: float = Field(10.0, gt=0, le=1e6)
    tasks_per_job: float = Field(100.0, ge=1, le=1e6)
    run_s: float = Field(100.0, ge=0.001, le=1e6)


class ServiceJobs(JobClass):
    """Service jobs, as in Omega's example. They end, too."""

    interarrival_s: float = Field(20.0, gt=0, le=1e6)
    tasks_per_job: float = Field(10.0, ge=1, le=1e6)
    run_s: float = Field(500.0, ge=0.001, le=1e6)


Workers = Annotated[int, Field(ge=1, le=1_000_000)]


class MapReduceJobClass(Strict):
    """MapReduce jobs. Each activity is a task; the maps of a job take equally long, and so do its
    reduces."""

    interarrival_s: float = Field(
        30.0, gt=0, le=1e6, description="mean time between two jobs (exponential)"
    )
    workers: tuple[Workers, ...] = Field(
        (5, 11, 200, 1000),
        min_length=1,
        max_length=100,
        strict=False,
        description="the numbers of workers that users ask for, equally likely",
    )
    maps_per_worker: float = Field(
        10.0, ge=1, le=1e4, description="mean number of maps per worker asked for (geometric)"
    )
    reduces_per_worker: float = Field(
        2.0, ge=1, le=1e4, description="mean number of reduces per worker asked for (geometric)"
    )
    map_s: float = Field(
        30.0, ge=0.001, le=1e6, description="mean run time of the maps of a job (exponential)"
    )
    reduce_s: float = Field(
        60.0, ge=0.001, le=1e6, description="mean run time of the reduces of a job (exponential)"
    )
    request: dict[Dimension, Amount] = Field(
        default_factory=lambda: {"cpu_milli": 1_000, "mem_mib": 2_048},
        min_length=1,
        max_length=8,
        description="what each activity asks for; 0: also on machines without the resource",
    )

    @property
    def tasks_per_job(self) -> float:
        """The mean number of activities of a job."""
        mean_workers = sum(self.workers) / len(self.workers)
        return mean_workers * (self.maps_per_worker + self.reduces_per_worker)

    @property
    def run_s(self) -> float:
        """The mean run time of an activity."""
        maps, reduces = self.maps_per_worker, self.reduces_per_worker
        return (maps * self.map_s + reduces * self.reduce_s) / (maps + reduces)


class ServiceBatchOptions(Strict):
    """What to generate. The defaults are the example of Omega's simulator."""

    machines: int = Field(10_000, ge=1, le=10_000_000, description="machines in the cell")
    capacity: dict[Dimension, Amount] = Field(
        default_factory=lambda: {"cpu_milli": 4_000, "mem_mib": 16_384},
        min_length=1,
        max_length=8,
        description="capacity of each machine",
    )
    machines_per_rack: int = Field(40, ge=1, description="racks are this many consecutive machines")
    duration_s: float = Field(86_400.0, gt=0, le=1e7, description="how long jobs arrive")
    batch: BatchJobs = Field(default_factory=BatchJobs)
    service: ServiceJobs = Field(default_factory=ServiceJobs)
    batch_rate: float = Field(
        1.0, gt=0, le=1e6, description="how many times as often batch jobs arrive"
    )
    mapreduce: MapReduceJobClass | None = Field(
        None,
        description="MapReduce jobs beside the others (Omega section 6), for schedulers of kind"
        " mapreduce; unset: none",
    )
    initial_fill_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="how much of the tightest resource is taken from time 0 on, by tasks that run"
        " until the end of the run",
    )
    gangs: bool = Field(
        False,
        description="each job, except MapReduce jobs, is a gang: planned whole, and placed whole"
        " unless commit_mode is incremental",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name, jobs in self._all_classes:
            try:
                self._resources(jobs)
            except ValueError as error:
                # The shape and the type are this class's request and the machine's capacity.
                text = str(error).partition(": ")[2]
                raise ValueError(f"{name}.request: {text}") from error
        return self

    @property
    def classes(self) -> tuple[tuple[str, JobClass], ...]:
        """The classes of jobs by name, in the order in which they count."""
        return (("batch", self.batch), ("service", self.service))

    @property
    def _all_classes(self) -> tuple[tuple[str, JobClass | MapReduceJobClass], ...]:
        """The classes of jobs by name, MapReduce jobs with them if there are any."""
        if self.mapreduce is None:
            return self.classes
        return (*self.classes, ("mapreduce", self.mapreduce))

    def interarrival_s(self, name: str) -> float:
        """The mean time between two jobs of a class, batch_rate included."""
        jobs = dict(self._all_classes)[name]
        return jobs.interarrival_s / (self.batch_rate if name == "batch" else 1.0)

    def usable_machines(self, jobs: JobClass) -> int:
        """On how many machines constrained jobs of a class may run: at least one."""
        return self.machines - int(Decimal(repr(jobs.pickiness)) * self.machines)

    def tasks_at_once(self, jobs: JobClass | MapReduceJobClass) -> Fraction:
        """How many tasks of a class the cell holds of its tightest resource."""
        return self._resources(jobs).tasks_at_once()[1]

    @property
    def arriving_share(self) -> float:
        """The share of the cell that the arriving jobs occupy on average: the sum over the classes
        of what each occupies of its tightest resource (Little's law)."""
        return sum(
            jobs.tasks_per_job
            * jobs.run_s
            / self.interarrival_s(name)
            / float(self.tasks_at_once(jobs))
            for name, jobs in self._all_classes
        )

    @property
    def load_percent(self) -> int:
        """The load: what the arriving jobs occupy, and what was taken before."""
        return round(100 * self.arriving_share) + self.initial_fill_percent

    def outline(self) -> Outline:
        """What is known before any job is drawn."""
        rate = {name: 1 / self.interarrival_s(name) for name, _ in self._all_classes}
        tasks_per_s = sum(rate[name] * jobs.tasks_per_job for name, jobs in self._all_classes)
        jobs_per_s = sum(rate.values())
        return Outline(
            machines=self.machines,
            tasks=round(tasks_per_s * self.duration_s),
            phase_s=self.duration_s,
            tasks_per_s=tasks_per_s / self.arriving_share,
            batch_tasks=tasks_per_s / jobs_per_s,
            service_share=rate["service"] / jobs_per_s,
            mapreduce_share=rate.get("mapreduce", 0.0) / jobs_per_s,
        )

    def _resources(self, jobs: JobClass | MapReduceJobClass) -> Resources:
        """The cell, as tasks of a class see it. ValueError if they do not fit it."""
        shape = TaskShape.model_validate({"request": dict(jobs.request)})
        return Resources.of(self.machines, (MachineType(capacity=self.capacity),), (shape,))


UNSCHEDULED_COST = 1_000
_MOST_TASKS = 1 << 31
MAPREDUCE = "mapreduce"
_CLASS_OF = {
    "batch": TaskClass.BATCH,
    "service": TaskClass.SERVICE,
    MAPREDUCE: TaskClass.MAPREDUCE,
}
_PRIORITY = {"batch": 0, "service": 1, MAPREDUCE: 0}


@dataclass(frozen=True, slots=True)
class _Jobs:
    """The jobs of one class: columns of j jobs.

    Attributes:
        name: Of the class.
        arrival_us: int64[j], ascending.
        tasks: int64[j], how many tasks each has.
        run_us: int64[j], how long each of these runs; of a MapReduce job each of its maps.
        preference: int32[j], the preference set.
        request: int64[R], of each task.
    """

    name: str
    arrival_us: Int64
    tasks: Int64
    run_us: Int64
    preference: Int32
    request: Int64


def generate(options: ServiceBatchOptions, seed: int) -> Workload:
    """The workload of these options and this seed.

    Raises:
        AgoraError: No job or more than 2^31 tasks would arrive.
    """
    cell = equal_machines(options.machines, options.capacity, options.machines_per_rack)
    catalog = _catalog(options, seed)
    end_us = max(1, round(options.duration_s * 1e6))
    by_class = [
        _draw_jobs(options, name, jobs, number, end_us, cell, seed)
        for number, (name, jobs) in enumerate(options.classes)
    ]
    drawn = None
    if options.mapreduce is not None:
        drawn = draw_mapreduce(options.mapreduce, end_us, seed)
        request = [options.mapreduce.request[dimension] for dimension in cell.dimensions]
        by_class.append(_mapreduce_jobs(drawn, np.array(request, np.int64)))
    arrival_us = np.concatenate([jobs.arrival_us for jobs in by_class])
    if not len(arrival_us):
        raise AgoraError("workload: duration_s: no job arrives in a time this short")
    order = np.argsort(arrival_us, kind="stable")
    arriving, duration_us = _tasks(by_class, order, options.gangs)
    running, machine = _initial(options, cell, catalog, seed)
    n, jobs = len(arriving), len(order)
    running = replace(running, task=running.task + n, job=running.job + jobs)
    size = np.concatenate([jobs.tasks for jobs in by_class])[order]
    offsets = np.concatenate([[0], np.cumsum(size)])
    mapreduce = None
    if drawn is not None:
        is_mapreduce = order >= jobs - len(drawn.workers)
        mapreduce = drawn.from_task(offsets[:-1][is_mapreduce])
        duration_us[_reduces(mapreduce)] = np.repeat(mapreduce.reduce_us, mapreduce.reduces)
    return Workload(
        name="service_batch",
        cell=cell,
        catalog=catalog,
        tasks=joined_tasks(arriving, running) if len(running) else arriving,
        duration_us=np.concatenate([duration_us, np.full(len(running), -1, np.int64)]),
        preferred_permille=1000,
        arrival_us=arrival_us[order],
        arrival_offsets=offsets,
        arrival_rows=np.arange(n, dtype=np.int64),
        initial=InitialPlacement(running.task, machine),
        machine_events=MachineEvents(
            np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_)
        ),
        phases=(Phase(0, end_us, options.load_percent),),
        end_us=end_us,
        facts={
            "jobs": jobs,
            **{f"{jobs.name}_jobs": len(jobs.tasks) for jobs in by_class},
            **{f"{jobs.name}_tasks": int(jobs.tasks.sum()) for jobs in by_class},
            "initial_tasks": len(running),
            "tasks_larger_than_every_machine": 0,
        },
        mapreduce=mapreduce,
    )


def draw_mapreduce(jobs: MapReduceJobClass, end_us: int, seed: int) -> DrawnMapReduceJobs:
    """Draw the jobs that arrive in [0, end_us)."""

    def stream(what: str) -> Stream:
        return Stream(stream_key(seed, f"workload/mapreduce/{what}"))

    def activities(what: str, per_worker: float) -> Int64:
        drawn = np.zeros(count, np.int64)
        for asked in np.unique(workers).tolist():
            rows = np.flatnonzero(workers == asked)
            drawn[rows] = geometric(stream(f"{what}/{asked}"), len(rows), asked * per_worker)
        return drawn

    def run_us(what: str, mean_s: float) -> Int64:
        drawn = (stream(what).exponential(count) * (mean_s * 1e6)).astype(np.int64)
        return np.maximum(drawn, 1)

    arrival_us = poisson_times(stream("arrivals"), jobs.interarrival_s * 1e6, end_us)
    count = len(arrival_us)
    choice = stream("workers").integers(count, len(jobs.workers))
    workers = np.array(jobs.workers, np.int64)[choice]
    return DrawnMapReduceJobs(
        arrival_us,
        workers,
        activities("maps", jobs.maps_per_worker),
        activities("reduces", jobs.reduces_per_worker),
        run_us("map_run", jobs.map_s),
        run_us("reduce_run", jobs.reduce_s),
    )


@dataclass(frozen=True, slots=True)
class DrawnMapReduceJobs:
    """The MapReduce jobs that arrive: columns of j jobs, as in MapReduceJobs.

    Attributes:
        arrival_us: int64[j], ascending.
    """

    arrival_us: Int64
    workers: Int64
    maps: Int64
    reduces: Int64
    map_us: Int64
    reduce_us: Int64

    def from_task(self, first_task: Int64) -> MapReduceJobs:
        """The jobs, with the first task of each (int64[j])."""
        return MapReduceJobs(
            first_task, self.workers, self.maps, self.reduces, self.map_us, self.reduce_us
        )


def _mapreduce_jobs(drawn: DrawnMapReduceJobs, request: Int64) -> _Jobs:
    """MapReduce jobs as a class of jobs, whose activities ask for int64[R]."""
    none = np.full(len(drawn.workers), NO_PREFERENCE, np.int32)
    activities = drawn.maps + drawn.reduces
    return _Jobs(MAPREDUCE, drawn.arrival_us, activities, drawn.map_us, none, request)


def _reduces(jobs: MapReduceJobs) -> Int64:
    """The tasks that are reduces: int64[n], ascending."""
    before = np.cumsum(jobs.reduces) - jobs.reduces
    first = np.repeat(jobs.first_task + jobs.maps - before, jobs.reduces)
    reduces: Int64 = first + np.arange(len(first))
    return reduces


def _draw_jobs(
    options: ServiceBatchOptions,
    name: str,
    jobs: JobClass,
    number: int,
    end_us: int,
    cell: CellSpec,
    seed: int,
) -> _Jobs:
    """Draw the jobs of the class `name`, the number-th."""

    def stream(what: str) -> Stream:
        return Stream(stream_key(seed, f"workload/{name}/{what}"))

    interarrival_us = options.interarrival_s(name) * 1e6
    if end_us / interarrival_us * jobs.tasks_per_job >= _MOST_TASKS:
        raise AgoraError(f"workload: {name}: more than 2^31 tasks; shorten duration_s")
    arrival_us = poisson_times(stream("arrivals"), interarrival_us, end_us)
    count = len(arrival_us)
    constrained = stream("constrained").integers(count, 1000) < jobs.constrained_permille
    own_set = number + 1 if jobs.pickiness else NO_PREFERENCE
    run_us = (stream("run").exponential(count) * (jobs.run_s * 1e6)).astype(np.int64)
    return _Jobs(
        name,
        arrival_us,
        geometric(stream("tasks"), count, jobs.tasks_per_job),
        np.maximum(run_us, 1),
        np.where(constrained, own_set, NO_PREFERENCE).astype(np.int32),
        np.array([jobs.request[dimension] for dimension in cell.dimensions], np.int64),
    )


def _tasks(by_class: list[_Jobs], order: Int64, gangs: bool) -> tuple[TaskBatch, Int64]:
    """The tasks of all jobs in the order of their arrivals, and their run times int64[n]."""
    size = np.concatenate([jobs.tasks for jobs in by_class])[order]

    def per_task(columns: list[Any]) -> Any:
        """A column of n tasks from one of the jobs, class by class."""
        return np.repeat(np.concatenate(columns)[order], size, axis=0)

    def alike(values: list[Any]) -> Any:
        """The same where the jobs of a class are alike."""
        return per_task(
            [
                np.repeat(np.asarray(value)[None], len(jobs.tasks), axis=0)
                for jobs, value in zip(by_class, values, strict=True)
            ]
        )

    n = int(size.sum())
    job = np.repeat(np.arange(len(size), dtype=np.int64), size)
    is_mapreduce = alike([np.bool_(jobs.name == MAPREDUCE) for jobs in by_class])
    tasks = TaskBatch(
        task=np.arange(n, dtype=np.int64),
        job=job,
        request=alike([jobs.request for jobs in by_class]),
        priority=alike([np.int32(_PRIORITY[jobs.name]) for jobs in by_class]),
        submit_us=per_task([jobs.arrival_us for jobs in by_class]),
        preference=per_task([jobs.preference for jobs in by_class]),
        gang=np.where(is_mapreduce, NO_GANG, job)
        if gangs
        else np.broadcast_to(np.int64(NO_GANG), n),
        task_class=alike([np.int8(_CLASS_OF[jobs.name]) for jobs in by_class]),
    )
    return tasks, per_task([jobs.run_us for jobs in by_class])


def _catalog(options: ServiceBatchOptions, seed: int) -> PreferenceCatalog:
    """The machines that constrained jobs may use: set 1 for batch jobs, set 2 for service jobs,
    empty where the class has no constraint."""
    order = Stream(stream_key(seed, "workload/usable_machines")).permutation(options.machines)
    usable = [
        np.sort(order[: options.usable_machines(jobs)]).astype(np.int32)
        if jobs.pickiness
        else np.zeros(0, np.int32)
        for _, jobs in options.classes
    ]
    machine = np.concatenate(usable)
    offsets = np.cumsum(np.array([0, 0, *map(len, usable)], np.int64))
    none = np.zeros(len(offsets), np.int64)
    elsewhere = [NOWHERE_ELSE if len(machines) else 0 for machines in usable]
    return PreferenceCatalog(
        machine_offsets=offsets,
        machine=machine,
        machine_cost=np.zeros(len(machine), np.int64),
        rack_offsets=none,
        rack=np.zeros(0, np.int32),
        rack_cost=np.zeros(0, np.int64),
        elsewhere_cost=np.array([0, *elsewhere], np.int64),
        unscheduled_cost=np.full(len(usable) + 1, UNSCHEDULED_COST, np.int64),
    )


def _initial(
    options: ServiceBatchOptions, cell: CellSpec, catalog: PreferenceCatalog, seed: int
) -> tuple[TaskBatch, Int32]:
    """The k tasks that fill the cell from time 0 on, each a service job of its own that asks for
    what service tasks ask: their table (ids and jobs from 0), and their machines int32[k]."""
    service = options.service
    n = int(options.tasks_at_once(service) * options.initial_fill_percent / 100)
    asked = np.array([service.request[dimension] for dimension in cell.dimensions], np.int64)
    request = np.tile(asked, (n, 1))
    preference = np.full(n, NO_PREFERENCE, np.int32)
    stream = Stream(stream_key(seed, "workload/initial"))
    machine = running_machines(cell, catalog, preference, request, 1000, stream)
    machine = machine[machine != NOT_RUNNING]
    k = len(machine)
    tasks = TaskBatch(
        task=np.arange(k, dtype=np.int64),
        job=np.arange(k, dtype=np.int64),
        request=request[:k],
        priority=np.full(k, _PRIORITY["service"], np.int32),
        submit_us=np.zeros(k, np.int64),
        preference=preference[:k],
        gang=np.full(k, NO_GANG, np.int64),
        task_class=np.full(k, TaskClass.SERVICE, np.int8),
    )
    return tasks, machine


def _with_duration(options: ServiceBatchOptions, duration_s: float) -> Mapping[str, Any]:
    """The option to change so that jobs arrive for duration_s."""
    return {"duration_s": duration_s}


def _seeds_vary(options: ServiceBatchOptions) -> str:
    return (
        "A seed draws the whole workload: what runs at the start, arrivals, sizes of jobs, run "
        "times and constraints. Intervals are about workloads with these options."
    )


SPEC = WorkloadSpec(
    "service_batch",
    ServiceBatchOptions,
    generate,
    outline=ServiceBatchOptions.outline,
    with_duration=_with_duration,
    seeds_vary=_seeds_vary,
)
