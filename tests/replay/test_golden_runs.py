"""Whole virtual runs against tests/golden/runs.json: the same seed gives the same events, today as
when they were written down, on any machine.

When events, their order or their encoding change on purpose, say so in CHANGELOG.md and renew them:

    python -m tests.replay.test_golden_runs > tests/golden/runs.json
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parsync.runtime.virtual.run import run_virtual
from tests.fixtures.overloaded_cell import OPTIONS, arm, failing_workload, group

GOLDEN = Path(__file__).parents[1] / "golden" / "runs.json"
SCORED = OPTIONS.model_copy(update={"slot_score_variance": 2.0, "preference_groups": 0})


ADAPTIVE = group(strategy="adaptive", tau_s=0.02)
FLOW = group("quincy", 1, name="flow", share=0.25, cut_at_sync=False)
RUNS = {
    "ParSync adaptive": (OPTIONS, arm("diff_block", ADAPTIVE)),
    "StateSync weighted sampling with slot scores": (
        SCORED,
        arm("state_aligned", group("weighted_sampling")),
    ),
    "mix with flow": (
        OPTIONS,
        arm("diff_block", ADAPTIVE.model_copy(update={"share": 0.75}), FLOW),
    ),
}


def summary_of(name: str) -> dict[str, str | int]:
    """What is pinned of a run: an overloaded cell in which three machines fail and come back."""
    options, config = RUNS[name]
    spec = config.spec(3, 1000, 50_000, live=False)
    outcome = run_virtual(
        spec, failing_workload(options), 5_000_000, lambda _: None, lambda _: None
    )
    return {"events": outcome.events, "digest": outcome.digest}


@pytest.mark.parametrize("name", RUNS)
def test_the_run_is_the_golden_one(name: str) -> None:
    assert summary_of(name) == json.loads(GOLDEN.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    print(json.dumps({name: summary_of(name) for name in RUNS}, indent=2))
