"""A check of policies, check_policy_conformance(SPEC): does a policy keep the contract of
interface.py?

Flow schedulers with the policy take part in the check of all schedulers (schedulers.conformance):
rounds on small cells with rivals, rejections, ended and lost tasks, gangs and preferences. After
each round the flow problem is built anew from what the policy says, by another way than the
graph's, and solved by another algorithm. The round must have cost as little. A policy that names
stale tasks or aggregators is asked about all of them once more, and fails if it has not named one
of which it says something else now. So do placements that are not the cheapest by its own costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from flowsolver import FlowNetwork, Status, solve
from schedulers.conformance import check_conformance, require
from schedulers.flow.kinds import CAPABILITIES, DECISION
from schedulers.flow.options import FlowOptions, joined_options
from schedulers.flow.policies.interface import (
    UNBOUNDED,
    AggregatorArcs,
    MachineLoad,
    Policy,
    TaskArcs,
    join_arcs,
)
from schedulers.flow.policies.registry import PolicySpec
from schedulers.flow.scheduler import FlowScheduler
from schedulers.flow.solver_graph import NO_NODE, TaskNodeState
from schedulers.interface import Capability, Plan, PlanContext, SchedulerEnvironment
from schedulers.registry import SchedulerSpec
from shared_state.tasks import Int64, TaskBatch
from shared_state.view import ClusterView


def check_policy_conformance(
    spec: PolicySpec,
    options: Mapping[str, Any] | None = None,
    seed: int = 1,
    resources: tuple[str, str] = ("cpu", "memory"),
) -> None:
    """Check that a policy, with these options, keeps the contract; takes some seconds.

    Args:
        spec: Of the policy.
        options: Its own, or those of the flow scheduler.
        seed: Of the worlds that are made.
        resources: What the resources of the cells are called; some cells have only the first.

    Raises:
        NonConformance: Says what is broken, and where.
        AgoraError: The options are not right.
    """
    for preemption in (False, True):
        given = {"policy": spec.kind, "preemption": preemption, "certify_every": 1}
        check_conformance(_scheduler_of(spec, resources), {**given, **(options or {})}, seed)


def _scheduler_of(spec: PolicySpec, resources: tuple[str, str]) -> SchedulerSpec:
    def build(options: FlowOptions, environment: SchedulerEnvironment) -> FlowScheduler:
        cell = environment.cell
        cell = replace(cell, dimensions=resources[: len(cell.dimensions)])
        environment = replace(environment, cell=cell)
        return _CheckedFlow(spec.build(options, environment), options, environment)

    return SchedulerSpec(
        spec.kind,
        joined_options(FlowOptions, spec),
        build,
        default_decision=DECISION,
        capabilities=CAPABILITIES,
        further_capabilities=_further_capabilities,
    )


def _further_capabilities(options: FlowOptions) -> frozenset[Capability]:
    return frozenset({Capability.EVICTS}) if options.preemption else frozenset()


class _CheckedFlow(FlowScheduler):
    """A flow scheduler whose rounds are held against what its policy says."""

    def __init__(
        self, policy: Policy, options: FlowOptions, environment: SchedulerEnvironment
    ) -> None:
        self._said = _Said(policy)
        super().__init__(policy, options, environment)
        self._preempts = options.preemption

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        plan = super().plan(tasks, view, context)
        problem = StatedProblem(self, self._policy, self._said, context.now_us)
        cost = problem.optimum()
        require(
            self.graph.cost == cost,
            f"the round costs as little as the arcs allow that the policy states when it is asked "
            f"anew about all tasks and aggregators: expected {cost}, got {self.graph.cost} (it may "
            f"not have named what became stale)",
        )
        as_the_flow_has_it = not any(
            plan.stats[name] for name in ("oversubscribed", "repaired", "held_back")
        )
        if as_the_flow_has_it and not self._preempts:
            problem.check_placements(plan.task, plan.machine.astype(np.int64), cost)
        return plan


class _Said:
    """What a policy said last of each aggregator and task. That of a policy which never names stale
    ones stays as it is."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._of_aggregator: dict[int, AggregatorArcs] = {}
        self._of_task: dict[int, tuple[TaskArcs, int]] = {}
        self._of_running: dict[int, int] = {}
        given: Any = policy
        if not policy.overrides("stale_aggregators"):
            given.aggregator_arcs = self._keep_aggregators(given)
        if not policy.overrides("stale_tasks"):
            given.task_arcs, given.running_arc_cost = self._keep_tasks(given), self._keep_run(given)

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        if not self._of_aggregator:
            return self._policy.aggregator_arcs(aggregator, load)
        return join_arcs([self._of_aggregator[a] for a in aggregator.tolist()])

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        if self._policy.overrides("stale_tasks") or len(tasks) == 0:
            return self._policy.task_arcs(tasks)
        kept = [self._of_task[t][0] for t in tasks.task.tolist()]
        return join_arcs(
            [TaskArcs(arcs.row * 0 + i, arcs.head, arcs.cost) for i, arcs in enumerate(kept)]
        )

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        if self._policy.overrides("stale_tasks"):
            return self._policy.unscheduled_cost(tasks)
        return np.array([self._of_task[t][1] for t in tasks.task.tolist()], np.int64)

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        if self._policy.overrides("stale_tasks"):
            return self._policy.running_arc_cost(tasks, machine)
        return np.array([self._of_running[t] for t in tasks.task.tolist()], np.int64)

    def _keep_aggregators(self, policy: Policy) -> Callable[..., AggregatorArcs]:
        ask = policy.aggregator_arcs

        def asked(aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
            arcs = ask(aggregator, load)
            capacity = (
                np.full(len(arcs.tail), UNBOUNDED) if arcs.capacity is None else arcs.capacity
            )
            for a in aggregator.tolist():
                own = arcs.tail == a
                self._of_aggregator[a] = AggregatorArcs(
                    arcs.tail[own], arcs.head[own], arcs.cost[own], arcs.level[own], capacity[own]
                )
            return arcs

        return asked

    def _keep_tasks(self, policy: Policy) -> Callable[..., TaskArcs]:
        ask = policy.task_arcs

        def asked(tasks: TaskBatch) -> TaskArcs:
            arcs, again, waiting = ask(tasks), ask(tasks), policy.unscheduled_cost(tasks)
            require(
                all(
                    np.array_equal(getattr(arcs, name), getattr(again, name))
                    for name in ("row", "head", "cost")
                ),
                "task_arcs: tasks that are asked about again at once have the same arcs",
            )
            for i, t in enumerate(tasks.task.tolist()):
                own = arcs.row == i
                self._of_task[t] = (
                    TaskArcs(arcs.row[own], arcs.head[own], arcs.cost[own]),
                    int(waiting[i]),
                )
            return arcs

        return asked

    def _keep_run(self, policy: Policy) -> Callable[..., Int64]:
        ask = policy.running_arc_cost

        def asked(tasks: TaskBatch, machine: Int64) -> Int64:
            cost = ask(tasks, machine)
            self._of_running |= dict(zip(tasks.task.tolist(), cost.tolist(), strict=True))
            return cost

        return asked


class StatedProblem:
    """The flow problem of the last round of a scheduler, from what its policy says when it is asked
    about all tasks and aggregators in the graph.

    Nodes: 0 is the sink, then come machines, aggregators, groups, and tasks.
    """

    def __init__(self, scheduler: FlowScheduler, policy: Policy, said: _Said, now_us: int) -> None:
        graph, table = scheduler.graph, scheduler.table
        load = graph.load
        assert load is not None, "after a round"
        self._policy = policy
        self._said = said
        self._now_us = now_us
        self._room = load.room
        self._row = np.flatnonzero(table.node_state != TaskNodeState.NONE)
        self._tasks = table.batch(self._row)
        self._machines = len(load.room)
        aggregators = np.flatnonzero(graph.nodes.aggregator != NO_NODE)
        self._arcs = self._task_arcs()
        self._inner, self._inner_cost, self._inner_capacity = self._aggregator_arcs(
            aggregators, load
        )
        self._group, node, _, _, _, size = table.open_groups()
        order = np.argsort(node)
        of_task = table.group_node(self._row)
        self._group_of = order[np.searchsorted(node[order], of_task)]
        self._wait = self._wait_costs(scheduler)
        self._runs = np.flatnonzero(table.node_state[self._row] == TaskNodeState.RUNNING)
        self._runs_on = table.machine[self._row[self._runs]]
        self._stay = self._stay_costs(table.since_us[self._row[self._runs]])
        self._lower = np.zeros(len(self._group), np.int64)
        self._upper = np.full(len(self._group), UNBOUNDED, np.int64)
        if self._policy.overrides("waiting_bounds"):
            bounds = self._policy.waiting_bounds(self._group, size, load)
            if bounds is not None:
                self._lower, self._upper = bounds
        self._first_aggregator = 1 + self._machines
        self._first_group = self._first_aggregator + self._policy.aggregators
        self._first_task = self._first_group + len(self._group)

    def optimum(self) -> int:
        """The least that the round can cost."""
        network = self._network()
        machine, group = 1 + np.arange(self._machines), self._first_group + self._groups()
        sink = np.zeros(len(machine), np.int64)
        network.add_arcs(machine, sink, self._room, 0)
        bound = np.maximum(np.minimum(self._upper, UNBOUNDED) - self._lower, 0)
        network.add_arcs(group, np.zeros(len(group), np.int64), bound, 0)
        network.set_supply(group, -self._lower)
        network.set_supply(np.zeros(1, np.int64), int(self._lower.sum()) - len(self._tasks))
        cost = _cost_of(network)
        assert cost is not None, "the scheduler has solved it"
        return cost

    def check_placements(self, task: Int64, machine: Int64, optimum: int) -> None:
        """Require that these placements (int64[k] each), of which every other task waits, cost as
        little as the round can."""
        row = {t: i for i, t in enumerate(self._tasks.task.tolist())}
        index = np.array([row[t] for t in task.tolist()], np.int64)
        for t, i, m in zip(task.tolist(), index.tolist(), machine.tolist(), strict=True):
            heads = self._arcs.head[self._arcs.row == i].tolist()
            require(
                self._leads(heads, m), f"task {t} has a path to machine {m}, where it is placed"
            )
        waits = np.ones(len(self._tasks), bool)
        waits[index] = False
        network = self._network()
        group = self._first_group + self._groups()
        network.set_supply(
            1 + np.arange(self._machines), -np.bincount(machine, None, self._machines)
        )
        network.set_supply(group, -np.bincount(self._group_of[waits], None, len(self._group)))
        cost = _cost_of(network)
        require(
            cost == optimum,
            f"as many tasks on each machine as are placed there cost as little as the round can: "
            f"expected {optimum}, got {cost}",
        )

    def _leads(self, heads: list[int], machine: int) -> bool:
        seen: set[int] = set()
        while heads:
            head = heads.pop()
            if head == machine:
                return True
            if head >= 0 or head in seen:
                continue
            seen.add(head)
            onward = (self._inner.tail == -1 - head) & (self._inner_capacity > 0)
            heads += self._inner.head[onward].tolist()
        return False

    def _groups(self) -> Int64:
        return np.arange(len(self._group))

    def _node(self, head: Int64) -> Int64:
        return np.where(head >= 0, 1 + head, self._first_aggregator - 1 - head)

    def _network(self) -> FlowNetwork:
        """All nodes, and the arcs but those to the sink."""
        network = FlowNetwork()
        supply = np.zeros(self._first_task + len(self._tasks), np.int64)
        supply[self._first_task :] = 1
        network.add_nodes(supply)
        first = self._first_task
        network.add_arcs(first + self._arcs.row, self._node(self._arcs.head), 1, self._arcs.cost)
        each = np.arange(len(self._tasks))
        network.add_arcs(first + each, self._first_group + self._group_of, 1, self._wait)
        network.add_arcs(first + self._runs, 1 + self._runs_on, 1, self._stay)
        network.add_arcs(
            self._first_aggregator + self._inner.tail,
            self._node(self._inner.head),
            self._inner_capacity,
            self._inner_cost,
        )
        return network

    # --- what the policy says --------------------------------------------------------------------

    def _task_arcs(self) -> TaskArcs:
        return self._said.task_arcs(self._tasks)

    def _aggregator_arcs(
        self, aggregator: Int64, load: MachineLoad
    ) -> tuple[AggregatorArcs, Int64, Int64]:
        """The arcs out of these aggregators, their costs and capacities."""
        arcs = self._said.aggregator_arcs(aggregator, load)
        cost = arcs.cost.astype(np.int64)
        capacity = np.full(len(arcs.tail), UNBOUNDED, np.int64)
        if arcs.capacity is not None:
            capacity = np.minimum(arcs.capacity, UNBOUNDED)
        into = np.flatnonzero(arcs.head >= 0)
        tail, level, machine = arcs.tail[into], arcs.level[into], arcs.head[into]
        capacity[into] = self._policy.machine_arc_capacity(level, machine, load)
        now = self._policy.machine_arc_cost(tail, level, machine, load)
        if now is not None:
            cost[into] = now
        return arcs, cost, capacity

    def _wait_costs(self, scheduler: FlowScheduler) -> Int64:
        """What waiting costs each task: in its group, or for a place that it prefers."""
        policy, tasks, table = self._policy, self._tasks, scheduler.table
        cost: Int64 = self._said.unscheduled_cost(tasks) + table.group_cost(self._row) * _quanta(
            policy.wait_price.quantum_us, tasks.submit_us, self._now_us
        )
        if not policy.patience_us:
            return cost
        price = policy.patience_price
        patient = policy.patient_wait_cost(tasks) + price.cost * _quanta(
            price.quantum_us, tasks.submit_us, self._now_us
        )
        lasts = table.patience_ends_us[self._row] > self._now_us
        lasts &= table.node_state[self._row] == TaskNodeState.WAITING
        return np.where(lasts, np.minimum(cost, patient), cost)

    def _stay_costs(self, since_us: Int64) -> Int64:
        if len(self._runs) == 0:
            return np.zeros(0, np.int64)
        price = self._policy.progress_price
        said = self._said.running_arc_cost(self._tasks.take(self._runs), self._runs_on)
        cost: Int64 = said - price.cost * _quanta(price.quantum_us, since_us, self._now_us)
        return cost


def _quanta(quantum_us: int, since_us: Int64, now_us: int) -> Int64:
    return now_us // quantum_us - since_us // quantum_us


def _cost_of(network: FlowNetwork) -> int | None:
    """The cost of a problem's optimum; None if it has no solution."""
    solution = solve(network, "network_simplex")
    return solution.cost if solution.status == Status.OPTIMAL else None
