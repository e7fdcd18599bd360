"""The main job stopped from outside, as it happens: signals to the command or to its whole process
group, and a limit on what may be written."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments.analysis.run_directory import SUMMARY, read_summary
from tests.fixtures.run_toml import arm_toml
from tests.fixtures.stopping import ROOT, stop_when

CONFIG = """
seeds = 1000
settle_s = 0.1
runtime = "virtual"

[workload]
kind = "synthetic"
start = "cold"
machines = 400
mean_duration_s = 0.5
batch_tasks = 20
load_percent = [50, 80]
phase_s = {phase_s}
"""
ARMS = arm_toml("ParSync") + arm_toml("StateSync", sync="state_aligned")
MAIN = "experiments.parsync_vs_flow"
# (signal, exit status, last line, to the whole process group): a terminal's Ctrl-C, a cluster
# manager's SIGTERM to the command or to all there is, a terminal that was closed
HOW_TO_STOP = [
    (signal.SIGINT, 130, "interrupted", True),
    (signal.SIGTERM, 143, "terminated (SIGTERM)", False),
    (signal.SIGTERM, 143, "terminated (SIGTERM)", True),
    (signal.SIGHUP, 129, "hung up (SIGHUP)", True),
]


def configuration(folder: Path, phase_s: float) -> list[str | Path]:
    (folder / "run.toml").write_text(CONFIG.format(phase_s=phase_s) + ARMS)
    return ["--config", folder / "run.toml", "--out", folder / "run"]


def ready_in_the_first_arm(run: Path) -> Callable[[], bool]:
    return lambda: any(run.glob("arms/parsync/tasks*.partial"))


def ready_in_the_seeds(run: Path) -> Callable[[], bool]:
    return lambda: (run / "arms" / "statesync" / "tasks.parquet").exists()


@pytest.mark.parametrize(("number", "status", "said", "group"), HOW_TO_STOP[:2])
def test_a_signal_during_the_first_arm(
    tmp_path: Path, number: int, status: int, said: str, group: bool
) -> None:
    run = tmp_path / "run"
    arguments = configuration(tmp_path, phase_s=20.0)
    stopped = stop_when(ready_in_the_first_arm(run), MAIN, arguments, number, group)
    assert stopped.status == status and stopped.left == []
    assert stopped.err.splitlines()[-1] == said and "Traceback" not in stopped.err
    assert "PARTIAL: 'ParSync': interrupted; 1 of 2 arms did not run" in stopped.out
    summary = read_summary(run)
    assert summary.partial and [arm.name for arm in summary.arms] == ["ParSync"]
    assert 0 < summary.arms[0].totals.committed < summary.workload.arrivals
    parts = list(run.glob("arms/parsync/*.parquet*"))
    assert parts and all(
        part.name.endswith(".partial") and pq.read_table(part).num_rows for part in parts
    )
    assert (run / "report.html").exists()


@pytest.mark.parametrize(("number", "status", "said", "group"), HOW_TO_STOP[1:])
def test_a_signal_during_the_paired_seeds(
    tmp_path: Path, number: int, status: int, said: str, group: bool
) -> None:
    run = tmp_path / "run"
    arguments = configuration(tmp_path, phase_s=0.5)
    stopped = stop_when(ready_in_the_seeds(run), MAIN, arguments, number, group)
    assert stopped.status == status and stopped.left == []
    assert stopped.err.splitlines()[-1] == said and "Traceback" not in stopped.err
    summary = read_summary(run)
    assert summary.partial and [arm.partial for arm in summary.arms] == [False, False]
    assert len(summary.paired.seeds) < 1000
    assert not list(run.rglob("*.partial"))


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    """No report is made any more; one line says how to make it."""
    run = tmp_path / "run"
    arguments = configuration(tmp_path, phase_s=0.5)
    summarised = (run / SUMMARY).exists  # the report takes some seconds more
    stopped = stop_when(
        ready_in_the_seeds(run), MAIN, arguments, signal.SIGTERM, False, 1.0, summarised
    )
    assert stopped.status == 143 and stopped.left == [] and "Traceback" not in stopped.err
    assert stopped.err.splitlines()[-1] == (
        f"terminated (SIGTERM); `agora report {run}` makes the report"
    )
    assert not (run / "report.html").exists()


def test_nothing_outlives_a_killed_command(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = configuration(tmp_path, phase_s=0.5)
    for delay_s in (0.0, 2.0):  # the processes of the paired seeds: starting, at work
        stopped = stop_when(
            ready_in_the_seeds(run), MAIN, arguments, signal.SIGKILL, False, delay_s
        )
        assert stopped.status == -signal.SIGKILL and stopped.left == []
        shutil.rmtree(run)


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    limit = 90_000  # bytes per file: enough for the summary, not for the tasks of an arm
    done = subprocess.run(
        [sys.executable, "-m", MAIN, *map(str, configuration(tmp_path, phase_s=1.5))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert (
        last.startswith("error: 'ParSync': ")
        and ".parquet: cannot write the records: File too large" in last
    )
    assert "Traceback" not in done.stderr
    assert read_summary(tmp_path / "run").partial
    assert not list((tmp_path / "run").glob("arms/*/*.parquet"))
