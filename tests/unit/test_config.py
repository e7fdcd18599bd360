"""Configurations: what is refused and how it is said, and that a run's own file runs it again."""

from __future__ import annotations

import gc
import tomllib
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.config.presets import default_arms, demo_scale, mix_arm, paper_scale
from experiments.config.run_config import RunConfig, load_config, validated
from experiments.toml_text import toml_text
from parsync.spec.arm import ArmConfig
from shared_state.errors import AgoraError
from tests.fixtures.live_runs import small_workload


def demo_tree() -> dict[str, Any]:
    scale = demo_scale(quick=True)
    return {
        "settle_s": 1.0,
        "workload": {"kind": "synthetic", **scale.synthetic.model_dump(mode="json")},
        "arms": [arm.model_dump(mode="json") for arm in default_arms(scale)],
    }


def test_a_resolved_configuration_reads_back_equal(tmp_path: Path) -> None:
    config = validated(demo_tree(), "test")
    file = tmp_path / "config.toml"
    file.write_text(toml_text(config.model_dump(mode="json")), encoding="utf-8")
    assert load_config(file) == config


def test_a_file_as_windows_editors_write_it_is_read(tmp_path: Path) -> None:
    text = toml_text(demo_tree())
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert load_config(file) == validated(demo_tree(), "test")


def test_three_default_arms_differ_in_nothing_but_sync() -> None:
    first, second, third = default_arms(demo_scale(quick=False))[:3]
    assert first.sync != second.sync != third.sync
    assert first.partitions == second.partitions == third.partitions

    def without_sync(arm: ArmConfig) -> list[dict[str, Any]]:
        trees = [group.model_dump() for group in arm.groups]
        for tree in trees:
            del tree["protocol"]["sync"]
        return trees

    assert without_sync(first) == without_sync(second) == without_sync(third)


def test_controls_differ_from_the_one_greedy_scheduler_in_one_thing() -> None:
    arms = {arm.name: arm.groups[0] for arm in default_arms(demo_scale(quick=False))}
    one = arms["Greedy, one scheduler"]
    assert arms["Greedy, patient"] == one.model_copy(update={"options": {"patience_s": 0.3}})
    assert arms["Preferred first"] == one.model_copy(update={"kind": "preferred_first"})
    own = arms["Greedy at own speed"]
    assert own == one.model_copy(update={"decision": own.decision})
    assert arms["8 greedy at own speed"] == own.model_copy(update={"count": 8})


def test_decisions_have_twice_the_needed_capacity() -> None:
    assert demo_scale(quick=False).equal_capacity(8).task_us == 400
    assert paper_scale().equal_capacity(20).task_us == 250


def test_quick_keeps_the_ratios_of_times_and_settles_for_a_task_length() -> None:
    full, quick = demo_scale(quick=False), demo_scale(quick=True)
    for scale in (full, quick):
        task_s = scale.synthetic.mean_duration_s
        assert scale.settle_s == task_s < scale.synthetic.phase_s
        assert (scale.gap_s / task_s, scale.tau_s / task_s) == (0.1, 0.4)
    assert quick.equal_capacity(8) == full.equal_capacity(8)
    assert quick.schedulers == full.schedulers


def test_the_flow_scheduler_counts_in_n_and_owns_a_quarter() -> None:
    (mix,) = (arm for arm in default_arms(demo_scale(quick=False)) if arm.name == "Mix")
    assert mix.shares_permille() == (750, 250)
    assert mix.partitions >= sum(group.count for group in mix.groups) == 9


def test_a_mix_shares_in_proportion_to_counts() -> None:
    arm = mix_arm("latency_first=8, quality_first=4,firmament=1", demo_scale(quick=False))
    assert [group.count for group in arm.groups] == [8, 4, 1]
    assert sum(arm.shares_permille()) == 1000
    assert arm.shares_permille()[0] == 8000 // 13


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latency_first", r"not of the form \[protocol:\]kind=count"),
        ("latency_first=0", "at least one scheduler"),
        ("latency_first=-3", "not of the form"),
        ("wishful=3", r"unknown 'wishful', expected a strategy \(optimistic"),
        ("telepathy:random=2", "unknown protocol 'telepathy'"),
        ("adaptive=1,adaptive=2", "appears twice"),
    ],
)
def test_bad_mixes_are_refused(text: str, message: str) -> None:
    with pytest.raises(AgoraError, match=message):
        mix_arm(text, demo_scale(quick=False))


def changed(path: str, value: Any) -> dict[str, Any]:
    tree = demo_tree()
    *parents, last = path.split(".")
    at: Any = tree
    for part in parents:
        at = at[int(part)] if part.isdigit() else at[part]
    at[last] = value
    return tree


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("sedd", 3, "sedd: unknown option"),
        ("arms.0.groups.0.kind", "oracle", "oracle"),
        ("arms.0.groups.0.options", {"greed": 1}, "greed"),
        ("arms.0.groups.0.count", 0, r"arms.0.groups.0.count"),
        ("arms.0.groups.0.share", 0.5, r"shares sum to 0\.5"),
        ("arms.2.partitions", 7, "partitions: expected at least 8, one for each scheduler"),
        ("arms.0.groups.0.protocol.sync", "gossip", "unknown sync policy 'gossip'"),
        ("arms.0.groups.0.protocol.kind", "telepathy", "unknown protocol 'telepathy'"),
        ("arms.0.groups.0.protocol.sync_options", {"x": 1}, "has no option 'x'"),
        (
            "arms.0.sync",
            "diff_block",
            "arms.0: moved to the options of each group's protocol: sync;",
        ),
        ("arms.0.groups.0.losers", "block", "moved to the options of the group's protocol: losers"),
        ("arms.0.groups.0.protocol.gap_s", 30.0, "shorter than the gap"),
        ("arms.0.name", "Mix", "two arms have the same name"),
        ("settle_s", 99.0, "settle_s"),
        ("workload", None, "workload: "),
        ("workload.machines", -1, "workload.machines: "),
        ("workload.kind", "demo", "workload: unknown workload kind 'demo'; known: google2011, "),
        ("workload.kind", 3, "workload: kind: got 3; expected one of google2011, service_batch, "),
        (
            "workload.mashines",
            3,
            "workload: kind 'synthetic' has no option 'mashines' .did you mean 'machines'",
        ),
        ("synthetic", {"machines": 3}, r'\[synthetic\]: now \[workload\] with kind = "synthetic"$'),
        (
            "google2011",
            {"speedup": 3},
            r'\[google2011\]: now \[workload\] with kind = "google2011"',
        ),
    ],
)
def test_bad_values_name_their_field(path: str, value: Any, message: str) -> None:
    with pytest.raises(AgoraError, match=message) as refused:
        validated(changed(path, value), "run.toml")
    assert str(refused.value).startswith("run.toml: ") and "\n" not in str(refused.value)


class Held:
    """What a caller has in a variable."""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("arms.0.groups.0.protocol.gap_s", 30.0),  # a validator raises ValueError
        ("workload.mashines", 3),  # because of another ValidationError
        ("workload.kind", "demo"),  # because of an AgoraError
    ],
)
def test_what_a_caller_holds_beside_a_refusal_can_be_freed(path: str, value: Any) -> None:
    def refused() -> weakref.ref[Held]:
        held = Held()
        with pytest.raises(AgoraError) as kept:
            validated(changed(path, value), "run.toml")
        assert kept.value.__cause__ is not None
        return weakref.ref(held)

    reference = refused()
    gc.collect()
    assert reference() is None


def test_bad_files_name_themselves(tmp_path: Path) -> None:
    with pytest.raises(AgoraError, match=r"nowhere\.toml"):
        load_config(tmp_path / "nowhere.toml")
    file = tmp_path / "torn.toml"
    file.write_text("seed = 1\nname = = 2", encoding="utf-8")
    with pytest.raises(AgoraError, match=r"torn\.toml.*line 2"):
        load_config(file)
    file.write_bytes(b"name = '\xff'")
    with pytest.raises(AgoraError, match="UTF-8"):
        load_config(file)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
TREES = st.recursive(
    st.dictionaries(KEYS, st.one_of(SCALARS, st.lists(st.integers(), max_size=3)), max_size=4),
    lambda inner: st.dictionaries(
        KEYS, st.one_of(SCALARS, inner, st.lists(inner, min_size=1, max_size=3)), max_size=4
    ),
    max_leaves=12,
)


@given(TREES)
def test_toml_text_reads_back_equal(tree: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(tree)) == tree


def test_run_config_defaults_are_the_demo() -> None:
    config = RunConfig.model_validate(demo_tree())
    assert config.seeds == 10 and len(config.arms) == 15


@pytest.mark.parametrize(
    ("kind", "options"), [("quincy", {}), ("random", {"patience_s": 0.1})], ids=["flow", "patient"]
)
def test_losers_of_kinds_that_keep_waiting_tasks_cannot_pause(
    kind: str, options: dict[str, float]
) -> None:
    tree = demo_tree()
    group = tree["arms"][0]["groups"][0]
    group |= {"kind": kind, "options": options}
    validated(tree, "test")
    group["protocol"]["losers"] = "requeue"
    where = r"arms\.0: group 'quality_first': protocol\.losers: expected 'block', got 'requeue'"
    with pytest.raises(AgoraError, match=where):
        validated(tree, "test")


@pytest.mark.parametrize("wrong", [-1, 1001, 1.5])
def test_seeds_of_the_sensitivity_are_a_number(wrong: float) -> None:
    with pytest.raises(AgoraError, match="sensitivity_seeds: "):
        validated(demo_tree() | {"sensitivity_seeds": wrong}, "test")


def test_limits_of_attempts_and_the_weight_of_the_average_reach_the_agents() -> None:
    chosen = {
        "losers": "requeue",
        "attempts_max": 7,
        "attempts_max_unplaced": 3,
        "average_permille": 250,
    }
    tree = demo_tree()
    tree["arms"][0]["groups"][0]["protocol"] |= chosen
    [group] = validated(tree, "test").arms[0].seeded(1, 1000, 100_000, live=False).groups
    policy = group.protocol.for_workload(small_workload()).options
    assert {name: getattr(policy, name) for name in chosen if name != "losers"} | {
        "losers": "requeue"
    } == chosen
    for name, wrong in (
        ("attempts_max", 0),
        ("attempts_max_unplaced", 0),
        ("average_permille", 1001),
    ):
        tree["arms"][0]["groups"][0]["protocol"] |= chosen | {name: wrong}
        with pytest.raises(AgoraError, match=name):
            validated(tree, "test")
