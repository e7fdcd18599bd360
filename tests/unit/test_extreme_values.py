"""Values at the ends of their ranges mean what any other value means: none is taken for a mark."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.campaign.running import make_workload, run_arm_virtual
from experiments.config.run_config import validated
from experiments.interruption import Interruption
from parsync.core.effects import Send
from parsync.core.events import HeartbeatDue, TasksFinished, TasksStarted
from parsync.core.workers import WorkerPool
from parsync.workload.checks import MAX_COST, validate
from parsync.workload.workload import QuotaMembership, Workload
from schedulers.flow.extraction import fit_together
from tests.greedy_world import catalog_of, cell_of, tasks_of

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1
KINDS = ["preempting", "random", "flow", "load_spreading"]
OPTIMISTIC = {"kind": "optimistic", "sync": "state_aligned", "gap_s": 0.05}
CONFIG = validated(
    {
        "name": "extreme",
        "runtime": "virtual",
        "settle_s": 0.0,
        "drain_s": 0.5,
        "workload": {
            "kind": "synthetic",
            "machines": 4,
            "slots_per_machine": 6,
            "mean_duration_s": 0.5,
            "load_percent": [250],
            "phase_s": 1.0,
            "start": "cold",
            "batch_tasks": 5,
            "gang_permille": 200,
        },
        "arms": [
            {
                "name": kind,
                "partitions": 2,
                "evictions": "lower_priority",
                "groups": [
                    {
                        "name": "s",
                        "kind": kind,
                        "count": 2,
                        "decision": {"clock": "modelled", "task_us": 1000.0},
                        "protocol": OPTIMISTIC,
                    }
                ],
            }
            for kind in KINDS
        ],
    },
    "test",
)


def outcome(workload: Workload, folder: Path) -> list[Any]:
    """Who was placed where and when, of each arm."""
    validate(workload)
    tables = []
    for arm in CONFIG.arms:
        place = folder / arm.name
        place.mkdir(parents=True)
        run = run_arm_virtual(CONFIG, arm, workload, 1, place, lambda _: None, Interruption())
        assert not run.stopped
        table = pq.read_table(place / "tasks.parquet")
        tables.append(table.select(["task", "machine", "start_us", "attempts"]).to_pydict())
    return tables


def with_tasks(workload: Workload, **columns: np.ndarray) -> Workload:
    return dataclasses.replace(workload, tasks=dataclasses.replace(workload.tasks, **columns))


@pytest.mark.parametrize(
    "levels",
    [
        [LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST],
        [LOWEST, -1, 0, HIGHEST],
        [HIGHEST - 3, HIGHEST - 2, HIGHEST - 1, HIGHEST],
        [LOWEST, LOWEST + 1, LOWEST + 2, LOWEST + 3],
    ],
)
def test_only_the_order_of_priorities_counts(levels: list[int], tmp_path: Path) -> None:
    made = make_workload(CONFIG, 1)
    level = (made.tasks.job * 7 % 4).astype(np.int32)
    usual = outcome(with_tasks(made, priority=level + 1), tmp_path / "usual")
    extreme = np.array(levels, np.int32)[level]
    assert outcome(with_tasks(made, priority=extreme), tmp_path / "extreme") == usual


def test_jobs_and_gangs_may_have_any_number_from_0(tmp_path: Path) -> None:
    made = make_workload(CONFIG, 1)
    largest = (1 << 63) - 1
    job = largest - made.tasks.job.max() + made.tasks.job
    gang = np.where(made.tasks.gang < 0, -1, largest - made.tasks.gang.max() + made.tasks.gang)
    quotas = QuotaMembership(("all",), np.zeros(len(job), np.int32))
    changed = dataclasses.replace(with_tasks(made, job=job, gang=gang), quotas=quotas)
    assert all(table["task"] for table in outcome(changed, tmp_path))
    with pytest.raises(ValueError, match=r"tasks\.gang: neither -1 nor from 0 on"):
        validate(with_tasks(made, gang=made.tasks.gang - 1))
    with pytest.raises(ValueError, match=r"tasks\.job: negative"):
        validate(with_tasks(made, job=made.tasks.job - 1))


def test_the_more_important_task_keeps_its_place() -> None:
    tasks = tasks_of([[1], [1], [1]])
    tasks.priority[:] = [LOWEST, 0, HIGHEST]
    fits = fit_together(tasks, np.zeros(3, np.int64), np.array([[2]]))
    assert fits.tolist() == [False, True, True]


def test_tasks_that_run_for_ever_and_a_day_end_later_than_any_run() -> None:
    longest = (1 << 63) - 1
    duration = np.array([longest, 1 << 62, 50], np.int64)
    pool = WorkerPool(
        cell_of([[4]]), catalog_of(({0: 1}, {})), np.ones(3, np.int32), duration, 700, 10, {}, ()
    )
    ids, zeros = np.arange(3, dtype=np.int64), np.zeros(3, np.int32)
    pool.handle(1_000, TasksStarted(1_000, ids, ids, zeros, zeros))
    [finished] = [
        effect.event
        for effect in pool.handle(1 << 60, HeartbeatDue())
        if isinstance(effect, Send) and isinstance(effect.event, TasksFinished)
    ]
    assert finished.allocation.tolist() == [2]
    end_us, allocation, _ = pool.due_ends()
    assert allocation.tolist() == [0, 1] and (end_us > 1 << 60).all()


def test_costs_at_their_ceiling_end_no_arm(tmp_path: Path) -> None:
    made = make_workload(CONFIG, 1)
    sets = made.catalog.sets
    costs = {
        "unscheduled_cost": np.full(sets, MAX_COST),
        "machine_cost": np.full(len(made.catalog.machine), MAX_COST - 1),
        "elsewhere_cost": np.where(np.arange(sets) > 0, MAX_COST - 1, 0),
        "wait_cost": MAX_COST // 2,
        "wait_quantum_us": made.end_us // 2,
    }
    catalog = dataclasses.replace(made.catalog, **costs)
    outcome(dataclasses.replace(made, catalog=catalog), tmp_path)
    with pytest.raises(ValueError, match=r"catalog\.wait_cost: to wait for all of the workload"):
        validate(dataclasses.replace(made, catalog=dataclasses.replace(catalog, wait_quantum_us=1)))


def test_scores_whose_sum_no_view_can_hold_are_refused() -> None:
    made = make_workload(CONFIG, 1)
    score = np.full(made.cell.machines, 1 << 60, np.int64)
    cell = dataclasses.replace(made.cell, slot_score=score)
    with pytest.raises(ValueError, match=r"cell\.slot_score: the sum is 2\^62 or more"):
        validate(dataclasses.replace(made, cell=cell))
    score[0] -= 1
    validate(dataclasses.replace(made, cell=cell))
