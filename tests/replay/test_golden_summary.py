"""The figures of whole runs against tests/golden/summary.json: the same seed gives the same
summary, key by key.

RENAMED lists the keys that have another name than in that file. When a figure changes on purpose,
say so in CHANGELOG.md and renew the file:

    python -m tests.replay.test_golden_summary > tests/golden/summary.json
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from experiments.cell_watch import settle_us
from experiments.config import ArmConfig, RunConfig
from experiments.finishing import arm_result
from experiments.interruption import Interruption
from experiments.running import make_workload, run_arm_virtual, seed_figures
from experiments.summary import RunFacts, build_summary
from experiments.workload_config import WorkloadConfig
from tests.fixtures.overloaded_cell import OPTIONS, arm, group

GOLDEN = Path(__file__).parents[1] / "golden" / "summary.json"
RENAMED: dict[str, str] = {}
MEASURED = ("wall_s", "solve_p50_us", "solve_max_us", "round_p50_us", "round_max_us")


def named(name: str, config: ArmConfig) -> ArmConfig:
    return config.model_copy(update={"name": name})


# the golden figures are of gangs that may be torn, in strict order
tearing = partial(group, commit_mode="incremental", head_of_line_s=0)
CONFIG = RunConfig(
    workload=WorkloadConfig.of(
        "synthetic",
        OPTIONS.model_copy(
            update={"load_percent": (60, 180), "gang_permille": 300, "slot_score_variance": 2.0}
        ),
    ),
    arms=(
        named("adaptive", arm("diff_block", tearing(strategy="adaptive", tau_s=0.02))),
        named("omega", arm("every_attempt", tearing(losers="requeue", requeue_s=0.03))),
        named(
            "mix", arm("state_aligned", tearing("quincy", 1, name="flow", share=0.25), tearing())
        ),
    ),
    settle_s=0.2,
    drain_s=0.05,
    seeds=2,
)


def summary() -> dict[str, Any]:
    """What summary.json would hold, as JSON reads it."""
    workload = make_workload(CONFIG, CONFIG.seed)
    runs = [
        run_arm_virtual(CONFIG, one, workload, CONFIG.seed, None, lambda _: None, Interruption())
        for one in CONFIG.arms
    ]
    seeds = {
        seed: {one.name: seed_figures(CONFIG, one, seed) for one in CONFIG.arms} for seed in (1, 2)
    }
    facts = RunFacts(CONFIG.seed, "", "virtual", settle_us(CONFIG), {})
    arms = [arm_result(CONFIG, run, seeds) for run in runs]
    return build_summary(facts, workload, arms).model_dump(mode="json")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every number, text and truth value, but for those that are measured by a
    clock, change with the encoding of events, or number the version."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from leaves(part, f"{path}[{number}]")
    elif not {"format", "digest", *MEASURED} & set(path.split(".")):
        yield path, value


def renamed(path: str) -> str:
    """The path that a figure has today; paired figures are named by their key alone."""
    scope, _, key = path.rpartition(".")
    return path if scope.startswith("paired") else f"{scope}.{RENAMED.get(key, key)}".lstrip(".")


def test_every_figure_is_the_golden_one() -> None:
    golden = {renamed(path): value for path, value in json.loads(GOLDEN.read_text("utf-8")).items()}
    found = dict(leaves(summary()))
    missing = {path: value for path, value in golden.items() if path not in found}
    assert not missing
    assert {path: found[path] for path in golden} == golden


if __name__ == "__main__":
    print(json.dumps(dict(leaves(summary())), indent=0))
