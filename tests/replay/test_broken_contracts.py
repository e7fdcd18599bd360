"""Schedulers that break their contract while a run is under way: the arm ends, the others run, and
one line says which scheduler, round and rule."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments.analysis.run_directory import read_summary
from experiments.analysis.summary_model import ArmSummary
from schedulers import registry
from schedulers.conformance import NonConformance, check_conformance
from tests.fixtures.commands import Ended, agora, without_figures
from tests.fixtures.run_toml import arm_toml, short_run_toml
from tests.fixtures.schedulers.bad_schedulers import FAULTS, HANGING
from tests.unit.test_registry import install

PACKAGES = Path(__file__).parents[1] / "fixtures" / "schedulers"
COLD = 'start = "cold"\n'
CONFIG = short_run_toml(90, more=COLD).replace("virtual = ", "plan_limit_s = {limit_s}\nvirtual = ")
BROKEN = {
    **{fault: rule for fault, rule in FAULTS.items() if fault not in HANGING},
    "observe_raises": r"observe\(\) raised KeyError: \d+ \(bad_schedulers\.py, line",
    "observe_renames": r"observe\(\) raised ValueError: assignment destination is read-only \(bad_",
}
NEVER = ("loops", "sleeps", "observe_hangs")  # returns


def configuration(
    *faults: str, kind: str = "bad", after: int = 3, limit_s: float = 60.0, seeds: int = 1
) -> str:
    """An arm for each fault, named like it, and a sound one before and after."""
    arms = [arm_toml("Before", count=2, gap_s=0.05)]
    for fault in faults:
        options = f'options = {{ fault = "{fault}", after = {after} }}'
        arms.append(arm_toml(fault, group="mine", kind=kind, count=2, gap_s=0.05, more=options))
    arms.append(arm_toml("After", kind="best_fit", count=2, gap_s=0.05))
    text = CONFIG.replace("{limit_s}", str(limit_s)).replace("seeds = 1", f"seeds = {seeds}")
    return text + "".join(arms)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kinds of bad_schedulers.py are installed."""
    monkeypatch.syspath_prepend(PACKAGES)


@dataclass(frozen=True)
class Broke:
    """A command that ended with status 2: its run, and what it printed."""

    directory: Path
    ended: Ended

    @property
    def last(self) -> str:
        """Its last line of errors."""
        return self.ended.stderr.splitlines()[-1]

    @property
    def arms(self) -> dict[str, ArmSummary]:
        return {arm.name: arm for arm in read_summary(self.directory).arms}


def command(folder: Path, text: str) -> Broke:
    """The command in this process, with the kinds of bad_schedulers.py, without figures."""
    (folder / "bad.toml").write_text(text)
    with without_figures(), pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PACKAGES)
        ended = agora("run", "--config", folder / "bad.toml", "--out", folder / "run")
    assert ended.returncode == 2
    return Broke(folder / "run", ended)


@pytest.fixture(scope="module")
def all_faults(tmp_path_factory: pytest.TempPathFactory) -> Broke:
    return command(tmp_path_factory.mktemp("all"), configuration(*BROKEN))


@pytest.mark.parametrize("fault", BROKEN)
def test_every_rule_ends_its_arm_alone_and_is_told_in_one_line(
    all_faults: Broke, fault: str
) -> None:
    told = re.search(
        rf"(?:^error: |; )'{fault}': scheduler 'mine-[01]' of kind 'bad', round [1-9]\d*: "
        r"(.*?)(?=; '\w+': scheduler |$)",
        all_faults.last,
    )
    assert told is not None, all_faults.last
    assert re.search(BROKEN[fault], told[1]), told[1]
    assert f"'{fault}': scheduler 'mine-" in " ".join(all_faults.ended.stdout.split())
    found = all_faults.arms[fault]
    totals = found.totals  # tasks that its schedulers observe are committed
    assert found.partial
    assert totals.committed < totals.submitted or fault.startswith("observe")
    assert not (all_faults.directory / "arms" / found.slug / "commits.parquet").exists()


def test_arms_beside_broken_ones_are_whole(all_faults: Broke) -> None:
    assert [*all_faults.arms] == ["Before", *BROKEN, "After"]
    assert "error: " + read_summary(all_faults.directory).partial_reason == all_faults.last
    assert "PARTIAL: '" in all_faults.ended.stdout
    for name in ("Before", "After"):
        arm = all_faults.arms[name]
        assert not arm.partial and arm.totals.committed == arm.totals.submitted > 0
        commits = all_faults.directory / "arms" / arm.slug / "commits.parquet"
        assert pq.read_table(commits).num_rows > 0


def test_a_late_round_breaks_it_the_report_says_so_and_paired_seeds_are_left_out(
    tmp_path: Path,
) -> None:
    broke = command(tmp_path, configuration("asks_for_nothing", after=6, seeds=3))
    said = r"2/3 \w+: stopped after .* s: scheduler 'mine-\d' of kind 'bad', round [6-9]"
    assert re.search(said, broke.ended.stderr)
    assert re.search(r"3/3 After: done in", broke.ended.stderr)
    assert "asks for (0), its request is (1)" in (broke.directory / "report.html").read_text()
    assert broke.arms["asks_for_nothing"].totals.committed > 0
    assert "the paired seeds did not run" in broke.last
    assert read_summary(broke.directory).paired.seeds == []


def test_a_call_that_never_returns_ends_its_arm(tmp_path: Path) -> None:
    broke = command(tmp_path, configuration(*NEVER, limit_s=0.2))
    for fault in NEVER:
        call = "observe" if fault == "observe_hangs" else "plan"
        assert re.search(
            rf"'{fault}': scheduler 'mine-\d' of kind 'bad', round [1-9]\d*: {call}\(\) has not "
            r"returned after 0\.2 s(;|$)",
            broke.last,
        )
    partial = {name: arm.partial for name, arm in broke.arms.items()}
    assert partial == {"Before": False, **dict.fromkeys(NEVER, True), "After": False}


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("constructor_raises", r"build\(\) raised KeyError: 'no such table' \(bad_schedulers\.py"),
        ("constructor_hangs", r"build\(\) has not returned after 0\.2 s"),
    ],
)
def test_a_scheduler_that_cannot_be_made_is_refused_before_the_run(
    tmp_path: Path, fault: str, says: str
) -> None:
    broke = command(tmp_path, configuration(fault, limit_s=0.2))
    assert broke.ended.stdout == "" and not broke.directory.exists()
    told = (
        rf"error: \S+bad\.toml: arm '{fault}': scheduler 'mine-0' of kind 'bad', before its first "
    )
    assert re.fullmatch(rf"{told}round: {says}.*\n", broke.ended.stderr)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("fault", [fault for fault in BROKEN if fault in FAULTS])
def test_conformance_finds_the_same_in_the_same_words(fault: str) -> None:
    with pytest.raises(
        NonConformance, match=BROKEN[fault].removesuffix("$").replace(r"\(1\)", r"\(\d+\)")
    ):
        check_conformance(registry.get("bad"), {"fault": fault})


def test_a_module_with_a_syntax_error_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "slip", "class Mine:\n    def plan(self:\n", "slip", "slip:SPEC")
    broke = command(tmp_path, configuration("none", kind="slip"))
    assert broke.ended.stdout == "" and not broke.directory.exists()
    (line,) = broke.ended.stderr.splitlines()
    where = f"{tmp_path / 'bad.toml'}: arms.1.groups.0: scheduler kind 'slip'"
    assert line.startswith(f"error: {where}")
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


def test_a_contract_broken_in_the_warm_up_ends_its_arm_alone(tmp_path: Path) -> None:
    broke = command(tmp_path, configuration("raises").replace(COLD, ""))
    assert "error: 'raises': in the warm-up before time 0: scheduler 'mine-" in broke.last
    before, bad, after = broke.arms.values()
    assert bad.partial and bad.totals.submitted == 0
    for sound in (before, after):
        assert sound.totals.committed == sound.totals.submitted > 0
