"""The queue of a scheduler that admits few jobs at a time."""

from __future__ import annotations

import numpy as np

from parsync.core.queued_tasks import QueuedTasks
from parsync.protocols.pending_queue import (
    AgentQueue,
    LoserPolicy,
)
from parsync.protocols.rounds import Round
from schedulers.interface import PartitionRanking, PendingReason, Plan
from shared_state.tasks import TaskBatch
from tests.greedy_world import tasks_of

JOB = np.repeat(np.arange(6, dtype=np.int64), 2)  # tasks 0 and 1 are job 0, and so on


def ids(*tasks: int) -> np.ndarray:
    return np.array(tasks, np.int64)


class Bench:
    def __init__(self, jobs_max: int, attempts_max: int = 1000) -> None:
        self.queue = AgentQueue(LoserPolicy.REQUEUE, attempts_max, attempts_max)
        self.queue.limit_jobs(JOB, jobs_max)

    def submit(self, *jobs: int) -> None:
        for job in jobs:
            self.queue.add(QueuedTasks.new(ids(2 * job, 2 * job + 1), 1))

    def offered(self) -> list[int]:
        """The tasks of all batches that may be offered now."""
        found: list[int] = []
        while self.queue.has_next(0, False):
            self.queue.next_batch(0, False)
            found += self.queue.take(None).task.tolist()
        return found

    def plan_nothing(self, reason: PendingReason) -> Round:
        """A round that leaves the next batch without places."""
        self.queue.next_batch(0, False)
        work = self.queue.take(None)
        table: TaskBatch = tasks_of([1] * len(JOB))
        machine = np.full(len(work), -1, np.int32)
        plan = Plan.from_machines(table.take(work.task), machine, operations=1)
        plan.pending_reason[:] = reason
        return Round(1, 0, PartitionRanking.OPTIMISTIC, work, len(work), plan)


def test_jobs_wait_until_others_have_ended() -> None:
    bench = Bench(2)
    bench.submit(0, 1, 2, 3)
    assert bench.offered() == [0, 1, 2, 3]
    assert not bench.queue.on_finished(ids(0, 2)), "a task of each still runs"
    assert bench.offered() == []
    assert bench.queue.on_finished(ids(3))
    assert bench.offered() == [4, 5]
    assert bench.queue.on_finished(ids(1, 4, 5))
    bench.submit(4)
    assert bench.offered() == [6, 7, 8, 9]


def test_a_later_job_does_not_overtake() -> None:
    bench = Bench(1)
    bench.submit(0, 1)
    bench.offered()
    bench.queue.on_finished(ids(0, 1))
    bench.submit(2)
    assert bench.offered() == [2, 3]


def test_tasks_that_have_to_run_again_are_of_an_admitted_job() -> None:
    bench = Bench(1)
    bench.submit(0, 1)
    bench.offered()
    bench.queue.on_finished(ids(0))
    bench.queue.add(QueuedTasks.new(ids(1), 0))
    assert bench.offered() == [1]
    assert bench.queue.on_finished(ids(1))
    assert bench.offered() == [2, 3]


def test_jobs_that_ran_before_count() -> None:
    bench = Bench(2)
    bench.queue.on_adopted(ids(0, 1, 2))
    bench.submit(4)
    assert bench.offered() == []
    assert bench.queue.on_finished(ids(2))
    assert bench.offered() == [8, 9]


def test_abandoned_jobs_leave() -> None:
    bench = Bench(1, attempts_max=1)
    bench.submit(0, 1)
    round_ = bench.plan_nothing(PendingReason.NO_ROOM)
    bench.queue.on_planned(round_)
    assert bench.queue.on_committed(round_, QueuedTasks.new(ids(), 0)).abandoned.tolist() == [0, 1]
    assert bench.offered() == [2, 3]


def test_jobs_larger_than_every_machine_leave() -> None:
    bench = Bench(1)
    bench.submit(0, 1)
    exits = bench.queue.on_planned(bench.plan_nothing(PendingReason.TOO_LARGE))
    assert exits.too_large.tolist() == [0, 1]
    assert bench.offered() == [2, 3]
