"""Where tasks wait in the flow graph: the unscheduled aggregators U_j, and the patience node W."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.policies.interface import (
    MAX_COST,
    UNBOUNDED,
    MachineLoad,
    Policy,
    PolicyError,
    answer,
    as_int64,
    check_costs,
)
from schedulers.flow.solver_graph import NO_ARC, UNSCHEDULED, SolverGraph, TaskTable
from shared_state.errors import AgoraError
from shared_state.tasks import Int64, TaskBatch


def check_time_prices(policy: Policy, preemption: bool, end_us: int) -> None:
    """Refuse prices of time that leave the range of costs before a workload ends.

    Under preemption the price of progress rises on the same arcs as that of waiting.

    Raises:
        AgoraError: A task that waits from the beginning to the end may cost more than MAX_COST.
    """
    waiting, progress = policy.wait_price, policy.progress_price
    risen = waiting.cost * (end_us // waiting.quantum_us)
    change = "lower wait_cost or raise wait_quantum_us"
    if preemption:
        by_progress = progress.cost * (end_us // progress.quantum_us)
        if by_progress > risen:
            change = "lower the price of progress, such as progress_cost"
        risen += by_progress
    if risen > MAX_COST:
        seconds = end_us / 1e6
        raise AgoraError(
            f"{policy.name}: waiting costs {waiting.cost} for each {waiting.quantum_us} us"
            + (f", and progress {progress.cost} for each {progress.quantum_us} us" * preemption)
            + f": {risen} in the {seconds:,.3g} s of this workload, which is more than the largest "
            f"cost, {MAX_COST}; {change}, or shorten the workload"
        )


def check_progress(policy: Policy, risen: int) -> None:
    """Raise PolicyError if what arcs into machines cost more, because the price of progress has
    risen since time 0, leaves the range of costs."""
    if risen > MAX_COST:
        raise PolicyError(
            f"{policy.name}: by the price of progress, {policy.progress_price.cost} for each "
            f"{policy.progress_price.quantum_us} us, the arcs to all machines, machine 0 first, "
            f"cost {risen} more than at first; expected at most {MAX_COST}"
        )


class WaitingGroups:
    """The unscheduled aggregators U_j: one node, and one arc to the sink with the waiting price,
    for each group with tasks in the graph. A group is a job, unless the policy says otherwise. The
    task table keeps them (native/flow_graph.hpp).

    How many tasks of a group may wait is the capacity of that arc. How many have to wait is a
    demand at the node itself, which only the group's tasks can meet; the sink's falls by as much.
    """

    def __init__(self, graph: SolverGraph, sink: int, policy: Policy) -> None:
        self._graph = graph
        self._sink = sink
        self._policy = policy
        self._wait_price = policy.wait_price
        self._has_groups = policy.overrides("waiting_group")
        self._has_costs = policy.overrides("group_wait_cost")
        self.has_bounds = policy.overrides("waiting_bounds")
        if self.has_bounds and policy.patience_us:
            raise PolicyError(
                f"{policy.name}: waiting_bounds: expected no bounds beside patience_us"
            )
        none = np.zeros(0, np.int64)
        self.prepaid = 0  # what tasks that have to wait do not pay in the graph, in the last round
        # As of the last round: groups, their nodes, tasks, and bounds.
        self._group = self._node = self._tasks = self._lower = self._upper = none

    def enter(
        self, table: TaskTable, row: Int64, tasks: TaskBatch, quantum: int, risen: int
    ) -> Int64:
        """Add tasks (rows, int64[n]) to their groups' aggregators in this quantum. risen: as in
        price_waiting.

        Returns: int64[n], what the waiting price of a task's group has in excess of its own. It is
            negative if the task came later than the group's first.
        """
        groups = tasks.job
        if self._has_groups:
            said = self._policy.waiting_group(tasks)
            groups = answer(self._policy, said, len(row), "waiting_group")
            if groups.min(initial=0) < 0:
                raise PolicyError(
                    f"{self._policy.name}: waiting_group: expected numbers of 0 or more, got "
                    f"{int(groups.min())}"
                )
        group, first = table.enter_groups(row, groups, self._wait_price.quantum_us)
        if len(group):
            cost = self._cost(group)
            node = self._graph.add_nodes(len(group))
            sink = np.full(len(group), self._sink)
            now = self._price_now(group, cost, quantum - first, risen)
            arc = self._graph.add_arcs(node, sink, np.full(len(group), UNBOUNDED), now)
            table.name_groups(node, arc, cost)
        late: Int64 = table.cost_of_lateness(row, self._wait_price.quantum_us)
        return late

    def close_empty(self, table: TaskTable) -> None:
        """Remove the aggregators of groups without tasks."""
        node = table.close_empty_groups()
        if len(node):
            self._graph.solver.remove_nodes(node)

    def price_waiting(self, table: TaskTable, quantum: int, risen: int) -> None:
        """Set the waiting price of all groups to that of this quantum, and `risen` more."""
        group, _, arc, first, cost, _ = table.open_groups()
        now = self._price_now(group, cost, quantum - first, risen)
        self._graph.solver.set_cost(arc, now)
        self._graph.altered += len(arc)

    def bound(self, table: TaskTable, load: MachineLoad, quantum: int) -> int:
        """Bound how many tasks of each group wait, and return how many have to in all."""
        group, node, arc, first, cost, tasks = table.open_groups()
        said = self._policy.waiting_bounds(group, tasks, load)
        lower, upper = np.zeros(len(group), np.int64), np.full(len(group), UNBOUNDED, np.int64)
        if said is not None:
            lower, upper = (
                answer(self._policy, bound, len(group), f"the {which} of waiting_bounds")
                for bound, which in zip(said, ("lower", "upper"), strict=True)
            )
            self._check_bounds(group, tasks, lower, upper)
        upper = np.minimum(upper, UNBOUNDED)
        had_lower, had_upper = self._bounds_of(node, group)
        differs = lower != had_lower
        self._graph.solver.set_supply(node[differs], -lower[differs])
        capacity = upper - lower
        moved = capacity != had_upper - had_lower
        self._graph.solver.set_capacity(arc[moved], capacity[moved])
        self._graph.altered += int(np.count_nonzero(differs)) + int(np.count_nonzero(moved))
        self._group, self._node, self._tasks = group, node, tasks
        self._lower, self._upper = lower, upper
        self.prepaid = int((lower * cost * (quantum - first)).sum())
        return int(lower.sum())

    def leave_enough(self, table: TaskTable, row: Int64, unplaced: Int64) -> NDArray[np.bool_]:
        """Choose tasks (rows, int64[n], among the unplaced ones, int64[u]) so that enough of the
        unplaced tasks of their groups are left waiting even if all chosen are placed: bool[n]."""
        order = np.argsort(self._node)
        of_unplaced, of_row = (
            np.searchsorted(self._node[order], table.group_node(rows)) for rows in (unplaced, row)
        )
        spare = np.bincount(of_unplaced, minlength=len(order)) - self._lower[order]
        by_group = np.argsort(of_row, kind="stable")
        sizes = np.bincount(of_row, minlength=len(order))
        number = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        chosen = np.zeros(len(row), bool)
        chosen[by_group] = number < spare[of_row[by_group]]
        return chosen

    def unmet_bounds(self, node: Int64) -> str:
        """The groups among these nodes (int64[k], of which no flow can leave) whose bounds keep
        tasks from waiting, for a message; "" if there are none."""
        row = np.flatnonzero(np.isin(self._node, node) & (self._upper < self._tasks))
        if len(row) == 0:
            return ""
        groups = ", ".join(
            f"group {group}: {tasks} tasks, of which at most {upper} may wait"
            for group, tasks, upper in zip(
                self._group[row[:5]].tolist(),
                self._tasks[row[:5]].tolist(),
                self._upper[row[:5]].tolist(),
                strict=True,
            )
        )
        more = ", ..." if len(row) > 5 else ""
        return f"waiting_bounds: there is no room for the tasks that may not wait ({groups}{more})"

    def _price_now(self, group: Int64, cost: Int64, quanta: Int64, risen: int) -> Int64:
        """What the arcs of these groups to the sink cost after so many quanta. What is too much
        stays too much, and does not overflow into the range."""
        most = MAX_COST // np.maximum(cost, 1) + 1
        price: Int64 = cost * np.minimum(quanta, most) + min(risen, MAX_COST + 1)
        check_costs(
            self._policy, price, lambda i: f"where tasks of group {int(group[i])} wait to the sink"
        )
        return price

    def _cost(self, group: Int64) -> Int64:
        """What each quantum of waiting costs in new groups."""
        if not self._has_costs:
            return np.full(len(group), self._wait_price.cost)
        said = self._policy.group_wait_cost(group)
        cost = answer(self._policy, said, len(group), "group_wait_cost")
        bad = np.flatnonzero((cost < 0) | (cost > MAX_COST))
        if len(bad):
            raise PolicyError(
                f"{self._policy.name}: group_wait_cost: waiting in group {int(group[bad[0]])} "
                f"costs {int(cost[bad[0]])}; expected 0 to {MAX_COST}"
            )
        return cost

    def _check_bounds(self, group: Int64, tasks: Int64, lower: Int64, upper: Int64) -> None:
        bad = np.flatnonzero((lower < 0) | (lower > upper) | (lower > tasks))
        if len(bad):
            i = bad[0]
            raise PolicyError(
                f"{self._policy.name}: waiting_bounds: of the {int(tasks[i])} tasks of group "
                f"{int(group[i])} at least {int(lower[i])} have to wait, and at most "
                f"{int(upper[i])} may"
            )

    def _bounds_of(self, node: Int64, group: Int64) -> tuple[Int64, Int64]:
        """The bounds that these groups had in the last round; new ones have none."""
        lower, upper = np.zeros(len(node), np.int64), np.full(len(node), UNBOUNDED, np.int64)
        if len(self._node) == 0:
            return lower, upper
        order = np.argsort(self._node)
        at = order[np.minimum(np.searchsorted(self._node[order], node), len(order) - 1)]
        known = (self._node[at] == node) & (self._group[at] == group)
        lower[known], upper[known] = self._lower[at[known]], self._upper[at[known]]
        return lower, upper


class PatienceArcs:
    """The arcs to the patience node W: tasks with patience wait there for a place that they prefer,
    for less than any other place costs.

    The price of waiting there rises for all tasks alike, so it sits on the one arc W -> sink.
    """

    def __init__(self, graph: SolverGraph, sink: int, policy: Policy) -> None:
        self._graph = graph
        self._sink = sink
        self._policy = policy
        # W and its arc to the sink, from the first task with patience on
        self.node = self._to_sink = np.zeros(0, np.int64)
        # the quantum in which that arc began to count the price; the one that it has the price of,
        # and what is added to it
        self._first_quantum = 0
        self._priced = (0, 0)

    def price(self, tasks: TaskBatch, now_us: int) -> tuple[Int64, Int64]:
        """Tell what waiting costs these tasks while their patience lasts, and when it ends.

        Returns:
            int64[n] each: the cost, negative where patience does not last; the time in us, 0 where
            it is over.
        """
        price = self._policy.patience_price
        ends_us = tasks.submit_us + self._policy.patience_us
        cost = as_int64(self._policy, self._policy.patient_wait_cost(tasks), "patient_wait_cost")
        lasts = (cost >= 0) & (ends_us > now_us)
        waited = now_us // price.quantum_us - tasks.submit_us // price.quantum_us
        return np.where(lasts, cost + price.cost * waited, -1), np.where(lasts, ends_us, 0)

    def add(self, table: TaskTable, row: Int64, now_us: int, risen: int) -> None:
        """Let those of these tasks (new in the graph) wait whose patience lasts. risen: as in
        WaitingGroups.price_waiting."""
        cost, ends_us = self.price(table.batch(row), now_us)
        arc = np.full(len(row), NO_ARC)
        patient = np.flatnonzero(cost >= 0)
        if len(self.node) or len(patient):
            arc[patient] = self._add(table, row[patient], cost[patient], now_us, risen)
        table.set_patience(row, arc, ends_us)

    def close(self, table: TaskTable, started: Int64, now_us: int) -> None:
        """Close the arcs of tasks that run now, and of those whose patience is over."""
        arc = table.end_patience(started, now_us)
        if len(arc):
            self._graph.solver.set_capacity(arc, np.zeros(len(arc), np.int64))
            self._graph.altered += len(arc)

    def _add(self, table: TaskTable, row: Int64, cost: Int64, now_us: int, added: int) -> Int64:
        """Arcs of these costs to W, and W with the first."""
        price = self._policy.patience_price
        quantum = now_us // price.quantum_us
        if len(self.node) == 0:
            self.node = self._graph.add_nodes(1)
            unbounded, zero = np.array([UNBOUNDED]), np.zeros(1, np.int64)
            self._to_sink = self._graph.add_arcs(self.node, np.array([self._sink]), unbounded, zero)
            self._first_quantum = quantum
        risen = price.cost * (quantum - self._first_quantum)
        if (quantum, added) != self._priced:
            self._priced = (quantum, added)
            check_costs(self._policy, np.array([risen + added]), lambda i: "W to the sink")
            self._graph.solver.set_cost(self._to_sink, np.array([risen + added]))
            self._graph.altered += 1
        check_costs(self._policy, cost, lambda i: f"task {int(table.task[row[i]])} to W")
        head = np.full(len(row), UNSCHEDULED)
        node = np.repeat(self.node, len(row))
        return self._graph.add_task_arcs(row, table.node[row], head, node, cost - risen)
