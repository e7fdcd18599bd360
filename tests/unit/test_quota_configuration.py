"""Quotas in configurations: what is read, and what is refused with one line that names it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.campaign.preconditions import check_arms
from experiments.config.run_config import load_config, validated
from experiments.config.workload_config import WorkloadConfig
from experiments.toml_text import toml_text
from experiments.workloads.inspection import describe, digest
from experiments.workloads.synthetic import PRODUCTION_PRIORITY, SyntheticOptions, generate, warm_up
from parsync.protocols import registry
from parsync.protocols.spec import ProtocolCapability
from parsync.spec.arm import ArmConfig, check_protocols
from parsync.workload.workload import StartState, starting_from
from shared_state.errors import AgoraError

PARSYNC = {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.05}
GROUPS = [{"name": "a", "share": 0.25}, {"name": "b", "share": [0.75, 0.75]}]


def tree(**changes: object) -> dict:
    quotas = {"groups": [{"name": "a", "minimum": 0.2}, {"name": "b"}]}
    arm = {
        "name": "arm",
        "partitions": 4,
        "quotas": quotas,
        "groups": [{"name": "g", "kind": "random", "count": 2, "protocol": PARSYNC}],
    }
    workload = {
        "kind": "synthetic",
        "machines": 40,
        "load_percent": [50, 80],
        "quota_groups": GROUPS,
    }
    for part in (arm, workload, quotas):
        part.update({name: value for name, value in changes.items() if name in part})
    return {"workload": workload, "arms": [arm]}


def test_what_is_written_is_what_was_read() -> None:
    config = validated(tree(), "test")
    quotas = config.arms[0].seeded(1, 1, 1, live=False).quotas
    assert quotas is not None and quotas.interval_us == 100_000
    assert [(g.minimum_permille, g.maximum_permille, g.weight) for g in quotas.groups] == [
        (200, 1000, 1),
        (0, 1000, 1),
    ]
    plain = config.model_dump(mode="json")
    assert validated(plain, "again") == config
    assert "[[arms.quotas.groups]]" in toml_text(plain)
    without = config.arms[0].model_copy(update={"quotas": None})
    assert "quotas" not in without.model_dump() and ArmConfig.model_validate(without.model_dump())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"groups": [{"name": "a", "minimum": 0.6}, {"name": "b", "minimum": 0.5}]},
            "the minimums sum to 1.1 of the cell, expected at most 1",
        ),
        (
            {"groups": [{"name": "a", "minimum": 0.6, "maximum": 0.5}, {"name": "b"}]},
            "group 'a': expected 0 <= minimum <= maximum <= 1, got 0.6 and 0.5",
        ),
        ({"groups": [{"name": "a"}, {"name": "a"}]}, "two groups have the same name"),
        (
            {"groups": [{"name": "a"}]},
            "arm 'arm': quotas: the workload's group 'b' is missing, got a",
        ),
        ({"quota_groups": []}, "arm 'arm': quotas: the jobs of the workload belong to no quota"),
        ({"groups": [{"name": "a", "weight": 0}]}, "arms.0.quotas.groups.0.weight: "),
        ({"groups": [{"name": "a", "maximum": 1.5}]}, "arms.0.quotas.groups.0.maximum: "),
        (
            {"quota_groups": [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.4}]},
            "quota_groups: the shares of phase 1 sum to 0.9, not to 1",
        ),
        (
            {"quota_groups": [{"name": "a", "share": [0.5]}, {"name": "b", "share": 0.5}]},
            "quota_groups: group 'a': share: expected one number or 2, one for each phase, got 1",
        ),
        (
            {"quota_groups": [{"name": "a", "share": 0.5}, {"name": "a", "share": 0.5}]},
            "quota_groups: two groups have the same name",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict, says: str) -> None:
    given = tree()
    for name, value in changes.items():
        (given["workload"] if name == "quota_groups" else given["arms"][0]["quotas"])[name] = value
    with pytest.raises(AgoraError, match=r"^test: ") as refusal:
        validated(given, "test")
    assert says in str(refusal.value) and "\n" not in str(refusal.value)


def test_schedulers_that_cannot_obey_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = [{"name": "flow", "kind": "quincy", "count": 1, "protocol": PARSYNC}]
    given = tree()
    given["arms"][0]["groups"] = keeps
    with pytest.raises(AgoraError, match=r"group 'flow': quotas: a scheduler of kind 'quincy'"):
        validated(given, "test")
    spec = validated(tree(), "test").arms[0].seeded(1, 1, 1, live=False)
    check_protocols(spec)
    obeys = registry.get("optimistic").capabilities_of
    monkeypatch.setattr(
        type(registry.get("optimistic")),
        "capabilities_of",
        lambda self, options: obeys(options) - {ProtocolCapability.OBEYS_QUOTAS},
    )
    with pytest.raises(AgoraError, match=r"group 'g': quotas: protocol 'optimistic' with"):
        check_protocols(spec)


OPTIONS = SyntheticOptions.model_validate(
    {
        "machines": 400,
        "load_percent": [90, 90],
        "mean_duration_s": 0.1,
        "batch_tasks": 5,
        "quota_groups": [
            {"name": "a", "share": [0.0, 0.5]},
            {"name": "b", "share": [0.25, 0.25]},
            {"name": "c", "share": [0.75, 0.25]},
        ],
        "production_permille": 200,
    }
)


def test_jobs_of_each_phase_are_divided_as_the_shares_say() -> None:
    workload = generate(OPTIONS, 3)
    assert workload.quotas is not None and workload.quotas.names == ("a", "b", "c")
    first = np.unique(workload.tasks.job, return_index=True)[1]
    late = workload.tasks.submit_us[first] >= workload.phases[1].start_us
    for phase, shares in ((~late, (0, 0.25, 0.75)), (late, (0.5, 0.25, 0.25))):
        count = np.bincount(workload.quotas.group[first][phase], minlength=3)
        assert count / count.sum() == pytest.approx(shares, abs=4 * (0.25 / count.sum()) ** 0.5)
    production = (workload.tasks.priority[first] == PRODUCTION_PRIORITY).mean()
    assert production == pytest.approx(0.2, abs=4 * (0.16 / len(first)) ** 0.5)


def test_quota_groups_change_nothing_else() -> None:
    plain = generate(OPTIONS.model_copy(update={"quota_groups": ()}), 3)
    grouped = generate(OPTIONS, 3)
    assert plain.quotas is None
    assert (plain.duration_us == grouped.duration_us).all()
    assert (plain.tasks.preference == grouped.tasks.preference).all()


def test_the_tasks_of_a_warm_up_keep_their_groups() -> None:
    before, workload = warm_up(OPTIONS, 3), generate(OPTIONS, 3)
    assert before is not None and before.quotas is not None and workload.quotas is not None
    rows = before.initial.task
    state = StartState(
        before.tasks.take(rows),
        before.initial.machine,
        before.duration_us[rows],
        before.quotas.group[rows],
    )
    begun = starting_from(workload, state)
    assert begun.quotas is not None and len(begun.quotas.group) == len(begun.tasks)
    at_start = begun.quotas.group[begun.initial.task]
    share = np.bincount(at_start, minlength=3) / len(at_start)
    assert share[0] == 0 and share[2] == pytest.approx(0.75, abs=0.15)


def test_a_workload_that_is_known_only_when_it_is_read_is_checked_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WorkloadConfig, "quota_groups", lambda self: None)
    config = validated(tree(quota_groups=[{"name": "c", "share": 1.0}]), "test")
    workload = config.workload.make(1)
    with pytest.raises(AgoraError, match=r"arm 'arm': quotas: .* group 'c' is missing, got a, b"):
        check_arms(config, workload)


def test_statistics_count_the_tasks_of_each_group() -> None:
    workload = generate(OPTIONS, 3)
    counts = describe(workload)["tasks_by_quota_group"]
    assert isinstance(counts, dict) and list(counts) == ["a", "b", "c"]
    assert sum(counts.values()) == len(workload.tasks)
    assert digest(workload) != digest(generate(OPTIONS.model_copy(update={"quota_groups": ()}), 3))


def test_the_example_is_a_configuration() -> None:
    config = load_config(Path("examples/quotas.toml"))
    assert [arm.quotas is not None for arm in config.arms] == [True, False]
