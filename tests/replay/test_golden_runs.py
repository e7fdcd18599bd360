"""Whole virtual runs against tests/golden/runs.json: the same seed gives the same events, today as when they were written down, on any machine.

When events, their order or their encoding change on purpose, say so in CHANGELOG.md and renew them:

    python -m tests.replay.test_golden_runs > tests/golden/runs.json
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.config import ArmConfig, CountedTime, GroupConfig, ModelledTime
from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.core.workload import MachineEvents
from parsync.runtime.virtual.run import run_virtual

GOLDEN = Path(__file__).parents[1] / "golden" / "runs.json"
OPTIONS = SyntheticOptions(
    machines=60,
    slots_per_machine=4,
    machines_per_rack=10,
    mean_duration_s=0.2,
    batch_tasks=10,
    phase_s=0.4,
    load_percent=(60, 160, 40),
    preference_groups=6,
    preferred_fraction=0.1,
)
SCORED = OPTIONS.model_copy(update={"slot_score_variance": 2.0, "preference_groups": 0})


def arm(sync: str, *groups: GroupConfig) -> ArmConfig:
    return ArmConfig(name="arm", sync=sync, partitions=6, gap_s=0.05, groups=groups)


def greedy(kind: str, **changes: Any) -> GroupConfig:
    decision = ModelledTime(task_us=300, partition_us=5)
    return GroupConfig(**{"name": kind, "kind": kind, "count": 4, "decision": decision, **changes})


ADAPTIVE = greedy("random", strategy="adaptive", tau_s=0.02)
FLOW = GroupConfig(name="flow", kind="quincy", count=1, share=0.25, decision=CountedTime(), cut_at_sync=False)
RUNS = {
    "ParSync adaptive": (OPTIONS, arm("diff_block", ADAPTIVE)),
    "StateSync weighted sampling with slot scores": (SCORED, arm("state_aligned", greedy("weighted_sampling"))),
    "mix with flow": (OPTIONS, arm("diff_block", ADAPTIVE.model_copy(update={"share": 0.75}), FLOW)),
}


def summary_of(name: str) -> dict[str, str | int]:
    """What is pinned of a run: an overloaded cell in which three machines fail and come back."""
    options, config = RUNS[name]
    machine = np.array([5, 6, 7, 5, 6, 7], np.int32)
    at_us = np.array([300_000, 300_000, 450_000, 700_000, 700_000, 700_000])
    up = np.array([False] * 3 + [True] * 3)
    workload = replace(generate(options, seed=3), machine_events=MachineEvents(at_us, machine, up))
    spec = config.spec(3, 1000, 50_000, live=False)
    outcome = run_virtual(spec, workload, 5_000_000, lambda _: None, lambda _: None)
    return {"events": outcome.events, "digest": outcome.digest}


@pytest.mark.parametrize("name", RUNS)
def test_the_run_is_the_golden_one(name: str) -> None:
    assert summary_of(name) == json.loads(GOLDEN.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    print(json.dumps({name: summary_of(name) for name in RUNS}, indent=2))
