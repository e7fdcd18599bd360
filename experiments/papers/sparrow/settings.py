"""The settings in which probing is compared with queueing theory and with Sparrow's own runs.

- `SingleTaskRun`: one-slot machines and one task per job, no delays. Queueing theory has closed
  forms of its mean response (parsync/model/queueing.py).
- `SimulationRun`: Sparrow's own simulations. 10,000 machines of 4 slots, jobs of 100 tasks of 100
  ms, 4,000 of them in 1.25 s at a load of 0.8. Jobs submitted in the first 500 ms do not count.
- `SweepRun`: the sweeps over the probe ratio in the scripts of Sparrow's code. 100 machines of 8
  slots, 10 schedulers, jobs of 10 tasks that sleep for 100 ms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.config.presets import optimistic
from experiments.papers.sparrow.runs import (
    AT_ONCE,
    HOP_S,
    US_PER_S,
    JobsRun,
    Ran,
    jobs_workload,
    poisson_jobs,
    poisson_us,
    probing_group,
)
from parsync.spec.arm import GroupConfig
from parsync.workload.workload import Workload
from shared_state.random import Stream, stream_key

MS_PER_S, US_PER_MS = 1000, 1000
TASK_S = 12e-6  # of a processor, about, for each task of a run

# One task per job

SERVICE_US = 10 * US_PER_S
BATCHES = 20
_STUDENT = 2.093  # 95 %, 19 degrees of freedom


@dataclass(frozen=True)
class SingleTaskRun(JobsRun):
    """Poisson arrivals of single tasks with exponential run times.

    Attributes:
        machines: Of one slot.
        load: Of the cell.
        warm_up, measured: In mean run times: jobs submitted in the first do not count.
    """

    machines: int
    load: float
    warm_up: int
    measured: int

    @property
    def expected_s(self) -> float:
        return self.draws * self._jobs * TASK_S

    @property
    def _jobs(self) -> int:
        return int(self.load * self.machines * (self.warm_up + self.measured))

    def workload(self, draw: int) -> Workload:
        return poisson_jobs(self.machines, 1, self.load, self._jobs, SERVICE_US, seed=draw)

    def summary(self, ran: Ran) -> dict[str, float]:
        """mean: the mean response in mean run times; half_width: of its interval of 95 %, Student's
        t over batch means."""
        first = self._jobs * self.warm_up // (self.warm_up + self.measured)
        # the mean run time is known, and need not be measured
        wait_us = ran.start_us - ran.workload.tasks.submit_us
        parts = np.array_split(wait_us[first:] / SERVICE_US, BATCHES)
        means = np.array([1 + part.mean() for part in parts])
        half = _STUDENT * float(means.std(ddof=1)) / math.sqrt(BATCHES)
        return {"mean": float(means.mean()), "half_width": half}


# What is dropped and what is measured, in mean run times, and how many such runs.
Length = tuple[int, int, int]


def single_task_run(
    label: str, load: float, d: int, binding: str, machines: int, length: Length
) -> SingleTaskRun:
    """The run of a load and a number of probes, under late binding or least_queue."""
    warm_up, measured, draws = length
    group = probing_group(probe_ratio=float(d), binding=binding)
    return SingleTaskRun(label, draws, group, 0.0, 1000, machines, load, warm_up, measured)


# By load: as long as half-widths of 0.7 % take with 2,000 machines.
_LENGTHS = {
    0.3: (100, 600, 1),
    0.5: (100, 600, 1),
    0.7: (100, 600, 1),
    0.8: (100, 1_200, 1),
    0.9: (100, 2_400, 1),
}
_LENGTHS_OF_ONE_PROBE = {
    0.3: (1_000, 1_000, 1),
    0.5: (1_000, 1_000, 1),
    0.7: (1_000, 2_000, 1),
    0.8: (1_000, 5_500, 1),
    0.9: (1_000, 5_000, 5),
}


def theory_length(load: float, d: int) -> Length:
    """How long a run of one of these loads has to be to be held against a closed form. Machines
    with one probe each are queues that forget slowly, so it is longer."""
    return (_LENGTHS_OF_ONE_PROBE if d == 1 else _LENGTHS)[load]


# Sparrow's own simulations

COUNTED_FROM_US = 500 * US_PER_MS
RANDOM, PER_TASK, BATCH = "Random machine", "Per-task sampling", "Batch sampling"
LATE, CANCELLATION = "Late binding", "Late binding, cancellation"
CENTRAL = "Central queue"
PROTOCOLS: dict[str, GroupConfig] = {
    RANDOM: probing_group(binding="random"),
    PER_TASK: probing_group(binding="least_queue", sampling="per_task"),
    BATCH: probing_group(binding="least_queue"),
    LATE: probing_group(cancellation=False),
    CANCELLATION: probing_group(),
    # knows the whole cell at every moment, and decides at once
    CENTRAL: GroupConfig(
        name="central",
        count=1,
        kind="randomized_first_fit",
        protocol=optimistic("every_attempt", 0.001),
        decision=AT_ONCE,
    ),
}
_HEARTBEAT_US = 100


@dataclass(frozen=True)
class SimulationRun(JobsRun):
    """Jobs of as many tasks each, with exponential run times of 100 ms on average.

    Attributes:
        machines, slots: Of the cell, and of each machine.
        load: Of the cell.
        jobs, tasks: How many, and how many tasks each has.
        equally_long: All tasks of a job take equally long.
    """

    machines: int
    slots: int
    load: float
    jobs: int
    tasks: int
    equally_long: bool

    @property
    def expected_s(self) -> float:
        return self.draws * self.jobs * self.tasks * TASK_S

    def workload(self, draw: int) -> Workload:
        mean_us, total = 100 * US_PER_MS, self.jobs * self.tasks
        slots = self.machines * self.slots
        submit_us = poisson_us(slots, self.load, self.jobs, self.tasks * mean_us, draw)
        drawn = self.jobs if self.equally_long else total
        times = Stream(stream_key(draw, "times")).exponential(drawn) * mean_us
        duration_us = np.maximum(1, times).astype(np.int64)
        if self.equally_long:
            duration_us = np.repeat(duration_us, self.tasks)
        sizes = np.full(self.jobs, self.tasks)
        return jobs_workload(self.machines, self.slots, submit_us, sizes, duration_us)

    def summary(self, ran: Ran) -> dict[str, float]:
        """response_ms, longest_ms: the mean response of the jobs that count, and the mean of their
        longest tasks; asked, empty: questions per task, and those without an answer."""
        counts = ran.workload.arrival_us > COUNTED_FROM_US
        return {
            "response_ms": float(ran.job_response_us()[counts].mean()) / US_PER_MS,
            "longest_ms": float(ran.longest_us()[counts].mean()) / US_PER_MS,
            "asked": ran.per_task("asked"),
            "empty": ran.per_task("empty"),
        }


def simulation_run(
    label: str,
    protocol: str,
    load: float,
    *,
    equally_long: bool = False,
    part: int = 1,
    draws: int = 1,
) -> SimulationRun:
    """The run of one of PROTOCOLS.

    Args:
        part: The cell and the number of jobs are one of so many parts of Sparrow's. They arrive in
            the same time.
    """
    return SimulationRun(
        label,
        draws,
        PROTOCOLS[protocol],
        HOP_S,
        _HEARTBEAT_US,
        machines=10_000 // part,
        slots=4,
        load=load,
        jobs=4_000 // part,
        tasks=100,
        equally_long=equally_long,
    )


# The probe ratio

RTT_MS = 2 * HOP_S * MS_PER_S


@dataclass(frozen=True)
class SweepRun(JobsRun):
    """Poisson arrivals of jobs of ten tasks that take equally long, on 100 machines of 8 slots.

    Attributes:
        load: Of the cell, without the time that is lost to questions.
        task_ms: The run time of a task.
        jobs: How many. The first tenth does not count.
    """

    load: float
    task_ms: int
    jobs: int

    @property
    def expected_s(self) -> float:
        return self.draws * self.jobs * _SWEEP_TASKS * TASK_S

    def workload(self, draw: int) -> Workload:
        task_us = self.task_ms * US_PER_MS
        slots = _SWEEP_MACHINES * _SWEEP_SLOTS
        submit_us = poisson_us(slots, self.load, self.jobs, _SWEEP_TASKS * task_us, draw)
        sizes = np.full(self.jobs, _SWEEP_TASKS)
        duration_us = np.full(self.jobs * _SWEEP_TASKS, task_us)
        return jobs_workload(_SWEEP_MACHINES, _SWEEP_SLOTS, submit_us, sizes, duration_us)

    def summary(self, ran: Ran) -> dict[str, float]:
        """response_ms: the mean response of the jobs that count; messages: probes, questions,
        answers and cancellations per task; lost: of the time in which slots ran tasks or were held
        for a question, the share of the latter."""
        counted = ran.job_response_us()[self.jobs // 10 :]
        held_us, run_us = ran.sums["held_us"], int(ran.workload.duration_us.sum())
        messages = sum(ran.per_task(name) for name in ("probes", "asked", "asked", "cancelled"))
        return {
            "response_ms": float(counted.mean()) / US_PER_MS,
            "messages": messages,
            "lost": held_us / (held_us + run_us),
        }


_SWEEP_MACHINES, _SWEEP_SLOTS, _SWEEP_TASKS, _SWEEP_SCHEDULERS = 100, 8, 10, 10


def sweep_run(
    label: str, d: float, load: float, task_ms: int, jobs: int, **options: Any
) -> SweepRun:
    """The run of a probe ratio, with further options of the protocol."""
    group = probing_group(_SWEEP_SCHEDULERS, probe_ratio=d, **options)
    return SweepRun(label, 1, group, HOP_S, _HEARTBEAT_US, load, task_ms, jobs)


def lost_share(d: float, task_ms: float) -> float:
    """The share of slot time lost to questions, if each probe asks: d RTT / (t + d RTT)."""
    return d * RTT_MS / (task_ms + d * RTT_MS)
