"""Kubernetes' scheduling queue and its priority preemption: how long tasks wait, whose room a
nominated task gets, and who sees it as taken."""

from dataclasses import replace

import numpy as np
import pytest

from schedulers import registry
from schedulers.conformance import check_conformance
from schedulers.interface import (
    Capability,
    ChangeKind,
    PartitionRanking,
    PendingReason,
    PlanContext,
)
from schedulers.running_tasks import RunningTasks
from shared_state.errors import AgoraError
from shared_state.random import stream_key
from shared_state.tasks import TaskBatch
from shared_state.transaction import PartitionDelta
from tests.greedy_world import catalog_of, cell_of
from tests.scoring_world import Scoring, constrained, jobs_of

SECOND = 1_000_000
MINUTE = 60 * SECOND
QUEUE = {"scheduling_queue": True}
PREEMPTS = {**QUEUE, "priority_preemption": True}


class Queue:
    """A scheduler with a queue, and tasks of others that run on its machines."""

    def __init__(self, capacity, catalog=None, **options):
        self.spec = cell_of(capacity)
        self.scoring = Scoring("kubernetes", self.spec, catalog=catalog, **options)
        self.table = TaskBatch.empty(len(self.spec.dimensions))
        self.runs = {}  # allocation -> (task, machine)
        self.version = 1

    def task(self, request, priority=0, **columns):
        one = jobs_of([request], first=len(self.table), **columns)
        priority = np.array([priority], np.int32)
        self.table = TaskBatch.concatenate([self.table, replace(one, priority=priority)])
        return len(self.table) - 1

    def run(self, machine, request, priority=0):
        """A task of somebody runs: its allocation."""
        allocation = len(self.runs) + 1
        self.runs[allocation] = self.task(request, priority), machine
        return allocation

    def show(self, up=None):
        used = np.zeros_like(self.spec.capacity)
        for task, machine in self.runs.values():
            used[machine] += self.table.request[task]
        rows = np.arange(len(used), dtype=np.uint32)
        up = np.ones(len(used), bool) if up is None else np.array(up)
        delta = PartitionDelta(0, self.version, self.version + 1, 0, rows, used, up, None)
        self.scoring.view.apply(delta)
        self.version += 1

    def plan(self, now_us, *tasks):
        """{task: machine}; the plan itself is `last`."""
        runs = sorted(self.runs)
        running = RunningTasks.of(
            self.table,
            np.array(runs, np.int64),
            np.array([self.runs[one][0] for one in runs], np.int64),
            np.array([self.runs[one][1] for one in runs], np.int32),
        )
        key, order = stream_key(1, "scoring", now_us), np.zeros(1, np.int32)
        context = PlanContext(now_us, key, PartitionRanking.OPTIMISTIC, order, running)
        offered = self.table.take(np.array(tasks, np.intp))
        self.last = self.scoring.scheduler.plan(offered, self.scoring.view, context)
        return dict(zip(self.last.task.tolist(), self.last.machine.tolist(), strict=True))

    def tell(self, kind, task, now_us):
        self.scoring.tell(kind, task, 0, now_us)


def test_back_off_doubles_from_one_second_to_ten():
    queue = Queue([3], **QUEUE)
    large = queue.task(3)
    small = queue.run(0, 1)
    queue.show()
    assert queue.plan(0, large) == {} and queue.last.retry_at_us == 5 * MINUTE
    now_us = 0
    for seconds in (1, 2, 4, 8, 10, 10):
        # an event: room of a task that has ended, and is taken again before the task is tried
        held = queue.runs.pop(small)
        queue.show()
        assert queue.plan(now_us + 1) == {}
        assert queue.last.retry_at_us == now_us + seconds * SECOND
        queue.runs[small] = held
        queue.show()
        now_us += seconds * SECOND
        assert queue.plan(now_us - 1) == queue.plan(now_us) == {}
        assert queue.last.retry_at_us == now_us + 5 * MINUTE
    del queue.runs[small]
    queue.show()
    assert queue.plan(now_us + 10 * SECOND) == {large: 0}


def test_without_an_event_a_task_is_tried_again_after_five_minutes():
    queue = Queue([3], **QUEUE)
    [first, second] = queue.task(4), queue.task(4)
    queue.show()
    queue.plan(0, first)
    queue.plan(SECOND, second)
    work = queue.scoring.scheduler.work[1]
    assert work == 1
    queue.plan(4 * MINUTE)
    assert queue.scoring.scheduler.work[1] == 0
    queue.plan(5 * MINUTE)
    assert queue.scoring.scheduler.work[1] == 1
    assert queue.last.retry_at_us == 5 * MINUTE + SECOND


def test_a_machine_that_comes_up_is_an_event():
    queue = Queue([3, 3], **QUEUE)
    task = queue.task(3)
    queue.run(0, 1)
    queue.show(up=[True, False])
    assert queue.plan(0, task) == {}
    queue.show()
    assert queue.plan(2 * SECOND) == {task: 1}


def test_rejected_claims_back_off_and_evicted_tasks_are_new():
    queue = Queue([3], **QUEUE)
    task, other = queue.task(1), queue.task(1)
    queue.show()
    assert queue.plan(0, task) == {task: 0}
    queue.tell(ChangeKind.REJECTED, task, 10)
    assert queue.plan(20, task, other) == {other: 0}
    assert queue.last.pending.tolist() == [task]
    assert queue.last.pending_reason.tolist() == [PendingReason.HELD_BACK]
    assert queue.last.retry_at_us == SECOND + 10
    assert queue.plan(SECOND + 10) == {task: 0}
    queue.tell(ChangeKind.REJECTED, task, SECOND + 20)
    assert queue.plan(SECOND + 30, task) == {}
    assert queue.last.retry_at_us == 3 * SECOND + 20
    assert queue.plan(3 * SECOND + 20) == {task: 0}
    queue.tell(ChangeKind.COMMITTED, task, 4 * SECOND)
    queue.tell(ChangeKind.EVICTED, task, 5 * SECOND)
    assert queue.plan(5 * SECOND, task) == {task: 0}


def test_urgent_tasks_are_tried_first_and_gangs_together():
    queue = Queue([4], **QUEUE)
    queue.show()
    low, high = queue.task(3), queue.task(3, priority=2)
    assert queue.plan(0, low, high) == {high: 0}
    gang = [queue.task(2, priority=p, gang=7) for p in (0, 3)]
    assert queue.plan(1, *gang, queue.task(1, priority=2)) == {gang[0]: 0, gang[1]: 0}


def test_a_nominated_task_takes_its_room_at_the_next_attempt():
    queue = Queue([4, 4], **PREEMPTS)
    victims = [queue.run(0, 2, priority=1), queue.run(0, 2, priority=0)]
    queue.run(1, 4, priority=3)
    queue.show()
    task = queue.task(2, priority=2)
    assert queue.plan(0, task) == {} and not len(queue.last.evict)
    assert queue.last.retry_at_us == SECOND
    assert queue.plan(SECOND) == {task: 0}
    assert queue.last.evict.tolist() == [victims[1]]  # the other one is more important


def test_victims_that_ended_by_themselves_are_not_ended():
    queue = Queue([4], **PREEMPTS)
    victim = queue.run(0, 3)
    queue.run(0, 1, priority=5)
    queue.show()
    task = queue.task(2, priority=2)
    queue.plan(0, task)
    del queue.runs[victim]
    queue.show()
    assert queue.plan(SECOND) == {task: 0} and not len(queue.last.evict)


def test_the_room_of_a_nominated_task_is_taken_for_equal_and_lower_priorities():
    queue = Queue([4], **PREEMPTS)
    victim = queue.run(0, 4)
    queue.show()
    task = queue.task(3, priority=2)
    queue.plan(0, task)
    del queue.runs[victim]  # its room is free, and the task still backs off
    queue.show()
    low, equal, above = queue.task(2), queue.task(2, priority=2), queue.task(2, priority=3)
    small = queue.task(1)
    assert queue.plan(10, low, equal, small) == {small: 0}
    queue.run(0, 1)
    queue.show()
    assert queue.plan(20, above) == {above: 0}
    queue.run(0, 2, priority=3)
    queue.show()
    assert queue.plan(SECOND) == {}  # there is no room any more, nor anybody to end


def test_a_more_urgent_task_ends_the_nomination_of_a_lower_one():
    queue = Queue([4], **PREEMPTS)
    victim = queue.run(0, 4)
    queue.show()
    first, second = queue.task(3, priority=2), queue.task(3, priority=3)
    queue.plan(0, first)
    queue.plan(10, second)
    assert queue.plan(SECOND) == {}  # the first: no room beside the second
    assert queue.plan(SECOND + 10) == {second: 0} and queue.last.evict.tolist() == [victim]


def test_two_tasks_share_the_room_of_one_victim():
    queue = Queue([4], **PREEMPTS)
    victim = queue.run(0, 4)
    queue.show()
    tasks = [queue.task(2, priority=2), queue.task(2, priority=2)]
    queue.plan(0, *tasks)
    assert queue.plan(SECOND) == dict.fromkeys(tasks, 0)
    assert queue.last.evict.tolist() == [victim]


def test_where_tasks_end_all_claims_are_of_higher_priority_than_these():
    queue = Queue([[4, 4]], **PREEMPTS)
    victim = queue.run(0, [4, 0], priority=2)
    queue.show()
    task = queue.task([2, 0], priority=3)
    queue.plan(0, task)
    alike, above = queue.task([0, 1], priority=2), queue.task([0, 1], priority=3)
    assert queue.plan(SECOND, alike, above) == {task: 0, above: 0}
    assert queue.last.evict.tolist() == [victim]


def ended_for(queue, request, priority=9):
    """The allocations that end for a task."""
    queue.show()
    start_us = 100 * SECOND
    queue.plan(start_us, queue.task(request, priority))
    queue.plan(start_us + SECOND)
    return queue.last.evict.tolist()


@pytest.mark.parametrize(
    ("machines", "ended"),
    [
        # of each machine its tasks as (request, priority)
        ([[(4, 2)], [(2, 1), (2, 1)], [(4, 3)]], 1),  # the lowest highest priority
        ([[(2, 2), (2, 1)], [(4, 2)], [(2, 2), (2, 2)]], 1),  # the smallest sum
        ([[(2, -5), (2, -5)], [(4, -5)]], 1),  # ... counted from the lowest priority possible
    ],
)
def test_the_machine_whose_victims_matter_least(machines, ended):
    queue = Queue([4] * len(machines), **PREEMPTS)
    of_machine = [[queue.run(at, *one) for one in tasks] for at, tasks in enumerate(machines)]
    assert sorted(ended_for(queue, 4)) == of_machine[ended]


def test_of_equal_victims_the_latest_end():
    queue = Queue([4] * 3, **PREEMPTS)
    for machine in (0, 2):
        queue.run(machine, 4)
    queue.show()
    queue.plan(0)
    latest = queue.run(1, 4)
    queue.show()
    queue.plan(SECOND)
    assert ended_for(queue, 3) == [latest]


def test_constraints_and_machines_that_are_down_or_too_small():
    catalog = constrained(catalog_of(({1: 0, 2: 0}, {})), [1])
    queue = Queue([4, 4, 2, 4], catalog, **PREEMPTS)
    for machine, request in enumerate((4, 4, 2, 4)):
        queue.run(machine, request)
    queue.show(up=[True, True, True, False])
    task = queue.task(3, priority=1, preference=1)
    queue.plan(0, task)
    assert queue.plan(SECOND) == {task: 1} and queue.last.evict.tolist() == [2]


def test_gangs_do_not_preempt():
    queue = Queue([4], **PREEMPTS)
    queue.run(0, 4)
    queue.show()
    queue.plan(0, queue.task(2, priority=1, gang=1), queue.task(2, priority=1, gang=1))
    assert queue.last.retry_at_us == 5 * MINUTE


@pytest.mark.parametrize(
    ("options", "capabilities"),
    [
        ({}, {Capability.IGNORES_CHANGES}),
        (QUEUE, {Capability.KEEPS_PENDING}),
        (PREEMPTS, {Capability.KEEPS_PENDING, Capability.PREEMPTS}),
    ],
)
def test_options_decide_on_capabilities(options, capabilities):
    spec = registry.get("kubernetes")
    assert spec.with_options(spec.parse_options(options)).capabilities == capabilities
    check_conformance(spec, options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"priority_preemption": True}, "priority_preemption: needs scheduling_queue = true"),
        ({**QUEUE, "pod_initial_backoff_s": 20.0}, "pod_max_backoff_s: expected at least 20"),
        ({**QUEUE, "pod_initial_backoff_s": 0.0}, "pod_initial_backoff_s"),
        ({**PREEMPTS, "min_candidate_nodes_percentage": 101}, "min_candidate_nodes_percentage"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(AgoraError, match=message) as caught:
        registry.get("kubernetes").parse_options(options)
    assert "\n" not in str(caught.value)
