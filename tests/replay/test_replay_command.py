"""`agora replay` on run and arm directories: it is ok only if everything is
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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.analysis.run_directory import MANIFEST, read_manifest, write_manifest
from experiments.commands import replay
from experiments.commands.report import app as report_app
from experiments.commands.run import app
from experiments.files import read_arrays, write_arrays
from parsync.core.events import QuotaGrant
from parsync.protocols.agent_quota import AgentLimit, AgentQuota
from parsync.runtime.arm_directory import (
    ARM_FILE,
    ENDED_FILE,
    OLD_FILE,
    VIRTUAL_LOG,
    ArmFile,
    LogEnd,
    read_end,
    write_arm,
    write_end,
)
from schedulers.interface import ContractBroken
from shared_state.transaction import Transaction
from tests.fixtures.commands import exit_status, in_one_process, without_figures
from tests.fixtures.live_runs import mixed_arm
from tests.fixtures.pickles import MakesAFile
from tests.fixtures.run_toml import arm_toml, short_run_toml

ROOT = Path(__file__).parents[2]
COLD = 'start = "cold"\n'
PARSYNC = {"gap_s": 0.05, "partitions": 4}
CONFIG = (
    short_run_toml(80, more=COLD)
    + arm_toml("One", **PARSYNC)
    + arm_toml("Two", kind="best_fit", count=2, sync="state_aligned", **PARSYNC)
)


def make_run(folder: Path, config: str = CONFIG) -> Path:
    (folder / "run.toml").write_text(config)
    with without_figures(), in_one_process():
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
    assert (status, err) == (0, [])
    of_one, of_two = ([line for line in out if str(arm) in line] for arm in (one, two))
    assert of_one[0].startswith(f"{one}: ok: ") and of_two[0].startswith(f"{two}: ok: ")
    assert out == [*of_one, *of_two, *out[-3:]]
    files = f"{one}: 13 files as at the end of the run, by manifest.json"
    assert replayed(one) == (0, [*of_one, files], [])
    assert replayed(two, one)[1][-len(of_one) - 1 :] == [*of_one, files]
    status, out, err = replayed(one, run / "workload", run / "nowhere", run / "summary.json")
    assert status == 2 and len(out) == len(of_one) + 1
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
    assert any("arms/two: ok: " in line for line in out)


def test_another_run_than_at_first(run: Path, replayed: Replay) -> None:
    """As after a change of the code, or on a processor that computes otherwise."""
    arm = run / "arms" / "one"
    end = read_end(arm)
    assert end is not None
    log = end.logs[VIRTUAL_LOG]
    write_end(arm, {VIRTUAL_LOG: LogEnd(log.events, "f" * 32, 0, log.last_us)}, "")
    set_digest(run, 0, "f" * 32)
    write_manifest(run)
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


GROUPS = 'quota_groups = [{ name = "ads", share = [0.5] }, { name = "web", share = [0.5] }]'
QUOTAS = '{ interval_s = 0.05, groups = [{ name = "ads", maximum = 0.5 }, { name = "web" }] }'
LIMITED = short_run_toml(140, more=COLD + GROUPS).replace("phase_s = 0.3", "phase_s = 0.5")
LIMITED += arm_toml("One", count=2, **PARSYNC).replace("[[arms.", f"quotas = {QUOTAS}\n[[arms.")
LIMITED += arm_toml("Two", count=2, **PARSYNC).replace("gap_s", "hold_max = 0.3, gap_s")
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
    text = LIMITED.replace("virtual = { message_us = 500 }\n", "") + more
    status, out, err = replayed(make_run(tmp_path, text))
    assert (status, err) == (0, [])
    one, two = (line for line in out if ": ok: " in line)
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
    status, (one, two, *_), err = replayed(make_run(tmp_path, LIMITED))
    assert (status, err) == (1, [])
    assert "arms/one: invariant broken: " in one and "arms/two: invariant broken: " in two


def test_measured_decisions_do_not_repeat(tmp_path: Path, replayed: Replay) -> None:
    config = CONFIG.replace("count = 4", 'count = 4\ndecision = { clock = "measured" }')
    run = make_run(tmp_path, config)
    status, out, err = replayed(run)
    assert status == 2 and "arms/two: ok: " in out[0]
    assert not any("arms/one" in line for line in out)
    assert "group 'greedy' has measured decision times" in err[0]


def test_a_table_that_was_changed(run: Path, replayed: Replay) -> None:
    path = run / "workload" / "tasks.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    status, out, err = replayed(run)
    assert (status, len(out), len(err)) == (2, 1, 3)
    assert "tasks.parquet: its digest is not that of workload.json" in err[0]
    assert out[0] == f"{path}: its SHA-256 digest is not the one in manifest.json"


def test_a_workload_of_another_run(run: Path, tmp_path: Path, replayed: Replay) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make_run(other, CONFIG.replace("machines = 40", "machines = 41"))
    shutil.rmtree(run / "workload")
    shutil.copytree(other / "run" / "workload", run / "workload")
    status, out, err = replayed(run)
    assert status == 2 and "damaged, changed, or another run's" in err[0]
    assert "summary.json: workload.machines: expected 41, got 40" in out[0]


@pytest.mark.parametrize("text", ["", "7", "{}", '{"arms": 1}', '{"arms": [1]}'])
def test_a_summary_that_is_none(run: Path, text: str, replayed: Replay) -> None:
    (run / "summary.json").write_text(text)
    status, out, err = replayed(run)
    assert (status, out, len(err)) == (2, [], 1) and "summary.json: " in err[0]


@pytest.mark.parametrize("text", ["", "7", '{"format": 1}', '{"format": 1, "logs": {"events": 1}}'])
def test_an_end_that_is_none(run: Path, text: str, replayed: Replay) -> None:
    (run / "arms" / "one" / ENDED_FILE).write_text(text)
    status, out, err = replayed(run / "arms" / "one")
    assert (status, len(out), len(err)) == (2, 1, 1)
    assert "ended.json: " in err[0] and "ended.json: has " in out[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_line(run: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "experiments.commands.replay", str(run)],
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


# --- what a run says of itself --------------------------------------------------------------------


def replace_delay(path: Path) -> None:
    path.write_text(re.sub(r'"delay_mean_us": [0-9.]+', '"delay_mean_us": 11.0', path.read_text()))


def change_row(path: Path) -> None:
    table = pq.read_table(path)
    place = table.schema.get_field_index("commit_us")
    column = table.column(place).to_numpy().copy()
    column[17] += 1
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(column)), path)


def drop_rows(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.slice(0, len(table) - 3), path)


def drop_column(path: Path) -> None:
    pq.write_table(pq.read_table(path).drop_columns(["commit_us"]), path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)


def change_series(path: Path) -> None:
    arrays = read_arrays(path)
    arrays["claims"][0, 1] += 1
    write_arrays(path, arrays)


def change_text(before: str, after: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))

    return change


TASKS = "arms/one/tasks.parquet"
CHANGES: list[tuple[str, Callable[[Path], None], str]] = [
    (
        "summary.json",
        replace_delay,
        r"arms\[0\]\.overall\.delay_mean_us: expected [\d.]+, got 11\.0",
    ),
    ("summary.json", change_text('"runtime": "virtual"', '"runtime": "ray"'), ""),
    ("arms/one/figures.json", replace_delay, r"arm\.overall\.delay_mean_us: .* got 11\.0"),
    (TASKS, Path.unlink, r"is missing: [\d,]+ rows"),
    (TASKS, cut, "cannot be read: "),
    (TASKS, flip, ""),
    (TASKS, change_row, r"row 17, column commit_us: expected \d+, got \d+"),
    (TASKS, drop_rows, r"expected [\d,]+ rows, got [\d,]+"),
    (TASKS, drop_column, "column commit_us is missing"),
    ("arms/one/series.npz", change_series, r"claims\[0, 1\]: expected \d+, got \d+"),
    ("arms/one/series.npz", Path.unlink, "is missing"),
    ("config.toml", change_text("settle_s = 0.05", "settle_s = 0.15"), ""),
]


@pytest.mark.parametrize(
    ("name", "change", "says", "forged"),
    [
        (*change, forged)
        for change in CHANGES
        for forged in (False, True)
        if not (forged and change[1] is flip)  # the byte may stand for no value
    ],
)
def test_a_file_that_is_false_or_damaged_is_named(
    run: Path,
    replayed: Replay,
    name: str,
    change: Callable[[Path], None],
    says: str,
    forged: bool,
) -> None:
    """Also where somebody has written another manifest: tables and figures are computed again."""
    change(run / name)
    if forged:
        write_manifest(run)
    status, out, err = replayed(run)
    assert status == 2, out
    lines = [line for line in [*out, *err] if str(run / name) in line]
    if name == "config.toml":  # it is no result: the summary has another one
        name = "summary.json: config.settle_s"
        lines = [line for line in out if name in line]
    assert re.search(f"{re.escape(name)}: {says}" if says else ": ", lines[0]), lines
    assert any(line.startswith(f"{run}/arms/two: ok: ") for line in out) or "json" in name + out[0]


def test_a_file_that_is_not_computed_again_is_compared_by_digest(
    run: Path, replayed: Replay
) -> None:
    for name in ("report.html", "arms/one/arm.json", "workload/phases.parquet"):
        before = (run / name).read_bytes()
        (run / name).write_bytes(before + b" ")
        status, out, _ = replayed(run)
        assert status == 2 and f"{run / name}: has {len(before) + 1:,} bytes, not the " in "".join(
            line for line in out if name in line
        )
        (run / name).write_bytes(before)
    manifest = json.loads((run / MANIFEST).read_text())
    manifest["files"]["report.html"]["sha256"] = "0" * 64
    (run / MANIFEST).write_text(json.dumps(manifest))
    status, out, _ = replayed(run)
    assert (status, out[-1]) == (
        2,
        f"{run}/report.html: its SHA-256 digest is not the one in manifest.json",
    )


def test_a_run_without_a_manifest_is_not_ok(run: Path, replayed: Replay) -> None:
    """As those of versions that did not write one."""
    (run / MANIFEST).unlink()
    status, out, _ = replayed(run)
    assert status == 2
    assert out[-1].startswith(f"{run}: no manifest.json: the run was killed, or is of an older ")
    assert f"{run}: not checked, without manifest.json: report and figures" in out
    assert replayed(run / "arms" / "one")[0] == 2


@pytest.mark.parametrize(
    "text", ["", '{"format": 1}', '{"format": 1, "files": {"../x": {}}}', '{"format": 12}']
)
def test_a_manifest_that_is_none(run: Path, text: str, replayed: Replay) -> None:
    (run / MANIFEST).write_text(text)
    status, _, err = replayed(run)
    assert status == 2 and "manifest.json: " in err[0]


def test_a_report_that_is_made_again_is_of_the_run(run: Path, replayed: Replay) -> None:
    (run / "report.html").write_text("old")
    with without_figures():
        assert exit_status(report_app, run) == 0
    assert replayed(run)[0] == 0
    manifest = read_manifest(run)
    assert manifest is not None and manifest["report.html"]["bytes"] > 100


SEEDS = CONFIG.replace("seeds = 1", "seeds = 2")


def test_figures_of_paired_seeds_are_those_of_their_files(tmp_path: Path, replayed: Replay) -> None:
    run = make_run(tmp_path, SEEDS)
    status, out, _ = replayed(run)
    assert status == 0 and f"{run}: by digest only: the runs of the paired seeds, " in out[-2]
    summary = json.loads((run / "summary.json").read_text())
    kept = (run / "summary.json").read_text()
    summary["paired"]["arms"]["one"]["delay_mean_us"]["estimate"] = 11.0
    (run / "summary.json").write_text(json.dumps(summary))
    write_manifest(run)
    status, out, _ = replayed(run)
    assert status == 2
    assert any("summary.json: paired.arms.one.delay_mean_us.estimate: expected " in s for s in out)
    (run / "summary.json").write_text(kept)
    for seed in (1, 2):
        path = run / "seeds" / f"{seed}.json"
        before = path.read_text()
        replace_delay(path)
        write_manifest(run)
        status, out, _ = replayed(run)
        assert status == 2 and any("expected 11.0, got " in line for line in out)
        path.write_text(before)
    assert np.isfinite(json.loads(kept)["paired"]["arms"]["one"]["delay_mean_us"]["estimate"])


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
        [sys.executable, "-m", "experiments.commands.replay", "."],
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
        assert "arm.json: arm.groups.0: unknown scheduler kind 'evil'" in line


def test_a_live_arm_that_never_ran(run: Path, replayed: Replay) -> None:
    """An arm.json of a live arm with no log beside it."""
    arm = run / "arms" / "one"
    content = json.loads((arm / ARM_FILE).read_text())
    write_arm(arm, ArmFile(arm=mixed_arm(), workload=content["workload"]))
    (arm / ENDED_FILE).unlink()
    (run / "summary.json").unlink()
    status, out, _ = replayed(arm)
    assert status == 2
    assert out[0].endswith("cell.journal is missing")
    assert out[-1].endswith("nothing can be replayed without cell.journal")
