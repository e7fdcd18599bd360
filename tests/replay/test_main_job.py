"""The command as a user runs it: a small experiment, run again from its own configuration, and bad
input refused in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments.commands.run import app
from tests.fixtures.commands import exit_status

ROOT = Path(__file__).parents[2]
CONFIG = """
seeds = 2
drain_s = 5.0
settle_s = 0.1
runtime = "virtual"

[workload]
kind = "synthetic"
machines = 60
slots_per_machine = 4
machines_per_rack = 10
mean_duration_s = 0.2
batch_tasks = 10
phase_s = 0.5

[[arms]]
name = "ParSync adaptive"
partitions = 6

[[arms.groups]]
name = "adaptive"
kind = "random"
count = 4
protocol = { kind = "optimistic", sync = "diff_block", gap_s = 0.05, strategy = "adaptive" }
decision = { clock = "modelled", task_us = 300.0 }

[[arms]]
name = "Flow"
partitions = 6

[[arms.groups]]
name = "flow"
kind = "quincy"
count = 1
protocol = { kind = "optimistic", sync = "state_aligned", gap_s = 0.05, cut_at_sync = false }
"""


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The main job in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "experiments.parsync_vs_flow", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    (folder / "small.toml").write_text(CONFIG)
    done = command("--config", folder / "small.toml", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    assert "adaptive" in done.stdout and "Flow" in done.stdout
    return folder / "run"


def test_a_run_directory_is_complete(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert (
        not summary["partial"]
        and len(summary["arms"]) == 2
        and len(summary["paired"]["seeds"]) == 2
    )
    for arm in summary["arms"]:
        tasks = pq.read_table(finished / "arms" / arm["slug"] / "tasks.parquet")
        assert tasks.num_rows == arm["totals"]["committed"] == summary["workload"]["arrivals"]
    assert not list(finished.rglob("*.partial"))
    assert (finished / "report.html").stat().st_size > 10_000


@pytest.mark.usefixtures("no_figures")
def test_a_run_repeats_from_its_own_configuration_in_another_process(
    finished: Path, tmp_path: Path
) -> None:
    again_dir = tmp_path / "again"
    assert exit_status(app, "--config", finished / "config.toml", "--out", again_dir) == 0
    first, again = (json.loads((run / "summary.json").read_text()) for run in (finished, again_dir))
    assert first["digest"] == again["digest"]
    assert [arm["regret"] for arm in first["arms"]] == [arm["regret"] for arm in again["arms"]]
    assert (finished / "config.toml").read_text() == (again_dir / "config.toml").read_text()


def test_the_measured_run_and_its_seed_agree(finished: Path) -> None:
    # The first paired seed is the run's own: writing measurements must not change what happens.
    summary = json.loads((finished / "summary.json").read_text())
    seed = json.loads((finished / "seeds" / f"{summary['seed']}.json").read_text())
    for arm in summary["arms"]:
        assert arm["digest"] in json.dumps(seed)
        for key in ("decision_regret", "system_regret", "system_regret_moving"):
            assert arm["overall"][key] == seed["arms"][arm["slug"]]["overall"][key]
            assert summary["paired"]["arms"][arm["slug"]][key]["n"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mix", "latency_first=0"], "at least one scheduler"),
        (["--mix", "oracle=3"], "unknown 'oracle'"),
        (["--config", "nowhere.toml"], "nowhere.toml"),
        (["--trace", "google2011:/nonexistent"], "nonexistent"),
        (["--trace", "swf:x"], "swf"),
        (["--duration", "0.1"], "shorter than the gap"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(app, *arguments, "--out", tmp_path / "run") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_a_cluster_that_is_not_there_is_one_line_and_status_2(tmp_path: Path) -> None:
    """From the process: Ray's own lines would be on its standard error."""
    options = ["--runtime", "ray", "--address", "127.0.0.1:1", "--quick"]
    done = command(*options, "--out", tmp_path / "run")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "127.0.0.1:1" in line


def test_results_are_never_overwritten(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in finished.rglob("*"))
    assert exit_status(app, "--config", finished / "config.toml", "--out", finished) == 2
    assert "already exists" in capsys.readouterr().err
    assert sorted(path.name for path in finished.rglob("*")) == before


def test_help_names_every_option() -> None:
    text = command("--help").stdout
    for option in (
        "--config",
        "--mix",
        "--runtime",
        "--live",
        "--scale",
        "--trace",
        "--duration",
        "--seed",
        "--seeds",
        "--quick",
        "--address",
        "--hold",
        "--long",
        "--out",
    ):
        assert option in text
