"""How large a live run this computer can serve, measured before the run.

A run in real time whose processes have to wait for a processor measures the computer and not the
schedulers (parsync/metrics/kinds/validity.py). So live runs beside others in virtual time may have
a smaller cell: the rate of arrivals shrinks with it, so the load of each phase stays what it is,
and modelled decisions take longer, so that schedulers can decide as large a part of the arrivals as
before (RunConfig.of_live_runs).

Two things are measured, in about a second per live arm: how much processor time its participants
take for a task, on a short part of the workload in virtual time; and how much of its processors
this computer has to spare. The constants say what a live run needs besides. They were fitted to
live runs of the demo's cell and of half of it, on two processors.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from dataclasses import dataclass

import numpy as np

from experiments.campaign.progress import processors
from experiments.config.run_config import RunConfig
from experiments.workloads.registry import Outline
from parsync.runtime.live.plan import plan_hosts
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError

# Of the spare processor time: with more, processes too often wait for one another.
MOST_BUSY = 0.5
# What a task takes live besides the participants' own work: its events are encoded, logged, sent.
LIVE_TASK_S = 20e-6
# Processors that each actor takes however few tasks there are, for its ticks and steps.
ACTOR_PROCESSORS = 0.07
OTHER_ACTORS = 3  # that take much: cell, worker pool, workload source
HOSTS_PART = 2 / 3  # of the time for tasks; the cell takes most of the rest
CELL_PART = 1 / 4
SMALLEST = 0.25  # of the cell: below that, most of the need does not depend on the size
STEPS = 20  # sizes are multiples of 1/STEPS of the cell
SLICE_TASKS = 20_000
SLICE_S = 1.0  # of processor time, about at most, for each arm
SPARE_S = 0.3
_BLOCK = bytes(1 << 20)


@dataclass(frozen=True, slots=True)
class Need:
    """What a live run of the whole cell needs at its highest load, in processors.

    Attributes:
        actors: How many processes take part.
        hosts: How many of them hold schedulers.
        tasks: For the tasks, in all processes together.
    """

    actors: int
    hosts: int
    tasks: float

    def size(self, spare: float) -> float:
        """The part of the cell, at most 1, with which no process needs more than MOST_BUSY of a
        processor, nor all together more than that of what is to be had. It may be negative.

        Args:
            spare: The processors to be had.
        """
        if not self.tasks:
            return 1.0
        busiest = self.tasks * max(HOSTS_PART / self.hosts, CELL_PART)
        together = (MOST_BUSY * spare - self.actors * ACTOR_PROCESSORS) / self.tasks
        return min(1.0, together, (MOST_BUSY - ACTOR_PROCESSORS) / busiest)


def fitted(config: RunConfig) -> RunConfig:
    """A configuration with [live] fit, settled: with the number of machines that this computer can
    serve, or without one if that is the whole cell or its size cannot be chosen."""
    live = [arm for arm in config.arms if config.has_separate_live_run(arm)]
    outline = config.workload.outline()
    machines: int | None = None
    if live and outline is not None and _can_shrink(config):
        needs = [need for arm in live if (need := live_need(config, arm, outline)) is not None]
        if needs:
            spare = spare_processors()
            machines = machines_for(min(need.size(spare) for need in needs), outline.machines)
    settled = config.live.model_copy(update={"fit": False, "machines": machines})
    return config.model_copy(update={"live": settled})


def machines_for(size: float, machines: int) -> int | None:
    """The machines of a live run's cell: a whole number of STEPS, rounded down, and not below
    SMALLEST; None for the whole cell.

    Args:
        size: The part of the cell that can be served.
        machines: Of the cell.
    """
    part = max(SMALLEST, int(size * STEPS + 1e-9) / STEPS)
    return None if part >= 1 else max(1, round(part * machines))


def _can_shrink(config: RunConfig) -> bool:
    try:
        return config.workload.with_machines(1) is not None
    except ValueError:  # not as far as that
        return True


def live_need(config: RunConfig, arm: ArmConfig, outline: Outline) -> Need | None:
    """What a live run of an arm needs, by running a short part of its workload in virtual time.
    None if that cannot be made or run: the run itself says why."""
    options, spec = config.workload.options, config.workload.spec
    try:
        if spec.with_duration is not None:
            duration_s = min(outline.phase_s, SLICE_TASKS / max(outline.tasks_per_s, 1))
            changed = spec.call(spec.with_duration, options, duration_s)
            options = spec.parse_options({**options.model_dump(mode="json"), **changed})
        workload = spec.make(options, config.seed)
        task_s = _task_s(config, arm, workload)
    except (AgoraError, ContractBroken):
        return None
    hosts = len(
        plan_hosts(
            arm.seeded(0, heartbeat_us=1, sample_us=1, live=True),
            config.live.hosts,
            config.live.tick_ms * 1000,
        )
    )
    loads = (phase.load_percent or 100 for phase in workload.phases)
    highest = max(loads, default=100) / 100
    tasks = outline.tasks_per_s * highest * (task_s + LIVE_TASK_S)
    return Need(hosts + OTHER_ACTORS, hosts, tasks)


class _Enough(Exception):
    """The measurement has taken long enough."""


def _task_s(config: RunConfig, arm: ArmConfig, workload: Workload) -> float:
    """The processor time, in seconds, that an arm's participants take for an arriving task."""
    clock = time.thread_time
    marks: list[tuple[int, float]] = []  # virtual time, processor time

    def progress(now_us: int) -> None:
        marks.append((now_us, clock()))
        if marks[-1][1] - marks[0][1] > SLICE_S:
            raise _Enough

    sample_us = max(1, min(config.sample_us(workload), workload.end_us // STEPS))
    spec = arm.seeded(config.seed, config.heartbeat_us, sample_us, live=False)
    with contextlib.suppress(_Enough):
        run_virtual(
            spec,
            workload,
            round(config.drain_s * 1e6),
            lambda _: None,
            progress,
            config.virtual.message_us,
            plan_limit_s=config.plan_limit_s,
        )
    if not marks:
        return 0
    (first_us, first_s), (last_us, last_s) = marks[0], marks[-1]  # without what comes before
    submit_us = workload.tasks.submit_us[workload.arrival_rows]
    tasks = int(np.count_nonzero((submit_us > first_us) & (submit_us <= last_us)))
    return (last_s - first_s) / max(1, tasks)


def spare_processors(seconds: float = SPARE_S) -> float:
    """How many processors this process gets if it asks for all that it may use, for so long.

    A thread for each computes digests, for which it holds no lock of the interpreter.
    """
    got: list[float] = []

    def compute(until_s: float) -> None:
        begun_s, thread_s = time.monotonic(), time.thread_time()
        while time.monotonic() < until_s:
            hashlib.blake2b(_BLOCK)
        got.append((time.thread_time() - thread_s) / (time.monotonic() - begun_s))

    until_s = time.monotonic() + seconds
    threads = [threading.Thread(target=compute, args=(until_s,)) for _ in range(processors())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(got)
