"""Gangs in whole runs: where commits are all or nothing no gang is torn, and tasks without one
stand by themselves."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.metrics.record import Record
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.decision_times import CountedTime, ModelledTime
from parsync.workload.checks import validate
from parsync.workload.workload import TaskGangs, Workload
from shared_state.tasks import NO_GANG
from tests.fixtures.overloaded_cell import OPTIONS, arm
from tests.fixtures.overloaded_cell import group as make_group

GANGS = OPTIONS.model_copy(update={"load_percent": (60, 130, 20), "gang_permille": 500})
RANDOM = {
    "kind": "random",
    "count": 4,
    "decision": ModelledTime(task_us=700, scan_cost=0.05),
    "strategy": "quality_first",
}
FLOW = {"kind": "quincy", "count": 1, "decision": CountedTime()}


def run(
    workload: Workload, kind: dict[str, Any], **changes: Any
) -> tuple[str, dict[str, np.ndarray], dict[str, int]]:
    """(digest, columns of all first commits, sums over transactions)."""
    options = {**kind, **changes}
    own = make_group(options.pop("kind"), options.pop("count"), name="g", **options)
    records: list[Record] = []
    outcome = run_virtual(
        arm("diff_block", own).seeded(3, 1000, 50_000, live=False),
        workload,
        5_000_000,
        records.append,
        lambda _: None,
    )
    assert outcome.drained
    tables = {
        table: [record.columns for record in records if record.table == table]
        for table in ("tasks", "commits")
    }
    tasks = {
        name: np.concatenate([c[name] for c in tables["tasks"]])
        for name in ("task", "commit_us", "first")
    }
    sums = {
        name: int(sum(np.sum(c[name]) for c in tables["commits"]))
        for name in ("accepted", "gang", "full")
    }
    return outcome.digest, tasks, sums


def torn(workload: Workload, tasks: dict[str, np.ndarray]) -> int:
    """Gangs whose tasks were not all committed at one time."""
    assert sorted(tasks["task"].tolist()) == list(range(len(workload.tasks)))
    gang = workload.tasks.gang[tasks["task"]]
    times = [
        set(tasks["commit_us"][gang == one].tolist()) for one in np.unique(gang[gang != NO_GANG])
    ]
    assert len(times) > 20
    return sum(len(at) > 1 for at in times)


BEST_FIT = {**RANDOM, "kind": "best_fit", "cut_at_sync": False}


@pytest.mark.parametrize(
    ("kind", "losers"),
    # flow schedulers keep the tasks that lost, so these cannot pause
    [*itertools.product([RANDOM, BEST_FIT], ["block", "requeue"]), (FLOW, "block")],
)
def test_no_gang_is_torn_where_commits_are_all_or_nothing(
    kind: dict[str, Any], losers: str
) -> None:
    workload = generate(GANGS, 3)
    _, tasks, sums = run(
        workload, kind, commit_mode="all_or_nothing", losers=losers, requeue_s=0.02
    )
    assert torn(workload, tasks) == 0
    # claims that fitted fell with their gang: it was put to the test
    assert kind is FLOW or sums["gang"] > 0


@pytest.mark.parametrize("kind", [RANDOM, FLOW], ids=["random", "flow"])
def test_gangs_are_placed_whole_where_the_commit_mode_is_unset(kind: dict[str, Any]) -> None:
    workload = generate(GANGS, 3)
    digest, tasks, _ = run(workload, kind)
    assert torn(workload, tasks) == 0
    assert digest == run(workload, kind, commit_mode="all_or_nothing")[0]


def test_without_gangs_an_unset_commit_mode_is_incremental() -> None:
    workload = generate(GANGS.model_copy(update={"gang_permille": 0}), 3)
    assert run(workload, RANDOM)[0] == run(workload, RANDOM, commit_mode="incremental")[0]


def test_one_task_is_no_gang() -> None:
    workload = generate(GANGS, 3)
    tasks = workload.tasks
    alone = np.where(tasks.gang == NO_GANG, NO_GANG, tasks.task)
    assert TaskGangs.of(replace(workload, tasks=replace(tasks, gang=alone))) is None
    gangs = TaskGangs.of(workload)
    assert gangs is not None and (gangs.size == GANGS.batch_tasks).all()
    assert np.array_equal(gangs.place >= 0, tasks.gang != NO_GANG)


def test_incremental_commits_tear_gangs() -> None:
    workload = generate(GANGS, 3)
    _, tasks, sums = run(workload, RANDOM, commit_mode="incremental")
    assert torn(workload, tasks) > 0 and sums["gang"] == 0


def test_without_gangs_all_or_nothing_is_incremental() -> None:
    workload = generate(GANGS.model_copy(update={"gang_permille": 0}), 3)
    _, tasks, sums = run(workload, RANDOM, commit_mode="incremental")
    _, same, alike = run(workload, RANDOM, commit_mode="all_or_nothing")
    assert sums == alike and sums["full"] > 0
    assert np.array_equal(tasks["commit_us"], same["commit_us"]) and np.array_equal(
        tasks["task"], same["task"]
    )


def test_gangs_are_whole_batches_of_the_drawn_share_of_jobs() -> None:
    workload = generate(GANGS, 3)
    validate(workload)
    tasks = workload.tasks
    in_gang = tasks.gang != NO_GANG
    assert workload.facts["tasks_in_gangs"] == np.count_nonzero(in_gang)
    batch = np.arange(len(tasks)) // GANGS.batch_tasks
    assert np.array_equal(tasks.gang[in_gang], batch[in_gang])
    jobs = {int(job): in_gang[tasks.job == job] for job in np.unique(tasks.job)}
    assert all(part.all() or not part.any() for part in jobs.values())
    assert 0.2 < np.mean([part.all() for part in jobs.values()]) < 0.8
    plain = generate(GANGS.model_copy(update={"gang_permille": 0}), 3)
    assert (plain.tasks.gang == NO_GANG).all() and np.array_equal(
        plain.duration_us, workload.duration_us
    )


def test_gangs_that_no_cell_holds_are_refused() -> None:
    with pytest.raises(
        ValueError, match="a gang of 300 tasks does not fit the cell, of 240 slots in all"
    ):
        SyntheticOptions(machines=60, slots_per_machine=4, batch_tasks=300, gang_permille=1)
