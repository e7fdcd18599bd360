"""Ctrl-C in a live run as a terminal sends it: to the command and to every process of Ray."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.summary import read_summary
from parsync.runtime import replay
from tests.fixtures.stopping import stop_when

pytestmark = pytest.mark.ray

CONFIG = """
seeds = 1
settle_s = 0.1
runtime = "ray"

[synthetic]
machines = 200
mean_duration_s = 0.5
batch_tasks = 20
phase_s = 30.0

[[arms]]
name = "ParSync"
sync = "diff_block"
partitions = 6
gap_s = 0.2
groups = [{ name = "greedy", kind = "random", count = 4 }]

[[arms]]
name = "Flow"
sync = "state_aligned"
partitions = 6
gap_s = 0.2
groups = [{ name = "flow", kind = "quincy", count = 1 }]
"""


def grown(path: Path, size: int) -> Callable[[], bool]:
    return lambda: path.exists() and path.stat().st_size > size


def test_ctrl_c_during_a_live_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text(CONFIG)
    run = tmp_path / "run"
    log = run / "arms" / "parsync" / "log"
    stopped = stop_when(
        grown(log / "cell.journal", 200_000),
        "experiments.parsync_vs_flow",
        ["--config", tmp_path / "run.toml", "--out", run],
    )
    assert stopped.status == 130 and stopped.left == []
    assert "Traceback" not in stopped.err and stopped.err.splitlines()[-1] == "interrupted"
    assert "PARTIAL: 'ParSync': interrupted; 1 of 2 arms did not run" in stopped.out
    summary = read_summary(run)
    assert summary["partial"] and [arm["partial"] for arm in summary["arms"]] == [True]
    assert 0 < summary["arms"][0]["totals"]["committed"] < summary["workload"]["arrivals"]
    assert (run / "report.html").exists()
    assert replay.replay(log).divergence is None
    capsys.readouterr()
    assert replay.main([str(run)]) == 2
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{run}: the run did not get to its end: {summary['partial_reason']}"
    assert said[1].endswith("parsync: the arm did not get to its end: interrupted")
    assert "what is there repeats: " in said[2] and len(said) == 3
    assert not list(run.rglob("*pickle*"))
