"""Gangs in whole runs: where commits are all or nothing no gang is torn, and tasks without one
stand by themselves. Their figures against counts that are made again from a run's Parquet tables,
gang by gang."""

from __future__ import annotations

import html
import itertools
from dataclasses import replace
from functools import cache
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
from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.metrics.conformance import check_metric
from parsync.metrics.kinds.jobs import GangFigures, GangMetric
from parsync.metrics.record import Record
from parsync.metrics.summary import PhaseFigures, ScopeFigures, quantities, summarise
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig
from parsync.spec.decision_times import CountedTime, ModelledTime
from parsync.workload.checks import validate
from parsync.workload.workload import MachineEvents, TaskGangs, Workload
from shared_state.tasks import NO_GANG
from tests.fixtures.commands import without_figures
from tests.fixtures.overloaded_cell import OPTIONS, arm, group, locking_arm, locking_group
from tests.fixtures.run_toml import group_toml, short_run_toml
from tests.fixtures.watched_runs import Columns, joined

GANGS = OPTIONS.model_copy(update={"load_percent": (60, 130, 20), "gang_permille": 500})
RANDOM = {
    "kind": "random",
    "count": 4,
    "decision": ModelledTime(task_us=700, scan_cost=0.05),
    "strategy": "quality_first",
}
FLOW = {"kind": "flow", "count": 1, "decision": CountedTime()}


@cache
def workload(permille: int = 500) -> Workload:
    return generate(GANGS.model_copy(update={"gang_permille": permille}), 3)


def run(workload: Workload, kind: dict[str, Any], **changes: Any) -> tuple[str, dict[str, Columns]]:
    """The digest of a run to its end, and its tables."""
    options = {**kind, **changes}
    own = group(options.pop("kind"), options.pop("count"), name="g", **options)
    records: list[Record] = []
    outcome = run_virtual(
        arm("diff_block", own).seeded(3, 1000, 50_000, live=False),
        workload,
        5_000_000,
        records.append,
        lambda _: None,
    )
    assert outcome.drained
    return outcome.digest, joined(records)


def torn(tables: dict[str, Columns]) -> int:
    """Gangs whose tasks were not all committed at one time."""
    tasks, all_tasks = tables["tasks"], workload().tasks
    assert sorted(tasks["task"].tolist()) == list(range(len(all_tasks)))
    gang = all_tasks.gang[tasks["task"]]
    times = [len(set(tasks["commit_us"][gang == one])) for one in np.unique(gang[gang != NO_GANG])]
    assert len(times) > 20
    return sum(count > 1 for count in times)


BEST_FIT = {**RANDOM, "kind": "best_fit", "cut_at_sync": False}


@pytest.mark.parametrize(
    ("kind", "losers"),
    # flow schedulers keep the tasks that lost, so these cannot pause
    [*itertools.product([RANDOM, BEST_FIT], ["block", "requeue"]), (FLOW, "block")],
)
def test_no_gang_is_torn_where_commits_are_all_or_nothing(
    kind: dict[str, Any], losers: str
) -> None:
    options = {"commit_mode": "all_or_nothing", "losers": losers, "requeue_s": 0.02}
    _, tables = run(workload(), kind, **options)
    assert torn(tables) == 0
    # claims that fitted fell with their gang: it was put to the test
    assert kind is FLOW or tables["commits"]["gang"].sum() > 0


@pytest.mark.parametrize("kind", [RANDOM, FLOW], ids=["random", "flow"])
def test_gangs_are_placed_whole_where_the_commit_mode_is_unset(kind: dict[str, Any]) -> None:
    digest, tables = run(workload(), kind)
    assert torn(tables) == 0
    assert digest == run(workload(), kind, commit_mode="all_or_nothing")[0]


def test_incremental_commits_tear_gangs() -> None:
    _, tables = run(workload(), RANDOM, commit_mode="incremental")
    assert torn(tables) > 0 and tables["commits"]["gang"].sum() == 0


def test_without_gangs_all_commit_modes_are_alike_and_an_unset_one_is_incremental() -> None:
    without = workload(0)
    incremental, tables = run(without, RANDOM, commit_mode="incremental")
    assert run(without, RANDOM)[0] == incremental
    _, same = run(without, RANDOM, commit_mode="all_or_nothing")
    assert tables["commits"]["full"].sum() == same["commits"]["full"].sum() > 0
    for name in ("commit_us", "task"):
        assert np.array_equal(tables["tasks"][name], same["tasks"][name])


def test_one_task_is_no_gang() -> None:
    of, tasks = workload(), workload().tasks
    alone = np.where(tasks.gang == NO_GANG, NO_GANG, tasks.task)
    assert TaskGangs.of(replace(of, tasks=replace(tasks, gang=alone))) is None
    gangs = TaskGangs.of(of)
    assert gangs is not None and (gangs.size == GANGS.batch_tasks).all()
    assert np.array_equal(gangs.place >= 0, tasks.gang != NO_GANG)


def test_gangs_are_whole_batches_of_the_drawn_share_of_jobs() -> None:
    of, tasks = workload(), workload().tasks
    validate(of)
    in_gang = tasks.gang != NO_GANG
    assert of.facts["tasks_in_gangs"] == np.count_nonzero(in_gang)
    batch = np.arange(len(tasks)) // GANGS.batch_tasks
    assert np.array_equal(tasks.gang[in_gang], batch[in_gang])
    jobs = {int(job): in_gang[tasks.job == job] for job in np.unique(tasks.job)}
    assert all(part.all() or not part.any() for part in jobs.values())
    assert 0.2 < np.mean([part.all() for part in jobs.values()]) < 0.8
    plain = workload(0)
    assert (plain.tasks.gang == NO_GANG).all()
    assert np.array_equal(plain.duration_us, of.duration_us)


def test_gangs_that_no_cell_holds_are_refused() -> None:
    with pytest.raises(
        ValueError, match="a gang of 300 tasks does not fit the cell, of 240 slots in all"
    ):
        SyntheticOptions(machines=60, slots_per_machine=4, batch_tasks=300, gang_permille=1)


# --- figures --------------------------------------------------------------------------------------

FIGURES_OF = GANGS.model_copy(update={"load_percent": (60, 160, 160)})
ARMS = {
    "whole": arm("diff_block", group()),
    "torn": arm("diff_block", group(commit_mode="incremental")),
    "given up": arm(
        "diff_block",
        group(losers="requeue", requeue_s=0.01, attempts_max=3, attempts_max_unplaced=2),
    ),
    "with evictions": arm("state_aligned", group("flow", 2, options={"preemption": True})),
    "locks": locking_arm(locking_group()),
}


def config_of(one: ArmConfig) -> RunConfig:
    workload = WorkloadConfig.of("synthetic", FIGURES_OF)
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
def failing() -> Workload:
    """Ten machines fail in the first phase, and come back in the second."""
    machine = np.tile(np.arange(10, 20, dtype=np.int32), 2)
    at_us = np.repeat([350_000, 600_000], 10)
    events = MachineEvents(at_us, machine, at_us == 600_000)
    return replace(generate(FIGURES_OF, 3), machine_events=events)


@pytest.mark.parametrize("name", ARMS)
def test_figures_are_those_of_the_tables(name: str, failing: Workload, tmp_path: Path) -> None:
    config = config_of(ARMS[name])
    result = run_arm_virtual(
        config, config.arms[0], failing, 3, tmp_path, lambda _: None, Interruption()
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
    alone = workload(0)
    result = run_arm_virtual(config, config.arms[0], alone, 3, None, lambda _: None, Interruption())
    overall = summarise(result.metrics).overall
    assert all(overall.others[key] is None for key in GangFigures.model_fields)
    assert not {one.key for one in quantities(result.metrics)} & set(GangFigures.model_fields)


def test_the_metric_keeps_its_contract() -> None:
    check_metric(GangMetric)


RUN = short_run_toml(100).replace("[100]", "[60, 120]")
OPTIMISTIC = 'sync = "diff_block", gap_s = 0.05'
MODELLED = 'decision = { clock = "modelled", task_us = 700.0 }'


def run_of(tmp_path: Path, permille: int) -> tuple[RunSummary, str, str]:
    """The summary, the report and config.toml of a run of three arms."""
    path, out = tmp_path / "run.toml", tmp_path / "run"
    arms = [
        f'[[arms]]\nname = "{name}"\npartitions = 4\n'
        + group_toml("g", "random", 4, options, MODELLED)
        for name, options in (
            ("Unset", OPTIMISTIC),
            ("Torn", f'{OPTIMISTIC}, commit_mode = "incremental"'),
            ("Locks", "LOCKING"),
        )
    ]
    text = f"{RUN}gang_permille = {permille}\n" + "".join(arms)
    path.write_text(text.replace('kind = "optimistic", LOCKING', 'kind = "locking"'), "utf-8")
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
