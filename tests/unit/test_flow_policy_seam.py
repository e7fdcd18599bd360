"""Policies whose arcs change between rounds: the graph that the scheduler keeps has in every round
the cost of one that is built anew from what the policy says then, by OR-tools."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow

from schedulers.flow.options import FlowOptions
from schedulers.flow.policies.interface import (
    AggregatorArcs,
    MachineLoad,
    ObservedCell,
    Policy,
    TaskArcs,
    TimePrice,
)
from schedulers.flow.scheduler import FlowScheduler
from schedulers.flow.solver_graph import TaskNodeState
from shared_state.random import Stream
from shared_state.tasks import Int64, TaskBatch
from tests.fixtures.examples import examples
from tests.flow_world import FLOW, FlowWorld, environment, slot_cell, tasks_of

MACHINES = 5
GROUPS = 3


class Changeable(Policy):
    """Everything of a round is drawn anew: which arcs there are, their costs and capacities, the
    bounds of groups, and what is said to be stale.

        T --> some machines, some aggregators     aggregator a --> later aggregators, machines
    """

    wait_price = TimePrice(1, 1_000_000)

    def __init__(self, seed: int) -> None:
        self.stream = Stream(seed)
        self.count = 2
        self.arcs: dict[int, list[tuple[int, int, int, int]]] = {}  # head, cost, level, capacity
        self.all_arcs: dict[int, list[tuple[int, int, int, int]]] = {}
        self.of_task: dict[int, tuple[list[tuple[int, int]], int]] = {}
        self.running: dict[int, int] = {}
        self.factor = np.ones(MACHINES, np.int64)
        self.bounds: tuple[Int64, Int64] | None = None
        self.stale: tuple[Int64, Int64] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self.observed: list[ObservedCell] = []

    observes_running = True
    grows = True

    def draw(self, below: int) -> int:
        return int(self.stream.integers(1, below)[0])

    @property
    def aggregators(self) -> int:
        return self.count

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        self.observed.append(cell)
        if self.draw(3) == 0:
            self.count += 1
        aggregators = [a for a in self.arcs if self.draw(2)]
        for a in aggregators:
            if self.draw(3) == 0:
                self.all_arcs[a] = self._drawn_arcs(a)
            # Some close, and open again later.
            self.arcs[a] = [arc for arc in self.all_arcs[a] if self.draw(3)]
        tasks = [t for t in self.of_task if self.draw(4) == 0]
        for t in tasks:
            self.of_task[t] = self._drawn_task()
            self.running[t] = self.draw(9) - 5
        self.stale = np.array(aggregators, np.int64), np.array(tasks, np.int64)
        self.factor = 1 + cell.free[:, 0]

    def stale_aggregators(self) -> Int64:
        return self.stale[0]

    def stale_tasks(self) -> Int64:
        return self.stale[1]

    def _drawn_arcs(self, a: int) -> list[tuple[int, int, int, int]]:
        heads = [m for m in range(MACHINES) if self.draw(2)] or [0]
        found = [
            (m, self.draw(9), level, 0) for m in heads for level in range(1 + (self.draw(4) == 0))
        ]
        later = [b for b in range(a + 1, self.count) if self.draw(2)]
        return found + [(-1 - b, self.draw(4), 0, self.draw(4)) for b in later]

    def _drawn_task(self) -> tuple[list[tuple[int, int]], int]:
        heads = [h for h in range(-min(self.count, 3), MACHINES) if self.draw(3) == 0]
        return [(h, self.draw(9)) for h in heads], 10 + self.draw(20)

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        rows = []
        for a in aggregator.tolist():
            if a not in self.arcs:
                self.arcs[a] = self.all_arcs[a] = self._drawn_arcs(a)
            rows += [(a, *arc) for arc in self.arcs[a]]
        tail, head, cost, level, capacity = np.array(rows, np.int64).reshape(-1, 5).T.copy()
        return AggregatorArcs(tail, head, cost, level, capacity)

    def machine_arc_capacity(self, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        return np.maximum(load.room[machine] - level, 0)

    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64:
        return (tail + 2 * level + machine) * self.factor[machine]

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        for t in tasks.task.tolist():
            if t not in self.of_task:
                self.of_task[t] = self._drawn_task()
        rows = [
            (i, head, cost)
            for i, t in enumerate(tasks.task.tolist())
            for head, cost in self.of_task[t][0]
        ]
        return TaskArcs(*np.array(rows, np.int64).reshape(-1, 3).T.copy())

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.array([self.of_task[t][1] for t in tasks.task.tolist()], np.int64)

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        return np.array([self.running.get(t, -1) for t in tasks.task.tolist()], np.int64)

    def waiting_group(self, tasks: TaskBatch) -> Int64:
        return tasks.task % GROUPS

    def group_wait_cost(self, group: Int64) -> Int64:
        return group

    def waiting_bounds(
        self, group: Int64, tasks: Int64, load: MachineLoad
    ) -> tuple[Int64, Int64] | None:
        lower = np.array([self.draw(3) for _ in group], np.int64)
        lower = np.minimum(lower, tasks)
        # Nobody has to be placed: which the flow may not meet.
        self.bounds = (lower, tasks + 1) if self.draw(3) else None
        self.bounded = group
        return self.bounds


def stated_optimum(world: FlowWorld, policy: Changeable, now_us: int) -> int:
    """The optimum of a network that is built from what the policy says, by OR-tools."""
    scheduler = world.scheduler
    table, load = scheduler.table, scheduler._load(world.view)
    in_graph = np.flatnonzero(table.node_state != TaskNodeState.NONE)
    tasks = table.batch(in_graph)
    problem = min_cost_flow.SimpleMinCostFlow()
    sink, first_machine = 0, 1
    first_group = first_machine + MACHINES
    first_aggregator = first_group + GROUPS
    first_task = first_aggregator + policy.count
    n, lowest = len(tasks), np.zeros(GROUPS, np.int64)

    def node(head: int) -> int:
        return first_machine + head if head >= 0 else first_aggregator - 1 - head

    for m in range(MACHINES):
        problem.add_arc_with_capacity_and_unit_cost(
            first_machine + m, sink, int(scheduler.graph._machine_arcs.room[m]), 0
        )
    for a, arcs in policy.arcs.items():
        for head, cost, level, capacity in arcs:
            if head >= 0:
                at = np.array([a]), np.array([level]), np.array([head])
                cost = int(policy.machine_arc_cost(*at, load)[0])
                capacity = max(int(scheduler.graph._machine_arcs.room[head]) - level, 0)
            problem.add_arc_with_capacity_and_unit_cost(
                first_aggregator + a, node(head), capacity, cost
            )
    if policy.bounds is not None:
        lowest[policy.bounded] = policy.bounds[0]
    for g in range(GROUPS):
        problem.add_arc_with_capacity_and_unit_cost(first_group + g, sink, n, 0)
        problem.set_node_supply(first_group + g, -int(lowest[g]))
    for i in range(n):
        t = int(tasks.task[i])
        listed, unscheduled = policy.of_task[t]
        for head, cost in listed:
            problem.add_arc_with_capacity_and_unit_cost(first_task + i, node(head), 1, cost)
        waited = now_us // 1_000_000 - int(tasks.submit_us[i]) // 1_000_000
        problem.add_arc_with_capacity_and_unit_cost(
            first_task + i, first_group + t % GROUPS, 1, unscheduled + (t % GROUPS) * waited
        )
        if table.node_state[in_graph[i]] == TaskNodeState.RUNNING:
            ran = now_us // 1_000_000 - int(table.since_us[in_graph[i]]) // 1_000_000
            problem.add_arc_with_capacity_and_unit_cost(
                first_task + i,
                first_machine + int(table.machine[in_graph[i]]),
                1,
                policy.running.get(t, -1) - ran,
            )
        problem.set_node_supply(first_task + i, 1)
    problem.set_node_supply(sink, -n + int(lowest.sum()))
    assert problem.solve() == problem.OPTIMAL
    return int(problem.optimal_cost())


@examples(80)
@given(st.integers(0, 2**32), st.booleans())
def test_every_round_has_the_cost_of_a_graph_built_anew(seed: int, preemption: bool) -> None:
    spec = slot_cell(MACHINES, 2, rack_size=2)
    policy = Changeable(seed)
    options = FlowOptions(certify_every=1, preemption=preemption)
    world = FlowWorld(spec, FlowScheduler(policy, options, environment(spec)))
    stream = Stream(seed + 1)
    first = 0
    waiting: dict[int, TaskBatch] = {}
    for _ in range(6):
        n = int(stream.integers(1, 5)[0])
        new = tasks_of(np.arange(first, first + n), job=first)
        new.submit_us[:] = max(world.now_us - int(stream.integers(1, 2_000_000)[0]), 0)
        first += n
        world.offer(new)
        waiting |= {int(t): new.take(np.array([i])) for i, t in enumerate(new.task)}
        plan = world.plan()
        assert world.scheduler.graph.cost == stated_optimum(world, policy, world.now_us)
        told = policy.observed[-1]
        held = world.cell.allocations(FLOW)
        assert sorted(
            zip(told.running.task.tolist(), told.machine.tolist(), strict=True)
        ) == sorted(zip(held.task.tolist(), held.machine.tolist(), strict=True))
        victims = world.cell.describe(plan.evict).task
        world.commit(plan)
        world.sync()
        back = [t for t in victims.tolist() if t not in plan.task.tolist()]
        if back:
            world.offer(TaskBatch.concatenate([waiting[t] for t in back]))
        world.now_us += int(stream.integers(1, 1_500_000)[0])
        running = world.running(FLOW)
        world.finish(running[stream.integers(len(running), 3) == 0] if len(running) else running)
