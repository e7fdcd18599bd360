"""A short run of a trace: the tasks that wait as it begins are told from those that arrive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.commands.run import app
from tests.fixtures.commands import exit_status
from tests.fixtures.google2011_files import (
    ADD,
    FINISH,
    SCHEDULE,
    SECOND,
    SUBMIT,
    WINDOW,
    machine_row,
    task_row,
    write_trace,
)

WAITING, ARRIVING = 40, 90


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 tasks wait as the window opens; one more arrives every second of 90, and runs 1 s."""
    rows = [task_row(0, 1, index, SUBMIT) for index in range(WAITING)]
    rows += [task_row(WINDOW + SECOND, 1, index, SCHEDULE, machine=7) for index in range(WAITING)]
    for second in range(1, ARRIVING + 1):
        at = WINDOW + second * SECOND
        rows.append(task_row(at, 100 + second, 0, SUBMIT))
        rows.append(task_row(at, 100 + second, 0, SCHEDULE, machine=7))
        rows.append(task_row(at + SECOND // 2, 100 + second, 0, FINISH, machine=7))
    rows[WAITING:] = sorted(rows[WAITING:], key=lambda row: int(row.split(",")[0]))
    machines = [machine_row(0, 7 + number, ADD) for number in range(12)]
    return write_trace(tmp_path_factory.mktemp("trace") / "files", machines, rows)


def run(trace: Path, out: Path, *options: str) -> dict[str, Any]:
    options = (
        "--speedup",
        "10",
        "--seeds",
        "1",
        "--runtime",
        "virtual",
        "--mix",
        "optimistic=1",
        *options,
    )
    assert exit_status(app, "--trace", f"google2011:{trace}", *options, "--out", out) == 0
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def test_the_tasks_that_wait_at_the_start_are_in_figures_of_their_own(
    trace: Path, tmp_path: Path
) -> None:
    summary = run(trace, tmp_path / "run")
    (arm,) = summary["arms"]
    assert summary["settle_us"] == 2 * SECOND
    assert summary["workload"]["facts"]["tasks_pending_at_start"] == WAITING
    assert arm["start"]["submitted"] == WAITING
    # those of the first 2 s, which are 20 s of the trace
    assert arm["overall"]["submitted"] == ARRIVING - 19
    assert arm["totals"]["submitted"] == WAITING + ARRIVING
    page = " ".join((tmp_path / "run" / "report.html").read_text("utf-8").split())
    assert (
        "Of the tasks, 40 were already waiting when the trace began" in page
        and "(59 tasks left out" in page
    )
    assert "Short warm-up" not in page  # a trace begins with its tasks running or waiting


@pytest.mark.usefixtures("no_figures")
def test_a_settling_time_of_none_counts_them_and_says_so(trace: Path, tmp_path: Path) -> None:
    run(trace, tmp_path / "first", "--duration", "6")
    text = (tmp_path / "first" / "config.toml").read_text()
    assert "settle_s = 2.0" in text
    (tmp_path / "none.toml").write_text(text.replace("settle_s = 2.0", "settle_s = 0.0"))
    out = tmp_path / "run"
    assert exit_status(app, "--config", tmp_path / "none.toml", "--out", out) == 0
    (arm,) = json.loads((tmp_path / "run" / "summary.json").read_text())["arms"]
    assert arm["start"] is None
    assert arm["overall"]["submitted"] == WAITING + 59
    assert "All figures count them, because settle_s is 0" in (
        tmp_path / "run" / "report.html"
    ).read_text("utf-8")


def test_a_settling_time_that_leaves_nothing_of_a_trace_is_refused(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = run(trace, tmp_path / "first", "--duration", "0.75")
    assert summary["settle_us"] == SECOND // 4
    text = (
        (tmp_path / "first" / "config.toml")
        .read_text()
        .replace("settle_s = 0.25", "settle_s = 0.75")
    )
    (tmp_path / "all.toml").write_text(text)
    out = tmp_path / "run"
    assert exit_status(app, "--config", tmp_path / "all.toml", "--out", out) == 2
    assert "settle_s: expected less than the 0.75 s of the workload, got 0.75 s" in " ".join(
        capsys.readouterr().err.split()
    )
