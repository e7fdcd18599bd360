"""The options of Omega's workload of service and batch jobs."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Self

from pydantic import Field, model_validator

from experiments.workloads.mapreduce_jobs import MapReduceJobClass
from experiments.workloads.registry import Outline
from experiments.workloads.resources import Amount, Dimension, MachineType, Resources, TaskShape
from parsync.strict_model import Strict


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
