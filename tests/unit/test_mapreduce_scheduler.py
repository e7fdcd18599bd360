"""Which activities the MapReduce scheduler starts: requested workers first, then extra ones; no
reduce while a map of its job may still have to run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.mapreduce.jobs import MapReduceJobs
from schedulers.mapreduce.scheduler import SPEC
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import Int64, PreferenceCatalog, TaskBatch
from tests.greedy_world import cell_of, tasks_of, view_of


def ints(*values: int) -> Int64:
    return np.array(values, np.int64)


# Two jobs of ten maps and two reduces. Tasks 0 to 9 are the maps of the first, 10 and 11 its
# reduces; 12 to 21 are those of the second, 22 and 23 its reduces. Tasks 24 to 29 are of no job.
JOBS = MapReduceJobs(
    ints(0, 12), ints(2, 3), ints(10, 10), ints(2, 2), ints(1000, 1000), ints(1000, 1000)
)
TASKS = replace(tasks_of([1] * 30), job=np.repeat(ints(0, 1, 2), [12, 12, 6]))
FIRST, SECOND = np.arange(12), np.arange(12, 24)


class World:
    """A scheduler on one machine, of which some slots are taken."""

    def __init__(self, slots: int, taken: int = 0, **options: Any) -> None:
        spec = cell_of([slots])
        partitioning = Partitioning(ints(0, 1))
        self.view = view_of(spec, partitioning, [taken])
        environment = SchedulerEnvironment(
            "mapreduce", spec, partitioning.offsets, PreferenceCatalog.empty(), JOBS
        )
        self.scheduler = SPEC.build(SPEC.parse_options(options), environment)
        self.now_us = 0

    def plan(self, *offered: int) -> Plan:
        """A plan whose claims stay in the view."""
        self.now_us += 1
        context = PlanContext(
            self.now_us,
            stream_key(1, "mapreduce", self.now_us),
            PartitionRanking.OPTIMISTIC,
            np.zeros(1, np.int32),
        )
        batch = TASKS.take(ints(*offered)) if offered else TaskBatch.empty(1)
        plan = self.scheduler.plan(batch, self.view, context)
        self.view.claim(plan.machine, plan.request)
        return plan

    def observe(self, kind: ChangeKind, *task: int) -> None:
        machine, none = np.zeros(len(task), np.int32), np.full(len(task), -1, np.int64)
        self.scheduler.observe(TaskChanges(kind, self.now_us, ints(*task), machine, none))

    def finish(self, *task: int) -> None:
        """Tasks end, and their room is free."""
        self.observe(ChangeKind.FINISHED, *task)
        n = len(task)
        self.view.released(np.zeros(n, np.int32), np.ones((n, 1), np.int64), np.full(n, 2))


def test_jobs_get_what_was_asked_for_before_others_get_more() -> None:
    world = World(7)
    plan = world.plan(*FIRST, *SECOND)
    assert plan.task.tolist() == [0, 1, 12, 13, 14, 2, 3], "two workers, three, and two extra"
    reasons = dict(zip(plan.pending.tolist(), plan.pending_reason.tolist(), strict=True))
    assert reasons[4] == reasons[15] == PendingReason.NO_ROOM
    assert {reasons[task] for task in (10, 11, 22, 23)} == {PendingReason.HELD_BACK}


def test_an_extra_worker_makes_way_for_a_job_that_comes_later() -> None:
    world = World(4)
    assert world.plan(*FIRST).task.tolist() == [0, 1, 2, 3]
    assert world.plan(*SECOND).task.tolist() == []
    world.finish(0, 1)
    assert world.plan().task.tolist() == [12, 13], "the first job still has its two"
    world.finish(2)
    assert world.plan().task.tolist() == [4], "it has one left, and asked for two"


def test_reduces_wait_for_the_last_map() -> None:
    world = World(20, policy="requested")
    started = world.plan(*FIRST).task.tolist()
    for _ in range(4):
        world.finish(*started)
        started = world.plan().task.tolist()
        assert len(started) == 2 and max(started) < 10
    world.finish(started[0])
    assert world.plan().task.tolist() == []
    world.finish(started[1])
    assert world.plan().task.tolist() == [10, 11]


def test_a_map_that_has_to_run_again_holds_the_reduces_back() -> None:
    for kind in (ChangeKind.REJECTED, ChangeKind.EVICTED, ChangeKind.LOST):
        world = World(20)
        assert len(world.plan(*FIRST).task) == 10
        world.finish(*range(9))
        world.observe(kind, 9)
        assert world.plan().task.tolist() == [], "its agent has not offered it again"
        assert world.plan(9).task.tolist() == [9]
        world.finish(9)
        assert world.plan().task.tolist() == [10, 11]


def test_a_restarted_scheduler_keeps_the_order() -> None:
    """It learns what runs and is given what waits; what has ended it does not know."""
    world = World(20)
    world.observe(ChangeKind.ADOPTED, 4)
    assert world.plan(10, 11).task.tolist() == []
    world.finish(4)
    assert world.plan().task.tolist() == [10, 11]


def test_the_global_cap_counts_what_others_use() -> None:
    world = World(20, taken=8, policy="global_cap")
    # twelve slots are the target: two are asked for, and two more may start
    assert world.plan(*FIRST).task.tolist() == [0, 1, 2, 3]
    world.finish(0)
    assert world.plan().task.tolist() == [4]
    busy = World(20, taken=15, policy="global_cap")
    assert busy.plan(*FIRST).task.tolist() == [0, 1]


def test_tasks_of_other_jobs_are_placed_first_and_wait_for_room() -> None:
    world = World(3)
    assert world.plan(*FIRST, 24, 25).task.tolist() == [24, 25, 0]
    assert world.plan(26).task.tolist() == []
    world.finish(0, 24)
    assert world.plan().task.tolist() == [26, 1]
