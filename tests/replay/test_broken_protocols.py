"""Protocols whose code breaks its contract while a run is under way: the arm ends, the others run,
and one line says which protocol, participant and event, what it did and where."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.commands.run import app
from experiments.config.run_config import load_config
from parsync.protocols.spec import ProtocolBroken
from parsync.runtime.live.plan import CELL, COORDINATOR_NAME, SOURCE, WORKER_POOL
from tests.fixtures.changed import changed
from tests.fixtures.commands import agora, exit_status, in_one_process, without_figures
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.installed import install
from tests.fixtures.live_runs import metrics_of, small_workload
from tests.replay.test_add_a_protocol import BESIDE, CONFIG, LOTTERY, lottery_arm

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


def install_broken(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lottery with a fault is installed, under the fault's name. Returns what is said of it, as
    a pattern."""
    right, wrong, says = FAULTS[fault]
    assert LOTTERY.count(right) == 1
    module = f"broken_lottery_{fault}"
    source = LOTTERY.replace(right, wrong).replace('"lottery"', f'"{fault}"')
    install(folder, fault, f"{module}:SPEC", {f"{module}.py": source}, "agora.protocols")
    monkeypatch.syspath_prepend(folder)
    return f"protocol '{fault}', " + says.replace("MODULE", module)


def plain_arm(name: str) -> str:
    return f'\n[[arms]]\nname = "{name}"\npartitions = 4\n{BESIDE}'


def test_every_fault_ends_its_arm_alone_and_is_told_in_one_line(tmp_path: Path) -> None:
    """One command with an arm for each fault, named like it, and a sound one before and after."""
    arms = [plain_arm("Before"), *(lottery_arm(fault, fault) for fault in FAULTS)]
    (tmp_path / "run.toml").write_text("".join([CONFIG, *arms, plain_arm("After")]), "utf-8")
    with pytest.MonkeyPatch.context() as patch, without_figures(), in_one_process():
        says = {fault: install_broken(fault, tmp_path / fault, patch) for fault in FAULTS}
        run = agora("run", "--config", tmp_path / "run.toml", "--out", tmp_path / "run")
    assert run.returncode == 2 and "Traceback" not in run.stderr
    last = run.stderr.splitlines()[-1].removeprefix("error: ")
    told = dict(re.findall(r"'(\w+)': (.*?)(?=; '\w+': (?:in the warm-up|protocol) |$)", last))
    assert told.keys() == FAULTS.keys()
    for fault, said in told.items():
        assert re.fullmatch(f"(in the warm-up before time 0: )?{says[fault]}", said), said
    partial = {arm.name: arm.partial for arm in read_summary(tmp_path / "run").arms}
    assert partial == {"Before": False, **dict.fromkeys(FAULTS, True), "After": False}


def test_bugs_of_the_core_keep_their_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: object, now_us: int, event: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr("parsync.core.master.MasterCore.handle", fails)
    (tmp_path / "run.toml").write_text(CONFIG + plain_arm("ours"), "utf-8")
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
            f"protocol '{fault}', participant beside the master, handling Ask: raised TypeError: "
            "cannot encode Drawn .*"
        )
    (tmp_path / "run.toml").write_text(CONFIG + lottery_arm(kind=fault), "utf-8")
    arm = load_config(tmp_path / "run.toml").arms[0].seeded(1, 1000, 50_000, live=True)
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
    told = [note for note in outcome.notes if fault in note]
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
