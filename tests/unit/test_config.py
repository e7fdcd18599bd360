"""Configurations, with quotas and schedulers of --with: what is refused and how it is said, and
that a run's own file runs it again."""

from __future__ import annotations

import gc
import sys
import tomllib
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.campaign.preconditions import check_arms
from experiments.config.flags import arm_beside, given_schedulers
from experiments.config.presets import default_arms, demo_scale, greedy_group, mix_arm, paper_scale
from experiments.config.run_config import RunConfig, load_config, validated
from experiments.config.workload_config import WorkloadConfig
from experiments.studies.run.resolve import resolve
from experiments.studies.run.run_options import RunOptions
from experiments.toml_text import toml_text
from experiments.workloads.inspection import describe, digest
from experiments.workloads.synthetic import PRODUCTION_PRIORITY, SyntheticOptions, generate, warm_up
from parsync.protocols import registry as protocols
from parsync.protocols.spec import ProtocolCapability
from parsync.spec.arm import ArmConfig, check_protocols
from parsync.spec.decision_times import CountedTime, ModelledTime
from parsync.workload.workload import StartState, starting_from
from schedulers import registry
from schedulers.registry import registered
from shared_state.errors import AgoraError
from tests.fixtures.live_runs import small_workload


def demo_tree() -> dict[str, Any]:
    scale = demo_scale(quick=True)
    return {
        "format": 2,
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
    arm = mix_arm("latency_first=8, quality_first=4,flow=1", demo_scale(quick=False))
    assert [group.count for group in arm.groups] == [8, 4, 1]
    assert sum(arm.shares_permille()) == 1000
    assert arm.shares_permille()[0] == 8000 // 13


def test_a_mix_may_have_several_protocols() -> None:
    text = "optimistic:random=4,offers:kubernetes=2,probing=4,quincy=1"
    groups = mix_arm(text, demo_scale(quick=False)).groups
    protocols = [group.protocol.kind for group in groups]
    assert protocols == ["optimistic", "offers", "probing", "optimistic"]
    assert [group.count for group in groups] == [4, 2, 4, 1]


def test_firmament_and_quincy_in_a_mix_are_as_fast_as_their_code() -> None:
    arm = mix_arm("latency_first=2,firmament=1,quincy=1,flow=1", demo_scale(quick=False))
    assert [group.decision is None for group in arm.groups] == [False, True, True, False]


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
    assert config.seeds == 10 and len(config.arms) == 18


@pytest.mark.parametrize(
    ("kind", "options"), [("flow", {}), ("random", {"patience_s": 0.1})], ids=["flow", "patient"]
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
    keeps = [{"name": "flow", "kind": "flow", "count": 1, "protocol": PARSYNC}]
    given = tree()
    given["arms"][0]["groups"] = keeps
    with pytest.raises(AgoraError, match=r"group 'flow': quotas: a scheduler of kind 'flow'"):
        validated(given, "test")
    spec = validated(tree(), "test").arms[0].seeded(1, 1, 1, live=False)
    check_protocols(spec)
    obeys = protocols.get("optimistic").capabilities_of
    monkeypatch.setattr(
        type(protocols.get("optimistic")),
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


SOURCE = """
from pydantic import BaseModel
from schedulers.decision_clock import Counted
from schedulers.registry import SchedulerSpec

class Options(BaseModel):
    pass

def build(options, environment):
    raise NotImplementedError

SPEC = SchedulerSpec({kind!r}, Options, build, Counted(1))
"""


@pytest.fixture(autouse=True)
def forgotten_modules():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("given_"):
            del sys.modules[name]


def write(folder: Path, name: str, kind: str = "mine") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(SOURCE.format(kind=kind))
    return file


@pytest.mark.parametrize("form", ["{file}", "{file}:SPEC"])
def test_a_file_is_known_in_the_block_only(tmp_path, form):
    file = write(tmp_path, "given_file.py")
    path = list(sys.path)
    with registered([form.format(file=file)]) as kinds:
        assert kinds == ("mine",)
        assert registry.get("mine").kind == "mine"
        assert "first_fit" in registry.kinds()
        assert sys.path[: len(path)] == path  # it hides no other module
    assert sys.path == path
    assert "mine" not in registry.kinds()


def test_a_package_in_the_working_directory(tmp_path, monkeypatch):
    write(tmp_path / "given_package", "module.py")
    monkeypatch.chdir(tmp_path)
    with registered(["given_package.module:SPEC"]) as kinds:
        assert kinds == ("mine",)
        assert registry.location("mine") == "given_package.module:SPEC"


def test_a_kind_that_is_known_already():
    with registered(["schedulers.greedy.kinds:FIRST_FIT"]) as kinds:
        assert kinds == ("first_fit",)


@pytest.mark.parametrize(
    ("name", "source", "location", "says"),
    [
        ("given_a.py", None, "{file}", "no such file"),
        ("given-b.py", SOURCE, "{file}", "'given-b' is not a name for a Python module"),
        ("given_c.py", "SPEC = 1", "{file}", "expected a SchedulerSpec or a PolicySpec, got a int"),
        ("given_d.py", "1 / 0", "{file}", "given_d.py, line 1: ZeroDivisionError"),
        ("given_e.py", SOURCE, "{file}:OTHER", "has no attribute 'OTHER'"),
        ("schedulers.py", SOURCE, "{file}", "is imported as 'schedulers' instead"),
        ("given_f.py", SOURCE.replace("{kind!r}", "'quincy'"), "{file}", "is registered twice"),
        ("given_h.py", SOURCE, "", "expected package.module:SPEC or FILE.py"),
        ("given_h.py", SOURCE, "..given_h:SPEC", "expected package.module:SPEC or FILE.py"),
        ("given_h.py", SOURCE, "a:b:c", "expected package.module:SPEC or FILE.py"),
        ("given_g.py", SOURCE, "given_nowhere:SPEC", "No module named 'given_nowhere'"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, name, source, location, says):
    file = tmp_path / name
    if source is not None:
        file.write_text(source.replace("{kind!r}", "'mine'"))
    path = list(sys.path)
    with pytest.raises(AgoraError) as raised, registered([location.format(file=file)]):
        pass
    assert says in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert sys.path == path


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "1000001", "", "²", "9" * 5000])
def test_a_number_that_is_none(tmp_path, number):
    file = write(tmp_path, "given_number.py")
    with (
        pytest.raises(AgoraError, match="expected SPEC=N, with N from 1 to"),
        given_schedulers([f"{file}={number}"]),
    ):
        pass


@pytest.mark.parametrize("count", [1, 8, 20])
def test_an_arm_can_decide_as_much_as_the_others(count):
    scale = demo_scale(quick=False)
    arms = default_arms(scale)
    arm = arm_beside("first_fit", count, arms)
    (group,) = arm.groups
    assert isinstance(group.decision, ModelledTime)
    assert group.count == count and arm.partitions >= count
    assert group.decision.task_us == pytest.approx(scale.equal_capacity(count).task_us)
    assert group.protocol.options.gap_s == scale.gap_s


def test_without_modelled_decision_times_there_is_nothing_to_equal():
    scale = demo_scale(quick=False)
    arms = [
        arm.model_copy(
            update={"groups": (greedy_group(scale, "optimistic", 1, decision=CountedTime()),)}
        )
        for arm in default_arms(scale)[:1]
    ]
    with pytest.raises(AgoraError, match="no arm has modelled decision times"):
        arm_beside("first_fit", 1, arms)


def test_the_main_comparison_has_the_arms_besides(tmp_path):
    file = write(tmp_path, "given_compared.py")
    with given_schedulers([str(file), f"{file}=8"]) as added:
        config = resolve(RunOptions(quick=True, added=added))
        assert [arm.name for arm in config.arms[-2:]] == ["mine", "8 mine"]
        assert len(config.arms) == len(resolve(RunOptions(quick=True)).arms) + 2
        with pytest.raises(AgoraError, match="an arm is already named 'mine'"):
            resolve(RunOptions(quick=True, added=(*added, *added)))
