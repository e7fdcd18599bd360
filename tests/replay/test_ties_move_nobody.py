"""Whole runs under preemption: ties never move a running task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.workloads.synthetic import generate
from parsync.spec.arm import ArmConfig
from schedulers.objective import placement_cost
from tests.fixtures.feature_runs import with_changes
from tests.fixtures.overloaded_cell import arm, failing_workload, group
from tests.fixtures.watched_runs import WatchedRun
from tests.replay.test_preemption_figures import Stays

KINDS = ("flow", "firmament", "quincy")
# Tasks wait for room in the second phase, and much of the cell is free in the third.
UNEQUAL_LOADS = {"load_percent": (60, 160, 40), "batch_tasks": 10, "mean_duration_s": 0.3}


def run_of(kind: str, schedulers: int, workload: Any, sync: str = "state_aligned") -> WatchedRun:
    preempting = group("flow", schedulers, options={"preemption": True})
    config: ArmConfig = arm(sync, preempting.model_copy(update={"kind": kind}))
    run = WatchedRun(config, workload)
    run.master = Stays(run.master)
    run.run(20_000_000)
    assert run.counts.finished == run.counts.submitted
    return run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("schedulers", [1, 2])
def test_where_all_places_cost_the_same_no_task_is_evicted(kind: str, schedulers: int) -> None:
    for seed in (3, 4):
        options = with_changes(**UNEQUAL_LOADS, preference_groups=0)
        run = run_of(kind, schedulers, failing_workload(options, seed))
        assert run.counts.evicted == 0 and run.counts.lost > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_leaves_a_cheapest_place_only_for_another_task(kind: str) -> None:
    """That one starts there at once; or, if it moves itself, in the round that places both anew.
    The scheduler sees the whole cell in every round, so that no claim of its plan is in vain."""
    workload = generate(with_changes(**UNEQUAL_LOADS, rack_cost=500), 3)
    run = run_of(kind, 1, workload, "every_attempt")
    moved = 0
    machines = np.arange(workload.cell.machines, dtype=np.int32)
    starts_on: dict[int, list[int]] = {}
    for stay in run.master.every:
        starts_on.setdefault(stay.machine, []).append(stay.start_us)
    for stay in run.master.every:
        if stay.evicted_by < 0:
            continue
        preference = np.full(len(machines), workload.tasks.preference[stay.task], np.int32)
        cost, _ = placement_cost(workload.catalog, workload.cell.rack, preference, machines)
        if cost[stay.machine] == cost.min():
            again_us = stay.followed_by.start_us
            assert any(stay.end_us <= at_us <= again_us for at_us in starts_on[stay.machine])
        moved += 1
    assert moved > 50
