"""A command that is expected to take more than a day asks for --long, before it writes anything."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from experiments.campaign import expected_time
from experiments.campaign.expected_time import DAY_S, check_length
from experiments.campaign.progress import time_text
from experiments.studies.run import execution
from experiments.studies.run.run_options import RunOptions
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status
from tests.fixtures.frontier_toml import FRONTIER_TOML
from tests.fixtures.run_toml import LIVE, arm_toml

SLOW_CELL = """
[workload]
kind = "synthetic"
machines = 1
slots_per_machine = 1
mean_duration_s = 1000.0
batch_tasks = 1
load_percent = [50]
start = "cold"
preference_groups = 0
"""
SWEEP = """
[sweep]
seeds = 2

[sweep.grid]
workload.machines = [1, 2]
"""
REFUSED = r"about .* on this machine; add --long to start it anyway"


def test_a_day_is_the_limit() -> None:
    check_length(DAY_S, long=False)
    check_length(10 * DAY_S, long=True)
    with pytest.raises(AgoraError, match=r"about 3\.0 days on this machine; add --long"):
        check_length(3 * DAY_S, long=False)


def test_long_times_are_said_in_days() -> None:
    assert [time_text(hours * 3600) for hours in (47, 48, 100_000)] == [
        "47.0 hours",
        "2.0 days",
        "4,166.7 days",
    ]


class _Started(Exception):
    pass


@pytest.mark.parametrize("phase_s", [50_000.0, 100_000.0])
def test_live_seconds_count_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase_s: float
) -> None:
    """50 tasks, in virtual time a matter of seconds."""

    def started(*_: object, **__: object) -> None:
        raise _Started

    monkeypatch.setattr(execution, "arm_runner", started)
    file, out = tmp_path / "run.toml", tmp_path / "out"
    file.write_text(
        LIVE + SLOW_CELL + f"phase_s = {phase_s}\n" + arm_toml("one", count=1, partitions=1),
        "utf-8",
    )
    if phase_s < DAY_S:
        with pytest.raises(_Started):
            execution.start(RunOptions(config=file, out=out))
        return
    with pytest.raises(AgoraError, match=REFUSED):
        execution.start(RunOptions(config=file, out=out))
    assert not out.exists()
    with pytest.raises(_Started):
        execution.start(RunOptions(config=file, out=out, long=True))


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("sweep", ["sweep.toml"]),
        ("frontier", ["frontier.toml"]),
        ("reproduce", ["parsync", "fig5"]),
        ("extra_slots", ["--factor", "2"]),
    ],
)
def test_every_command_with_an_estimate_asks(
    command: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(expected_time, "DAY_S", 0.001)
    monkeypatch.chdir(tmp_path)
    Path("frontier.toml").write_text(FRONTIER_TOML, "utf-8")
    run = SLOW_CELL + "phase_s = 20_000.0\n" + arm_toml("one", count=1, partitions=1)
    Path("sweep.toml").write_text(f"settle_s = 0.1\n{run}{SWEEP}", "utf-8")
    app = importlib.import_module(f"experiments.commands.{command}").app
    assert exit_status(app, *arguments, "--out", "out") == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "--long" in line and "expected to take" in line
    assert not any(path.suffix in (".json", ".html", ".toml") for path in Path("out").rglob("*"))
