"""The figures of gangs against counts that are made again from a run's Parquet tables, gang by
gang."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.analysis.cell_watch import settle_us
from experiments.analysis.run_directory import read_run
from experiments.analysis.summary_model import RunSummary
from experiments.campaign.running import run_arm_virtual
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.report.gangs import gang_tables
from experiments.studies.run.execution import start
from experiments.studies.run.run_options import RunOptions
from experiments.workloads.synthetic import generate
from parsync.metrics.conformance import check_metric
from parsync.metrics.jobs import GangFigures, GangMetric
from parsync.metrics.summary import PhaseFigures, ScopeFigures, quantities, summarise
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import MachineEvents, Workload
from shared_state.tasks import NO_GANG
from tests.fixtures.commands import without_figures
from tests.fixtures.overloaded_cell import OPTIONS, arm, group, locking_group
from tests.fixtures.overloaded_cell import locking_arm as own_arm

GANGS = OPTIONS.model_copy(update={"load_percent": (60, 160, 160), "gang_permille": 500})
ARMS = {
    "whole": arm("diff_block", group()),
    "torn": arm("diff_block", group(commit_mode="incremental")),
    "given up": arm(
        "diff_block",
        group(losers="requeue", requeue_s=0.01, attempts_max=3, attempts_max_unplaced=2),
    ),
    "with evictions": arm("state_aligned", group("quincy", 2, options={"preemption": True})),
    "locks": own_arm(locking_group()),
}


def config_of(one: ArmConfig) -> RunConfig:
    workload = WorkloadConfig.of("synthetic", GANGS)
    return RunConfig(workload=workload, arms=(one,), settle_s=0.1, drain_s=0.0)


def rows(directory: Path, table: str) -> list[dict[str, Any]]:
    path = directory / f"{table}.parquet"
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist() if path.exists() else []
    return found


def counted_again(directory: Path, start_us: int, end_us: int) -> tuple[dict[str, Any], bool]:
    """The figures of the gangs submitted in a window, and whether their longest wait is a lower
    bound."""
    gangs: dict[int, list[dict[str, Any]]] = {}
    for task in rows(directory, "workload/tasks"):
        if task["gang"] != NO_GANG and task["batch"] >= 0:
            gangs.setdefault(task["gang"], []).append(task)
    firsts = {row["task"]: row for row in rows(directory, "tasks") if row["first"]}
    ended = rows(directory, "ends")
    lost = {row["task"] for row in ended if row["change"] in (4, 5)}
    left = {row["task"] for row in rows(directory, "unplaceable")}
    seen = [row["commit_us"] for row in rows(directory, "tasks") + rows(directory, "commits")]
    seen += [row["at_us"] for table in ("cell", "agents") for row in rows(directory, table)]
    last_us = max(seen + [row["end_us"] for row in ended if not row["due"]])
    found = {"gangs": 0, "gangs_whole": 0, "gangs_torn": 0, "gangs_unplaced": 0}
    waits_us: list[int] = []
    is_bound = False
    for tasks in gangs.values():
        submit_us = min(task["submit_us"] for task in tasks)
        if len(tasks) < 2 or not start_us <= submit_us < end_us:
            continue
        names = {task["task"] for task in tasks}
        placed = [firsts[name] for name in names if name in firsts]
        found["gangs"] += 1
        if not placed:
            found["gangs_unplaced"] += 1
        elif (
            len(placed) == len(tasks)
            and len({row["start_us"] for row in placed}) == 1
            and not names & lost
        ):
            found["gangs_whole"] += 1
        else:
            found["gangs_torn"] += 1
        if len(placed) == len(tasks):
            waits_us.append(max(row["commit_us"] for row in placed) - submit_us)
        elif not names & left:
            waits_us.append(last_us - submit_us)
            is_bound = True
    return {**found, "gang_wait_max_us": max(waits_us, default=None)}, is_bound


@pytest.fixture(scope="module")
def workload() -> Workload:
    """Ten machines fail in the first phase, and come back in the second."""
    machine = np.tile(np.arange(10, 20, dtype=np.int32), 2)
    at_us = np.repeat([350_000, 600_000], 10)
    events = MachineEvents(at_us, machine, at_us == 600_000)
    return replace(generate(GANGS, 3), machine_events=events)


@pytest.mark.parametrize("name", ARMS)
def test_figures_are_those_of_the_tables(name: str, workload: Workload, tmp_path: Path) -> None:
    config = config_of(ARMS[name])
    result = run_arm_virtual(
        config, config.arms[0], workload, 3, tmp_path, lambda _: None, Interruption()
    )
    assert not result.stopped
    figures = summarise(result.metrics)
    scopes: list[tuple[ScopeFigures, int, int]] = [
        (phase, phase.start_us + settle_us(config), phase.end_us) for phase in figures.phases
    ]
    outcomes: dict[str, int] = dict.fromkeys(GangFigures.model_fields, 0)
    for scope, start_us, end_us in scopes:
        again, is_bound = counted_again(tmp_path, start_us, end_us)
        assert scope.is_bound("gang_wait_max_us") == is_bound
        assert {key: scope.value(key) for key in again} == again
        assert isinstance(scope, PhaseFigures)
        for key in outcomes:
            outcomes[key] += int(scope.value(key) or 0)
    overall = figures.overall
    for key in ("gangs", "gangs_whole", "gangs_torn", "gangs_unplaced"):
        assert overall.value(key) == outcomes[key]
        assert sum(agent.value(key) or 0 for agent in figures.agents) == outcomes[key]
    # each arm puts to the test what it is there for
    assert outcomes["gangs_whole"] and outcomes["gangs_torn"]
    assert outcomes["gangs_unplaced"] or name not in ("given up", "whole")
    assert (figures.totals.abandoned > 0) == (name == "given up")
    assert figures.totals.ended_lost and (figures.totals.ended_evicted > 0) == (
        name == "with evictions"
    )


def test_without_gangs_there_are_no_figures() -> None:
    config = config_of(ARMS["whole"])
    alone = generate(GANGS.model_copy(update={"gang_permille": 0}), 3)
    result = run_arm_virtual(config, config.arms[0], alone, 3, None, lambda _: None, Interruption())
    overall = summarise(result.metrics).overall
    assert all(overall.others[key] is None for key in GangFigures.model_fields)
    assert not {one.key for one in quantities(result.metrics)} & set(GangFigures.model_fields)


def test_the_metric_keeps_its_contract() -> None:
    check_metric(GangMetric)


RUN = """
name = "gangs"
seeds = 2
settle_s = 0.1
[workload]
kind = "synthetic"
machines = 60
slots_per_machine = 4
machines_per_rack = 10
mean_duration_s = 0.2
batch_tasks = 10
phase_s = 0.6
load_percent = [60, 120]
gang_permille = {permille}
start = "cold"
"""
ARM = """
[[arms]]
name = "{name}"
partitions = 4
[[arms.groups]]
name = "g"
kind = "random"
count = 4
protocol = {{ kind = {protocol} }}
decision = {{ clock = "modelled", task_us = 700.0 }}
"""
OPTIMISTIC = '"optimistic", sync = "diff_block", gap_s = 0.05'


def run_of(tmp_path: Path, permille: int) -> tuple[RunSummary, str, str]:
    """The summary, the report and config.toml of a run of three arms."""
    path, out = tmp_path / "run.toml", tmp_path / "run"
    arms = {
        "Unset": OPTIMISTIC,
        "Torn": f'{OPTIMISTIC}, commit_mode = "incremental"',
        "Locks": '"locking"',
    }
    text = RUN.format(permille=permille)
    text += "".join(ARM.format(name=name, protocol=its) for name, its in arms.items())
    path.write_text(text, "utf-8")
    with without_figures():
        assert start(RunOptions(config=path, out=out)) == 0
    report = html.unescape((out / "report.html").read_text("utf-8"))
    return read_run(out).summary, report, (out / "config.toml").read_text("utf-8")


def test_a_run_says_which_arms_may_tear_gangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, report, config = run_of(tmp_path, permille=500)
    said, shown = capsys.readouterr().err, 'commit_mode = "incremental"'
    assert (
        f" gangs may be torn by 'Torn' ({shown}); 'Locks' (protocol 'locking'). The other" in said
    )
    assert config.count('commit_mode = "all_or_nothing"') == 1 and config.count(shown) == 1
    assert [arm.tears_gangs for arm in summary.arms] == ["", shown, "protocol 'locking'"]
    [table] = gang_tables(summary)
    assert [one.key for one in table.quantities] == list(GangFigures.model_fields)
    torn = {row.arm.name: row.cells[2] for row in table.rows}
    assert torn["Unset"] == "0" and int(torn["Torn"]) > 0
    assert '<h3 id="gangs">' in report and f"may tear gangs: {shown}" in report


def test_a_run_without_gangs_says_nothing_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, report, config = run_of(tmp_path, permille=0)
    assert " gangs" not in capsys.readouterr().err
    assert config.count('commit_mode = "incremental"') == 2
    assert not gang_tables(summary) and not any(arm.tears_gangs for arm in summary.arms)
    assert '<h3 id="gangs">' not in report and "may tear gangs" not in report
