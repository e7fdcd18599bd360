"""The sync policy of examples/sync_policies, from another package, in runs of the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fixtures.installed import install_project
from tests.unit.test_add_a_sync_policy import EXAMPLE, ROOT, install_mistaken, site_of


def run(toml: Path, out: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "experiments.parsync_vs_flow", "--config", toml, "--out", out]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )


def test_the_example_runs_from_its_toml_file(tmp_path: Path) -> None:
    site = site_of(tmp_path)
    install_project(site, EXAMPLE)
    done = run(EXAMPLE / "run.toml", tmp_path / "run", site)
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    ours, theirs = summary["arms"]
    assert ours["name"] == "conflicts first" and ours["digest"] != theirs["digest"]
    for arm in (ours, theirs):
        assert arm["totals"]["committed"] == arm["totals"]["submitted"] > 1000


def test_the_command_ends_the_arm_of_such_a_policy_and_runs_the_others(tmp_path: Path) -> None:
    site, out = site_of(tmp_path), tmp_path / "run"
    says = install_mistaken(site, "a list of int64")
    done = run(EXAMPLE / "run.toml", out, site)
    assert done.returncode == 2, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert errors == [f"error: 'conflicts first': {says}"]
    broken, other = json.loads((out / "summary.json").read_text("utf-8"))["arms"]
    assert broken["totals"]["committed"] < broken["totals"]["submitted"]
    assert other["totals"]["committed"] == other["totals"]["submitted"] > 1000
