"""Checkpoints of a live cell at paper scale: 200,000 machines, 190,000 running tasks, a log of 20 s
at 38,000 tasks/s; peer: the log alone.

A step of a host holds ten transactions of 100 claims; what was placed 5 s ago ends. The checkpoint
is the newest the cell made by itself. What the cell's step pays for one is taking the state; a
thread writes it.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.workloads.synthetic import generate, paper_options
from parsync.core.addresses import MASTER, WORKERS
from parsync.core.codec import CORE, decode
from parsync.core.events import CommitRequest, TasksFinished, TasksStarted
from parsync.runtime.assembly import Assembly
from parsync.runtime.effect_interpreter import ignore
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of
from parsync.runtime.live.checkpoint import Checkpoints
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.steps import Step
from shared_state.tasks import Int64
from shared_state.transaction import Transaction
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import small_arm

AGENTS, BATCH = 20, 100
TASKS_PER_S, SECONDS, TASK_S = 38_000, 20, 5
STEP_TASKS = 10 * BATCH
TAKING_TARGET_MS = 50


def make_assembly() -> Assembly:
    workload = generate(paper_options().with_duration(2.0 * SECONDS), seed=1)
    group = changed(small_arm().groups[0], count=AGENTS)
    return Assembly.of(changed(small_arm(), groups=(group,), partitions=AGENTS), workload)


def new_runtime(assembly: Assembly) -> CellRuntime:
    hosts = hosts_of({0: tuple(range(AGENTS))})
    return CellRuntime(CORE, assembly.master(), hosts, len(assembly.workload.tasks), ignore)


def checkpoints_of(log: Path) -> Checkpoints:
    return Checkpoints(log, None, LiveOptions(log.parent).checkpoint_bytes, sync=False)


def write_log(assembly: Assembly, log: Path) -> CellRuntime:
    """The runtime after SECONDS of work, its log and its newest checkpoint on disk."""
    runtime, checkpoints = new_runtime(assembly), checkpoints_of(log)
    service = CellService(runtime, log, False, checkpoints)
    service.start(0, ((0, "schedulers-0", tuple(range(AGENTS))),))
    machines = (
        np.random.default_rng(1).permutation(assembly.workload.cell.machines).astype(np.int32)
    )
    running: deque[Int64] = deque()
    steps = TASKS_PER_S * SECONDS // STEP_TASKS
    for number in range(1, steps + 1):
        at_us = number * 1_000_000 * SECONDS // steps
        ended: tuple[tuple[int, TasksFinished], ...] = ()
        if len(running) * STEP_TASKS >= TASKS_PER_S * TASK_S:
            held = running.popleft()
            owner = runtime.master.cell.describe(held).owner
            ended = ((MASTER, TasksFinished(held, owner, np.zeros(len(held), np.int64))),)
        mail = service.step(Step(WORKERS, 1, 2 * number - 1, ended).to_bytes(CORE), at_us)
        claims = []
        for k in range(STEP_TASKS // BATCH):
            task = (number - 1) * STEP_TASKS + k * BATCH + np.arange(BATCH)
            zero = np.zeros(BATCH, np.int64)
            machine = machines[task % (TASKS_PER_S * TASK_S)]
            agent = k % AGENTS
            request = np.ones((BATCH, 1), np.int64)
            transaction = Transaction(agent, number, task, machine, request, zero)
            claims.append((MASTER, CommitRequest(agent, transaction)))
        service.step(Step(0, 1, number, tuple(claims)).to_bytes(CORE), at_us)
        mail = service.step(Step(WORKERS, 1, 2 * number, ()).to_bytes(CORE), at_us)
        started = [
            event
            for event in map(decode, (data for _, data in decode(mail)))
            if isinstance(event, TasksStarted)
        ]
        running.append(np.concatenate([event.allocation for event in started]))
    checkpoints.wait()
    assert not checkpoints.problems
    return runtime


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Assembly, Path, CellRuntime]:
    assembly = make_assembly()
    log = tmp_path_factory.mktemp("cell") / CELL_LOG
    return assembly, log, write_log(assembly, log)


@pytest.mark.benchmark(group="checkpoint: taking the state of a cell of 200,000 machines")
def test_taking_the_state(benchmark: Any, written: tuple[Assembly, Path, CellRuntime]) -> None:
    _, _, runtime = written
    parts = benchmark.pedantic(runtime.checkpoint, rounds=10)
    benchmark.extra_info.update(
        unit="ms", target=TAKING_TARGET_MS, megabytes=sum(map(len, parts)) // 1_000_000
    )
    assert len(runtime.master.cell.allocations()) == TASKS_PER_S * TASK_S


@pytest.mark.benchmark(
    group="checkpoint: restart of a cell of 200,000 machines after 20 s at 38,000 tasks/s"
)
@pytest.mark.parametrize(
    "way", [pytest.param(True, id="agora"), pytest.param(False, id="the log alone")]
)
def test_restart(benchmark: Any, way: bool, written: tuple[Assembly, Path, CellRuntime]) -> None:
    assembly, log, runtime = written

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (new_runtime(assembly),), {}

    def restart(fresh: CellRuntime) -> CellService:
        return CellService(fresh, log, False, checkpoints_of(log) if way else None)

    service = benchmark.pedantic(restart, setup=setup, rounds=3)
    benchmark.extra_info.update(unit="s", replayed=service.replayed_steps)
    assert (
        service.recovered_steps == runtime.steps and (service.replayed_steps < runtime.steps) == way
    )
    assert service.runtime.master.cell.state_digest() == runtime.master.cell.state_digest()
