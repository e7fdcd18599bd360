"""Protocols whose code breaks its contract while a run is under way: the arm ends, the others run,
and one line says which protocol, participant and event, what it did and where."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.commands.run import app
from experiments.config.run_config import load_config
from parsync.protocols.spec import ProtocolBroken
from parsync.runtime.live.plan import CELL, COORDINATOR_NAME, SOURCE, WORKER_POOL
from tests.fixtures.changed import changed
from tests.fixtures.commands import exit_status
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.installed import install
from tests.fixtures.live_runs import metrics_of, small_workload
from tests.replay.test_add_a_protocol import CONFIG
from tests.replay.test_add_a_protocol import SOURCE as LOTTERY

PARSYNC = CONFIG[CONFIG.index('[[arms.groups]]\nname = "parsync"') :]
THREE_ARMS = (
    CONFIG.replace('"lottery beside ParSync"', '"Bad"').replace(
        "[[arms]]", f'[[arms]]\nname = "Before"\npartitions = 4\n\n{PARSYNC}\n[[arms]]'
    )
    + f'\n[[arms]]\nname = "After"\npartitions = 4\n\n{PARSYNC}'
)
CLAIM = "return self.claim(now_us, self.asked.pop(0), event.machine)"
ASK = "return [Send(self.cell_side, Ask(self.index, len(tasks)))]"
DRAWN = "Drawn(up[stream.integers(event.tickets, len(up))])"
FAULTS = {
    "agent_raises": (
        CLAIM,
        'raise ValueError("no luck")',
        r"agent 'lottery-[01]', handling Drawn: raised ValueError: no luck \(MODULE.py, line 50\)",
    ),
    "office_raises": (
        "self.state += 1",
        "self.state += len(self.state)",
        r"participant beside the master, handling Ask: raised TypeError: .*int.* "
        r"\(MODULE.py, line 34\)",
    ),
    "event_not_declared": (
        "events=(Ask, Drawn)",
        "events=(Ask,)",
        r"agent 'lottery-[01]', receiving Drawn: cannot encode Drawn; expected an event of "
        "ProtocolSpec.events, .*",
    ),
    "field_of_a_wrong_type": (
        "Ask(self.index, len(tasks))",
        "Ask(self.index, {1, 2})",
        "participant beside the master, receiving Ask: cannot encode set; expected .*",
    ),
    "machine_out_of_range": (
        DRAWN,
        "Drawn(up[stream.integers(event.tickets, len(up))] + 1000)",
        r"agent 'lottery-[01]', handling Drawn: raised ValueError: machine\[0\]: expected 0 to 39, "
        r"got 10\d\d \(MODULE.py, line 50\)",
    ),
    "no_effects": (
        ASK,
        "pass",
        r"agent 'lottery-[01]', handling TasksSubmitted: returned None, expected a list of effects",
    ),
    "wrong_address": (
        "Send(event.agent,",
        "Send(event.agent + 90,",
        r"participant beside the master, handling Ask: sent Drawn to address 9[01], which no "
        "participant has",
    ),
    "constructor_raises": (
        "self.asked = []",
        'raise KeyError("asked")',
        r"agent 'lottery-0', while it was created: raised KeyError: 'asked' \(MODULE.py, line 43\)",
    ),
}


@pytest.fixture(autouse=True)
def _forget_the_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("broken_lottery_")]:
        del sys.modules[name]


def install_broken(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lottery with a fault is installed. Returns what is said of it, as a pattern."""
    right, wrong, says = FAULTS[fault]
    assert LOTTERY.count(right) == 1
    module = f"broken_lottery_{fault}"
    files = {f"{module}.py": LOTTERY.replace(right, wrong)}
    install(folder, "lottery", f"{module}:SPEC", files, "agora.protocols")
    monkeypatch.syspath_prepend(folder)
    return "protocol 'lottery', " + says.replace("MODULE", module)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_ends_its_arm_alone_and_is_told_in_one_line(
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    says = install_broken(fault, tmp_path / "site", monkeypatch)
    (tmp_path / "run.toml").write_text(THREE_ARMS, encoding="utf-8")
    assert exit_status(app, "--config", tmp_path / "run.toml", "--out", tmp_path / "run") == 2
    said = capsys.readouterr()
    last = said.err.splitlines()[-1]
    when = "(in the warm-up before time 0: )?"
    assert re.fullmatch(f"error: 'Bad': {when}{says}", last), last
    assert "Traceback" not in said.err
    arms = read_summary(tmp_path / "run").arms
    assert [(arm.name, arm.partial) for arm in arms] == [
        ("Before", False),
        ("Bad", True),
        ("After", False),
    ]


def test_bugs_of_the_core_keep_their_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: object, now_us: int, event: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr("parsync.core.master.MasterCore.handle", fails)
    (tmp_path / "run.toml").write_text(
        CONFIG[: CONFIG.index("[[arms.groups]]")] + PARSYNC, encoding="utf-8"
    )
    with pytest.raises(ZeroDivisionError, match="a bug of ours"):
        exit_status(app, "--config", tmp_path / "run.toml", "--out", tmp_path / "run")


def test_the_error_survives_the_way_to_another_process() -> None:
    error = ProtocolBroken("lottery", "agent 'lottery-0'", "handling Drawn", "raised KeyError: 7")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ProtocolBroken and str(again) == str(error)
    assert str(error) == "protocol 'lottery', agent 'lottery-0', handling Drawn: raised KeyError: 7"


@pytest.mark.parametrize(
    "fault", ["agent_raises", "office_raises", "no_effects", "wrong_address", "event_not_declared"]
)
def test_live_the_sender_alone_is_named_once_in_the_same_words(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = install_broken(fault, tmp_path / "site", monkeypatch)
    if fault == "event_not_declared":  # live, its sender cannot send it
        says = (
            "protocol 'lottery', participant beside the master, handling Ask: raised TypeError: "
            "cannot encode Drawn .*"
        )
    (tmp_path / "run.toml").write_text(THREE_ARMS, encoding="utf-8")
    arm = load_config(tmp_path / "run.toml").arms[1].seeded(1, 1000, 50_000, live=True)
    arm = changed(arm, groups=(changed(arm.groups[0], share=1.0),))
    workload = small_workload(phase_s=0.3, machines=60)
    fake = FakeRay(monkeypatch, tmp_path, arm, workload, metrics_of(workload, arm))
    broken: dict[str, str] = {}
    for name in (COORDINATOR_NAME, SOURCE, "schedulers-0", "schedulers-1", WORKER_POOL):
        one = fake.actors[name]
        monkeypatch.setattr(one, "_start_loop", guarded(one._start_loop, name, broken))
    fake.pass_time(400_000)
    assert CELL not in broken and broken
    for name, line in broken.items():
        assert re.fullmatch(says, line), (name, line)
    outcome = fake.finish(quiet=False, partial=True)
    told = [note for note in outcome.notes if "lottery" in note]
    if "participant beside the master" in says:  # the cell refuses everybody's last steps, too
        assert len(told) == 1 and re.fullmatch(says, told[0]), told


def guarded(start_loop, name, broken):  # type: ignore[no-untyped-def]
    """A loop that ends with the first error, as in Actor._live."""

    def start(steps):  # type: ignore[no-untyped-def]
        run_once = start_loop(steps)

        def once() -> int:
            if name in broken:
                return 0
            try:
                return run_once()
            except ProtocolBroken as error:
                broken[name] = str(error)
                return 0

        return once

    return start
