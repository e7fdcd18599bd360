"""The virtual runtime at paper scale: 200,000 slots, 20 schedulers, batches of 100 tasks, Parquet
on.

Speed: 8 s of 95 % load; committed tasks per second of one core = tasks / CPU time of a round,
metrics, set-up of views and files included. The regret of about a hundred sampled transactions,
which a run works out besides (0.3 s at this scale, however long it lasts), is not. Memory: 60 s of
it, the largest resident set of a process that does nothing else. Peer: per_task_simulation.py on
the same workload.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.campaign.running import make_metrics, make_workload
from experiments.config.presets import greedy_group, paper_scale
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from parsync.metrics.record import Record
from parsync.runtime.assembly import Assembly
from parsync.runtime.records import RecordSink
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig, SeededArm
from parsync.workload.workload import Workload
from tests.benchmarks.per_task_simulation import simulate

SECONDS, MEMORY_SECONDS = 8.0, 60.0
CASES = {
    "ParSync latency-first": ("latency_first", "diff_block", "random", 0.0, 150_000),
    "ParSync quality-first": ("quality_first", "diff_block", "random", 0.0, 100_000),
    "StateSync weighted": ("optimistic", "state_aligned", "weighted_sampling", 2.0, 100_000),
}
MEMORY_TARGET_MB = 1_000
RATIO_TARGET = 3  # times as fast as the peer
AGORA, PEER = "agora", "one event per task, no views or conflicts"
NAMES = pytest.mark.parametrize("name", CASES)
WAYS = pytest.mark.parametrize("way", [AGORA, PEER])
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Case:
    """One arm and its workload."""

    config: RunConfig
    arm: ArmConfig
    workload: Workload

    @staticmethod
    def of(name: str, seconds: float) -> Case:
        strategy, sync, kind, variance, _ = CASES[name]
        scale = paper_scale()
        changes: dict[str, Any] = {
            "load_percent": (95,),
            "phase_s": seconds,
            "slot_score_variance": variance,
        }
        if variance:
            changes["preference_groups"] = 0
        synthetic = scale.synthetic.model_copy(update=changes)
        group = greedy_group(scale, strategy, scale.schedulers, sync, kind)
        arm = ArmConfig(name=name, partitions=scale.partitions, groups=(group,))
        config = RunConfig(
            workload=WorkloadConfig.of("synthetic", synthetic),
            arms=(arm,),
            settle_s=1.0,
            drain_s=60.0,
        )
        return Case(config, arm, make_workload(config, 1))

    def spec(self) -> SeededArm:
        return self.arm.seeded(
            1, self.config.heartbeat_us, self.config.sample_us(self.workload), live=False
        )

    def run(self, folder: Path) -> int:
        """In virtual time, Parquet to an existing folder: tasks committed."""
        metrics = make_metrics(self.config, self.arm, self.workload)
        with RecordSink(folder) as sink:

            def take(record: Record) -> None:
                metrics.add(record.table, record.columns)
                sink.add(record.table, record.columns)

            outcome = run_virtual(
                self.spec(), self.workload, round(self.config.drain_s * 1e6), take, lambda _: None
            )
        metrics.flush()
        assert outcome.drained
        return int(metrics.count["committed"].sum())

    def run_peer(self) -> int:
        """Task by task: tasks placed."""
        workload, group = self.workload, self.spec().groups[0]
        agent_of_batch, _ = Assembly.of(self.spec(), workload).owners()
        agent_of_task = np.empty(len(workload.tasks), np.int64)
        agent_of_task[workload.arrival_rows] = np.repeat(
            agent_of_batch, np.diff(workload.arrival_offsets)
        )
        return len(
            simulate(
                workload,
                agent_of_task.tolist(),
                group.count,
                round(paper_scale().equal_capacity(20).task_us),
                seed=1,
            )
        )


@pytest.mark.benchmark(timer=time.process_time)
@WAYS
@NAMES
def test_speed(benchmark: Any, name: str, way: str, tmp_path: Path) -> None:
    benchmark.group = f"virtual runtime, paper scale: {name}"
    case = Case.of(name, SECONDS)
    folders = iter(range(100))

    def run() -> int:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return case.run(folder)

    body: Callable[[], int] = run if way == AGORA else case.run_peer
    committed = benchmark.pedantic(body, rounds=3)
    assert committed == len(case.workload.tasks)
    benchmark.extra_info.update(unit="tasks/s", amount=committed, label=way)
    if way == AGORA:
        benchmark.extra_info.update(target=CASES[name][-1], ratio_target=RATIO_TARGET)


@pytest.mark.benchmark
@WAYS
@NAMES
def test_memory(benchmark: Any, name: str, way: str) -> None:
    benchmark.group = f"virtual runtime, paper scale, {MEMORY_SECONDS:g} s: memory, {name}"

    def largest_mb() -> float:
        command = [sys.executable, "-m", "tests.benchmarks.bench_virtual", name, way]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout))

    benchmark.extra_info.update(
        unit="MB", figure=benchmark.pedantic(largest_mb, rounds=1), label=way
    )
    if way == AGORA:
        benchmark.extra_info.update(target=MEMORY_TARGET_MB)


def main(name: str, way: str) -> None:
    """One run of MEMORY_SECONDS in this process; prints the largest size it had (MB)."""
    case = Case.of(name, MEMORY_SECONDS)
    if way == AGORA:
        with tempfile.TemporaryDirectory() as folder:
            case.run(Path(folder))
    else:
        case.run_peer()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)


if __name__ == "__main__":
    main(*sys.argv[1:])
