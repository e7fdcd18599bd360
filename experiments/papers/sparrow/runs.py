"""Runs of the probing protocol on jobs whose submissions and run times are given, alone on a cell
of machines that are alike.

Messages of the run itself take no time: only the protocol's hops do. So a run is what the public
simulators of Sparrow, Hawk and Eagle describe, and starts can be compared task by task with a model
of two pages (tests/fixtures/probing_runs.py).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.studies.model_runs import DrawnRun
from parsync.metrics.record import Record
from parsync.protocols.probing.events import KIND
from parsync.runtime.audit import RunAudit
from parsync.runtime.virtual.run import VirtualOutcome, run_virtual
from parsync.spec.arm import ArmConfig, GroupConfig, ProtocolChoice
from parsync.spec.decision_times import ModelledTime
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
from shared_state.errors import AgoraError
from shared_state.random import Stream, stream_key
from shared_state.tasks import NO_GANG, CellSpec, Int64, PreferenceCatalog, TaskBatch

US_PER_S = 1_000_000
HOP_S = 0.0005  # one way, in the simulators of Sparrow, Hawk and Eagle
SEED = 1
AT_ONCE = ModelledTime(task_us=0.0001)  # a decision in no time to speak of
_DRAIN_US = 100_000 * US_PER_S
_SAMPLE_US = US_PER_S


def probing_group(count: int = 1, name: str = "probing", **options: Any) -> GroupConfig:
    """`count` schedulers that probe, with these options, and decide at once."""
    protocol = ProtocolChoice.model_validate({"kind": KIND, **options})
    return GroupConfig(name=name, count=count, protocol=protocol, decision=AT_ONCE)


def probing_arm(*groups: GroupConfig, hop_s: float = HOP_S, **options: Any) -> ArmConfig:
    """An arm of these groups, some of which may not probe, with these options of the protocol as a
    whole."""
    fields: dict[str, Any] = {"name": "arm", "partitions": 1, "groups": groups}
    if any(group.protocol.kind == KIND for group in groups):
        fields["protocols"] = {KIND: {"hop_s": hop_s, **options}}
    return ArmConfig.model_validate(fields)


def jobs_workload(
    machines: int, slots: int, submit_us: Int64, sizes: Int64, duration_us: Int64
) -> Workload:
    """Jobs in order of submission on machines that are alike, a slot for each task.

    Args:
        machines: Of the cell.
        slots: Of each machine.
        submit_us, sizes: When each job is submitted, int64[jobs], and its number of tasks.
        duration_us: Of each task, in the order of the jobs.
    """
    n = len(duration_us)
    cell = CellSpec(
        ("slots",),
        np.full((machines, 1), slots, np.int64),
        np.zeros(machines, np.int32),
        np.zeros(machines, np.int64),
        np.array([1000], np.int64),
    )
    tasks = TaskBatch(
        task=np.arange(n),
        job=np.repeat(np.arange(len(sizes)), sizes),
        request=np.ones((n, 1), np.int64),
        priority=np.zeros(n, np.int32),
        submit_us=np.repeat(submit_us, sizes),
        preference=np.zeros(n, np.int32),
        gang=np.full(n, NO_GANG),
        task_class=np.zeros(n, np.int8),
    )
    end_us = int(submit_us[-1]) + 1
    return Workload(
        name="jobs",
        cell=cell,
        catalog=PreferenceCatalog.empty(),
        tasks=tasks,
        duration_us=duration_us,
        preferred_permille=1000,
        arrival_us=submit_us,
        arrival_offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        arrival_rows=np.arange(n),
        initial=InitialPlacement(np.zeros(0, np.int64), np.zeros(0, np.int32)),
        machine_events=MachineEvents(
            np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_)
        ),
        phases=(Phase(0, end_us, 0),),
        end_us=end_us,
        facts={},
    )


def poisson_jobs(
    machines: int,
    slots: int,
    load: float,
    jobs: int,
    mean_us: int,
    most_tasks: int = 1,
    seed: int = SEED,
) -> Workload:
    """Jobs of 1 to `most_tasks` tasks with exponential gaps, and exponential run times."""
    sizes = Stream(stream_key(seed, "sizes")).integers(jobs, most_tasks) + 1
    tasks_per_job = (1 + most_tasks) / 2
    submit_us = poisson_us(machines * slots, load, jobs, tasks_per_job * mean_us, seed)
    times = Stream(stream_key(seed, "times")).exponential(int(sizes.sum())) * mean_us
    duration_us = np.maximum(1, times).astype(np.int64)
    return jobs_workload(machines, slots, submit_us, sizes, duration_us)


def poisson_us(slots: int, load: float, jobs: int, job_us: float, seed: int) -> Int64:
    """When jobs are submitted: a Poisson process that offers this load. int64[jobs].

    Args:
        slots: Of the cell.
        job_us: The mean work of a job.
    """
    gaps = Stream(stream_key(seed, "gaps")).exponential(jobs) * job_us / (load * slots)
    return np.cumsum(gaps).astype(np.int64)


@dataclass
class Ran:
    """What came of a run.

    Attributes:
        start_us, machine: Of each task, int64[n], at its last start.
        sums: Of the columns of the table `probes`; empty if nobody probes.
        rejections: Claims that the cell rejected.
    """

    outcome: VirtualOutcome
    workload: Workload
    start_us: Int64
    machine: Int64
    sums: dict[str, int]
    rejections: int

    def response_us(self) -> Int64:
        """From submission to the end of each task, int64[n]."""
        response: Int64 = self.start_us + self.workload.duration_us - self.workload.tasks.submit_us
        return response

    def job_response_us(self) -> Int64:
        """From submission to the end of the last task of each job, int64[jobs]."""
        return np.maximum.reduceat(self.response_us(), self.workload.arrival_offsets[:-1])

    def longest_us(self) -> Int64:
        """The longest run time of each job, its response if none of its tasks waited:
        int64[jobs]."""
        return np.maximum.reduceat(self.workload.duration_us, self.workload.arrival_offsets[:-1])

    def per_task(self, name: str) -> float:
        """The sum of a column of the table `probes` over the number of tasks; 0 if nobody
        probes."""
        return self.sums.get(name, 0) / len(self.workload.tasks)


def run(
    arm: ArmConfig,
    workload: Workload,
    message_us: int = 0,
    heartbeat_us: int = 1,
    seed: int = SEED,
    audit: RunAudit | None = None,
) -> Ran:
    """Run an arm in virtual time until all tasks have ended, or for _DRAIN_US after the last
    submission.

    Args:
        message_us: How long the run's own messages take.
        heartbeat_us: Ends of tasks are told at multiples of it.
        seed: Of the arm's draws.
        audit: Looks at every event.
    """
    start_us = np.full(len(workload.tasks), -1, np.int64)
    machine = np.full(len(workload.tasks), -1, np.int64)
    sums: dict[str, int] = {}
    rejections = 0

    def take(record: Record) -> None:
        nonlocal rejections
        columns = record.columns
        if record.table == "tasks":
            start_us[columns["task"]] = columns["start_us"]
            machine[columns["task"]] = columns["machine"]
        elif record.table == "probes":
            for name, values in columns.items():
                sums[name] = sums.get(name, 0) + int(values.sum())
        elif record.table == "rejections":
            rejections += len(columns["task"])

    spec = arm.seeded(seed, heartbeat_us, _SAMPLE_US, live=False)
    outcome = run_virtual(spec, workload, _DRAIN_US, take, lambda _: None, message_us, audit=audit)
    return Ran(outcome, workload, start_us, machine, sums, rejections)


@dataclass(frozen=True)
class JobsRun(DrawnRun):
    """Jobs on a cell that one group of schedulers has to itself.

    Attributes:
        group: The schedulers.
        hop_s: How long a message between a scheduler and a machine takes.
        heartbeat_us: Ends of tasks are told at multiples of it.
    """

    group: GroupConfig
    hop_s: float
    heartbeat_us: int

    def once(self, draw: int) -> dict[str, float]:
        arm = probing_arm(self.group, hop_s=self.hop_s)
        ran = run(arm, self.workload(draw), heartbeat_us=self.heartbeat_us, seed=draw)
        if not ran.outcome.drained:
            raise AgoraError("tasks still waited long after the last submission")
        return self.summary(ran)

    @abstractmethod
    def workload(self, draw: int) -> Workload:
        """The jobs and the cell of a draw."""

    @abstractmethod
    def summary(self, ran: Ran) -> dict[str, float]:
        """What is kept of a run, by name."""
