"""A killed actor takes measurements with it: the figures of the run are right all the same. Without
Ray, on a hand-driven clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.commands import replay
from parsync.core.addresses import is_own
from parsync.metrics.record import Record
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.tables import NOT_KNOWN
from parsync.runtime.live.logs import Recorder, epoch_log, epoch_logs
from parsync.runtime.live.recovery import HostRecovery
from parsync.runtime.records import merge_parts
from tests.fixtures.killed_actors import (
    cell_and_tasks,
    check,
    events_of,
    hosts_of,
    make_run,
    recovered,
    to_the_end,
)
from tests.fixtures.live_runs import mixed_arm, queues_arm, small_arm
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
    assert count["stale"] + count["full"] + count["evicted"] == told.conflicts > 0
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
