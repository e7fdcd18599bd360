"""The settings in which offers are compared with what is public of Mesos.

- `ShareRun`: two frameworks on the cell of the worked example of dominant resource fairness.
- `LocalityRun`: jobs whose tasks each prefer three machines, at random.
- `ServiceRun`: batch and service jobs on a small cell, the same jobs that Omega's public simulator
  was run with.
- `GangRun`: two schedulers of gangs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from experiments.papers.mesos.runs import US_PER_S, HeldRoom, Ran, run
from experiments.papers.sparrow.runs import jobs_workload, poisson_us
from experiments.studies.model_runs import DrawnRun
from experiments.workloads.building import equal_machines
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Phase, Workload
from shared_state.random import Stream, stream_key
from shared_state.tasks import Int64, PreferenceCatalog, TaskClass

CPU, MEM = "cpu_milli", "mem_mib"
MIB_PER_GB = 1024

# Dominant resource fairness

CELL = (9, 18)  # processors and GB
ASKS = {"A": (1, 4), "B": (3, 1)}  # of each task
_RUNS_ON_S = 1e6  # of a task that does not end


@dataclass(frozen=True)
class ShareRun(DrawnRun):
    """Framework A (batch tasks) and B (service tasks) have more tasks than fit.

    Attributes:
        arm: The frameworks.
        cells: How many times the cell of the example, a machine each.
        run_s: The mean run time of the tasks, exponential; None: they do not end.
        horizon_s: How long the run lasts. Its first tenth does not count.
    """

    arm: ArmConfig
    cells: int
    run_s: float | None
    horizon_s: float

    @property
    def expected_s(self) -> float:
        return 0.1 if self.run_s is None else 3.0

    def once(self, draw: int) -> dict[str, float]:
        """tasks_a, tasks_b: running tasks for each machine; share_a, share_b: dominant shares;
        means over time."""
        ran = run(self.arm, self._workload(draw), seed=draw, drain_us=0)
        until_us = self.horizon_s * US_PER_S
        from_us = until_us / 10
        start_us, service = ran.start_us, ran.workload.tasks.task_class == TaskClass.SERVICE
        end_us = np.minimum(start_us + ran.workload.duration_us, until_us)
        ran_us = np.maximum(0, end_us - np.maximum(start_us, from_us))
        ran_us[start_us < 0] = 0
        found = {}
        for name, rows in (("A", ~service), ("B", service)):
            tasks = float(ran_us[rows].sum()) / (until_us - from_us) / self.cells
            found[f"tasks_{name.lower()}"] = tasks
            found[f"share_{name.lower()}"] = dominant_share(name, tasks)
        return found

    def _workload(self, draw: int) -> Workload:
        """One job for each framework, in time for all that can start until the end."""
        turns = 1.0 if self.run_s is None else self.horizon_s / self.run_s
        most = [int(_most(name) * self.cells * (2 + 1.5 * turns)) for name in ASKS]
        n = sum(most)
        if self.run_s is None:
            duration_us = np.full(n, round(_RUNS_ON_S * US_PER_S))
        else:
            times = Stream(stream_key(draw, "times")).exponential(n) * self.run_s * US_PER_S
            duration_us = np.maximum(1, times).astype(np.int64)
        jobs = jobs_workload(1, 1, np.ones(2, np.int64), np.array(most), duration_us)
        request = [[1000 * cpu, MIB_PER_GB * gb] for cpu, gb in ASKS.values()]
        cpu, gb = CELL
        cell = equal_machines(self.cells, {CPU: 1000 * cpu, MEM: MIB_PER_GB * gb})
        tasks = replace(
            jobs.tasks,
            request=np.repeat(np.array(request, np.int64), most, axis=0),
            task_class=np.repeat(np.array([0, 1], np.int8), most),
        )
        return replace(_until(jobs, self.horizon_s), cell=cell, tasks=tasks)


def dominant_share(name: str, tasks: float) -> float:
    """The dominant share of a framework of ASKS with so many tasks on one machine."""
    return max(tasks * ask / of for ask, of in zip(ASKS[name], CELL, strict=True))


def _most(name: str) -> int:
    """How many tasks of a framework a machine holds."""
    return min(of // ask for ask, of in zip(ASKS[name], CELL, strict=True))


def _until(workload: Workload, end_s: float) -> Workload:
    """The same, up to another end."""
    end_us = round(end_s * US_PER_S)
    return replace(workload, end_us=end_us, phases=(Phase(0, end_us, 0),))


# Data locality

REPLICAS = 3
TASKS_PER_JOB = 20


@dataclass(frozen=True)
class LocalityRun(DrawnRun):
    """Poisson arrivals of jobs of 20 tasks with exponential run times. The input of each task is on
    three machines, drawn at random, which the task prefers.

    Attributes:
        arm: The frameworks.
        machines, slots: Of the cell, and of each machine.
        run_s: The mean run time on a machine without the input.
        local_permille: The run time on one with it, in permille of that.
        load: Of the cell, if all tasks ran without their input.
        jobs: How many. The first half does not count.
    """

    arm: ArmConfig
    machines: int
    slots: int
    run_s: float
    local_permille: int
    load: float
    jobs: int

    @property
    def expected_s(self) -> float:
        return self.draws * self.jobs * TASKS_PER_JOB * 4e-4

    def once(self, draw: int) -> dict[str, float]:
        """local: the share of the tasks that run on a machine with their input; wait_s, response_s:
        the mean time from submission to the start of a task, and to the end of a job; declined: the
        share of the offers that were declined; placed: the share of the tasks that were placed."""
        workload = self._workload(draw)
        ran = run(self.arm, workload, seed=draw, heartbeat_us=10_000)
        counts = workload.tasks.job >= self.jobs // 2
        placed = counts & (ran.start_us >= 0)
        machines = workload.catalog.machine.reshape(-1, REPLICAS)
        local = (machines == ran.machine[:, None]).any(axis=1)
        run_us = np.where(local, workload.duration_us * self.local_permille // 1000, 0)
        run_us = np.where(local, run_us, workload.duration_us)
        wait_us = ran.start_us - workload.tasks.submit_us
        response_us = (wait_us + run_us).reshape(-1, TASKS_PER_JOB).max(axis=1)
        made = max(1, ran.sum("made"))
        return {
            "local": float(local[placed].mean()),
            "wait_s": float(wait_us[placed].mean()) / US_PER_S,
            "response_s": float(response_us[self.jobs // 2 :].mean()) / US_PER_S,
            "declined": ran.sum("declined") / made,
            "placed": float(placed.sum() / counts.sum()),
        }

    def _workload(self, draw: int) -> Workload:
        n, mean_us = self.jobs * TASKS_PER_JOB, self.run_s * US_PER_S
        slots = self.machines * self.slots
        submit_us = poisson_us(slots, self.load, self.jobs, TASKS_PER_JOB * mean_us, draw)
        times = Stream(stream_key(draw, "times")).exponential(n) * mean_us
        duration_us = np.maximum(1000, times).astype(np.int64)
        sizes = np.full(self.jobs, TASKS_PER_JOB)
        jobs = jobs_workload(self.machines, self.slots, submit_us, sizes, duration_us)
        tasks = replace(jobs.tasks, preference=np.arange(1, n + 1, dtype=np.int32))
        return replace(
            jobs,
            tasks=tasks,
            catalog=_catalog(replicas(draw, n, self.machines)),
            preferred_permille=self.local_permille,
        )


def replicas(draw: int, n: int, machines: int) -> Int64:
    """Three different machines for each of n tasks, ascending, int64[n, 3]."""
    stream = Stream(stream_key(draw, "replicas"))
    found = np.zeros((n, REPLICAS), np.int64)
    for place in range(REPLICAS):
        drawn = stream.integers(n, machines - place)
        # one of the machines that are left: those drawn before ascend, and are passed over
        for before in np.sort(found[:, :place], axis=1).T:
            drawn += drawn >= before
        found[:, place] = drawn
    found.sort(axis=1)
    return found


def _catalog(machines: Int64) -> PreferenceCatalog:
    """Preference sets 1 to n of the machines of each row, int64[n, k]. Any other machine costs as
    much more."""
    n, each = machines.shape
    offsets = np.concatenate([[0], np.arange(n + 1) * each]).astype(np.int64)
    none = np.zeros(n + 2, np.int64)
    cost = np.full(n + 1, 1_000, np.int64)
    cost[0] = 0
    return PreferenceCatalog(
        offsets,
        machines.ravel().astype(np.int32),
        np.zeros(n * each, np.int64),
        none,
        np.zeros(0, np.int32),
        np.zeros(0, np.int64),
        cost,
        np.full(n + 1, 2_000),
    )


# A slow service framework

HORIZON_S = 14_400
SERVICE_MACHINES = 1_000
Job = tuple[float, int, float, str]  # submission in s, tasks, their run time in s, "B" or "S"


def recorded_jobs() -> list[Job]:
    """The jobs that Omega's public simulator was run with, in order of submission: batch ("B") and
    service ("S") jobs for four hours."""
    batch = _drawn_jobs(random.Random(11), "B", gap_s=2.0, mean_tasks=20.0, mean_s=100.0)
    service = _drawn_jobs(random.Random(12), "S", gap_s=20.0, mean_tasks=10.0, mean_s=2_000.0)
    return sorted([*batch, *service])


def _drawn_jobs(
    rng: random.Random, kind: str, gap_s: float, mean_tasks: float, mean_s: float
) -> Iterator[Job]:
    def exponential() -> float:
        return -math.log(1.0 - rng.random())

    at_s = 0.0
    while True:
        at_s += exponential() * gap_s
        if at_s >= HORIZON_S:
            return
        tasks = 1 + int(exponential() * (mean_tasks - 0.5))
        yield round(at_s, 6), tasks, round(max(1.0, exponential() * mean_s), 6), kind


@cache
def service_workload(horizon_s: int) -> Workload:
    """The jobs of the first so many seconds, on 1,000 machines of 4 processors and 16 GB; a task
    takes a processor and 2 GB."""
    rows = [row for row in recorded_jobs() if row[0] < horizon_s]
    at_s, sizes, run_s, kinds = (np.array(column) for column in zip(*rows, strict=True))
    jobs = jobs_workload(
        1,
        1,
        np.rint(at_s * US_PER_S).astype(np.int64),
        sizes,
        np.repeat(np.rint(run_s * US_PER_S).astype(np.int64), sizes),
    )
    classes = np.where(kinds == "S", TaskClass.SERVICE, TaskClass.BATCH).astype(np.int8)
    n = len(jobs.tasks)
    tasks = replace(
        jobs.tasks,
        request=np.tile(np.array([[1000, 2 * MIB_PER_GB]]), (n, 1)),
        task_class=np.repeat(classes, sizes),
    )
    cell = equal_machines(SERVICE_MACHINES, {CPU: 4_000, MEM: 16 * MIB_PER_GB})
    return replace(_until(jobs, float(horizon_s)), cell=cell, tasks=tasks)


@dataclass(frozen=True)
class ServiceRun(DrawnRun):
    """The jobs of Omega's simulator under one architecture. Only machines are drawn.

    Attributes:
        arm: The architecture.
        horizon_s: How long the run lasts.
    """

    arm: ArmConfig
    horizon_s: int

    @property
    def expected_s(self) -> float:
        return self.horizon_s / 600

    def once(self, draw: int) -> dict[str, float]:
        """For jobs of each class (batch_..., service_...): wait_s, the mean time from submission to
        the start of the first attempt of those that had one (nan: none had); tried and done, the
        shares of the jobs that had an attempt, and of which all tasks were placed. retried:
        attempts with a conflict; held: the share of the processors that offers held, over time."""
        held, workload = HeldRoom(), service_workload(self.horizon_s)
        ran = run(
            self.arm,
            workload,
            seed=draw,
            heartbeat_us=US_PER_S // 10,
            sample_us=10 * US_PER_S,
            drain_us=0,
            observer=held,
        )
        first = workload.arrival_offsets[:-1]
        wait_us = first_attempts_us(ran) - workload.arrival_us
        done = np.minimum.reduceat(ran.commit_us, first) >= 0
        service = workload.tasks.task_class[first] == TaskClass.SERVICE
        found = {}
        for name, rows in (("batch", ~service), ("service", service)):
            tried = rows & (wait_us >= 0)
            mean_us = float(wait_us[tried].mean()) if tried.any() else math.nan
            found[f"{name}_wait_s"] = mean_us / US_PER_S
            found[f"{name}_tried"] = float(tried.sum() / rows.sum())
            found[f"{name}_done"] = float((done & rows).sum() / rows.sum())
        conflicts = ran.column("conflicts", "job_attempts")
        found["retried"] = float(np.count_nonzero(conflicts))
        found["held"] = held.share(ran.outcome.ended_us)
        return found


def first_attempts_us(ran: Ran) -> Int64:
    """When the first attempt of each job began, int64[jobs]; -1: never."""
    job, start_us = (ran.column(name, "job_attempts") for name in ("job", "start_us"))
    never = np.iinfo(np.int64).max
    first = np.full(len(ran.workload.arrival_us), never)
    np.minimum.at(first, job, start_us)
    first[first == never] = -1
    return first


# Gangs


@dataclass(frozen=True)
class GangRun(DrawnRun):
    """Poisson arrivals of gangs with exponential run times, on machines of one slot. The size of a
    gang is drawn uniformly.

    Attributes:
        arm: The schedulers.
        machines: Of the cell.
        largest: The size of the largest gang.
        run_s: The mean run time of a gang.
        load: Of the cell.
        gangs: How many.
        patience_s: How long after the last submission the run ends, if gangs wait.
    """

    arm: ArmConfig
    machines: int
    largest: int
    run_s: float
    load: float
    gangs: int
    patience_s: float

    @property
    def expected_s(self) -> float:
        return self.draws * 0.5

    def once(self, draw: int) -> dict[str, float]:
        """waits: 1 if gangs waited at the end, else 0; placed: the share of the gangs that were
        placed; idle: the share of the cell that was held at the end, and no task ran on; held: the
        same over time; wait_s: the mean wait of those placed."""
        workload, held = self._workload(draw), HeldRoom()
        patience_us = round(self.patience_s * US_PER_S)
        ran = run(self.arm, workload, seed=draw, drain_us=patience_us, observer=held)
        first = workload.arrival_offsets[:-1]
        placed = ran.commit_us[first] >= 0
        wait_us = (ran.commit_us[first] - workload.arrival_us)[placed]
        return {
            "waits": float(not ran.outcome.drained),
            "placed": float(placed.mean()),
            "idle": held.now(),
            "held": held.share(ran.outcome.ended_us),
            "wait_s": float(wait_us.mean()) / US_PER_S if placed.any() else math.nan,
        }

    def _workload(self, draw: int) -> Workload:
        sizes = Stream(stream_key(draw, "sizes")).integers(self.gangs, self.largest) + 1
        mean_us = self.run_s * US_PER_S
        each_us = (1 + self.largest) / 2 * mean_us
        submit_us = poisson_us(self.machines, self.load, self.gangs, each_us, draw)
        times = Stream(stream_key(draw, "times")).exponential(self.gangs) * mean_us
        duration_us = np.repeat(np.maximum(1, times).astype(np.int64), sizes)
        jobs = jobs_workload(self.machines, 1, submit_us, sizes, duration_us)
        return replace(jobs, tasks=replace(jobs.tasks, gang=jobs.tasks.job.copy()))
