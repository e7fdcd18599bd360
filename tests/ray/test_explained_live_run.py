"""The stories of a live run's tasks agree with the log of its cell, replayed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.explain.arm_stories import ArmStories, Columns
from parsync.metrics.tables import TABLES
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.recovery import answers
from parsync.runtime.records import record_files
from tests.fixtures.claim_oracle import Outcome, check_claims, check_rivals, outcomes_of
from tests.ray.conftest import FinishedRun

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]


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
