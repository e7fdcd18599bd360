"""The runs of examples/: a trace reader from another package, and a cell with CPU and memory."""

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
from experiments.config.run_config import load_config
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads import registry
from experiments.workloads.synthetic import SyntheticOptions
from tests.fixtures.commands import exit_status

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def test_a_reader_of_another_package_runs_from_its_toml_file(
    example_site: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, run, toml = example_site("workloads"), tmp_path / "run", EXAMPLES / "workloads/run.toml"
    done = subprocess.run(
        [sys.executable, "-m", "experiments.parsync_vs_flow", "--config", toml, "--out", run],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads((run / "summary.json").read_text("utf-8"))
    assert summary["workload"]["name"] == summary["config"]["workload"]["kind"] == "csv_trace"
    for arm in summary["arms"]:
        assert arm["totals"]["committed"] == arm["totals"]["submitted"] == 499
    monkeypatch.syspath_prepend(site)
    assert registry.get("csv_trace").attribution in (run / "report.html").read_text("utf-8")
    again, asked = (load_config(file).model_dump() for file in (run / "config.toml", toml))
    for arm in again["arms"]:
        for one in arm["groups"]:  # the workload has no gangs, which settles the mode
            assert one["protocol"].pop("commit_mode") == "incremental"
    assert (again.pop("sample_s"), asked.pop("sample_s")) == (0.1, None)  # settled, too
    assert again == asked, "it can be run again"


@pytest.mark.usefixtures("no_figures")
def test_the_example_of_a_cpu_and_memory_cell_runs(tmp_path: Path) -> None:
    run, toml = tmp_path / "run", EXAMPLES / "cpu_and_memory.toml"
    options = ["--seeds", 1, "--duration", 4]
    assert exit_status(app, "--config", toml, *options, "--out", run) == 0
    shorter = load_config(toml).workload.options.model_dump() | {"phase_s": 2.0}
    expected = WorkloadConfig.of("synthetic", SyntheticOptions.model_validate(shorter))
    assert load_config(run / "config.toml").workload == expected
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    assert summary["workload"]["dimensions"] == ["cpu_milli", "mem_mib"]
    assert summary["workload"]["facts"]["load_percent_of"] == "cpu_milli"
    packed, spread = summary["arms"]
    assert [arm["name"] for arm in (packed, spread)] == ["best fit", "random"]
    for arm in (packed, spread):
        assert arm["totals"]["committed"] == arm["totals"]["submitted"] > 1000
    assert packed["digest"] != spread["digest"]
