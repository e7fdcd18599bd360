"""Whatever a late stage of a command could not do is refused before the first run, in one line, and
nothing is left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from experiments.campaign.running import make_workload
from experiments.commands.frontier import app as frontier
from experiments.commands.reproduce import app as reproduce
from experiments.commands.run import app as run
from experiments.commands.sweep import app as sweep
from experiments.config.run_config import RunConfig, load_config
from experiments.studies.frontiers.execution import has_quality
from experiments.studies.run import fluid_bound
from experiments.studies.run.sensitivity import changed_points
from parsync.metrics.delay import DelayMetric
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status

START = """
name = "late"
seed = {seed}
seeds = 2
settle_s = 0.2
sensitivity_seeds = 1
"""
PREFERENCES = """
[workload]
kind = "synthetic"
machines = 40
slots_per_machine = 4
mean_duration_s = 0.2
phase_s = 0.6
load_percent = [60]
start = "cold"
"""
NO_PREFERENCES = f"{PREFERENCES}preference_groups = 0\n"
CONSTRAINTS = """
[workload]
kind = "service_batch"
machines = 40
duration_s = 20.0
initial_fill_percent = 10
[workload.batch]
interarrival_s = 2.0
tasks_per_job = 5.0
run_s = 5.0
pickiness = 0.5
constrained_permille = 500
[workload.service]
interarrival_s = 10.0
tasks_per_job = 3.0
run_s = 10.0
"""
ARM = """
[[arms]]
name = "{name}"
partitions = 2
[[arms.groups]]
name = "g"
kind = "load_spreading"
count = 2
options = {{ patience_s = 0.1 }}
protocol = {{ kind = "optimistic", sync = "diff_block", gap_s = 0.05 }}
decision = {{ clock = "modelled", task_us = 700.0{decision} }}
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
    named = (ARM.format(name=name, decision=decision) for name in arms)
    return "".join([START.format(seed=seed), workload, *named, *rest])


NO_QUALITY = "frontier: no task of this workload prefers any machine"
KNOB = FRONTIER.format(knob="options.patience_s", values="[0.0, 0.1]")
SPEED = FRONTIER.format(knob="decision.task_us", values="[100.0, 700.0]")
PRICES = FRONTIER.format(knob="options.prices", values='["none", "implied"]')


@pytest.mark.parametrize(
    ("app", "content", "message"),
    [
        (run, text(NO_PREFERENCES, KNOB), NO_QUALITY),
        (frontier, text(NO_PREFERENCES, KNOB), NO_QUALITY),
        (run, text(PREFERENCES, SPEED), "decision.task_us changes the clock class or the capacity"),
        (run, text(CONSTRAINTS, PRICES), "frontier: options.prices = implied: arm 'One': "),
        (frontier, text(CONSTRAINTS, PRICES), "frontier: options.prices = implied: arm 'One': "),
        (run, text(PREFERENCES, seed=(1 << 63) - 1), "seed: Input should be less than 92233"),
        (
            sweep,
            text(NO_PREFERENCES, SWEEP, arms=("One", "Two")),
            "sweep.metric: 'set_preferred_share_worst': no task of these workloads prefers any",
        ),
    ],
    ids=["run", "frontier", "class", "knob", "knob of frontier", "seeds", "sweep"],
)
def test_it_is_refused_before_anything_runs(
    app: typer.Typer,
    content: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out = tmp_path / "run.toml", tmp_path / "out"
    path.write_text(content, "utf-8")
    where = ["--config", path] if app is run else [path]
    assert exit_status(app, *where, "--out", out) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and said.err.startswith(f"error: {path}: ")
    assert message in said.err and not said.out and not out.exists()
    assert message != NO_QUALITY or "`agora sweep`" in said.err


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
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(place, name, broken)
    path, out = tmp_path / "run.toml", tmp_path / "out"
    path.write_text(text(PREFERENCES), "utf-8")
    assert exit_status(run, "--config", path, "--out", out) == 2
    assert message in capsys.readouterr().err and not out.exists()


def disk(free: int) -> Callable[[Path], SimpleNamespace]:
    return lambda path: SimpleNamespace(free=free)


def test_a_disk_that_is_too_full_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text(PREFERENCES.replace("machines = 40", "machines = 400000")), "utf-8")
    monkeypatch.setattr(shutil, "disk_usage", disk(65 << 20))
    assert exit_status(run, "--config", path, "--out", tmp_path / "out") == 2
    assert "MiB free on its disk, got 65 MiB" in capsys.readouterr().err
    monkeypatch.setattr(shutil, "disk_usage", disk(63 << 20))
    assert exit_status(reproduce, "parsync", "fig5", "--out", tmp_path / "out") == 2
    assert "at least 64 MiB free on its disk, got 63 MiB" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_paper_that_needs_more_memory_than_there_is_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("experiments.campaign.preconditions.available_bytes", lambda: 1 << 20)
    assert exit_status(reproduce, "parsync", "fig5", "--out", tmp_path / "out") == 2
    assert capsys.readouterr().err.startswith("error: memory: ")
