"""Schedulers that break their contract while a run is under way: the arm ends, the others run, and
one line says which scheduler, round and rule."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from experiments.analysis.run_directory import read_summary
from experiments.commands.run import app
from schedulers import registry
from schedulers.conformance import NonConformance, check_conformance
from tests.fixtures.commands import exit_status, without_figures
from tests.fixtures.run_toml import arm_toml
from tests.fixtures.schedulers.bad_schedulers import FAULTS, HANGING
from tests.unit.test_registry import install

PACKAGES = Path(__file__).parents[1] / "fixtures" / "schedulers"
CONFIG = """
seeds = {seeds}
drain_s = 5.0
settle_s = 0.05
runtime = "virtual"
plan_limit_s = {limit_s}

[workload]
kind = "synthetic"
start = "cold"
machines = 30
slots_per_machine = 2
mean_duration_s = 0.1
batch_tasks = 10
phase_s = 0.2
load_percent = [90]
"""


def arm(name: str, fault: str, kind: str = "bad", after: int = 3) -> str:
    """An arm whose schedulers have the fault."""
    options = f'options = {{ fault = "{fault}", after = {after} }}'
    return arm_toml(name, group="mine", kind=kind, count=2, gap_s=0.05, more=options)


def among_others(arms: str, limit_s: float = 60.0, seeds: int = 1) -> str:
    """Arms with a fault, and a sound one before and after them."""
    before = arm_toml("Before", count=2, gap_s=0.05)
    after = arm_toml("After", kind="best_fit", count=2, gap_s=0.05)
    return CONFIG.format(limit_s=limit_s, seeds=seeds) + before + arms + after


def configuration(
    fault: str, kind: str = "bad", after: int = 3, limit_s: float = 60.0, seeds: int = 1
) -> str:
    """Three arms, whose second has schedulers with the fault."""
    return among_others(arm("Bad", fault, kind, after), limit_s, seeds)


BROKEN = [fault for fault in FAULTS if fault not in HANGING]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kinds of bad_schedulers.py are installed."""
    monkeypatch.syspath_prepend(PACKAGES)


@pytest.fixture
def run(tmp_path: Path, packages: None, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command on three arms, whose second has schedulers with the fault: (status, stdout,
    stderr)."""

    def command(fault: str, **options: Any) -> tuple[int, str, str]:
        (tmp_path / "bad.toml").write_text(configuration(fault, **options))
        status = exit_status(app, "--config", tmp_path / "bad.toml", "--out", tmp_path / "run")
        said = capsys.readouterr()
        return status, said.out, said.err

    return command


@dataclass(frozen=True)
class Ended:
    """A command that ended with status 2: its run, what it printed as one line, and its last line
    of errors."""

    directory: Path
    out: str
    last: str


@pytest.fixture(scope="module")
def all_faults(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """One command with an arm for each fault, named like it, and a sound one before and after."""
    folder = tmp_path_factory.mktemp("all")
    arms = "".join(arm(fault, fault) for fault in BROKEN)
    (folder / "bad.toml").write_text(among_others(arms))
    said = [io.StringIO(), io.StringIO()]
    with (
        without_figures(),
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(said[0]),
        redirect_stderr(said[1]),
    ):
        patch.syspath_prepend(PACKAGES)
        assert exit_status(app, "--config", folder / "bad.toml", "--out", folder / "run") == 2
    out, err = (text.getvalue() for text in said)
    return Ended(folder / "run", " ".join(out.split()), err.splitlines()[-1])


@pytest.mark.parametrize("fault", BROKEN)
def test_every_rule_ends_its_arm_alone_and_is_told_in_one_line(
    all_faults: Ended, fault: str
) -> None:
    told = re.search(
        rf"(?:^error: |; )'{fault}': scheduler 'mine-[01]' of kind 'bad', round [1-9]\d*: "
        r"(.*?)(?=; '\w+': scheduler |$)",
        all_faults.last,
    )
    assert told is not None, all_faults.last
    assert re.search(FAULTS[fault], told[1]), told[1]
    assert f"'{fault}': scheduler 'mine-" in all_faults.out
    summary = read_summary(all_faults.directory)
    (found,) = (arm for arm in summary.arms if arm.name == fault)
    assert found.partial and found.totals.committed < found.totals.submitted
    assert not (all_faults.directory / "arms" / found.slug / "commits.parquet").exists()


def test_arms_beside_broken_ones_are_whole(all_faults: Ended) -> None:
    summary = read_summary(all_faults.directory)
    assert [arm.name for arm in summary.arms] == ["Before", *BROKEN, "After"]
    assert "error: " + summary.partial_reason == all_faults.last
    assert "PARTIAL: '" in all_faults.out
    for arm in (summary.arms[0], summary.arms[-1]):
        assert not arm.partial and arm.totals.committed == arm.totals.submitted > 0
        assert (all_faults.directory / "arms" / arm.slug / "commits.parquet").exists()


@pytest.mark.usefixtures("no_figures")
def test_it_takes_its_last_round_to_break_and_the_report_says_so(run: Run, tmp_path: Path) -> None:
    status, _, said = run("asks_for_nothing", after=6)
    assert status == 2
    assert re.search(
        r"2/3 Bad: stopped after .* s: scheduler 'mine-\d' of kind 'bad', round [6-9]", said
    )
    assert re.search(r"3/3 After: done in", said)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "asks for (0), its request is (1)" in page
    assert read_summary(tmp_path / "run").arms[1].totals.committed > 0
    commits = tmp_path / "run" / "arms" / "after" / "commits.parquet"
    assert pq.read_table(commits).num_rows > 0


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("fault", ["loops", "sleeps", "observe_hangs"])
def test_a_call_that_never_returns_ends_its_arm(run: Run, tmp_path: Path, fault: str) -> None:
    status, _, said = run(fault, limit_s=0.2)
    assert status == 2
    call = "observe" if fault == "observe_hangs" else "plan"
    assert re.search(
        rf"error: 'Bad': scheduler 'mine-\d' of kind 'bad', round [1-9]\d*: {call}\(\) has not "
        r"returned after 0\.2 s\n$",
        said,
    )
    assert [arm.partial for arm in read_summary(tmp_path / "run").arms] == [
        False,
        True,
        False,
    ]


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("observe_raises", r"KeyError: \d+"),
        ("observe_renames", r"ValueError: assignment destination is read-only"),
    ],
)
def test_an_exception_in_observe_names_its_line(run: Run, fault: str, says: str) -> None:
    status, _, said = run(fault)
    assert status == 2
    assert re.search(rf"round 3: observe\(\) raised {says} \(bad_schedulers\.py, line", said)


@pytest.mark.usefixtures("no_figures")
def test_the_paired_seeds_are_left_out_where_an_arm_broke(run: Run, tmp_path: Path) -> None:
    status, _, said = run("raises", seeds=3)
    assert status == 2 and "the paired seeds did not run" in said.splitlines()[-1]
    assert read_summary(tmp_path / "run").paired.seeds == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("constructor_raises", r"build\(\) raised KeyError: 'no such table' \(bad_schedulers\.py"),
        ("constructor_hangs", r"build\(\) has not returned after 0\.2 s"),
    ],
)
def test_a_scheduler_that_cannot_be_made_is_refused_before_the_run(
    run: Run, tmp_path: Path, fault: str, says: str
) -> None:
    status, out, said = run(fault, limit_s=0.2)
    assert status == 2 and out == "" and not (tmp_path / "run").exists()
    assert re.fullmatch(
        r"error: \S+bad\.toml: arm 'Bad': scheduler 'mine-0' of kind 'bad', "
        "before its first round: "
        rf"{says}.*\n",
        said,
    )


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("fault", BROKEN)
def test_conformance_finds_the_same_in_the_same_words(fault: str) -> None:
    with pytest.raises(
        NonConformance, match=FAULTS[fault].removesuffix("$").replace(r"\(1\)", r"\(\d+\)")
    ):
        check_conformance(registry.get("bad"), {"fault": fault})


def test_a_module_with_a_syntax_error_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, monkeypatch, "slip", "class Mine:\n    def plan(self:\n", "slip", "slip:SPEC")
    (tmp_path / "slip.toml").write_text(configuration("none", kind="slip"))
    status = exit_status(app, "--config", tmp_path / "slip.toml", "--out", tmp_path / "run")
    said = capsys.readouterr()
    assert status == 2 and said.out == "" and not (tmp_path / "run").exists()
    (line,) = said.err.splitlines()
    assert line.startswith(
        f"error: {tmp_path / 'slip.toml'}: arms.1.groups.0: scheduler kind 'slip'"
    )
    assert f"{tmp_path / 'slip.py'}, line 2: " in line


STOPPED = """
import sys
from parsync.runtime.faults import plan_limit

with plan_limit(1.0, lambda: 1):
    print("called", flush=True)
    sys.stdin.readline()
print("returned", flush=True)
"""


def test_a_process_that_was_stopped_meanwhile_has_not_exceeded_the_limit() -> None:
    """Ctrl-Z, a debugger, a machine that sleeps."""
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "called\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate("go on\n", timeout=30)
    assert out == "returned\n" and process.returncode == 0


@pytest.mark.usefixtures("no_figures", "packages")
def test_a_contract_broken_in_the_warm_up_ends_its_arm_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steady = configuration("raises").replace('start = "cold"\n', "")
    (tmp_path / "bad.toml").write_text(steady)
    assert exit_status(app, "--config", tmp_path / "bad.toml", "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert "error: 'Bad': in the warm-up before time 0: scheduler 'mine-" in said
    before, bad, after = read_summary(tmp_path / "run").arms
    assert bad.partial and bad.totals.submitted == 0
    for sound in (before, after):
        assert sound.totals.committed == sound.totals.submitted > 0
