"""Which running tasks make room for tasks of higher priority, against an exhaustive search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schedulers import registry
from schedulers.conformance import check_conformance
from schedulers.flow.priority_preemption import MadeRoom, RoomMaker
from schedulers.objective import placement_cost
from schedulers.running_tasks import FirstSeen, RunningTasks
from shared_state.tasks import Int64, TaskBatch
from tests.fixtures.examples import examples
from tests.flow_world import catalog_of, tasks_of

MACHINES = 3
RACK = np.zeros(MACHINES, np.int32)
CATALOG = catalog_of(
    [
        {"machine": {0: 0, 1: 3}, "elsewhere": 10, "unscheduled": 100},
        {"machine": {2: 1}, "elsewhere": 6, "unscheduled": 100},
    ]
)


def plain(cost: Int64, preferred: object, machine: Int64, free: Int64) -> Int64:
    return cost


def batch(
    request: Sequence[Sequence[int]], priority: Sequence[int], preference: Sequence[int]
) -> TaskBatch:
    asked = np.array(request, np.int64).reshape(len(request), len(request[0]) if request else 1)
    tasks = tasks_of(np.arange(len(request)), request=asked, preference=np.array(preference))
    return replace(tasks, priority=np.array(priority, np.int32))


def running_of(
    request: Sequence[Sequence[int]], machine: Sequence[int], priority: Sequence[int]
) -> RunningTasks:
    n = len(machine)
    table = batch(request, priority, [0] * n)
    return RunningTasks.of(table, 10 + np.arange(n), np.arange(n), np.array(machine, np.int32))


def made(
    tasks: TaskBatch, wait_cost: Int64, running: RunningTasks, loss: Int64, room: Int64
) -> MadeRoom:
    maker = RoomMaker(running, loss, room.copy(), CATALOG, RACK, plain, 7)
    return maker.place(tasks, wait_cost)


def cost_of(tasks: TaskBatch) -> Int64:
    """int64[n, M]."""
    n = len(tasks)
    each = np.repeat(tasks.preference, MACHINES)
    machines = np.tile(np.arange(MACHINES, dtype=np.int32), n)
    return placement_cost(CATALOG, RACK, each, machines)[0].reshape(n, MACHINES)


def best(
    tasks: TaskBatch, wait_cost: Int64, running: RunningTasks, loss: Int64, room: Int64
) -> tuple[int, int]:
    """The most tasks of one slot that can be placed, less, and the least cost at which they are:
    every assignment is tried."""
    cost, found = cost_of(tasks), (0, 0)
    lower = running.priority < tasks.priority.min()
    losses = [sorted(loss[lower & (running.machine == m)].tolist()) for m in range(MACHINES)]
    for chosen in product(range(-1, MACHINES), repeat=len(tasks)):
        total = placed = 0
        for task, machine in enumerate(chosen):
            if machine >= 0:
                placed += 1
                total += int(cost[task, machine])
                if cost[task, machine] >= wait_cost[task]:
                    break
        else:
            short = [max(0, chosen.count(m) - int(room[m, 0])) for m in range(MACHINES)]
            if all(short[m] <= len(losses[m]) for m in range(MACHINES)):
                total += sum(sum(losses[m][: short[m]]) for m in range(MACHINES))
                found = min(found, (-placed, total))
    return found


WORLDS = st.tuples(
    st.lists(
        st.tuples(st.sampled_from([1, 2]), st.sampled_from([2, 8, 100])), min_size=1, max_size=4
    ),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 9)), max_size=7),
    st.lists(st.integers(0, 1), min_size=MACHINES, max_size=MACHINES),
)


@examples(200)
@given(WORLDS)
def test_as_many_as_possible_are_placed_at_the_least_cost(
    world: tuple[list[tuple[int, int]], list[tuple[int, int, int]], list[int]],
) -> None:
    asked, runs, free = world
    tasks = batch([[1]] * len(asked), [2] * len(asked), [preference for preference, _ in asked])
    wait_cost = np.array([wait for _, wait in asked])
    running = running_of([[1]] * len(runs), [m for m, _, _ in runs], [p for _, p, _ in runs])
    loss = np.array([lost for _, _, lost in runs], np.int64)
    room = np.array(free)[:, None]
    found = made(tasks, wait_cost, running, loss, room)
    cost = cost_of(tasks)[found.row, found.machine].sum() + loss[found.victim].sum()
    assert (-len(found.row), cost) == best(tasks, wait_cost, running, loss, room)


SIZES = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any)


@examples(200)
@given(
    st.lists(st.tuples(SIZES, st.integers(1, 3)), min_size=1, max_size=5),
    st.lists(
        st.tuples(SIZES, st.integers(0, MACHINES - 1), st.integers(0, 3), st.integers(0, 9)),
        max_size=8,
    ),
    st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2)), min_size=3, max_size=3),
)
def test_claims_fit_and_none_ends_in_vain_or_for_its_like(
    asked: list[tuple[tuple[int, int], int]],
    runs: list[tuple[tuple[int, int], int, int, int]],
    free: list[tuple[int, int]],
) -> None:
    tasks = batch([size for size, _ in asked], [p for _, p in asked], [0] * len(asked))
    if not runs:
        return
    running = running_of([r for r, _, _, _ in runs], [r[1] for r in runs], [r[2] for r in runs])
    loss, room = np.array([r[3] for r in runs]), np.array(free)
    found = made(tasks, np.full(len(asked), 100), running, loss, room)
    assert len(np.unique(found.row)) == len(found.row)
    for machine in range(MACHINES):
        rows = found.row[found.machine == machine]
        there = found.victim[running.machine[found.victim] == machine]
        need = tasks.request[rows].sum(axis=0)
        left = room[machine] + running.request[there].sum(axis=0) - need
        assert np.all((left >= 0) | (need == 0))
        assert len(rows) or not len(there)
        for victim in there.tolist():
            assert running.priority[victim] < tasks.priority[rows].min()
    # the highest priority comes first: of those that wait, none fits where a lower one was placed
    waiting = np.setdiff1d(np.arange(len(tasks)), found.row)
    for row in waiting.tolist():
        alike = np.all(tasks.request == tasks.request[row], axis=1)
        lower = np.flatnonzero(alike & (tasks.priority < tasks.priority[row]))
        assert not np.isin(lower, found.row).any()


def test_the_dearest_victims_that_can_be_spared_run_on() -> None:
    running = running_of([[1], [1], [4]], [0, 0, 0], [0, 0, 0])
    tasks = batch([[4]], [1], [1])
    room = np.array([[0], [0], [0]])
    found = made(tasks, np.array([100]), running, np.array([1, 2, 3]), room)
    assert found.victim.tolist() == [2]


def test_a_machine_that_is_down_is_left_alone() -> None:
    found = made(
        batch([[1]], [1], [1]),
        np.array([100]),
        running_of([[1]], [0], [0]),
        np.array([0]),
        np.array([[-1], [0], [0]]),
    )
    assert not len(found.row) and not len(found.victim)


def test_a_task_that_would_rather_wait_takes_no_room() -> None:
    """Beside running tasks of lower priority it chooses as if their room were free."""
    tasks, running = batch([[1]], [1], [1]), running_of([[1]], [2], [0])
    room = np.zeros((MACHINES, 1), np.int64)
    assert not len(made(tasks, np.array([10]), running, np.array([0]), room).row)
    assert made(tasks, np.array([11]), running, np.array([0]), room).machine.tolist() == [2]


def test_progress_counts_from_when_a_task_was_first_seen() -> None:
    seen = FirstSeen()
    assert seen.since_us(np.array([7, 3]), 10).tolist() == [10, 10]
    assert seen.since_us(np.array([3, 9, 7]), 20).tolist() == [10, 20, 10]
    assert seen.since_us(np.array([9]), 30).tolist() == [20]
    assert seen.since_us(np.array([3, 9]), 40).tolist() == [40, 20]  # it was not there meanwhile


def test_kinds_that_preempt_by_priority_conform() -> None:
    for kind in ("flow", "firmament", "flow_load_spreading"):
        for preemption in (False, True):
            options = {"priority_preemption": True, "preemption": preemption}
            check_conformance(registry.get(kind), options)
