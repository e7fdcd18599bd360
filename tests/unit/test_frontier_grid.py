"""What a frontier runs: knobs, loads and gaps, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.campaign.points import Point
from experiments.config.frontier_config import Architecture, changed_arm, setting_text
from experiments.config.presets import default_arms, default_config, demo_scale, small_frontier
from experiments.config.price_settings import prices_of_arm
from experiments.config.run_config import load_config, validated
from experiments.studies.frontiers.grid import make_grid, with_options
from experiments.studies.sweeps.sweep_file import read_sweep
from shared_state.errors import AgoraError
from tests.fixtures.frontier_toml import frontier_config, frontier_tree


def test_every_value_runs_at_every_load_and_gap_under_every_seed() -> None:
    grid = make_grid(frontier_config(load_percent=[50, 90], gap_s=[0.05, 0.1], seeds=3))
    assert [(one.load_percent, one.gap_s) for one in grid.conditions] == [
        (50, 0.05), (50, 0.1), (90, 0.05), (90, 0.1)
    ]  # fmt: skip
    assert len(grid.spots) == 4 * (2 + 1 + 2) and grid.runs == 60
    points = grid.points()
    assert [point.seed for _, point in points] == [1] * 20 + [2] * 20 + [3] * 20
    place, point = points[7]  # the second value of the first architecture under (50, 0.1) is 6
    spot = grid.spots[place]
    assert (spot.architecture, spot.condition, spot.value) == (1, 1, None)
    assert point.config.workload.options.model_dump()["load_percent"] == (50,)
    assert point.arm.groups[0].protocol.options.gap_s == 0.1
    assert grid.spots[6].arm.groups[0].options == {"patience_s": 0.1}


def test_a_point_at_the_default_of_its_knob_is_the_arm_and_runs_once() -> None:
    config = frontier_config()
    grid = make_grid(config)
    of_arm = Point(config, config.arms[0], 1).key()
    assert [Point(config, spot.arm, 1).key() == of_arm for spot in grid.spots[:2]] == [True, False]


def test_the_knob_of_some_groups_leaves_the_others() -> None:
    (arm,) = (one for one in default_arms(demo_scale(quick=True)) if one.name == "Mix")
    changed = changed_arm(arm, "options.patience_s", 0.5, [True, False])
    assert [group.options for group in changed.groups] == [{"patience_s": 0.5}, {}]


def test_the_knob_may_be_an_option_of_a_protocol_as_a_whole() -> None:
    (arm,) = (one for one in default_arms(demo_scale(quick=True)) if one.name == "Sparrow")
    changed = changed_arm(arm, "protocols.probing.hop_s", 0.002)
    assert changed.protocols["probing"].model_dump()["hop_s"] == 0.002
    assert changed.groups == arm.groups
    with pytest.raises(ValueError, match="hop_s"):
        changed_arm(arm, "protocols.probing.hop_s", -1.0)
    for wrong in ("protocols.offers.interval_s", "protocols.probing.none", "protocols.probing"):
        with pytest.raises(ValueError, match="protocols"):
            changed_arm(arm, wrong, 1.0)


def test_the_groups_of_an_arm_cannot_have_an_option_of_it_each() -> None:
    (arm,) = (one for one in default_arms(demo_scale(quick=True)) if one.name == "Sparrow")
    knob = {"knob": "protocols.probing.hop_s", "values": [0.002], "groups": ["sparrow"]}
    with pytest.raises(ValueError, match="groups: no effect, because"):
        Architecture(arm="Sparrow", **knob).arm_at(arm, 0.002)


@pytest.mark.parametrize("quick", [True, False])
def test_the_frontiers_of_the_main_comparison_are_valid(quick: bool) -> None:
    config = default_config(quick)
    grid = make_grid(config)
    assert {one.load_percent for one in grid.conditions} == {80}
    scale = demo_scale(quick)
    small = config.model_copy(
        update={"arms": default_arms(scale), "frontier": small_frontier(scale)}
    )
    small.frontier.check({arm.name: arm for arm in small.arms})
    arms = {Point(small, arm, 1).key() for arm in small.arms}
    shared = [Point(small, spot.arm, 1).key() in arms for spot in make_grid(small).spots]
    # of ParSync one, as adaptive and as patient, of greedy two, of flow and Sparrow one
    assert sum(shared) == 6


def test_the_question_about_the_main_comparison_has_its_decision_times_and_gaps() -> None:
    asked = load_config(Path("examples/questions/main_comparison.toml"))
    named = {"Greedy": "Greedy, one scheduler"}
    arms = {arm.name: arm for arm in default_arms(demo_scale(quick=False))}
    for arm in asked.arms:
        [group], [same] = arm.groups, arms[named.get(arm.name, arm.name)].groups
        assert group.decision == same.decision
        assert group.protocol.gap_us == same.protocol.gap_us


@pytest.mark.parametrize(
    "path", sorted(Path("examples/questions").rglob("*.toml")), ids=lambda path: path.stem
)
def test_the_questions_of_the_findings_are_valid(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "# Asked before it was run" in text
    if "[sweep]" in text:
        assert f"agora sweep {path}" in text
        assert read_sweep(path, {}).combinations
    elif "[frontier]" in text:
        assert f"agora frontier {path}" in text
        assert len(make_grid(load_config(path)).seeds) >= 5
    else:
        assert f"agora run --config {path}" in text
        assert load_config(path).live.arms


def test_the_examples_are_valid() -> None:
    assert make_grid(load_config(Path("examples/flow_at_a_peak.toml"))).runs == 120
    grid = make_grid(load_config(Path("examples/frontier.toml")))
    assert len(grid.conditions) == 2 and grid.runs == 24


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 0}, "frontier.seeds: Input should be greater than or equal to 1, got 0"),
        ({"slowest_s": 1e-5}, "frontier: fastest_s: expected less than slowest_s"),
        ({"dearest_cost": 0.0}, "frontier.dearest_cost: Input should be greater than 0, got 0.0"),
        ({"load_percent": [50, 50]}, "frontier: load_percent: a value appears twice"),
        ({"gap_s": [0.1, 0.1]}, "frontier: gap_s: a value appears twice"),
        ({"knobs": 1}, "frontier.knobs: unknown option"),
    ],
)
def test_a_wrong_section_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AgoraError) as refused:
        validated(frontier_tree(**changes), "file")
    assert str(refused.value) == f"file: {message}"


PATIENCE = "options.patience_s"


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        ({"arm": "no"}, "there is no arm 'no'; arms: greedy, first fit, own speed"),
        ({"arm": "greedy", "values": [1.0]}, "knob: missing; values and groups are the knob's"),
        ({"arm": "greedy", "knob": PATIENCE}, "values: expected at least one value of the knob"),
        (
            {"arm": "greedy", "knob": PATIENCE, "values": [0.1, 0.1]},
            "values: a value appears twice",
        ),
        ({"arm": "greedy", "knob": PATIENCE, "values": [-1.0]}, "patience_s"),
        ({"arm": "greedy", "knob": "options.hope_s", "values": [1.0]}, "hope_s"),
        (
            {"arm": "greedy", "knob": "hope.much.more", "values": [1.0]},
            "hope.much.more: group 'greedy' has no table 'hope'",
        ),
        (
            {"arm": "greedy", "knob": PATIENCE, "values": [0.1], "groups": ["no"]},
            "groups: arm 'greedy' has no group 'no'",
        ),
    ],
)
def test_a_wrong_architecture_is_refused_by_its_place(
    architecture: dict[str, Any], message: str
) -> None:
    with pytest.raises(AgoraError) as refused:
        validated(frontier_tree(architectures=[architecture]), "file")
    text = str(refused.value)
    assert text.startswith("file: frontier.architectures.0") and message in text
    assert "\n" not in text


def test_a_knob_may_be_an_option_of_the_prices() -> None:
    """Also where the arm leaves all of them to their defaults."""
    tree = frontier_tree(
        architectures=[
            {"arm": "greedy", "knob": "options.price_options.forget_s", "values": [5.0, 30.0]}
        ]
    )
    tree["arms"][0]["groups"][0]["options"] = {"prices": "implied"}
    grid = make_grid(validated(tree, "file"))
    assert [prices_of_arm(spot.arm) for spot in grid.spots] == [
        f"implied prices (forget_s = {forget_s}): tie, all" for forget_s in (5.0, 30.0)
    ]
    tree["frontier"]["architectures"][0]["knob"] = "options.price_opts.forget_s"
    with pytest.raises(AgoraError, match=r"options\.price_opts\.forget_s = 5\.0: .*price_opts"):
        validated(tree, "file")


def test_two_architectures_of_one_name_are_refused() -> None:
    one = {"arm": "greedy"}
    with pytest.raises(AgoraError, match="two are named 'greedy'; set their name"):
        validated(frontier_tree(architectures=[one, one]), "file")


def test_a_knob_that_changes_the_capacity_is_refused() -> None:
    knob = {"arm": "greedy", "knob": "count", "values": [1, 2]}
    with pytest.raises(AgoraError, match="count changes the clock class or the capacity"):
        make_grid(frontier_config(architectures=[knob]))


def test_a_gap_beside_the_knob_gap_is_refused() -> None:
    knob = {"arm": "greedy", "knob": "protocol.gap_s", "values": [0.1, 0.2]}
    assert len(make_grid(frontier_config(architectures=[knob])).spots) == 2
    with pytest.raises(AgoraError, match=r"frontier\.gap_s: has no effect on 'greedy'"):
        make_grid(frontier_config(architectures=[knob], gap_s=[0.1]))


def test_a_workload_without_loads_cannot_run_at_some() -> None:
    tree = frontier_tree(load_percent=[50])
    tree["workload"] = {"kind": "google2011", "directory": "nowhere"}
    with pytest.raises(AgoraError, match="kind 'google2011' has no option load_percent"):
        make_grid(validated(tree, "file"))


def test_a_load_that_the_workload_refuses_is_named() -> None:
    with pytest.raises(AgoraError, match=r"frontier\.load_percent 5000: .*1000"):
        make_grid(frontier_config(load_percent=[5000]))


def test_options_replace_parts_of_the_section_and_are_named_when_wrong() -> None:
    config = with_options(frontier_config(), 4, (70, 80), (0.2,))
    frontier = config.frontier
    assert (frontier.seeds, frontier.load_percent, frontier.gap_s) == (4, (70, 80), (0.2,))
    assert len(frontier.architectures) == 3
    with pytest.raises(AgoraError, match="--load: load_percent: a value appears twice"):
        with_options(config, None, (70, 70), None)


@pytest.mark.parametrize(
    ("knob", "value", "text"),
    [
        (None, None, ""),
        ("options.patience_s", 0.3, "300 ms"),
        ("options.patience_s", 0, "0"),
        ("protocol.tau_s", 1e6, "∞"),
        ("protocol.tau_s", 1e-6, "0"),
        ("options.levels", 32, "32"),
        ("protocol.strategy", "adaptive", "adaptive"),
        ("options.may_wait", True, "true"),
    ],
)
def test_values_are_shown_as_people_read_them(knob: Any, value: Any, text: str) -> None:
    assert setting_text(knob, value) == text
