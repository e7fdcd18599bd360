"""The main job as a user runs it: a small experiment, run again from its own configuration, and bad
input refused in one line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.fixtures.commands import AGORA, agora
from tests.fixtures.stopping import ROOT


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """`agora` in a process of its own."""
    return subprocess.run(
        [*AGORA, *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_run_directory_is_complete(whole: Path) -> None:
    summary = json.loads((whole / "summary.json").read_text())
    assert not summary["partial"] and len(summary["arms"]) == len(summary["paired"]["seeds"]) == 2
    for arm in summary["arms"]:
        tasks = pq.read_table(whole / "arms" / arm["slug"] / "tasks.parquet")
        assert tasks.num_rows == arm["totals"]["committed"] == summary["workload"]["arrivals"]
    assert not list(whole.rglob("*.partial"))
    assert (whole / "report.html").stat().st_size > 10_000


def test_a_run_repeats_from_its_own_configuration_in_another_process(
    whole: Path, tmp_path: Path
) -> None:
    done = command("run", "--config", whole / "config.toml", "--out", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    assert "ParSync" in done.stdout and "Flow" in done.stdout
    runs = whole, tmp_path / "again"
    first, again = (json.loads((run / "summary.json").read_text()) for run in runs)
    assert first["digest"] == again["digest"]
    assert [arm["regret"] for arm in first["arms"]] == [arm["regret"] for arm in again["arms"]]
    assert len({(run / "config.toml").read_text() for run in runs}) == 1


def test_the_measured_run_and_its_seed_agree(whole: Path) -> None:
    # The first paired seed is the run's own: writing measurements must not change what happens.
    summary = json.loads((whole / "summary.json").read_text())
    seed = json.loads((whole / "seeds" / f"{summary['seed']}.json").read_text())
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
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    run = agora("run", *arguments, "--out", tmp_path / "run")
    (line,) = run.stderr.splitlines()
    assert run.returncode == 2 and message in line


def test_a_cluster_that_is_not_there_is_one_line_and_status_2(tmp_path: Path) -> None:
    """From the process: Ray's own lines would be on its standard error."""
    options = ["--runtime", "ray", "--address", "127.0.0.1:1", "--quick"]
    done = command("run", *options, "--out", tmp_path / "run")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "127.0.0.1:1" in line


def test_results_are_never_overwritten(whole: Path) -> None:
    before = sorted(path.name for path in whole.rglob("*"))
    run = agora("run", "--config", whole / "config.toml", "--out", whole)
    assert run.returncode == 2 and "already exists" in run.stderr
    assert sorted(path.name for path in whole.rglob("*")) == before
