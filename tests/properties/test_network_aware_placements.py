"""Network-aware placements are the cheapest by the policy's stated costs, by an exhaustive search,
and no link is overcommitted."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schedulers.flow.kinds import build
from schedulers.flow.options import FlowOptions, options_with_policy
from schedulers.flow.policies.network_aware import HYSTERESIS, MULTI_ARCS
from schedulers.flow.solver_graph import TaskNodeState
from schedulers.interface import ChangeKind, TaskChanges
from shared_state.random import Stream
from shared_state.tasks import CellSpec, TaskBatch
from tests.fixtures.examples import examples
from tests.flow_world import FLOW, FlowWorld, environment, tasks_of

MACHINES = 3
SECOND_US = 1_000_000
Network = options_with_policy(FlowOptions, {"policy": "network_aware"})


def world_of(links: list[int], slots: int, preemption: bool, request_sizes: int = 16) -> FlowWorld:
    spec = CellSpec(
        ("cpu", "net_mbps"),
        np.array([[slots, link] for link in links], np.int64),
        np.zeros(len(links), np.int32),
        np.zeros(len(links), np.int64),
        np.array([1000, 1000], np.int64),
    )
    options = Network(
        policy="network_aware",
        certify_every=1,
        preemption=preemption,
        request_sizes=request_sizes,
    )
    return FlowWorld(spec, build(options, environment(spec)))


def rounded_up(request: int, link: int) -> int:
    """Three significant bits: 8 to 16 by twos, 16 to 32 by fours, and so on."""
    step = 1
    while request > 8 * step:
        step *= 2
    up = -(-request // step) * step
    return min(up, link) if request <= link else up


class Round:
    """The choices of a round, and what they cost, written down from the paper. `rounded`: requests
    count as rounded up."""

    def __init__(self, world: FlowWorld, rounded: bool = False) -> None:
        table = world.scheduler.table
        self.row = np.flatnonzero(table.node_state != TaskNodeState.NONE)
        self.request = table.request[self.row, 1].tolist()
        self.runs_on = [
            int(table.machine[row]) if table.node_state[row] == TaskNodeState.RUNNING else None
            for row in self.row
        ]
        tasks = table.batch(self.row)
        now = world.now_us // SECOND_US
        self.waited = (now - tasks.submit_us // SECOND_US).tolist()
        self.ran = (now - table.since_us[self.row] // SECOND_US).tolist()
        self.spare = np.maximum(world.view.free[:, 1], 0).tolist()
        self.used = (world.spec.limit[:, 1] - self.spare).tolist()
        self.link = int(world.spec.limit[:, 1].max())
        if rounded:
            self.request = [rounded_up(request, self.link) for request in self.request]
        self.room = world.scheduler.graph._machine_arcs.room.tolist()

    def cheapest(self) -> int:
        """Over all ways to send each task to a machine, to let it stay (-2), or wait (-1)."""
        choices = [[*range(MACHINES), -1] + ([-2] if on is not None else []) for on in self.runs_on]
        costs = (self.cost(way) for way in product(*choices))
        return min(cost for cost in costs if cost is not None)

    def cost(self, way: tuple[int, ...]) -> int | None:
        """None: not allowed."""
        total = 0
        on_machine, of_size = Counter(), Counter()
        for i, to in enumerate(way):
            if to == -1:
                total += self.link + 1 + self.waited[i]
                continue
            if to == -2:
                to = self.runs_on[i]
                total += self.used[to] - HYSTERESIS - self.ran[i]
            else:
                r = self.request[i]
                of_size[r, to] += 1
                n = of_size[r, to]
                if r and (n * r > self.spare[to] or n > MULTI_ARCS):
                    return None
                total += self.used[to] + n * r
            on_machine[to] += 1
            if on_machine[to] > self.room[to]:
                return None
        return total


@examples(50)
@given(st.data())
def test_the_placement_is_the_cheapest_by_the_stated_costs(data: st.DataObject) -> None:
    preemption = data.draw(st.booleans())
    links = data.draw(st.lists(st.sampled_from([10, 20, 35]), min_size=3, max_size=3))
    rounded = data.draw(st.booleans())
    slots = data.draw(st.integers(1, 4))
    world = world_of(links, slots, preemption, request_sizes=0 if rounded else 16)
    sizes = data.draw(st.sampled_from([[5], [0], [5, 10], [0, 5, 10], [3, 7, 40], [9, 17, 33, 35]]))
    stream = Stream(data.draw(st.integers(0, 2**32)))
    first = 0
    offered: dict[int, TaskBatch] = {}
    for _ in range(4):
        in_graph = world.scheduler.graph.tasks
        n = int(stream.integers(1, 4)[0]) if in_graph < 4 else 0
        drawn = [sizes[k] for k in stream.integers(n, len(sizes))]
        request = np.array([[1, size] for size in drawn], np.int64).reshape(-1, 2)
        new = tasks_of(np.arange(first, first + n), request=request, submit_us=world.now_us)
        offered |= {first + i: new.take(np.array([i])) for i in range(n)}
        first += n
        world.offer(new)
        plan = world.plan()  # which checks that all claims fit
        table = world.scheduler.table
        seen = Round(world, rounded)
        assert world.scheduler.graph.cost == seen.cheapest()
        stats = plan.stats
        if not (preemption or stats["oversubscribed"] or stats["repaired"]):
            went = dict(zip(plan.task.tolist(), plan.machine.tolist(), strict=True))
            way = tuple(went.get(task, -1) for task in table.task[seen.row].tolist())
            assert seen.cost(way) == seen.cheapest()
        victims = world.cell.describe(plan.evict).task
        world.commit(plan)
        world.sync()
        assert np.all(world.cell.used[:, 1] <= world.spec.limit[:, 1])
        back = [task for task in victims.tolist() if task not in plan.task.tolist()]
        if back:
            world.offer(TaskBatch.concatenate([offered[task] for task in back]))
        world.now_us += int(stream.integers(1, 2 * SECOND_US)[0])
        running = world.running(0)
        world.finish(running[stream.integers(len(running), 3) == 0] if len(running) else running)


def test_a_link_is_no_place_for_a_task_that_exceeds_what_is_spare() -> None:
    """However long it has waited, and although the machine has room for a task of typical size."""
    world = world_of([40, 20, 0], slots=9, preemption=False)

    def offer(first: int, sizes: list[int], submit_us: int) -> None:
        request = np.array([[1, size] for size in sizes], np.int64)
        task = np.arange(first, first + len(sizes))
        world.offer(tasks_of(task, request=request, submit_us=submit_us))

    offer(0, [40], 0)
    world.commit(world.plan())
    offer(1, [15], 0)
    world.commit(world.plan())
    world.sync()
    assert world.view.free[:2, 1].tolist() == [0, 5]
    world.now_us = 60 * SECOND_US
    offer(2, [10], 0)
    offer(3, [5, 5], world.now_us)
    plan = world.plan()
    assert plan.stats["oversubscribed"] == plan.stats["repaired"] == 0
    assert len(plan.task) == 1 and plan.task[0] in (3, 4) and plan.machine.tolist() == [1]


def test_hundreds_of_sizes_share_a_few_aggregators() -> None:
    """The first sizes have one each. Others share theirs with what is at most a quarter less, and
    keep them."""
    world = world_of([10_000] * 3, slots=4, preemption=False, request_sizes=2)
    policy = world.scheduler.graph._policy
    sizes = [7_777, 5_001, *range(1, 10_000, 13), 10_000]
    for first in (0, 2):
        request = np.array([[1, size] for size in sizes[first : 2 if first == 0 else None]])
        policy.task_arcs(tasks_of(np.arange(len(request)), request=request))
    assert policy.aggregators <= 2 + 4 * 14
    request = np.array([[1, size] for size in sizes])
    asked_again = policy.task_arcs(tasks_of(np.arange(len(sizes)), request=request))
    counted = policy._requests[-1 - asked_again.head]
    assert counted[:2].tolist() == [7_777, 5_001]
    assert np.all(counted >= sizes) and np.all(counted * 4 <= np.array(sizes) * 5)
    assert counted.max() == 10_000  # so that the largest link has room for each


def test_tasks_that_ran_before_the_first_round_are_taken_over() -> None:
    """The policy observes them, and calls them stale, before they join the graph."""
    world = world_of([40, 20, 0], slots=4, preemption=True)
    request = np.array([[1, 15], [1, 5]], np.int64)
    task, machine = np.array([0, 1]), np.array([0, 1], np.int32)
    owner = np.full(2, FLOW, np.int32)
    allocation = world.cell.load(task, machine, request, owner)
    tasks = tasks_of(task, request=request)
    changes = TaskChanges(ChangeKind.ADOPTED, 0, task, machine, allocation, tasks)
    world.scheduler.observe(changes)
    world.sync()
    world.offer(tasks_of(np.array([2]), request=np.array([[1, 10]], np.int64)))
    plan = world.plan()
    assert plan.machine.tolist() == [1] and not len(plan.evict)
    running = world.scheduler.table.node_state == TaskNodeState.RUNNING
    assert sorted(world.scheduler.table.machine[running].tolist()) == [0, 1]
