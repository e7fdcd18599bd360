"""The format number of configurations: what files without one meant by kinds of schedulers."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

from experiments.campaign import points
from experiments.campaign.points import Point
from experiments.config.file_format import NOTE
from experiments.config.run_config import RunConfig, load_config, validated
from experiments.studies.sweeps.sweep_file import read_sweep
from experiments.toml_text import toml_text
from parsync.strict_model import RenamedOption
from shared_state.errors import AgoraError
from tests.fixtures.commands import agora
from tests.fixtures.run_toml import arm_toml, workload_toml

COUNTED = 'decision = { clock = "counted" }'
BODY = workload_toml(40, 0.5, "start = 'cold'\nload_percent = [60]")
BODY += arm_toml("Q", kind="quincy", count=1, more=COUNTED)
BODY += arm_toml("F", kind="firmament", count=1, more=COUNTED)
BODY += arm_toml("R", kind="random")
SWEEP = '[sweep]\nseeds = 1\n[sweep.grid]\narms.Q.groups.greedy.kind = ["firmament", "random"]\n'


def written(folder: Path, top: str, body: str = BODY) -> Path:
    path = folder / "run.toml"
    path.write_text(f"{top}\nsettle_s = 0.1\n{body}")
    return path


def kinds(config: RunConfig) -> list[str | None]:
    return [arm.groups[0].kind for arm in config.arms]


@pytest.mark.parametrize("top", ["", "format = 1"])
def test_kinds_of_a_file_without_a_number_are_what_they_were(tmp_path: Path, top: str) -> None:
    with pytest.warns(RenamedOption, match="without a format number") as said:
        config = load_config(written(tmp_path, top))
    assert len(said) == 1
    assert kinds(config) == ["flow", "flow", "random"]
    with pytest.warns(RenamedOption):
        sweep = read_sweep(written(tmp_path, top, SWEEP + BODY), {})
    assert [kinds(one.config)[0] for one in sweep.combinations] == ["flow", "random"]


def test_a_file_without_former_kinds_says_nothing(tmp_path: Path) -> None:
    body = workload_toml(40, 0.5, "start = 'cold'\nload_percent = [60]")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = load_config(written(tmp_path, "", body + arm_toml("R", kind="random")))
    assert kinds(config) == ["random"]


def test_a_number_tells_the_kinds_of_today(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kinds(load_config(written(tmp_path, "format = 2"))) == [
            "quincy",
            "firmament",
            "random",
        ]
        sweep = read_sweep(written(tmp_path, "format = 2", SWEEP + BODY), {})
    assert kinds(sweep.combinations[0].config)[0] == "firmament"


def test_a_written_configuration_has_the_number(tmp_path: Path) -> None:
    with pytest.warns(RenamedOption):
        config = load_config(written(tmp_path, ""))
    text = toml_text(config.model_dump(mode="json"))
    assert tomllib.loads(text)["format"] == 2
    (tmp_path / "again.toml").write_text(text)
    assert load_config(tmp_path / "again.toml") == config
    with pytest.warns(RenamedOption):
        sweep = read_sweep(written(tmp_path, "", SWEEP + BODY), {})
    (tmp_path / "again.toml").write_text(toml_text(sweep.tree()))
    again = read_sweep(tmp_path / "again.toml", {})
    assert [one.config for one in again.combinations] == [one.config for one in sweep.combinations]


def test_a_sweep_and_its_base_each_have_a_number(tmp_path: Path) -> None:
    with pytest.warns(RenamedOption):
        written(tmp_path, "")
        (tmp_path / "sweep.toml").write_text(
            'format = 2\n[sweep]\nbase = "run.toml"\n[sweep.grid]\n'
            'arms.R.groups.greedy.kind = ["random", "quincy"]\n'
            "arms.R.groups.greedy.count = [1]\n"
            'arms.R.groups.greedy.decision = [{ clock = "counted" }]\n'
        )
        sweep = read_sweep(tmp_path / "sweep.toml", {})
    assert [kinds(one.config) for one in sweep.combinations] == [
        ["flow", "flow", "random"],
        ["flow", "flow", "quincy"],
    ]


@pytest.mark.parametrize(
    ("top", "says"),
    [
        ("format = 3", "format: 3 is newer than this version of Agora, which reads up to 2"),
        ("format = 0", "format: expected 2, got 0"),
        ('format = "2"', "format: expected 2, got '2'"),
        ("format = true", "format: expected 2, got True"),
    ],
)
def test_a_number_that_cannot_be_read_is_refused(tmp_path: Path, top: str, says: str) -> None:
    path = written(tmp_path, top)
    with pytest.raises(AgoraError) as refused:
        load_config(path)
    assert str(refused.value) == f"{path}: {says}"


def test_a_command_says_it_once(tmp_path: Path, no_figures: None, one_process: None) -> None:
    path = written(tmp_path, "seeds = 1", BODY.replace('"firmament"', '"quincy"'))
    ended = agora("run", "--config", path, "--out", tmp_path / "run")
    assert ended.stderr.count("note: ") == ended.stderr.count(NOTE) == 1
    assert tomllib.loads((tmp_path / "run" / "config.toml").read_text())["format"] == 2


def key(kind: str, more: str = "", **tree: Any) -> str:
    arm = arm_toml("A", kind=kind, count=1, more=f"{COUNTED}\n{more}")
    if kind == "preempting":
        arm = arm.replace("partitions", 'evictions = "lower_priority"\npartitions', 1)
    base = tomllib.loads(workload_toml(40, 0.5) + arm)
    config = validated({"settle_s": 0.1, **base, **tree}, "test")
    return Point(config, config.arms[0], 3).key()


def test_results_of_flow_are_kept_by_the_name_that_it_had() -> None:
    """The keys of `flow` are those that `quincy` had before formats had numbers, so that kept
    results are found; those of the kinds that have the name now are others."""
    assert key("flow") == "bcd51c92b48e4a106f09cc6bc9335890"
    assert len({key(kind) for kind in ("flow", "quincy", "firmament", "random")}) == 4


def test_results_that_are_others_than_before_have_other_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Flow under preemption, load spreading where sizes of tasks differ, and greedy preemption,
    which has figures of its own now."""
    preempts = "options = { preemption = true }"
    alike = (("flow", ""), ("random", ""))
    others = (("flow", preempts), ("flow_load_spreading", ""), ("preempting", ""))
    now = [key(*case) for case in (*alike, *others)]
    monkeypatch.setattr(points, "group_as_keyed", _as_it_was)
    before = [key(*case) for case in (*alike, *others)]
    same = [its == it for its, it in zip(now, before, strict=True)]
    assert same == [True, True, False, False, False]


def _as_it_was(group: dict[str, Any]) -> dict[str, Any]:
    return {**group, "kind": "quincy"} if group["kind"] == "flow" else group
