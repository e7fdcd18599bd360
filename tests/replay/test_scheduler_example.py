"""The example of a scheduler outside the repository: pip installs it elsewhere, and it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.commands.run import app
from schedulers import registry
from schedulers.conformance import check_conformance
from tests.fixtures.commands import exit_status

EXAMPLE = Path(__file__).parents[2] / "examples" / "schedulers"
CONFIG = """
drain_s = 5.0
settle_s = 0.05
runtime = "virtual"
seeds = 2

[workload]
kind = "synthetic"
machines = 30
slots_per_machine = 2
mean_duration_s = 0.1
batch_tasks = 10
phase_s = 0.2
load_percent = [90]

[[arms]]
name = "Two choices"
partitions = 6

[[arms.groups]]
name = "mine"
kind = "two_choices"
count = 2
options = { choices = 3 }
protocol = { kind = "optimistic", sync = "diff_block", gap_s = 0.05, sync_set = "all" }

[[arms.groups]]
name = "random"
kind = "random"
count = 2
protocol = { kind = "optimistic", sync = "diff_block", gap_s = 0.05, sync_set = "all" }
"""


@pytest.fixture
def site(example_site: Callable[[str], Path]) -> Path:
    return example_site("schedulers")


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(site)


@pytest.mark.usefixtures("installed")
def test_the_example_keeps_the_contract(site: Path) -> None:
    spec = registry.get("two_choices")
    module = sys.modules[spec.build.__module__]
    assert Path(str(module.__file__)).is_relative_to(site)
    check_conformance(spec)
    check_conformance(spec, {"choices": 1})


@pytest.mark.usefixtures("installed", "no_figures")
def test_the_example_shares_a_cell_with_a_kind_of_ours(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(CONFIG)
    out = tmp_path / "run"
    assert exit_status(app, "--config", tmp_path / "run.toml", "--out", out) == 0
    [arm] = read_summary(out).arms
    assert arm.totals.committed == arm.totals.submitted > 0


def test_the_example_is_short() -> None:
    lines = (EXAMPLE / "two_choices" / "__init__.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
