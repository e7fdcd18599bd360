"""The virtual runtime at paper scale: 200,000 slots, 20 schedulers, batches of 100 tasks, Parquet on. Peer: none that is public; the target stands alone.

One round runs 8 s of 95 % load; committed tasks per second of one core = tasks / CPU time of a round, metrics, set-up of views and files included. The
regret of about a hundred sampled transactions, which a run works out besides (0.8 s at this scale, however long it lasts), is not.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from experiments.config import ArmConfig, RunConfig
from experiments.presets import greedy_group, paper_scale
from experiments.running import make_metrics, make_workload
from parsync.core.events import Record
from parsync.runtime.records import RecordSink
from parsync.runtime.virtual.run import VirtualOutcome, run_virtual

SECONDS = 8.0
CASES = {
    "ParSync latency-first": ("latency_first", "diff_block", "random", 0.0, 150_000),
    "StateSync weighted": ("optimistic", "state_aligned", "weighted_sampling", 2.0, 100_000),
}


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("name", CASES)
def test_paper_scale(benchmark: Any, name: str, tmp_path: Path) -> None:
    strategy, sync, kind, variance, target = CASES[name]
    benchmark.group = f"virtual runtime, paper scale: {name}"
    scale = paper_scale()
    changes: dict[str, Any] = {"load_percent": (95,), "phase_s": SECONDS, "slot_score_variance": variance}
    if variance:
        changes["preference_groups"] = 0
    synthetic = scale.synthetic.model_copy(update=changes)
    arm = ArmConfig(name=name, sync=sync, partitions=20, gap_s=0.5, groups=(greedy_group(scale, strategy, 20, kind),))
    config = RunConfig(synthetic=synthetic, arms=(arm,), settle_s=1.0, drain_s=60.0)
    workload = make_workload(config, 1)
    spec = arm.spec(1, config.heartbeat_us, round(config.sample_s * 1e6), live=False)
    folders = iter(range(100))

    def run() -> VirtualOutcome:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        metrics = make_metrics(config, arm, workload)
        with RecordSink(folder) as sink:

            def take(record: Record) -> None:
                metrics.add(record.table, record.columns)
                sink.add(record.table, record.columns)

            outcome = run_virtual(spec, workload, round(config.drain_s * 1e6), take, lambda _: None)
        metrics.flush()
        return outcome

    result = benchmark.pedantic(run, rounds=3)
    benchmark.extra_info.update(unit="tasks/s", amount=len(workload.tasks), target=target)
    assert result.drained
