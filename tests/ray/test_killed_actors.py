"""Actors killed with SIGKILL: the figures are those of what the cell did, which an oracle reads
from the journals by itself."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import ray

from experiments.commands import replay
from parsync.metrics.summary import summarise
from parsync.metrics.tables import CONFLICT_COLUMNS
from parsync.runtime.live import run as live_run
from parsync.runtime.live.liveness import RunStatus
from parsync.runtime.live.plan import CELL, LiveOptions
from parsync.runtime.live.ray_glue.actors import ActorDied, answer
from parsync.runtime.live.ray_glue.internals import last_log_line
from parsync.runtime.live.run import LiveOutcome, run_live
from parsync.runtime.records import merge_parts
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload
from tests.fixtures.run_oracle import truth
from tests.ray.test_live_runs import process_of

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]
WORKLOAD = small_workload()
ARRIVALS = len(WORKLOAD.arrival_rows)


def run(directory: Path, on_status: Callable[[RunStatus], None]) -> LiveOutcome:
    arm = small_arm()
    options = LiveOptions(directory / "journal", directory / "records")
    return run_live(arm, WORKLOAD, options, 20_000_000, metrics_of(WORKLOAD, arm), on_status)


def kill(name: str) -> None:
    os.kill(process_of(name), signal.SIGKILL)


def test_a_cell_killed_before_its_first_frame_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = live_run._LiveRun._patiently
    killed: list[str] = []

    def patiently(self: Any, name: str, *arguments: Any) -> Any:
        found = waits(self, name, *arguments)
        if name == CELL and not killed:  # it is ready, and has not been started
            kill(CELL)
            killed.append(name)
        return found

    monkeypatch.setattr(live_run._LiveRun, "_patiently", patiently)
    outcome = run(tmp_path, lambda _: None)
    assert killed and not outcome.partial and outcome.drained, outcome.notes
    replayed = replay.replay(outcome.journal_dir)
    assert replayed.divergence is None and replayed.epochs == 1


class Dying:
    """An actor whose process ends as it is built."""

    def __init__(self) -> None:
        sys.stderr.write("ModuleNotFoundError: No module named 'my_part'\n")
        sys.stderr.flush()
        os._exit(1)

    def ready(self) -> int:
        return 0


def test_an_actor_that_dies_at_its_start_shows_the_last_line_of_its_log() -> None:
    handle = ray.remote(num_cpus=0)(Dying).remote()
    with pytest.raises(ActorDied) as raised:
        answer(handle.ready.remote(), 60.0)
    said = last_log_line(raised.value.__cause__)
    assert said == " (the last line of its log: ModuleNotFoundError: No module named 'my_part')"


def test_figures_of_a_run_with_killed_hosts_are_complete(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first host early, the last mid-run, and one as soon as everything is placed."""
    todo = [(150_000, "schedulers-0"), (1_300_000, "schedulers-1"), (-1, "schedulers-0")]

    def killer(status: RunStatus) -> None:
        while todo and (status.quiet if todo[0][0] < 0 else status.at_us >= todo[0][0]):
            kill(todo.pop(0)[1])

    outcome = run(tmp_path, killer)
    told = truth(outcome.journal_dir)
    figures = summarise(outcome.metrics)
    count = {name: int(counts.sum()) for name, counts in outcome.metrics.count.items()}
    assert not todo and not outcome.partial and len(told.commit_us) == ARRIVALS
    assert outcome.resubmitted > 0 and outcome.epochs["schedulers-1"] == 2
    assert count["submitted"] == count["committed"] == count["accepted"] == ARRIVALS
    assert figures.totals.censored == 0 and figures.overall.at_least == {}
    assert count["claims"] == told.claims and count["duplicate"] == told.duplicates
    assert sum(count[name] for name in CONFLICT_COLUMNS) == told.conflicts
    assert count["attempts"] == sum(told.attempts.values())
    assert count["ended_finished"] == len(told.ended_us)
    assert merge_parts(tmp_path / "records") == []
    rows = pq.read_table(tmp_path / "records" / "tasks.parquet").to_pydict()
    commit_us = dict(zip(rows["task"], rows["commit_us"], strict=True))
    assert dict(zip(rows["task"], rows["attempts"], strict=True)) == told.attempts
    assert commit_us.keys() == told.commit_us.keys() and len(rows["task"]) == ARRIVALS
    # as the agent knew it, or as the cell did
    for task, at_us in commit_us.items():
        assert at_us in (told.reply_us.get(task), told.commit_us[task])
    delays = {task: at_us - WORKLOAD.tasks.submit_us[task] for task, at_us in commit_us.items()}
    assert count["delay_us"] == sum(delays.values()) >= told.delay_sum_us(WORKLOAD)
    assert [restart.actor for restart in outcome.restarts[:2]] == ["schedulers-0", "schedulers-1"]
    assert {restart.actor for restart in outcome.restarts[2:]} <= {"schedulers-0"}
    assert capfd.readouterr() == ("", ""), "Ray has paragraphs to say about a dead worker"
    for restart, due_us in zip(outcome.restarts, (150_000, 1_300_000), strict=False):
        assert restart.at_us >= due_us - 50_000 and restart.away_us is not None
        assert restart.away_us > 0
    assert replay.replay(outcome.journal_dir).divergence is None


def test_a_killed_source_leaves_what_it_submitted(tmp_path: Path) -> None:
    todo = ["source"]

    def killer(status: RunStatus) -> None:
        if todo and status.at_us >= 1_500_000:
            kill(todo.pop())

    outcome = run(tmp_path, killer)
    told = truth(outcome.journal_dir)
    totals = summarise(outcome.metrics).totals
    assert outcome.partial and outcome.notes[0] == "source: process is gone"
    (lost,) = outcome.restarts
    assert lost.actor == "source" and lost.away_us is None and lost.at_us >= 1_450_000
    # Batches are submitted in order, so that what was submitted ends with one that somebody saw.
    ends = WORKLOAD.arrival_offsets
    assert totals.submitted in ends.tolist() and totals.committed == len(told.commit_us)
    # On a busy machine its last ticks were late.
    last = np.searchsorted(WORKLOAD.arrival_us, lost.at_us - 200_000, side="right")
    assert 0 < ends[last] <= totals.submitted < ARRIVALS
    assert totals.censored == totals.submitted - totals.committed
    rows = pq.read_table(tmp_path / "records" / "submissions.source.parquet")
    assert sum(rows["tasks"].to_pylist()) == totals.submitted
    assert replay.replay(outcome.journal_dir).divergence is None
