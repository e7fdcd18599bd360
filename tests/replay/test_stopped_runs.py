"""Commands stopped from outside, as it happens: a signal at any moment from the first line on, to
the command or to its whole process group, and a limit on what may be written. One line, status 128
plus the signal's number, nothing half written, no process left."""

from __future__ import annotations

import json
import random
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
from tests.fixtures.examples import some_of
from tests.fixtures.run_toml import arm_toml
from tests.fixtures.stopping import ROOT, stop_when
from tests.unit.run_factory import write_synthetic_run

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


# --- other commands -------------------------------------------------------------------------------

NAMES = ("StateSync aligned quality-first", "ParSync adaptive")


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("synthetic") / "run"
    return write_synthetic_run(directory, names=NAMES, step_us=2_000_000)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("experiments.compare", ["RUN", "--out", "OUT.html"]),
        ("experiments.report", ["RUN"]),
        ("experiments.commands.replay", ["RUN"]),
        ("flowsolver", ["generate", "quincy", "--machines", "20000", "--out", "OUT.npz"]),
    ],
)
def test_a_signal_at_any_moment_of_a_short_command(
    module: str, arguments: list[str], synthetic: Path, tmp_path: Path
) -> None:
    put = {
        "RUN": str(synthetic),
        "OUT.html": str(tmp_path / "o.html"),
        "OUT.npz": str(tmp_path / "o.npz"),
    }
    arguments = [put.get(word, word) for word in arguments]
    stopped = 0
    for step, (number, status, said, group) in enumerate(HOW_TO_STOP):
        end = stop_when(lambda: True, module, arguments, number, group, step * 0.2)
        if end.status == status:
            assert end.err == f"{said}\n", end.err
            stopped += 1
        else:  # it had ended before
            assert end.status in (0, 2), end
        assert end.left == []
        assert not list(tmp_path.glob("*.partial")) and not list(synthetic.rglob("*.partial"))
    assert stopped >= 2


def test_a_signal_at_random_moments_of_a_short_run(tmp_path: Path) -> None:
    """Where it comes before there is anything, nothing is left of the run; else what there is."""
    arguments = [*configuration(tmp_path, phase_s=0.5), "--seeds", "2"]
    draws = random.Random(14)
    directory = tmp_path / "run"
    for number, status, said, group in HOW_TO_STOP * len(some_of(range(4))):
        delay_s = draws.uniform(0, 4)
        stopped = stop_when(lambda: True, MAIN, arguments, number, group, delay_s)
        where = f"{signal.Signals(number).name} after {delay_s:.3f} s: {stopped}"
        assert stopped.status in (status, 0) and stopped.left == [], where
        assert "Traceback" not in stopped.err and "ignored" not in stopped.err, where
        if stopped.status:
            assert stopped.err.splitlines()[-1] == said, where
        if directory.exists():
            assert read_summary(directory).arms, where
            assert not list(directory.glob("*.partial")), where
            for path in sorted(directory.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            directory.rmdir()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_solver_bench_keeps_what_it_has_and_its_solver_ends_with_it(
    number: int, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = "--machines 3000 --figures utilisation --peers none --time-limit 60"
    options += " --algorithms cycle_cancelling,incremental_ssp"
    arguments = ["bench", "--out", out, *options.split()]
    stopped = stop_when(lambda: out.exists(), "flowsolver", arguments, number, False, 2.0)
    assert stopped.left == [] and "Traceback" not in stopped.err
    if number == signal.SIGKILL:
        assert stopped.status == -number
        return
    assert stopped.status == 143
    assert stopped.err.splitlines()[-1] == "terminated (SIGTERM)"
    assert json.loads((out / "bench.json").read_text())["partial"]
