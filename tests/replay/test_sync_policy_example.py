"""The sync policy of examples/sync_policies, from another package, in runs of the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.commands.run import app
from tests.fixtures.commands import exit_status
from tests.unit.test_add_a_sync_policy import EXAMPLE, ROOT, install_mistaken, site_of


def test_the_example_runs_from_its_toml_file(
    example_site: Callable[[str], Path], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "experiments.parsync_vs_flow"]
    done = subprocess.run(
        [*command, "--config", EXAMPLE / "run.toml", "--out", tmp_path / "run"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(example_site("sync_policies"))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    ours, theirs = summary["arms"]
    assert ours["name"] == "conflicts first" and ours["digest"] != theirs["digest"]
    for arm in (ours, theirs):
        assert arm["totals"]["committed"] == arm["totals"]["submitted"] > 1000


@pytest.mark.usefixtures("no_figures")
def test_the_command_ends_the_arm_of_such_a_policy_and_runs_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, out = site_of(tmp_path), tmp_path / "run"
    says = install_mistaken(site, "a list of int64")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setitem(sys.modules, "conflicts_first", None)  # so that it is gone afterwards
    monkeypatch.delitem(sys.modules, "conflicts_first")
    assert exit_status(app, "--config", EXAMPLE / "run.toml", "--out", out) == 2
    said = capsys.readouterr().err
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert errors == [f"error: 'conflicts first': in the warm-up before time 0: {says}"]
    broken, other = json.loads((out / "summary.json").read_text("utf-8"))["arms"]
    assert broken["partial"] and not broken["totals"]["committed"], "it broke in its warm-up"
    assert other["totals"]["committed"] == other["totals"]["submitted"] > 1000
