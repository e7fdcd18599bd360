"""The cells and arms of Omega's sections 4 and 5 (Schwarzkopf et al., EuroSys 2013).

An attempt to schedule a job takes t_job + t_task * n, where n is how many of its tasks are not
placed yet. Unless an experiment varies them, t_job = 0.1 s and t_task = 5 ms (section 4,
"Parameters"). Messages take no time.

The workloads of the paper's cells A, B and C are not public. The example of Omega's public
simulator stands in for them, in a cell of which 60 % is taken from the start, as in section 4. At
smoke scale these are the cells of examples/omega/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from experiments.config.run_config import RunConfig, VirtualConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.papers.figure import FigureRun
from experiments.studies.model_runs.settings import ReproduceScale
from experiments.workloads.service_batch import (
    BatchJobs,
    ServiceBatchOptions,
    ServiceJobs,
)
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
T_JOBS_OF_CONFLICTS_S = (0.1, 1.0, 10.0, 100.0)
SLOW_TASK_S = 1.0  # t_task of service jobs, section 5.1

SINGLE, MULTI, SHARED = "Monolithic, single path", "Monolithic, multi-path", "Shared state"
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
        arm = ArmConfig(name=label, partitions=1, groups=groups)
        return FigureRun(label, run_config(self.cell, arm), arm, draws_series=False)


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
