"""`python -m parsync.runtime.replay` on run and arm directories: it is ok only if everything is
there and was repeated, and says what is not; nothing in a run directory is executed."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.commands.run import app
from parsync.core.quota_events import QuotaGrant
from parsync.protocols.optimistic.agent_quota import AgentLimit, AgentQuota
from parsync.runtime import replay
from parsync.runtime.arm_file import ARM_FILE, OLD_FILE, ArmFile, write_arm
from parsync.runtime.event_logs import ENDED_FILE, VIRTUAL_LOG, LogEnd, read_end, write_end
from schedulers.interface import ContractBroken
from shared_state.transaction import Transaction
from tests.fixtures.commands import exit_status, without_figures
from tests.fixtures.live_runs import mixed_arm
from tests.fixtures.pickles import MakesAFile

ROOT = Path(__file__).parents[2]
CONFIG = """
seeds = 1
settle_s = 0.1
runtime = "virtual"

[workload]
kind = "synthetic"
start = "cold"
machines = 40
slots_per_machine = 2
mean_duration_s = 0.2
batch_tasks = 10
load_percent = [60, 90]
phase_s = 0.3

[[arms]]
name = "One"
partitions = 4

[[arms.groups]]
name = "greedy"
kind = "random"
count = 4
protocol = { kind = "optimistic", sync = "diff_block", gap_s = 0.05 }

[[arms]]
name = "Two"
partitions = 4

[[arms.groups]]
name = "greedy"
kind = "best_fit"
count = 2
protocol = { kind = "optimistic", sync = "state_aligned", gap_s = 0.05 }
"""


def make_run(folder: Path, config: str = CONFIG) -> Path:
    (folder / "run.toml").write_text(config)
    with without_figures():
        assert exit_status(app, "--config", folder / "run.toml", "--out", folder / "run") == 0
    return folder / "run"


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def run(whole_run: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(whole_run, tmp_path / "run"))


# status, lines on standard output, lines on standard error
Replay = Callable[..., tuple[int, list[str], list[str]]]


@pytest.fixture
def replayed(capsys: pytest.CaptureFixture[str]) -> Replay:
    """The command, in this process."""

    def call(*directories: Path) -> tuple[int, list[str], list[str]]:
        capsys.readouterr()
        status = replay.main([str(directory) for directory in directories])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return call


def test_a_run_an_arm_and_several(run: Path, replayed: Replay) -> None:
    one, two = run / "arms" / "one", run / "arms" / "two"
    status, out, err = replayed(run)
    assert (status, len(out), err) == (0, 2, [])
    assert out[0].startswith(f"{one}: ok: ") and out[1].startswith(f"{two}: ok: ")
    assert replayed(one) == (0, [out[0]], [])
    assert replayed(two, one) == (0, out[::-1], [])
    status, out, err = replayed(one, run / "workload", run / "nowhere", run / "summary.json")
    assert status == 2 and len(out) == 1
    assert "workload: neither a run nor an arm" in err[0]
    assert "nowhere: no such directory" in err[1] and "summary.json: not a directory" in err[2]


def test_a_run_that_was_moved_or_renamed(run: Path, tmp_path: Path, replayed: Replay) -> None:
    moved = run.rename(tmp_path / "moved elsewhere")
    assert replayed(moved)[0] == 0


def test_an_arm_without_its_run(run: Path, tmp_path: Path, replayed: Replay) -> None:
    alone = Path(shutil.copytree(run / "arms" / "one", tmp_path / "deep" / "in" / "a" / "folder"))
    status, _, (line,) = replayed(alone)
    assert status == 2 and "an arm copied without its run?" in line
    shutil.copytree(run / "workload", alone / "workload")
    assert replayed(alone)[0] == 0


def test_an_arm_that_is_missing(run: Path, replayed: Replay) -> None:
    shutil.rmtree(run / "arms" / "two")
    status, out, _ = replayed(run)
    assert status == 2 and f"{run}: arms/two is missing" in out
    assert any("arms/one: ok: " in line for line in out), "the others are checked"


def test_an_arm_too_many(run: Path, replayed: Replay) -> None:
    shutil.copytree(run / "arms" / "one", run / "arms" / "three")
    (run / "arms" / "empty").mkdir()
    status, out, _ = replayed(run)
    assert status == 2
    assert {
        f"{run}: summary.json does not name arms/three",
        f"{run}: arms/empty has no arm.json",
    } <= set(out)


def set_digest(run: Path, arm: int, digest: str) -> None:
    summary = json.loads((run / "summary.json").read_text())
    summary["arms"][arm]["digest"] = digest
    (run / "summary.json").write_text(json.dumps(summary))


def test_another_digest_in_the_summary(run: Path, replayed: Replay) -> None:
    set_digest(run, 0, "f" * 32)
    status, out, _ = replayed(run)
    assert status == 2
    assert "arms/one: summary.json: expected digest " in out[0]
    assert "arms/two: ok: " in out[-1]


def test_another_run_than_at_first(run: Path, replayed: Replay) -> None:
    """As after a change of the code, or on a processor that computes otherwise."""
    arm = run / "arms" / "one"
    end = read_end(arm)
    assert end is not None
    log = end.logs[VIRTUAL_LOG]
    write_end(arm, {VIRTUAL_LOG: LogEnd(log.events, "f" * 32, 0, log.last_us)}, "")
    set_digest(run, 0, "f" * 32)
    status, out, _ = replayed(arm)
    assert status == 1
    assert "the repeated run differs: " in out[0] and f"digest {'f' * 32}" in out[0]


def test_a_missing_end_with_and_without_a_summary(run: Path, replayed: Replay) -> None:
    (run / "arms" / "one" / ENDED_FILE).unlink()
    status, out, _ = replayed(run)
    assert status == 2 and f"{run}/arms/one: {ENDED_FILE} is missing" in out
    assert any("the part that could be checked was repeated: run again" in s for s in out)
    (run / "summary.json").unlink()
    status, out, _ = replayed(run)
    assert status == 2
    assert f"{run}: no summary.json: the run was killed before its end, or still runs" in out
    assert any("arms/one: ended.json is missing: the arm was stopped" in line for line in out)
    assert any("arms/one: not run again: there is no digest" in line for line in out)
    assert any("arms/two: ok: " in line for line in out)


def test_a_run_that_ended_early(run: Path, replayed: Replay) -> None:
    summary = json.loads((run / "summary.json").read_text())
    summary.update(partial=True, partial_reason="'Two': interrupted")
    summary["arms"][1].update(partial=True, digest="")
    (run / "summary.json").write_text(json.dumps(summary))
    (run / "arms" / "two" / ENDED_FILE).unlink()
    status, out, _ = replayed(run)
    assert status == 2
    assert f"{run}: the run ended early: 'Two': interrupted" in out
    assert any("arms/one: ok: " in line for line in out)
    assert any("arms/two: not run again" in line for line in out)


def test_a_scheduler_takes_as_long_as_it_may_have_taken_at_first(
    run: Path, replayed: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose plan_limit_s may have been longer than the one by default."""

    def day_long(limit_s: float, call_under_way: object) -> AbstractContextManager[None]:
        if limit_s < 86_400:
            raise ContractBroken("greedy-0", "random", 1, "plan() has not returned")
        return nullcontext()

    monkeypatch.setattr("parsync.runtime.virtual.run.plan_limit", day_long)
    assert replayed(run)[0] == 0


LIMITED = """
seeds = 1
settle_s = 0.1
runtime = "virtual"

[workload]
kind = "synthetic"
start = "cold"
machines = 40
slots_per_machine = 2
mean_duration_s = 0.2
batch_tasks = 10
load_percent = [140]
phase_s = 0.5
quota_groups = [{ name = "ads", share = [0.5] }, { name = "web", share = [0.5] }]

[[arms]]
name = "One"
partitions = 4
quotas = { interval_s = 0.05, groups = [{ name = "ads", maximum = 0.5 }, { name = "web" }] }

[[arms.groups]]
name = "greedy"
kind = "random"
count = 2
protocol = { kind = "optimistic", sync = "diff_block", gap_s = 0.05 }

[[arms]]
name = "Two"
partitions = 4

[[arms.groups]]
name = "greedy"
kind = "random"
count = 2
protocol = { kind = "optimistic", sync = "diff_block", gap_s = 0.05, hold_max = 0.3 }
"""


CALIBRATION = """
[virtual.calibration]
hosts = 2
tick_us = 25_000
step_us = [700, 900]
other_step_us = [500]
push_us = [400]
lag_us = [60]
"""


@pytest.mark.parametrize("more", ["", CALIBRATION], ids=["plain", "calibrated"])
def test_quotas_and_limits_of_runs_in_virtual_time_are_audited(
    tmp_path: Path, replayed: Replay, more: str
) -> None:
    status, (one, two), err = replayed(make_run(tmp_path, LIMITED + more))
    assert (status, err) == (0, [])
    accepted = (
        r"/arms/{}: ok: run again .* events, [\d,]+ of [\d,]+ claims accepted, {} kept in \d+"
    )
    assert re.search(accepted.format("one", "quotas"), one)
    assert re.search(accepted.format("two", "limits"), two)


def test_a_scheduler_that_takes_more_than_it_may_is_found(
    tmp_path: Path, replayed: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted, limit = AgentQuota.on_grant, AgentLimit.__init__

    def on_grant(self: AgentQuota, grant: QuotaGrant, sequence: int) -> Transaction | None:
        return granted(self, replace(grant, amount=4 * grant.amount), sequence)

    def limited(self: AgentLimit, *arguments: Any) -> None:
        limit(self, *arguments)
        self.account.granted = 4 * self.account.granted

    monkeypatch.setattr(AgentQuota, "on_grant", on_grant)
    monkeypatch.setattr(AgentLimit, "__init__", limited)
    status, (one, two), err = replayed(make_run(tmp_path, LIMITED))
    assert (status, err) == (1, [])
    assert "arms/one: invariant broken: " in one and "arms/two: invariant broken: " in two


def test_measured_decisions_do_not_repeat(tmp_path: Path, replayed: Replay) -> None:
    config = CONFIG.replace("count = 4", 'count = 4\ndecision = { clock = "measured" }')
    run = make_run(tmp_path, config)
    status, out, err = replayed(run)
    assert status == 2 and len(out) == 1 and "arms/two: ok: " in out[0]
    assert "group 'greedy' has measured decision times" in err[0]


def test_a_table_that_was_changed(run: Path, replayed: Replay) -> None:
    path = run / "workload" / "tasks.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    status, out, err = replayed(run)
    assert (status, out, len(err)) == (2, [], 2)
    assert "tasks.parquet: its digest is not that of workload.json" in err[0]


def test_a_workload_of_another_run(run: Path, tmp_path: Path, replayed: Replay) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make_run(other, CONFIG.replace("machines = 40", "machines = 41"))
    shutil.rmtree(run / "workload")
    shutil.copytree(other / "run" / "workload", run / "workload")
    status, out, err = replayed(run)
    assert (status, out) == (2, []) and "damaged, changed, or another run's" in err[0]


@pytest.mark.parametrize("text", ["", "7", "{}", '{"arms": 1}', '{"arms": [1]}'])
def test_a_summary_that_is_none(run: Path, text: str, replayed: Replay) -> None:
    (run / "summary.json").write_text(text)
    status, out, err = replayed(run)
    assert (status, out, len(err)) == (2, [], 1) and "summary.json: " in err[0]


@pytest.mark.parametrize("text", ["", "7", '{"format": 1}', '{"format": 1, "logs": {"events": 1}}'])
def test_an_end_that_is_none(run: Path, text: str, replayed: Replay) -> None:
    (run / "arms" / "one" / ENDED_FILE).write_text(text)
    status, out, err = replayed(run / "arms" / "one")
    assert (status, out, len(err)) == (2, [], 1) and "ended.json: " in err[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_line(run: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "parsync.runtime.replay", str(run)],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == "error: standard output: No space left on device\n"


def test_help_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for phrase in ("RUN", "run again", "Exit status", "Nothing in a run directory is executed"):
        assert phrase in said
    assert replay.main([]) == 2
    assert replay.main(["--guess"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


# --- what a stranger's run may hold ---------------------------------------------------------------


@pytest.mark.parametrize("place", ["arms/one", "arms/one/log"])
def test_an_older_versions_run_needs_that_version(run: Path, place: str, replayed: Replay) -> None:
    folder = run / place
    folder.mkdir(exist_ok=True)
    (run / "arms" / "one" / ARM_FILE).unlink()
    payload = pickle.dumps(MakesAFile(run / "executed"))
    (folder / OLD_FILE).write_bytes(b"\0" * 16 + payload)
    status, _, err = replayed(run)
    assert status == 2 and not (run / "executed").exists()
    assert (
        "made by an older version of Agora; replaying it needs the version that made it" in err[0]
    )


@pytest.mark.parametrize(
    "name", [ARM_FILE, ENDED_FILE, "../../summary.json", "../../workload/workload.json"]
)
def test_pickles_under_other_names_are_not_loaded(run: Path, name: str, replayed: Replay) -> None:
    (run / "arms" / "one" / name).write_bytes(pickle.dumps(MakesAFile(run / "executed")))
    status, _, err = replayed(run / "arms" / "one")
    assert status == 2 and len(err) == 1 and not (run / "executed").exists()


SCHEDULER = """
from schedulers.registry import get
from dataclasses import replace
open({marker!r}, "w").close()
SPEC = replace(get("random"), kind="evil")
"""


@pytest.mark.parametrize("installed", [False, True])
def test_kinds_of_schedulers_come_from_packages_never_from_the_run(
    run: Path, tmp_path: Path, installed: bool
) -> None:
    """A package with an entry point beside the arm, which is the working directory; then the same
    package installed elsewhere."""
    arm = run / "arms" / "one"
    content = json.loads((arm / ARM_FILE).read_text())
    content["arm"]["groups"][0]["kind"] = "evil"
    (arm / ARM_FILE).write_text(json.dumps(content))
    where = tmp_path / "packages" if installed else arm
    (where / "evil-1.0.dist-info").mkdir(parents=True)
    (where / "evil-1.0.dist-info" / "METADATA").write_text("Name: evil\nVersion: 1.0\n")
    points = "[agora.schedulers]\nevil = evil_package:SPEC\n"
    (where / "evil-1.0.dist-info" / "entry_points.txt").write_text(points)
    (where / "evil_package.py").write_text(SCHEDULER.format(marker=str(tmp_path / "executed")))
    path = os.pathsep.join([str(ROOT), *([str(where)] if installed else [])])
    done = subprocess.run(
        [sys.executable, "-m", "parsync.runtime.replay", "."],
        cwd=arm,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert (tmp_path / "executed").exists() is installed
    if installed:  # its schedulers are random's
        assert "arm.json: differs from what it was when the arm ended" in done.stdout
        assert "run again in virtual time" in done.stdout or "another run" in done.stdout
    else:
        (line,) = done.stderr.splitlines()
        assert "arm.json: arm.groups[0]: unknown scheduler kind 'evil'" in line


def test_a_live_arm_that_never_ran(run: Path, replayed: Replay) -> None:
    """An arm.json of a live arm with no log beside it."""
    arm = run / "arms" / "one"
    content = json.loads((arm / ARM_FILE).read_text())
    write_arm(arm, ArmFile(mixed_arm(), content["workload"], None))
    (arm / ENDED_FILE).unlink()
    (run / "summary.json").unlink()
    status, out, _ = replayed(arm)
    assert status == 2
    assert out[0].endswith("cell.journal is missing")
    assert out[-1].endswith("nothing can be replayed without cell.journal")
