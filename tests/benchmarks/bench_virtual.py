"""The virtual runtime at paper scale: 200,000 slots, 20 schedulers, batches of 100 tasks, Parquet on. Peer: none that is public; the target stands alone.

One round runs 8 s of 95 % load; committed tasks per second of one core = tasks / time of a round, set-up of views and files included.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.config import ArmConfig, RunConfig
from experiments.presets import greedy_group, paper_scale
from experiments.running import ArmRun, make_workload, run_arm_virtual

SECONDS = 8.0
CASES = {
    "ParSync latency-first": ("latency_first", "diff_block", "random", 0.0, 150_000),
    "StateSync weighted": ("optimistic", "state_aligned", "weighted_sampling", 2.0, 100_000),
}


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
    folders = iter(range(100))

    def run() -> ArmRun:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return run_arm_virtual(config, arm, workload, 1, folder, lambda _: None)

    result = benchmark.pedantic(run, rounds=3)
    benchmark.extra_info.update(unit="tasks/s", amount=len(workload.tasks), target=target)
    assert result.notes["drained"]
