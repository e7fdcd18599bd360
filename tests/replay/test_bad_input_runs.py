"""Runs that cannot get to their end: what there is is kept and marked, nothing is left half
written, and a part never wins."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from experiments.analysis.run_directory import read_summary
from experiments.campaign import running
from experiments.campaign.points import Point
from experiments.commands.compare import app as compare
from experiments.commands.run import app
from experiments.files import whole_file
from experiments.interruption import Interruption
from experiments.report.page import write_report
from experiments.report.terminal import comparison_table
from experiments.report.verdict import verdict
from parsync.metrics.record import Columns
from parsync.runtime.records import RecordSink
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status
from tests.fixtures.google2011_files import (
    ADD,
    SCHEDULE,
    SECOND,
    SUBMIT,
    WINDOW,
    machine_row,
    task_row,
    write_trace,
)
from tests.fixtures.small_run import SMALL_RUN
from tests.unit.run_factory import write_synthetic_run

NAMES = ("StateSync aligned quality-first", "ParSync adaptive", "Flow")
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The main job on a small configuration, in this process: (exit status, stdout, stderr)."""
    (tmp_path / "small.toml").write_text(SMALL_RUN)

    def run(*arguments: str) -> tuple[int, str, str]:
        paths = ["--config", tmp_path / "small.toml", "--out", tmp_path / "run"]
        status = exit_status(app, *paths, *arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def full_disk(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def fill_after(monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    """The disk takes so many batches of records."""
    taken, add = itertools.count(), RecordSink.add

    def limited(sink: RecordSink, table: str, columns: Columns) -> None:
        if next(taken) >= batches:
            raise AgoraError(f"{table}.parquet: cannot write the records: No space left on device")
        add(sink, table, columns)

    monkeypatch.setattr(RecordSink, "add", limited)


@pytest.mark.usefixtures("no_figures")
def test_a_disk_that_fills_during_an_arm(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_after(monkeypatch, 50)
    status, _, said = command()
    assert status == 2
    assert (
        said.splitlines()[-1].startswith("error: 'ParSync': ") and "No space left on device" in said
    )
    summary = read_summary(tmp_path / "run")
    assert (
        summary.partial
        and "No space left on device; 1 of 2 arms did not run" in summary.partial_reason
    )
    assert [arm.partial for arm in summary.arms] == [True]
    assert "No space left on device" in (tmp_path / "run" / "report.html").read_text()
    assert not list((tmp_path / "run").glob("arms/*/*.parquet"))  # those of the arm say .partial


def test_a_disk_without_room_for_anything_keeps_nothing(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_after(monkeypatch, 0)
    monkeypatch.setattr("experiments.analysis.model_files.whole_file", full_disk)
    status, out, said = command()
    assert status == 2 and out == ""
    assert said.splitlines()[-1].count("No space left on device") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "place", ["experiments.report.page.render", "experiments.figures.style.FigureCanvasSVG"]
)
def test_a_disk_that_fills_during_the_report(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(place, full_disk)
    status, out, said = command()
    assert status == 2 and "ParSync" in out  # the table was shown before
    assert said.splitlines()[-1].endswith("No space left on device")
    assert not read_summary(tmp_path / "run").partial
    left = {path.name for path in (tmp_path / "run").rglob("*")}
    assert "report.html" not in left and not [name for name in left if name.endswith(".partial")]


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("config", "error: --out {run}: No space left on device\n"),
        ("tasks", "cannot write it: No space left on device\n"),
        ("workload", "cannot write it: No space left on device\n"),
    ],
)
def test_what_the_run_is_made_of_does_not_fit_on_the_disk(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, says: str
) -> None:
    def write(path: Path, data: bytes) -> int:
        return full_disk() if place in path.name else write_bytes(path, data)

    write_bytes = Path.write_bytes
    if place == "config":
        monkeypatch.setattr("experiments.campaign.preconditions.toml_text", full_disk)
    monkeypatch.setattr(Path, "write_bytes", write)
    status, _, said = command()
    assert status == 2 and said.endswith(says.format(run=tmp_path / "run"))
    assert len(said.splitlines()) == 1 and (place == "config" or f"{place}." in said)
    assert not (tmp_path / "run").exists()


def test_no_file_is_half_written(tmp_path: Path) -> None:
    with pytest.raises(OSError), whole_file(tmp_path / "a") as unfinished:
        unfinished.write_text("half")
        full_disk()
    assert not list(tmp_path.iterdir())
    with whole_file(tmp_path / "a") as unfinished:
        unfinished.write_text("whole")
        assert not (tmp_path / "a").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.usefixtures("no_figures")
def test_ctrl_c_in_the_second_arm(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    run_virtual = running.run_virtual

    def interrupted(spec: Any, *arguments: Any) -> Any:
        seen.append(spec.name)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)
        return run_virtual(spec, *arguments)

    monkeypatch.setattr(running, "run_virtual", interrupted)
    status, out, said = command()
    assert status == 130 and said.splitlines()[-1] == "interrupted"
    # the legend's
    assert "PARTIAL: 'Flow': interrupted" in out and "★ best" in out and out.count("★") == 1
    summary = read_summary(tmp_path / "run")
    assert [arm.partial for arm in summary.arms] == [False, True]
    assert "cut short: Flow" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("experiments.studies.run.execution.make_run_directory", ""),
        ("experiments.campaign.preconditions.write_workload", ""),
        (
            "experiments.studies.run.stages.run_and_show",
            "2 arms in virtual time: about 10 s.\n"
            "Stopped before the first arm ended; nothing was written.\n",
        ),
    ],
)
def test_ctrl_c_before_there_is_anything(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, says: str
) -> None:
    monkeypatch.setattr(where, interrupt)
    assert command() == (130, "", f"{says}interrupted\n")
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("no_figures")
def test_ctrl_c_during_the_report_leaves_the_results(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.report.page.write_report", interrupt)
    status, out, said = command()
    assert status == 130 and "ParSync" in out
    assert f"`agora report {tmp_path / 'run'}` makes the report" in said
    monkeypatch.setattr("experiments.report.page.write_report", write_report)
    assert not read_summary(tmp_path / "run").partial
    assert write_report(tmp_path / "run").exists()


def cut_short(directory: Path, name: str) -> Path:
    """A run whose arm `name` did little, well, and was then stopped."""
    write_synthetic_run(directory, names=NAMES, partial=f"'{name}': interrupted", step_us=2_000_000)
    summary = json.loads((directory / "summary.json").read_text())
    (arm,) = (arm for arm in summary["arms"] if arm["name"] == name)
    arm["partial"] = True
    for quantity in summary["quantities"]:
        if quantity["headline"] and quantity["key"] != "censored":
            overall, key = arm["overall"], quantity["key"]
            figures = overall if key in overall else overall["others"]
            figures[key] = 0 if quantity["better"] == "lower" else 1e9
        elif quantity["key"] == "censored":
            arm["overall"]["censored"] = 0
    (directory / "summary.json").write_text(json.dumps(summary))
    return directory


@pytest.mark.parametrize("name", NAMES)
def test_an_arm_that_was_cut_short_wins_nothing(tmp_path: Path, name: str) -> None:
    summary = read_summary(cut_short(tmp_path / "run", name))
    rows = verdict(summary, summary.headline)
    place = NAMES.index(name)
    assert not any(
        row.cells[place].best or row.cells[place].tied or name in row.sentence for row in rows
    )
    assert any(cell.best for row in rows for cell in row.cells)  # the two others can be compared
    text = Console(width=120, record=True)
    text.print(comparison_table(summary))
    shown = " ".join(text.export_text().split())
    assert "PARTIAL" in shown and "cut short" in shown and "Arms cut short are not ranked." in shown


def test_a_partial_run_beside_a_whole_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = cut_short(tmp_path / "partial", "Flow")
    whole = write_synthetic_run(tmp_path / "whole", names=NAMES, seeds=(1, 2), step_us=2_000_000)
    out = tmp_path / "table.md"
    assert exit_status(compare, partial, whole, "--out", out) == 0
    said = capsys.readouterr().out
    assert "PARTIAL: partial" in said and "Arms that were cut short are not ranked." in said
    (row,) = (line for line in out.read_text().splitlines() if line.startswith("| partial: Flow"))
    assert "**" not in row
    assert "**" in out.read_text()


@pytest.mark.usefixtures("no_figures")
def test_a_lost_process_of_the_paired_seeds_costs_no_results(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(points: Sequence[Point], interruption: Interruption) -> Iterator[Any]:
        raise AgoraError("paired seeds: one of their processes was killed")
        yield

    monkeypatch.setattr("experiments.studies.run.stages.run_points", killed)
    status, out, said = command("--seeds", "3")
    assert status == 2 and "PARTIAL: paired seeds: one of their processes was killed" in out
    assert said.splitlines()[-1] == "error: paired seeds: one of their processes was killed"
    assert [arm.partial for arm in read_summary(tmp_path / "run").arms] == [False, False]


@pytest.mark.usefixtures("no_figures")
def test_tasks_larger_than_every_machine_are_told_once_and_given_up_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines = [machine_row(0, machine, ADD) for machine in range(12)]
    rows = [
        task_row(0, 1, index, event, index % 4)
        for index in range(4)
        for event in (SUBMIT, SCHEDULE)
    ]
    rows += [task_row(WINDOW + SECOND, 2, index, SUBMIT, cpu=0.05, mem=0.01) for index in range(8)]
    rows += [
        task_row(WINDOW + 2 * SECOND, 3, index, SUBMIT, cpu=0.9, mem=0.9) for index in range(7)
    ]
    trace = write_trace(tmp_path / "trace", machines, rows)
    options = "--resources requests --overcommit 1.0 --speedup 1 --duration 20 --runtime virtual"
    arguments = ["--trace", f"google2011:{trace}", *options.split(), "--seeds", 1]
    status = exit_status(app, *arguments, "--out", tmp_path / "run")
    said = capsys.readouterr().err
    assert status == 0, said
    assert said.count("7 tasks are larger than every machine") == 1
    arms = read_summary(tmp_path / "run").arms
    assert {arm.name for arm in arms} >= {"ParSync adaptive", "Flow"}
    for arm in arms:
        totals = arm.totals
        assert (totals.submitted, totals.committed, totals.unplaceable) == (15, 8, 7)
        given_up = pq.read_table(tmp_path / "run" / "arms" / arm.slug / "unplaceable.parquet")
        assert sorted(given_up["task"].to_pylist()) == sorted(set(given_up["task"].to_pylist()))
