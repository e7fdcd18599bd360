"""Commands whose output goes into a file or a pipe say how far they are, in every stage."""

from __future__ import annotations

import contextlib
import io
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from rich.console import Console

from experiments.campaign.progress import EVERY_S, ProgressReport
from experiments.commands.frontier import app as frontier
from experiments.commands.run import app as run
from experiments.commands.sweep import app as sweep
from tests.fixtures.commands import exit_status, in_one_process, without_figures
from tests.fixtures.run_toml import arm_toml, workload_toml

WORKLOAD = 'slots_per_machine = 4\nload_percent = [80]\nstart = "cold"'
MODELLED = 'decision = { clock = "modelled", task_us = 400.0 }'
CONFIG = 'name = "progress"\nseeds = 2\nsensitivity_seeds = 1\nsettle_s = 0.1\n'
CONFIG += workload_toml(400, 1.0, WORKLOAD) + arm_toml("One", gap_s=0.05, more=MODELLED)
FRONTIER = """
[frontier]
seeds = 1
[[frontier.architectures]]
arm = "One"
knob = "options.patience_s"
values = [0.0, 0.1]
"""
SWEEP = """
[sweep]
seeds = 2
[sweep.grid]
workload.machines = [300, 400]
"""


class TimedFile(io.StringIO):
    """Remembers when it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.times_s: list[float] = []

    def write(self, text: str) -> int:
        self.times_s.append(time.monotonic())
        return super().write(text)


def test_a_pipe_has_a_line_in_time_whatever_happens() -> None:
    file = TimedFile()
    with ProgressReport(Console(file=file, width=40), every_s=0.1) as report:
        begun_s = time.monotonic()
        for number in range(8):  # each shorter than the time between two lines
            with report.stage(f"[stage] {number}") as show:
                time.sleep(0.06)
                show(f"[stage] {number}: half, which makes for a line of more than 40 characters")
                time.sleep(0.06)
        ended_s = time.monotonic()
    lines = file.getvalue().splitlines()
    assert len(lines) >= 3 and all(line.startswith("[stage] ") for line in lines)
    assert any(
        "half, which makes for a line of more than 40 characters (0 s so far)" in line
        for line in lines
    )
    times_s = [begun_s, *file.times_s, ended_s]
    gaps_s = [after - before for before, after in itertools.pairwise(times_s)]
    assert max(gaps_s) < 3.0
    assert EVERY_S < 9


def test_nothing_is_said_outside_of_stages_and_after_the_end() -> None:
    file = TimedFile()
    with ProgressReport(Console(file=file), every_s=0.01) as report:
        time.sleep(0.05)
        with report.stage("outer"), report.stage("inner"):
            time.sleep(0.05)
        said = file.getvalue()
        time.sleep(0.05)
    time.sleep(0.05)
    assert "inner" in said and "outer" not in said and file.getvalue() == said


def test_a_terminal_has_a_line_that_goes_away() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True)
    with ProgressReport(console, every_s=0.01) as report:
        with report.stage("arms") as show:
            show("arms: 1 of 2 runs")
            time.sleep(0.3)
        with report.table("1/1 One") as draw:
            draw("the table", "the line")
            time.sleep(0.3)
    assert "arms: 1 of 2 runs" in file.getvalue() and "the table" in file.getvalue()
    assert "the line" not in file.getvalue() and "so far" not in file.getvalue()


def test_a_reader_that_goes_away_ends_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with ProgressReport(Console(file=Broken()), every_s=0.01) as report, report.stage("arms"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("app", "module", "more", "stages"),
    [
        (
            run,
            "experiments.studies.run.execution",
            FRONTIER,
            (
                "making the workload",
                "how far placements can go",
                "1/1 One: t = ",
                "paired seeds, frontiers, other decision times, in virtual time",
                "drawing the report",
            ),
        ),
        (
            frontier,
            "experiments.studies.frontiers.execution",
            FRONTIER,
            ("making the workload", "frontier: 1 of 2 runs", "page"),
        ),
        (
            sweep,
            "experiments.studies.sweeps.execution",
            SWEEP,
            ("making the workload", "1 of 4 runs", "page"),
        ),
    ],
    ids=["run", "frontier", "sweep"],
)
def test_every_stage_says_how_far_it_is(
    app: typer.Typer,
    module: str,
    more: str,
    stages: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []

    class Recording(ProgressReport):
        """Keeps all that stages say, whether or not there is time for a line."""

        @contextlib.contextmanager
        def stage(self, what: str) -> Iterator[Callable[[str], None]]:
            said.append(what)
            with super().stage(what) as change:

                def keep(text: str) -> None:
                    said.append(text)
                    change(text)

                yield keep

    path = tmp_path / "run.toml"
    path.write_text(CONFIG + more, "utf-8")
    monkeypatch.setattr(f"{module}.ProgressReport", Recording)
    monkeypatch.setattr("experiments.campaign.running.SNAPSHOT_EVERY_S", 0.0)
    given = ["--config", path] if app is run else [path]
    with without_figures(), in_one_process():
        assert exit_status(app, *given, "--out", tmp_path / "out") == 0
    missing = [stage for stage in stages if not any(line.startswith(stage) for line in said)]
    assert not missing
