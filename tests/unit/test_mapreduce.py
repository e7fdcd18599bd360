"""MapReduce jobs (Omega section 6): the performance model, policies for extra workers, and which
activities the scheduler starts: requested workers first, then extra ones; no reduce while a map of
its job may still have to run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.mapreduce.jobs import (
    NOT_MAPREDUCE,
    MapReduceAudit,
    MapReduceJobs,
    predicted_us,
    useful_workers,
    whole_activities_us,
)
from schedulers.mapreduce.scheduler import SPEC, MapReduceOptions, WorkerPolicy
from shared_state.invariants import InvariantViolation
from shared_state.partition import Partitioning
from shared_state.random import stream_key
from shared_state.tasks import Int64, PreferenceCatalog, TaskBatch
from tests.greedy_world import cell_of, tasks_of, view_of


def ints(*values: int) -> Int64:
    return np.array(values, np.int64)


def job_times(workers: Int64) -> Int64:
    """Predictions for 40 maps of 3 s and 6 reduces of 5 s."""
    n = len(workers)
    second = 1_000_000
    return predicted_us(
        np.full(n, 40), np.full(n, 6), np.full(n, 3 * second), np.full(n, 5 * second), workers
    )


def test_the_time_falls_linearly_until_the_activities_run_out() -> None:
    # up to 6 workers both phases shrink, up to 40 the maps alone, and then nothing does
    assert job_times(ints(2, 4, 6)).tolist() == [75_000_000, 37_500_000, 25_000_000]
    assert job_times(ints(10, 20, 40, 41, 1000)).tolist() == [
        17_000_000,
        11_000_000,
        8_000_000,
        8_000_000,
        8_000_000,
    ]


def test_useful_workers_are_the_fewest_with_the_earliest_finish() -> None:
    tried = np.arange(1, 60, dtype=np.int64)
    for maps, reduces in ((40, 6), (3, 50), (1, 0), (7, 7), (0, 5)):
        times = predicted_us(
            np.full(59, maps), np.full(59, reduces), np.full(59, 1000), np.full(59, 1000), tried
        )
        assert useful_workers(ints(maps), ints(reduces)).tolist() == [tried[times.argmin()]]


def test_whole_activities_take_at_least_the_predicted_time() -> None:
    workers = np.arange(1, 60, dtype=np.int64)
    one = np.ones(59, np.int64)
    arguments = (one * 40, one * 6, one * 3000, one * 5000, workers)
    whole, divided = whole_activities_us(*arguments), predicted_us(*arguments)
    assert (whole >= divided).all()
    even = (40 % workers == 0) & (6 % workers == 0)
    assert np.array_equal(whole[even], divided[even])
    assert whole_activities_us(*(ints(n) for n in (4, 2, 10, 7, 3))).tolist() == [2 * 10 + 7]


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        ({"policy": "requested"}, [5, 5, 2]),
        ({"policy": "max_parallelism"}, [5, 100, 2]),
        ({"policy": "global_cap"}, [5, 100, 2]),
        ({"policy": "relative_job_size"}, [5, 20, 2]),
        ({"policy": "relative_job_size", "times_requested": 2}, [5, 10, 2]),
    ],
)
def test_policies_bound_the_workers_of_a_job(
    options: dict[str, object], workers: list[int]
) -> None:
    """Three jobs that asked for five workers, of which 5, 100 and 2 are useful."""
    policy = MapReduceOptions.model_validate(options).worker_policy()
    assert policy.workers(ints(5, 5, 5), ints(5, 100, 2)).tolist() == workers


def test_a_global_cap_lets_extra_workers_start_up_to_the_target() -> None:
    policy = WorkerPolicy(None, target_permille=600)
    request = np.tile(ints(2, 10), (50, 1))
    capacity = ints(100, 1000)
    # 60 CPUs are the target: 30 are left of them, and 400 of memory
    assert policy.extra_started(request, ints(30, 200), capacity) == 15
    # memory is the most used resource: 50 are left
    assert policy.extra_started(request, ints(30, 550), capacity) == 5
    assert policy.extra_started(request, ints(61, 0), capacity) == 0
    assert WorkerPolicy(None).extra_started(request, ints(99, 999), capacity) == 50


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "global_cap", "times_requested": 2},
        {"policy": "max_parallelism", "target_utilization": 0.5},
        {"policy": "greedy"},
        {"policy": "global_cap", "target_utilization": 1.5},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MapReduceOptions.model_validate(options)


SMALL_JOBS = MapReduceJobs(ints(2, 10), ints(1, 1), ints(3, 1), ints(2, 0), ints(5, 5), ints(5, 5))


def test_tasks_know_their_jobs_and_phases() -> None:
    task = np.arange(12, dtype=np.int64)
    none = NOT_MAPREDUCE
    assert SMALL_JOBS.of(task).tolist() == [none, none, 0, 0, 0, 0, 0, none, none, none, 1, none]
    assert SMALL_JOBS.phase_of(task[2:7], SMALL_JOBS.of(task[2:7])).tolist() == [0, 0, 0, 1, 1]


def test_the_audit_finds_a_reduce_that_starts_before_all_maps_ended() -> None:
    audit = MapReduceAudit(SMALL_JOBS)
    audit.accepted(ints(0, 2, 3, 4, 10), 1)
    audit.finished(ints(2, 4, 10))
    with pytest.raises(InvariantViolation, match=r"9 us: task 6 is a reduce, and 1 maps"):
        audit.accepted(ints(0, 6), 9)
    audit.finished(ints(3))
    audit.accepted(ints(6, 5), 10)
    assert audit.reduces == 2


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
