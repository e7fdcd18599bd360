"""The figures of whole runs against tests/golden/summary.json: the same seed gives the same
summary, key by key.

CONFIG is pinned with every figure. The runs of further() are there for the tables that it leaves
empty. Their keys begin with the run's name. What they say by phase, group and scheduler is one
digest for each arm.

When a figure changes on purpose, say so in CHANGELOG.md and renew the file:

    python -m tests.replay.test_golden_summary > tests/golden/summary.json
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.cell_watch import settle_us
from experiments.analysis.summary import RunFacts, build_summary
from experiments.campaign.running import make_workload, run_arm_virtual, seed_figures
from experiments.config.run_config import ArmConfig, RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.studies.run.finishing import arm_result
from experiments.workloads.service_batch import SPEC as SERVICE_BATCH
from tests.fixtures.feature_runs import (
    CROWDED,
    GROUPED,
    MAPREDUCE,
    RESOURCES,
    SERVICES,
    SHARED_DEMAND,
    by_length,
    guest_group,
    guests,
    mapreduce,
    preempting,
    with_changes,
    with_quotas,
)
from tests.fixtures.overloaded_cell import OPTIONS, arm, group, locking_arm, locking_group

GOLDEN = Path(__file__).parents[1] / "golden" / "summary.json"
PINNED: dict[str, Any] = json.loads(GOLDEN.read_text("utf-8"))
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
        named("mix", arm("state_aligned", tearing("flow", 1, name="flow", share=0.25), tearing())),
    ),
    settle_s=0.2,
    drain_s=0.05,
    seeds=2,
)


def synthetic(**changes: Any) -> WorkloadConfig:
    return WorkloadConfig.of("synthetic", with_changes(**changes))


def service_batch(options: dict[str, Any]) -> WorkloadConfig:
    return WorkloadConfig.of("service_batch", SERVICE_BATCH.parse_options(options))


def further() -> dict[str, RunConfig]:
    """Runs for what CONFIG leaves out, by name."""
    return {
        "quotas": of_arms(
            synthetic(**GROUPED),
            named("reclaiming", with_quotas(arm("diff_block", group(strategy="adaptive")), 0.02)),
            named("not obeyed", arm("state_aligned", group("weighted_sampling"))),
            drain_s=0.0,
        ),
        "preemption": of_arms(
            synthetic(**CROWDED, **RESOURCES, gang_permille=200),
            named("by priority", preempting(losers="requeue", requeue_s=0.02)),
            named(
                "limits", arm("every_attempt", group(hold_max=0.3), group("first_fit", jobs_max=4))
            ),
            drain_s=0.1,
        ),
        "prices": of_arms(
            synthetic(start="steady", load_percent=(80, 110), preference_drift_s=0.2),
            named(
                "patience",
                arm(
                    "diff_block",
                    group(
                        options={**SHARED_DEMAND, "price_mode": "paid", "patience_by_price": True}
                    ),
                    group("flow", 1, share=0.3, options=SHARED_DEMAND),
                ),
            ),
            drain_s=0.0,
        ),
        "protocols": of_arms(
            synthetic(gang_permille=200, load_percent=(60, 130)),
            named(
                "locks",
                locking_arm(
                    locking_group(count=2, locked_partitions=2, hold_s=0.001, head_of_line_s=0.02),
                    group("best_fit", 2, head_of_line_s=0.02),
                ),
            ),
            named(
                "of others",
                locking_arm(
                    guest_group("lottery", {"kind": "lottery"}, None, 1),
                    guest_group("queues", {"kind": "machine_queues"}, None, 1),
                    group("two_choices", 1),
                ),
            ),
        ),
        "service and batch jobs": of_arms(
            service_batch(SERVICES),
            named("by length", by_length(losers="requeue", attempts_max=3, requeue_s=0.5)),
            drain_s=30.0,
            settle_s=10.0,
            sample_s=1.0,
        ),
        "MapReduce": of_arms(
            service_batch(MAPREDUCE),
            named("more workers", mapreduce("max_parallelism")),
            settle_s=10.0,
            sample_s=1.0,
        ),
    }


def of_arms(workload: WorkloadConfig, *arms: ArmConfig, **changes: Any) -> RunConfig:
    """A run of one seed."""
    common = {"settle_s": 0.1, "drain_s": 5.0, "seeds": 1, "seed": 3}
    return RunConfig(workload=workload, arms=arms, **{**common, **changes})


def summary(config: RunConfig = CONFIG) -> dict[str, Any]:
    """What summary.json would hold, as JSON reads it."""
    workload = make_workload(config, config.seed)
    runs = [
        run_arm_virtual(config, one, workload, config.seed, None, lambda _: None, Interruption())
        for one in config.arms
    ]
    paired = (1, 2) if config.seeds > 1 else ()
    seeds = {
        seed: {one.name: seed_figures(config, one, seed) for one in config.arms} for seed in paired
    }
    facts = RunFacts(config.seed, "", "virtual", settle_us(config), {})
    arms = [arm_result(config, run, seeds) for run in runs]
    assert not any(run.stopped for run in runs), [run.stopped for run in runs]
    return build_summary(facts, workload, arms).model_dump(mode="json")


def further_figures(name: str) -> dict[str, Any]:
    """The overall figures and totals of a run of further() by path, and a digest of the
    other figures of each arm."""
    with guests():
        found = dict(leaves(summary(further()[name])))
    others: dict[str, Any] = defaultdict(partial(hashlib.blake2b, digest_size=16))
    figures: dict[str, Any] = {}
    for path, value in found.items():
        scope, _, key = path.partition(".")
        if key.startswith(("overall.", "totals.")):
            figures[f"{name}: {path}"] = value
        elif scope.startswith("arms["):
            others[scope].update(json.dumps([path, value]).encode())
    return figures | {f"{name}: {scope}": rest.hexdigest() for scope, rest in others.items()}


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


# Figures of the further runs that are not 0, as each is there for a feature.
SHOWS = {
    "quotas": ("arms[0].totals.ended_evicted", "arms[0].totals.censored"),
    "preemption": ("arms[0].totals.ended_evicted", "arms[1].overall.others.gangs_unplaced"),
    "prices": ("arms[0].overall.rounds", "arms[0].totals.censored"),
    "protocols": ("arms[0].overall.others.held_up_max", "arms[1].overall.others.gangs_torn"),
    "service and batch jobs": (
        "arms[0].totals.abandoned",
        "arms[0].overall.others.service_wasted_share",
    ),
    "MapReduce": ("arms[0].overall.others.job_wait_full_service_mean_us",),
}


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    missing = {path: value for path, value in expected.items() if path not in found}
    assert not missing
    assert {path: found[path] for path in expected} == expected


def test_every_figure_is_the_golden_one() -> None:
    expected = {path: value for path, value in PINNED.items() if ": " not in path}
    check(dict(leaves(summary())), expected)


@pytest.mark.parametrize("name", SHOWS)
def test_the_figures_of_further_runs_are_the_golden_ones(name: str) -> None:
    expected = {path: value for path, value in PINNED.items() if path.startswith(f"{name}: ")}
    found = further_figures(name)
    assert all(found[f"{name}: {path}"] for path in SHOWS[name]), "the run is empty of its feature"
    assert len(expected) > 100
    check(found, expected)


if __name__ == "__main__":
    pinned = dict(leaves(summary()))
    for run in SHOWS:
        pinned |= further_figures(run)
    print(json.dumps(pinned, indent=0))
