"""A live run that is stopped from outside: by signals to the command or to its whole process group,
and by its death. Ray's processes end with it, and what there is is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.commands import replay
from experiments.commands.report import report_command as report
from experiments.results import load_run
from tests.fixtures.commands import without_progress
from tests.fixtures.run_toml import LIVE, arm_toml, workload_toml
from tests.fixtures.stopping import ROOT, alive, stop_when

pytestmark = pytest.mark.ray

MAIN = "experiments.parsync_vs_flow"
CONFIG = LIVE + workload_toml(200, 30.0)
UNDER_WAY = 50_000  # bytes of the cell's log, after some tenths of a second
ARMS = arm_toml("ParSync") + arm_toml("Flow", "flow", "flow", 1, "state_aligned")


@pytest.fixture
def arguments(tmp_path: Path) -> list[str | Path]:
    (tmp_path / "run.toml").write_text(CONFIG + ARMS)
    return ["--config", tmp_path / "run.toml", "--out", tmp_path / "run"]


def grown(path: Path, size: int) -> Callable[[], bool]:
    return lambda: path.exists() and path.stat().st_size > size


def started(program: str, mark: str) -> Callable[[], bool]:
    """Whether a process of that program has the mark in its environment."""

    def look() -> bool:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                program_there = program in (folder / "cmdline").read_text().split("\0")[0]
                if program_there and mark.encode() in (folder / "environ").read_bytes():
                    return True
            except OSError:
                continue
        return False

    return look


@pytest.mark.parametrize(
    ("number", "status", "said", "group"),
    [
        (signal.SIGINT, 130, "interrupted", True),
        (signal.SIGTERM, 143, "terminated (SIGTERM)", False),
    ],
)
def test_a_signal_during_a_live_arm(
    arguments: list[str | Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    number: int,
    status: int,
    said: str,
    group: bool,
) -> None:
    run = tmp_path / "run"
    log = run / "arms" / "parsync" / "log"
    stopped = stop_when(grown(log / "cell.journal", UNDER_WAY), MAIN, arguments, number, group)
    assert stopped.status == status and stopped.left == []
    assert stopped.err.splitlines()[-1] == said
    assert not any(text in stopped.err for text in ("Traceback", "SIGTERM received", "PC: @"))
    # a run on a busy machine has a line more
    said_before = without_progress(stopped.err)
    lines = [line for line in said_before if not line.startswith("  disturbed in ")]
    assert len(lines) == 5, stopped.err
    assert "PARTIAL: 'ParSync': interrupted; 1 of 2 arms did not run" in stopped.out
    summary = read_summary(run)
    assert summary.partial and [arm.partial for arm in summary.arms] == [True]
    assert 0 < summary.arms[0].totals.committed < summary.workload.arrivals
    assert (run / "report.html").exists()
    assert replay.replay(log).divergence is None
    capsys.readouterr()
    assert replay.main([str(run)]) == 2
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"{run}: the run ended early: {summary.partial_reason}"
    assert told[1].endswith("parsync: the arm ended early: interrupted")
    assert "the part that could be checked was repeated: " in told[2]
    assert not any("differ" in line for line in told), told
    assert not list(run.rglob("*pickle*"))


@pytest.mark.parametrize(("program", "delay_s"), [("gcs_server", 0.0), ("raylet", 0.7)])
def test_a_signal_while_ray_starts(
    arguments: list[str | Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    delay_s: float,
) -> None:
    mark = str(tmp_path)
    monkeypatch.setenv("AGORA_TEST_START", mark)
    stopped = stop_when(started(program, mark), MAIN, arguments, signal.SIGTERM, False, delay_s)
    assert stopped.status == 143 and stopped.left == []
    assert without_progress(stopped.err) == ["terminated (SIGTERM)"] and stopped.out == ""
    assert not (tmp_path / "run").exists()


def test_nothing_of_ray_outlives_a_killed_command_and_its_logs_are_reported(
    arguments: list[str | Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    log = run / "arms" / "parsync" / "log"
    ready = grown(log / "cell.journal", UNDER_WAY)
    stopped = stop_when(ready, MAIN, arguments, signal.SIGKILL, False)
    assert stopped.status == -signal.SIGKILL and stopped.left == []
    report([run])
    assert capsys.readouterr().err.startswith(f"{run}: partial: 'ParSync': killed; its figures end")
    summary = read_summary(run)
    (arm,) = summary.arms
    assert summary.partial and arm.partial and arm.restarts == []
    assert summary.partial_reason.endswith("into the run; 1 of 2 arms did not run")
    replayed = replay.replay(log)
    assert replayed.divergence is None
    totals, counts = arm.totals, replayed.counts
    assert totals.claims == counts.claims
    assert totals.committed == totals.accepted == counts.accepted > 0
    assert totals.submitted - totals.committed == totals.censored
    assert totals.ended_finished == counts.finished
    assert totals.still_running == counts.running > 0
    assert (run / "report.html").exists()
    loaded = load_run(run).arms[0]
    assert len(loaded.table("tasks")) == totals.committed
    assert len(loaded.table("rejections")) == totals.claims - totals.accepted
    assert all(story.claims for story in loaded.worst_conflicts(3))
    assert loaded.explain(0).claims[-1].outcome == "committed"
    assert not list(loaded.directory.glob("*.partial"))


CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(
    initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 150 << 20}
)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """(address, mark in the environment of its processes) of a Ray that runs by itself."""
    mark = f"cluster of {tmp_path}"
    environment = {**os.environ, "AGORA_TEST_CLUSTER": mark, "RAY_worker_niceness": "0"}
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    yield process.stdout.readline().strip(), mark
    process.stdin.close()
    process.wait(60)


def test_the_actors_of_a_killed_command_end_and_its_cluster_stays(
    arguments: list[str | Path], tmp_path: Path, cluster: tuple[str, str]
) -> None:
    address, mark = cluster
    log = tmp_path / "run" / "arms" / "parsync" / "log"
    ready = grown(log / "cell.journal", UNDER_WAY)
    seen: list[str] = []

    def looked() -> bool:
        if ready():
            seen.extend(name for name in alive(mark, patience_s=0) if "agora:cell" in name)
        return ready()

    stopped = stop_when(looked, MAIN, [*arguments, "--address", address], signal.SIGKILL, False)
    assert stopped.status == -signal.SIGKILL and stopped.left == [] and seen
    assert alive(mark, patience_s=8.0, of="agora:") == []
    assert alive(mark, patience_s=0, of="raylet/raylet")
