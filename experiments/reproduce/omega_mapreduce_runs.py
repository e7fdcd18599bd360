"""The cells and arms of Omega's section 6, the MapReduce scheduler (Schwarzkopf et al., EuroSys
2013).

The paper's runs replay traces of clusters A and C, whose use is usually above 60 %, and of D, which
is lightly loaded and about a quarter as large as C. These are not public. A busy cell stands in for
A and C, and a lightly used one, a quarter as large, for D. Their jobs are assumptions. At both
scales jobs occupy about 74 % of the busy cell and 38 % of the other one; MapReduce jobs have 16 %
of each, and the largest of them ask for 2.5 and 10 %.
"""

from __future__ import annotations

from experiments.reproduce.figure import FigureRun, ReproduceScale
from experiments.reproduce.omega_runs import (
    BATCH,
    SERVICE,
    T_JOB_S,
    decision_time,
    run_config,
    scheduler_group,
)
from experiments.workloads.mapreduce_jobs import MapReduceJobClass
from experiments.workloads.service_batch import (
    BatchJobs,
    ServiceBatchOptions,
    ServiceJobs,
)
from parsync.spec.arm import ArmConfig
from schedulers.mapreduce.policies import PolicyKind

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
