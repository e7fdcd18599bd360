"""A flow policy of one's own, given by --with: configurations, sweeps, frontiers and drawings use
it by its name, in processes of their own too, and one that nobody uses becomes an arm."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.commands import AGORA, agora

ROOT = Path(__file__).parents[2]
SOURCE = (ROOT / "examples/flow_policies/fullest_first/__init__.py").read_text(encoding="utf-8")
RUN = """
format = 2
runtime = "virtual"
seeds = 2
settle_s = 0.1
drain_s = 2.0

[workload]
kind = "synthetic"
machines = 20
slots_per_machine = 4
batch_tasks = 5
mean_duration_s = 0.3
load_percent = [70]
phase_s = 0.5

[[arms]]
name = "Mine"
partitions = 2
[[arms.groups]]
name = "flow"
kind = "flow"
count = 1
options = { policy = "of_mine", waiting = 500 }
protocol = { kind = "optimistic", sync = "state_aligned", gap_s = 0.1 }
decision = { clock = "counted" }
"""
BASE = RUN.replace('"of_mine", waiting = 500', '"octopus"')  # nobody uses it
MODELLED = BASE.replace('"counted"', '"modelled", task_us = 500')
SWEEP = '[sweep]\nname = "waiting"\n[sweep.grid]\narms.Mine.groups.flow.options.waiting = [50, 90]'
FRONTIER = (
    '[frontier]\n[[frontier.architectures]]\narm = "Mine"\nknob = "options.waiting"\n'
    "values = [50, 90]"
)

pytestmark = pytest.mark.usefixtures("no_figures", "one_process")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / f"given_{tmp_path.name}.py"  # a module of its own for each test
    file.write_text(SOURCE.replace('PolicySpec("fullest_first"', 'PolicySpec("of_mine"'))
    return file


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "file.toml"
    file.write_text(text)
    return file


def arms_of(run: Path) -> list[str]:
    return [arm["name"] for arm in json.loads((run / "summary.json").read_text())["arms"]]


@pytest.mark.parametrize("used_as", ["policy", "kind"])
def test_a_file_that_uses_it_is_run_as_it_is(tmp_path: Path, policy: Path, used_as: str) -> None:
    text = RUN
    if used_as == "kind":
        text = RUN.replace('kind = "flow"', 'kind = "of_mine"').replace('policy = "of_mine", ', "")
    file, out = written(tmp_path, text), tmp_path / "run"
    done = agora("run", "--config", file, "--with", policy, "--out", out)
    assert done.returncode == 0, done.stderr
    assert arms_of(out) == ["Mine"]
    again = agora("replay", out, "--with", policy)
    assert again.returncode == 0 and "Mine".lower() in again.stdout


def test_points_run_in_processes_that_know_it(tmp_path: Path, policy: Path) -> None:
    file, out = written(tmp_path, f"{RUN}\n{SWEEP}"), tmp_path / "sweep"
    done = subprocess.run(
        [*AGORA, "sweep", file, "--with", policy, "--out", out, "--seeds", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": str(Path(sys.executable).parent)},
    )
    assert done.returncode == 0, done.stderr
    assert (out / "sweep.html").is_file()


def test_a_frontier_varies_its_options(tmp_path: Path, policy: Path) -> None:
    file, out = written(tmp_path, f"{RUN}\n{FRONTIER}"), tmp_path / "frontier"
    done = agora("frontier", file, "--with", policy, "--out", out, "--seeds", 2)
    assert done.returncode == 0, done.stderr
    assert (out / "frontier.html").is_file()


@pytest.mark.parametrize(
    ("text", "given", "arms"),
    [
        (MODELLED, "", ["Mine", "of_mine"]),
        (MODELLED, "=2", ["Mine", "2 of_mine"]),
    ],
)
def test_a_file_that_does_not_use_it_gets_one_more_arm(
    tmp_path: Path, policy: Path, text: str, given: str, arms: list[str]
) -> None:
    file, out = written(tmp_path, text), tmp_path / "run"
    done = agora("run", "--config", file, "--with", f"{policy}{given}", "--out", out)
    assert done.returncode == 0, done.stderr
    assert arms_of(out) == arms


@pytest.mark.parametrize(("text", "given"), [(BASE, ""), (RUN, "=2")])
def test_an_arm_that_has_no_capacity_to_match_is_refused(
    tmp_path: Path, policy: Path, text: str, given: str
) -> None:
    """Also where the file uses the policy, but the number asks for an arm of its own."""
    file, out = written(tmp_path, text), tmp_path / "run"
    done = agora("run", "--config", file, "--with", f"{policy}{given}", "--out", out)
    assert done.returncode == 2 and not out.exists()
    assert "--with: cannot add an arm of 'of_mine': no arm has modelled decision" in done.stderr
    assert 'write an arm with `kind = "of_mine"`' in done.stderr


def test_a_mix_of_it_is_the_only_arm(tmp_path: Path, policy: Path) -> None:
    file, out = written(tmp_path, BASE), tmp_path / "run"
    done = agora("run", "--config", file, "--mix", "of_mine=2", "--with", policy, "--out", out)
    assert done.returncode == 0, done.stderr
    assert arms_of(out) == ["Mix: of_mine=2"]


def test_without_it_the_file_is_refused_and_says_how_to_give_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = agora("run", "--config", written(tmp_path, RUN), "--out", out)
    assert done.returncode == 2 and not out.exists()
    assert "unknown flow policy 'of_mine'" in done.stderr
    assert done.stderr.endswith("one of your own is known with --with FILE.py\n")


def test_its_graph_is_drawn_in_the_example_and_in_a_run(tmp_path: Path, policy: Path) -> None:
    for name, source in (("example", ("--example", "of_mine")), ("run", (written(tmp_path, RUN),))):
        page = tmp_path / f"{name}.html"
        done = agora("draw", *source, "--rounds", "0:1", "--with", policy, "--out", page)
        assert done.returncode == 0, done.stderr
        assert page.is_file()


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("def unscheduled_cost(", "def another(", r"abstract method .* \(FILE, line 46\)"),
        ("cost=load.free,", "cost=load.fre,", r"attribute 'fre' \(FILE, line 33\)"),
        (
            "cost=load.free,",
            "cost=load.free << 50,",
            r"round 1: of_mine: the arc from A0 to machine \d+ costs \d+; expected [^()]+$",
        ),
        ("options.waiting)", "options.waiting, 7)", r"TypeError: .* \(FILE, line 46\)"),
    ],
)
def test_a_mistake_is_placed_in_the_file_of_the_policy(
    tmp_path: Path, policy: Path, right: str, wrong: str, says: str
) -> None:
    """And not in the code of Agora that called it, or that checked what it said."""
    assert SOURCE.count(right) == 1
    policy.write_text(policy.read_text().replace(right, wrong))
    file = written(tmp_path, RUN)
    options = ("--seeds", 1, "--out", tmp_path / "run")
    done = agora("run", "--config", file, "--with", policy, *options)
    assert done.returncode == 2
    (line,) = (one for one in done.stderr.splitlines() if one.startswith("error"))
    assert re.search(says.replace("FILE", policy.name), line), line
