"""Whatever a late stage of a command could not do is refused before the first run, in one line, and
nothing is left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.campaign.running import make_workload
from experiments.config.run_config import RunConfig, load_config
from experiments.studies.frontiers.execution import has_quality
from experiments.studies.run import fluid_bound
from experiments.studies.run.sensitivity import changed_points
from parsync.metrics.kinds.delay import DelayMetric
from shared_state.errors import AgoraError
from tests.fixtures.commands import agora
from tests.fixtures.run_toml import arm_toml, workload_toml

START = 'name = "late"\nseed = {seed}\nseeds = 2\nsettle_s = 0.2\nsensitivity_seeds = 1\n'
PREFERENCES = workload_toml(40, 0.6, 'slots_per_machine = 4\nload_percent = [60]\nstart = "cold"\n')
NO_PREFERENCES = f"{PREFERENCES}preference_groups = 0\n"
CONSTRAINTS = """
[workload]
kind = "service_batch"
machines = 40
duration_s = 20.0
initial_fill_percent = 10
service = { interarrival_s = 10.0, tasks_per_job = 3.0, run_s = 10.0 }
[workload.batch]
interarrival_s = 2.0
tasks_per_job = 5.0
run_s = 5.0
pickiness = 0.5
constrained_permille = 500
"""
FRONTIER = """
[frontier]
seeds = 1
[[frontier.architectures]]
arm = "One"
knob = "{knob}"
values = {values}
"""
SWEEP = """
[sweep]
metric = "set_preferred_share_worst"
until = "2%"
[sweep.grid]
workload.machines = [40, 50]
"""


def text(
    workload: str, *rest: str, seed: int = 1, decision: str = "", arms: tuple[str, ...] = ("One",)
) -> str:
    more = f"""options = {{ patience_s = 0.1 }}
decision = {{ clock = "modelled", task_us = 700.0{decision} }}"""
    group = {"kind": "load_spreading", "count": 2, "gap_s": 0.05, "partitions": 2, "more": more}
    return "".join(
        [START.format(seed=seed), workload, *(arm_toml(name, **group) for name in arms), *rest]
    )


NO_QUALITY = "frontier: no task of this workload prefers any machine"
KNOB = FRONTIER.format(knob="options.patience_s", values="[0.0, 0.1]")
SPEED = FRONTIER.format(knob="decision.task_us", values="[100.0, 700.0]")
PRICES = FRONTIER.format(knob="options.prices", values='["none", "implied"]')


@pytest.mark.parametrize(
    ("command", "content", "message"),
    [
        ("run", text(NO_PREFERENCES, KNOB), NO_QUALITY),
        ("frontier", text(NO_PREFERENCES, KNOB), NO_QUALITY),
        (
            "run",
            text(PREFERENCES, SPEED),
            "decision.task_us changes the clock class or the capacity",
        ),
        ("run", text(CONSTRAINTS, PRICES), "frontier: options.prices = implied: arm 'One': "),
        ("frontier", text(CONSTRAINTS, PRICES), "frontier: options.prices = implied: arm 'One': "),
        ("run", text(PREFERENCES, seed=(1 << 63) - 1), "seed: Input should be less than 92233"),
        (
            "sweep",
            text(NO_PREFERENCES, SWEEP, arms=("One", "Two")),
            "sweep.metric: 'set_preferred_share_worst': no task of these workloads prefers any",
        ),
    ],
    ids=["run", "frontier", "class", "knob", "knob of frontier", "seeds", "sweep"],
)
def test_it_is_refused_before_anything_runs(
    command: str,
    content: str,
    message: str,
    tmp_path: Path,
) -> None:
    path, out = tmp_path / "run.toml", tmp_path / "out"
    path.write_text(content, "utf-8")
    ended = agora(command, *(["--config"] if command == "run" else []), path, "--out", out)
    assert ended.returncode == 2 and ended.stderr.startswith(f"error: {path}: ")
    assert ended.stderr.count("\n") == 1 and message in ended.stderr
    assert not ended.stdout and not out.exists()
    assert message != NO_QUALITY or "`agora sweep`" in ended.stderr


def config(tmp_path: Path, content: str) -> RunConfig:
    path = tmp_path / "run.toml"
    path.write_text(content, "utf-8")
    return load_config(path)


def test_a_cost_of_other_machines_is_a_quality_and_so_is_a_stated_one(tmp_path: Path) -> None:
    for workload, section, expected in (
        (PREFERENCES, "", True),
        (NO_PREFERENCES, "", False),
        (NO_PREFERENCES, "[frontier]\ndearest_cost = 100.0\n", True),
    ):
        of = config(tmp_path, text(workload, section))
        assert has_quality(of, make_workload(of, 1)) == expected


def test_no_arm_charges_tasks_that_wait_beside_other_times_for_services(tmp_path: Path) -> None:
    plain = config(tmp_path, text(PREFERENCES))
    slow = config(tmp_path, text(PREFERENCES, decision=", service = { task_us = 900.0 }"))
    keys = [{choice.key for choice, _ in changed_points(one)} for one in (plain, slow)]
    assert keys == [{"scan_cost", "charges_kept"}, {"scan_cost"}]


def refuse_rates(*arguments: object) -> None:
    raise AgoraError("workload kind 'synthetic': expected_rates: wrong")


def fail(*arguments: object) -> None:
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("place", "name", "broken", "message"),
    [
        (fluid_bound, "_check_rates", refuse_rates, "kind 'synthetic': expected_rates: wrong"),
        (DelayMetric, "__init__", fail, "metric 'delay': __init__: RuntimeError: out of order"),
    ],
    ids=["expected rates", "metric"],
)
def test_code_of_others_that_fails_is_refused_first(
    place: Any,
    name: str,
    broken: Callable[..., None],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place, name, broken)
    path, out = tmp_path / "run.toml", tmp_path / "out"
    path.write_text(text(PREFERENCES), "utf-8")
    ended = agora("run", "--config", path, "--out", out)
    assert ended.returncode == 2 and message in ended.stderr and not out.exists()


@pytest.mark.parametrize(
    ("free", "command", "says"),
    [
        (65 << 20, ["run", "--config", "run.toml"], "MiB free on its disk, got 65 MiB"),
        (63 << 20, ["reproduce", "parsync", "fig5"], "at least 64 MiB free on its disk, got 63"),
    ],
)
def test_a_disk_that_is_too_full_is_refused_first(
    free: int, command: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = PREFERENCES.replace("machines = 40", "machines = 400000").replace("0.5", "0.2")
    (tmp_path / "run.toml").write_text(text(large), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    ended = agora(*command, "--out", "out")
    assert ended.returncode == 2 and says in ended.stderr and not Path("out").exists()


def test_a_paper_that_needs_more_memory_than_there_is_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.campaign.preconditions.available_bytes", lambda: 1 << 20)
    ended = agora("reproduce", "parsync", "fig5", "--out", tmp_path / "out")
    assert ended.returncode == 2 and ended.stderr.startswith("error: memory: ")
