"""The tables of a live run that was killed as a whole are written anew from its logs, and tell the
stories of its tasks. Without Ray, on a hand-driven clock."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.explain.arm_stories import ArmStories, Columns
from experiments.explain.story import COMMITTED
from parsync.metrics.tables import TABLES
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.recovery import answers, measure_killed
from parsync.runtime.records import merge_parts
from tests.fixtures.claim_oracle import Outcome, check_claims, check_rivals, outcomes_of
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.live_runs import metrics_of, mixed_arm, small_workload

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
