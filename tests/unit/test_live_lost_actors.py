"""An actor that does not come back, or does not hand over what it measured: the logs tell what can
be told. Without Ray, on a hand-driven clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from parsync.metrics.summary import summarise
from parsync.runtime.live import loop
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.plan import CELL, SOURCE
from parsync.runtime.live.recovery import Restart
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.killed_actors import cell_and_tasks, check, make_run, to_the_end
from tests.fixtures.live_runs import small_arm
from tests.fixtures.run_oracle import truth


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
