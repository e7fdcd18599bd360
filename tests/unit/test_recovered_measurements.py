"""A killed actor takes measurements with it, or does not come back, or hands nothing over: the
figures of the run are right all the same, from the logs. Without Ray, on a hand-driven clock."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.commands import replay
from experiments.explain.arm_stories import ArmStories, Columns
from experiments.explain.story import COMMITTED
from parsync.core.addresses import is_own
from parsync.metrics.record import Record
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import summarise
from parsync.metrics.tables import CONFLICT_COLUMNS, NOT_KNOWN, TABLES
from parsync.runtime.live import loop
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.logs import CELL_LOG, Recorder, epoch_log, epoch_logs
from parsync.runtime.live.plan import CELL, SOURCE, LiveOptions
from parsync.runtime.live.recovered_measurements import (
    HostRecovery,
    Restart,
    answers,
    measure_killed,
)
from parsync.runtime.records import merge_parts
from tests.fixtures.claim_oracle import Outcome, check_claims, check_rivals, outcomes_of
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.killed_actors import (
    cell_and_tasks,
    check,
    events_of,
    hosts_of,
    make_run,
    recovered,
    to_the_end,
)
from tests.fixtures.live_runs import metrics_of, mixed_arm, queues_arm, small_arm, small_workload
from tests.fixtures.run_oracle import truth

PACKAGES = Path(__file__).parents[1] / "fixtures" / "protocols"
KILLS = {
    "the last host, mid-run": [("schedulers-1", 700, 300)],
    "the first host, early": [("schedulers-0", 40, 200)],
    "before its first step": [("schedulers-0", 1, 100)],
    "near the end, in a step, with losers": [("schedulers-1", -1_767, 150)],
    "both at once": [("schedulers-0", 612, 250), ("schedulers-1", 612, 400)],
    "one again and again": [("schedulers-1", at, 90) for at in (301, -650, 999, -1_350, 1_800)],
    "after all is placed": [("schedulers-0", 2_600, 100)],
}


@pytest.mark.parametrize("kills", KILLS.values(), ids=KILLS.keys())
def test_figures_are_completed_from_the_cells_log(
    kills: list[tuple[str, int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kills: host, when (ms; negative: once the cell has handled its next step, and before the
    host learns the outcome), and how long it stays away."""
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, small_arm(), workload)
    back: list[tuple[int, str]] = []
    todo = sorted([(abs(at), at < 0, host, away) for host, at, away in kills])
    while todo or back:
        now_ms = min([at for at, *_ in todo] + [at for at, _ in back])
        ray.pass_time(now_ms * 1000)
        for entry in [entry for entry in todo if entry[0] <= now_ms]:
            todo.remove(entry)
            _, in_step, host, away = entry
            if in_step:
                ray.dies_in_step = host
                while host in ray.actors:
                    ray.pass_time(ray.clock.us + 1_000)
            else:
                ray.kill(host)
            back.append((ray.clock.us // 1000 + away, host))
        for at, host in [entry for entry in back if entry[0] <= now_ms]:
            back.remove((at, host))
            ray.restart(host)
    outcome = to_the_end(ray)
    check(outcome, workload, tmp_path)
    expected = sorted((host, abs(at_ms), away_ms) for host, at_ms, away_ms in kills)
    found = sorted(outcome.restarts, key=lambda restart: (restart.actor, restart.at_us))
    assert [restart.actor for restart in found] == [host for host, *_ in expected]
    for restart, (_, at_ms, away_ms) in zip(found, expected, strict=True):
        assert restart.away_us is not None
        # known to a step (25 ms) at either end
        assert abs(restart.at_us - at_ms * 1000) <= 26_000
        assert abs(restart.away_us - away_ms * 1000) <= 52_000
    lost = sum(recovered(outcome, host)[1] for host in hosts_of(outcome))
    assert (lost > 0) == (100 < expected[-1][1] < 2_500), "what there was to lose"
    assert replay.replay(tmp_path / "log").divergence is None


@pytest.mark.parametrize("kill", ["between steps", "in a step", "never"])
def test_claims_made_at_the_machines_are_completed_from_the_cells_log(
    kill: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queues claim for the agents of a killed host, before and after it is back. What these had
    reserved still waits at the machines, and they reserve it again."""
    monkeypatch.syspath_prepend(PACKAGES)
    arm, workload = queues_arm(), cell_and_tasks()
    small = replace(workload.cell, capacity=workload.cell.capacity // 2)
    workload = replace(workload, cell=small)  # so that tasks wait in the second phase
    ray = make_run(monkeypatch, tmp_path, arm, workload)
    ray.pass_time(1_900_000)
    host = "schedulers-0"
    if kill == "in a step":
        ray.dies_in_step = host
        while host in ray.actors:
            ray.pass_time(ray.clock.us + 1_000)
    elif kill == "between steps":
        ray.kill(host)
    if kill != "never":
        ray.pass_time(ray.clock.us + 100_000)
        ray.restart(host)
    outcome = to_the_end(ray)
    told = truth(tmp_path / "log", events_of(arm))
    metrics = outcome.metrics
    count = {name: int(counts.sum()) for name, counts in metrics.count.items()}
    arrivals = len(workload.arrival_rows)
    assert not outcome.partial and len(told.commit_us) == arrivals
    assert count["submitted"] == count["committed"] == count["accepted"] == arrivals
    assert count["claims"] == told.claims and count["duplicate"] == told.duplicates
    assert (told.duplicates > 0) == (kill != "never")
    assert sum(count[name] for name in CONFLICT_COLUMNS) == told.conflicts > 0
    assert count["attempts"] == sum(told.attempts.values())
    assert merge_parts(tmp_path / "records") == []
    rows = pq.read_table(tmp_path / "records" / "tasks.parquet").to_pydict()
    assert len(rows["task"]) == arrivals and set(rows["first"]) == {1}
    assert dict(zip(rows["task"], rows["machine"], strict=True)) == told.machine
    assert dict(zip(rows["task"], rows["attempts"], strict=True)) == told.attempts
    for task, at_us in zip(rows["task"], rows["commit_us"], strict=True):
        assert 0 <= at_us - told.commit_us[task] <= 26_000, "it learns of it at its next step"
    commits = pq.read_table(tmp_path / "records" / "commits.parquet").to_pydict()
    assert sum(commits["claims"]) == told.claims
    numbers = [
        (agent, sequence)
        for agent, sequence in zip(commits["agent"], commits["sequence"], strict=True)
        if not is_own(sequence)
    ]
    assert len(set(numbers)) == len(numbers) > 100
    assert {agent for agent, _ in numbers} == {0, 1}
    if kill != "never":
        assert recovered(outcome, host)[1] == sum(
            claims
            for claims, start_us in zip(commits["claims"], commits["start_us"], strict=True)
            if start_us == NOT_KNOWN
        )
        assert recovered(outcome, host)[1] > 0
    assert replay.replay(tmp_path / "log").divergence is None


def test_a_run_without_kills_is_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = cell_and_tasks()
    outcome = to_the_end(make_run(monkeypatch, tmp_path, small_arm(), workload))
    check(outcome, workload, tmp_path)
    assert outcome.restarts == () and outcome.notes == ()


def test_a_flow_scheduler_and_tasks_that_nobody_can_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks larger than every machine are given up once more by each epoch of their agent, and
    count once."""
    workload = cell_and_tasks()
    request = workload.tasks.request.copy()
    large = workload.arrival_rows[::50]
    request[large] = 11
    workload = replace(workload, tasks=replace(workload.tasks, request=request))
    ray = make_run(monkeypatch, tmp_path, mixed_arm(), workload)
    for at_us, host in ((800_000, "flow"), (1_300_000, "schedulers-0"), (1_330_000, "flow")):
        ray.pass_time(at_us)
        ray.kill(host)
        ray.pass_time(at_us + 120_000)
        ray.restart(host)
    outcome = to_the_end(ray)
    told = truth(tmp_path / "log")
    count = {name: int(counts.sum()) for name, counts in outcome.metrics.count.items()}
    assert count["unplaceable"] == len(large) == 29 and count["abandoned"] == 0
    assert len(told.commit_us) == count["committed"] == len(workload.arrival_rows) - len(large)
    assert count["claims"] == told.claims
    assert count["attempts"] == sum(told.attempts.values())
    assert count["delay_us"] == told.delay_sum_us(workload)
    assert merge_parts(tmp_path / "records") == []
    rows = pq.read_table(tmp_path / "records" / "unplaceable.parquet")
    assert sorted(rows["task"].to_pylist()) == sorted(large.tolist())


def test_a_task_is_given_up_once_and_only_if_it_was_not_placed_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, small_arm(), workload)
    ray.pass_time(1_000_000)
    log = tmp_path / "log"
    host = ray.live_run._plan.hosts[0]
    for _, path in epoch_logs(log, host.name):
        path.unlink()
    told = truth(log)
    placed, at_us = next(iter(told.commit_us.items()))
    never = len(workload.tasks) - 1
    assert never not in told.commit_us

    def epoch(epoch: int, *rows: tuple[int, int]) -> None:
        task, when = np.array(rows).T
        recorder = Recorder(
            replace(ray.live_run._plan, records_dir=None),
            host.name,
            RunMetrics(RunFrame(workload.phases, 4, partitions=4)),
            epoch_log(log, host.name, epoch),
        )
        columns = {"task": task, "agent": task * 0, "at_us": when, "abandoned": task * 0}
        recorder(Record("unplaceable", columns))
        recorder.close()

    epoch(1, (never, 200_000), (placed, at_us - 1))
    epoch(2, (never, 400_000), (placed, at_us + 100_000))  # it had lost its place
    recovery = HostRecovery(log, ray.assembly, [host])
    rows = [
        (task, when)
        for table, columns in recovery.batches(host)
        if table == "unplaceable"
        for task, when in zip(columns["task"].tolist(), columns["at_us"].tolist(), strict=True)
    ]
    assert rows == [(never, 200_000), (placed, at_us + 100_000)]


def test_what_a_killed_host_had_measured_of_itself_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, small_arm(), workload)
    ray.pass_time(1_400_000)
    ray.kill("schedulers-0")
    ray.pass_time(1_500_000)
    ray.restart("schedulers-0")
    ray.pass_time(2_800_000)
    outcome = to_the_end(ray)
    rows = outcome.metrics.samples("actors")
    of_host = rows["at_us"][rows["actor"] == 0] // 100_000
    assert 0 in of_host, "the second before it was killed"
    assert any(of_host >= 15), "those of its next epoch"
    assert {0, 1, -1, -2, -4} == set(rows["actor"].tolist())
    assert merge_parts(tmp_path / "records") == []
    merged = pq.read_table(tmp_path / "records" / "actors.parquet")
    assert merged.num_rows == len(rows["actor"])


def test_a_host_that_does_not_come_back_leaves_its_claims_and_its_waiting_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, small_arm(), workload)
    ray.pass_time(1_410_000)
    ray.lose("schedulers-1")
    ray.pass_time(2_500_000)
    outcome = ray.finish(quiet=False)
    told = truth(tmp_path / "log")
    assert outcome.partial and "schedulers-1: process is gone" in outcome.notes
    (restart,) = outcome.restarts
    assert restart.actor == "schedulers-1" and restart.away_us is None
    assert 1_380_000 <= restart.at_us <= 1_410_000
    figures = summarise(outcome.metrics)
    totals = figures.totals
    assert totals.submitted == len(workload.arrival_rows)
    assert totals.committed == len(told.commit_us) < totals.submitted
    assert totals.censored == totals.submitted - totals.committed
    assert outcome.metrics.count["delay_us"].sum() == told.delay_sum_us(workload)
    assert figures.overall.at_least.keys() >= {"delay_mean_us", "delay_p99_us"}


@pytest.mark.parametrize("log", ["kept", "not flushed"])
def test_a_lost_source_leaves_its_submissions(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had submitted counts, placed or not. Its log may end before what the hosts got."""
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, small_arm(), workload)
    ray.pass_time(1_803_000)
    ray.lose(SOURCE)
    ray.pass_time(1_804_000)
    if log == "not flushed":
        for path in (tmp_path / "log").glob("source-*.journal"):
            path.write_bytes(b"")
    outcome = ray.finish(quiet=False, partial=True)
    told = truth(tmp_path / "log")
    figures = summarise(outcome.metrics)
    # it submits every 25 ms
    batches = np.searchsorted(workload.arrival_us, 1_800_000, side="right")
    submitted = int(workload.arrival_offsets[batches])
    assert 0 < len(told.commit_us) < submitted < len(workload.arrival_rows)
    assert figures.totals.submitted == submitted
    assert figures.totals.censored == submitted - len(told.commit_us)
    prefers = workload.tasks.preference[workload.arrival_rows[:submitted]] > 0
    assert figures.totals.submitted_prefers == prefers.sum() > 0
    assert figures.overall.incomplete
    assert figures.overall.at_least.keys() >= {"delay_mean_us", "delay_p99_us"}
    assert [restart.actor for restart in outcome.restarts] == [SOURCE]
    assert outcome.partial and "source: process is gone" in outcome.notes
    rows = pq.read_table(tmp_path / "records" / "submissions.source.parquet")
    assert sum(rows["tasks"].to_pylist()) == submitted


def test_a_cell_that_does_not_hand_over_is_measured_by_its_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "LAST_STEP_S", 0.0)
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, small_arm(), workload)
    ray.pass_time(1_500_000)
    ray.lose(CELL)
    outcome = ray.finish(quiet=False)
    told = truth(tmp_path / "log")
    count = outcome.metrics.count
    assert outcome.partial
    assert count["ended_finished"].sum() == len(told.ended_us) > 0
    assert len(outcome.metrics.samples("cell")["at_us"]) == 15
    assert outcome.restarts[0] == Restart(CELL, 1_500_000, None)


def test_an_actor_whose_answer_was_lost_hands_over_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, small_arm(), workload)
    asked: list[str] = []

    def call(name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        value = FakeRay.call(ray, name, method, arguments)
        if method == "finish":
            asked.append(name)
            if asked.count(name) == 1:
                raise Unavailable("process is away")
        return value

    monkeypatch.setattr(ray, "call", call)
    outcome = to_the_end(ray)
    assert set(map(asked.count, asked)) == {2}
    check(outcome, workload, tmp_path)


def test_logs_that_cannot_be_read_leave_what_was_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, small_arm(), workload)
    ray.pass_time(500_000)
    ray.kill("schedulers-0")
    ray.restart("schedulers-0")
    ray.pass_time(1_500_000)
    (path,) = (tmp_path / "log").glob("cell.journal")
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(bytes(data))
    outcome = ray.finish(quiet=True)
    assert outcome.partial and any("cell.journal: corrupt" in note for note in outcome.notes)
    assert outcome.metrics.count["committed"].sum() > 0


KILLED_US = 1_200_000


def test_a_killed_live_run_tells_what_its_cell_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm, workload = mixed_arm(), small_workload(machines=60)
    metrics = metrics_of(workload, arm)
    ray = FakeRay(monkeypatch, tmp_path, arm, workload, metrics)
    ray.pass_time(KILLED_US)
    for name in list(ray.actors):
        ray.kill(name)
    log, records = tmp_path / "log", tmp_path / "records"
    options = LiveOptions(journal_dir=log, records_dir=records, hosts=2)
    killed = measure_killed(ray.assembly, options, metrics)
    assert merge_parts(records) == []

    @cache
    def columns(table: str) -> Columns:
        path = records / f"{table}.parquet"
        if not path.exists():
            return {name: np.zeros(0, dtype) for name, dtype in TABLES[table].items()}
        rows = pq.read_table(path)
        return {name: rows[name].to_numpy() for name in rows.column_names}

    count = {name: int(counts.sum()) for name, counts in killed.metrics.count.items()}
    assert len(columns("tasks")["task"]) == count["accepted"] > 100
    assert len(columns("rejections")["task"]) == count["claims"] - count["accepted"]
    schedulers = [arm.agent_name(agent) for agent in range(arm.agents)]
    stories = ArmStories("killed", columns, workload, schedulers, killed.ended_us)
    told = {task: stories.story(task) for task in range(len(workload.tasks))}
    seen: list[Outcome] = []
    for order, answer in enumerate(answers(log / CELL_LOG, ray.assembly)):
        seen += outcomes_of(order, answer.at_us, answer.transaction, answer.result)
    check_claims(told, seen, schedulers)
    conflicts, named = check_rivals(told, seen, schedulers)
    assert conflicts >= named > 0
    for story in told.values():
        for claim in story.claims:
            assert claim.state_us <= claim.handled_us <= claim.learned_us
            assert claim.is_conflict or claim.cost_us == 0
            assert claim.is_bound == (claim.is_conflict and claim is story.claims[-1])
        placed = any(claim.outcome == COMMITTED for claim in story.claims)
        assert placed == (story.delay_us is not None)
