"""Whole runs on Ray: everything is placed once, whoever is killed; the logs replay to equal effects
and pass the audit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray

from experiments.commands import replay
from experiments.explain.arm_stories import ArmStories, Columns
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import summarise
from parsync.metrics.tables import TABLES
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.liveness import RunStatus
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.recovered_measurements import answers, measure_killed
from parsync.runtime.live.run import LiveOutcome, run_live
from parsync.runtime.records import record_files
from parsync.spec.arm import SeededArm
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from tests.fixtures.claim_oracle import Outcome, check_claims, check_rivals, outcomes_of
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload
from tests.ray.conftest import FinishedRun

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]
DRAIN_US = 20_000_000


def run(
    directory: Path,
    arm: SeededArm,
    workload: Workload,
    on_status: Callable[[RunStatus], None] = lambda status: None,
) -> LiveOutcome:
    options = LiveOptions(directory / "journal", directory / "records", checkpoint_bytes=4096)
    return run_live(arm, workload, options, DRAIN_US, metrics_of(workload, arm), on_status)


def process_of(name: str) -> int:
    """The process of the one living actor of that name."""
    (entry,) = [
        actor for actor in ray.util.list_named_actors(all_namespaces=True) if actor["name"] == name
    ]
    pid: int = ray.get(ray.get_actor(name, namespace=entry["namespace"]).ready.remote())
    return pid


class Killer:
    """Kills an actor's process with SIGKILL at the first status past at_us."""

    def __init__(self, name: str, at_us: int) -> None:
        self.name = name
        self.at_us = at_us
        self.done = False

    def __call__(self, status: RunStatus) -> None:
        if not self.done and status.at_us >= self.at_us:
            self.done = True
            os.kill(process_of(self.name), signal.SIGKILL)


def check(outcome: LiveOutcome, workload: Workload) -> replay.Replayed:
    """Nothing lost, nothing twice, no machine over its limit, and the logs lead to the same effects
    again."""
    assert outcome.drained and not outcome.partial, outcome.notes
    replayed = replay.replay(outcome.journal_dir)  # raises InvariantViolation
    assert replayed.divergence is None and replayed.gaps == ()
    assert replayed.end is not None and replayed.end.stopped == ""
    assert replayed.end.logs[CELL_LOG].digest == outcome.digest
    hosts = {name for name in outcome.epochs if name.startswith("schedulers-") or name == "flow"}
    assert (
        set(replayed.events) == {*hosts, "workers", "source", "coordinator"}
        and min(replayed.events.values()) > 0
    )
    assert replayed.counts is not None
    assert replayed.counts.accepted == len(workload.arrival_rows)
    assert replayed.counts.waiting == 0
    return replayed


def ended_or_due(metrics: RunMetrics) -> int:
    """Tasks that finished, and those that would have soon after the run."""
    return int(metrics.count["ended_finished"].sum() + metrics.count["still_running"].sum())


def test_a_run_places_everything_and_replays(mixed_run: FinishedRun) -> None:
    arm, workload, outcome = mixed_run.arm, mixed_run.workload, mixed_run.outcome
    check(outcome, workload)
    metrics, arrivals = outcome.metrics, len(workload.arrival_rows)
    assert metrics.count["submitted"].sum() == metrics.count["committed"].sum() == arrivals
    assert ended_or_due(metrics) == arrivals
    assert (metrics.count["committed"].sum(axis=1) > 0).all(), "flow competes live"
    assert any(
        status.snapshot is not None and len(status.snapshot.schedulers) == arm.agents
        for status in mixed_run.statuses
    )
    assert outcome.round_trip_us.min() > 0 and outcome.tick_us == 25_000
    (waited,) = outcome.waited.values()  # of the one protocol
    assert waited.tasks == arrivals
    mean_delay_us = metrics.count["delay_us"].sum() / metrics.count["committed"].sum()
    assert waited.mean_us is not None and 0 < waited.mean_us < mean_delay_us
    parts = sorted((mixed_run.directory / "records").glob("tasks.*.parquet"))
    tasks = np.concatenate([pq.read_table(part)["task"].to_numpy() for part in parts])
    assert np.array_equal(np.sort(tasks), np.sort(workload.arrival_rows))
    assert pq.read_schema(parts[0]).field("attempts").metadata[b"unit"] == b"claims"
    assert (outcome.journal_dir / "workload" / "tasks.parquet").exists()
    names = [path.name for path in (mixed_run.directory / "records").iterdir()]
    assert not [name for name in names if name.endswith(".partial")]


def test_a_killed_cell_comes_back_with_everything_it_acknowledged(tmp_path: Path) -> None:
    workload = small_workload()
    outcome = run(tmp_path, small_arm(), workload, Killer("cell", 700_000))
    replayed = check(outcome, workload)
    assert replayed.epochs == outcome.epochs["cell"] == 2
    # a checkpoint held the rest
    assert outcome.recovered_steps > outcome.replayed_steps and outcome.repeats > 0
    assert not list(outcome.journal_dir.glob("cell.checkpoint*")) and not list(
        outcome.journal_dir.glob("*.records")
    )
    assert ended_or_due(outcome.metrics) == len(workload.arrival_rows)


def test_a_lost_worker_pool_ends_the_run_with_what_there_is(tmp_path: Path) -> None:
    workload = small_workload()
    outcome = run(tmp_path, small_arm(), workload, Killer("workers", 700_000))
    assert outcome.partial and outcome.notes
    assert outcome.metrics.count["committed"].sum() > 0
    replayed = replay.replay(outcome.journal_dir)
    assert replayed.divergence is None and replayed.end is not None
    assert replayed.end.stopped == outcome.notes[0]
    assert replay.main([str(outcome.journal_dir)]) == 2


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path) -> None:
    def interrupt(status: RunStatus) -> None:
        if status.at_us > 700_000:
            raise KeyboardInterrupt

    outcome = run(tmp_path, small_arm(), small_workload(), interrupt)
    assert outcome.partial and "interrupted" in outcome.notes
    assert outcome.metrics.count["committed"].sum() > 0
    replayed = replay.replay(outcome.journal_dir)
    assert replayed.divergence is None and replayed.gaps == ()
    assert replayed.end is not None and replayed.end.stopped == "interrupted"


def test_a_directory_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / CELL_LOG).touch()
    with pytest.raises(AgoraError, match=r"cell\.journal: exists"):
        run(tmp_path, small_arm(), small_workload())


def test_the_logs_of_a_run_hold_what_its_actors_handed_over(mixed_run: FinishedRun) -> None:
    arm, workload, outcome = mixed_run.arm, mixed_run.workload, mixed_run.outcome
    logs = LiveOptions(outcome.journal_dir)
    killed = measure_killed(Assembly.of(arm, workload), logs, metrics_of(workload, arm))
    assert killed.restarts == ()
    figures = summarise(killed.metrics)
    assert figures == summarise(outcome.metrics)
    assert figures.totals.still_running > 0  # with the times that they are due to end
    assert killed.ended_us >= workload.end_us


def test_the_stories_of_a_live_run_agree_with_its_log(mixed_run: FinishedRun) -> None:
    workload, arm, outcome = mixed_run.workload, mixed_run.arm, mixed_run.outcome
    files = record_files(mixed_run.directory / "records")

    @cache
    def columns(table: str) -> Columns:
        if table not in files:
            return {name: np.zeros(0, dtype) for name, dtype in TABLES[table].items()}
        rows = pa.concat_tables([pq.read_table(path) for path in files[table]])
        return {name: rows[name].to_numpy() for name in rows.column_names}

    schedulers = [arm.agent_name(agent) for agent in range(arm.agents)]
    stories = ArmStories("live", columns, workload, schedulers, outcome.ended_us)
    told = {task: stories.story(task) for task in range(len(workload.tasks))}
    seen: list[Outcome] = []
    log = outcome.journal_dir / CELL_LOG
    for order, answer in enumerate(answers(log, Assembly.of(arm, workload))):
        seen += outcomes_of(order, answer.at_us, answer.transaction, answer.result)
    check_claims(told, seen, schedulers)
    conflicts, named = check_rivals(told, seen, schedulers)
    assert conflicts >= named > 0
    for story in told.values():
        assert story.delay_us is not None
        for claim in story.claims:
            assert claim.state_us <= claim.handled_us <= claim.learned_us
            assert (claim.cost_us > 0) == claim.is_conflict and not claim.is_bound
            assert story.submit_us is not None and story.submit_us <= claim.handled_us
            assert claim.cost_us <= story.delay_us


class Reserving:
    def ready(self) -> None:
        """It has what it reserves."""


def until_free_memory_is(amount: float) -> None:
    """Ray knows it a moment later; on a busy machine, a minute later."""
    patience_s = time.monotonic() + 120
    while ray.available_resources().get("memory", 0) != amount:
        assert time.monotonic() < patience_s
        time.sleep(0.05)


def test_a_cluster_whose_memory_is_reserved_is_refused(tmp_path: Path) -> None:
    all_of_it = ray.cluster_resources()["memory"]
    until_free_memory_is(all_of_it)  # the actors of the test before have given theirs back
    other = ray.remote(num_cpus=0, memory=all_of_it)(Reserving).remote()
    ray.get(other.ready.remote())
    try:
        until_free_memory_is(0)
        with pytest.raises(AgoraError, match=r"^the cluster has no room: other jobs have reserved"):
            run(tmp_path, small_arm(), small_workload())
    finally:
        ray.kill(other)
        until_free_memory_is(all_of_it)
