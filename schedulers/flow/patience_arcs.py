"""The patience node W of the flow graph: tasks with patience wait there for a place that they
prefer, for less than any other place costs.

The price of waiting there rises for all tasks alike, so it sits on the one arc W -> sink.
"""

from __future__ import annotations

import numpy as np

from schedulers.flow.policies.policy import UNBOUNDED, Policy
from schedulers.flow.policy_checks import check_costs
from schedulers.flow.solver_graph import UNSCHEDULED, SolverGraph
from schedulers.flow.task_table import NO_ARC, TaskTable
from shared_state.tasks import Int64, TaskBatch


class PatienceArcs:
    """The arcs of waiting tasks to W."""

    def __init__(self, arcs: SolverGraph, sink: int, policy: Policy) -> None:
        self._arcs = arcs
        self._sink = sink
        self._policy = policy
        # W and its arc to the sink, from the first task with patience on
        self._node = self._to_sink = np.zeros(0, np.int64)
        # the quantum in which that arc began to count the price, and that it has now
        self._first_quantum = self._quantum = 0

    def price(self, tasks: TaskBatch, now_us: int) -> tuple[Int64, Int64]:
        """Tell what waiting costs these tasks while their patience lasts, and when it ends.

        Returns:
            int64[n] each: the cost, negative where patience does not last; the time in us, 0 where
            it is over.
        """
        price = self._policy.patience_price
        ends_us = tasks.submit_us + self._policy.patience_us
        cost = self._policy.patient_wait_cost(tasks)
        lasts = (cost >= 0) & (ends_us > now_us)
        waited = now_us // price.quantum_us - tasks.submit_us // price.quantum_us
        return np.where(lasts, cost + price.cost * waited, -1), np.where(lasts, ends_us, 0)

    def add(self, table: TaskTable, row: Int64, now_us: int) -> None:
        """Let those of these tasks (new in the graph) wait whose patience lasts."""
        cost, ends_us = self.price(table.batch(row), now_us)
        arc = np.full(len(row), NO_ARC)
        patient = np.flatnonzero(cost >= 0)
        if len(self._node) or len(patient):
            arc[patient] = self._add(table, row[patient], cost[patient], now_us)
        table.set_patience(row, arc, ends_us)

    def close(self, table: TaskTable, started: Int64, now_us: int) -> None:
        """Close the arcs of tasks that run now, and of those whose patience is over."""
        arc = table.end_patience(started, now_us)
        if len(arc):
            self._arcs.solver.set_capacity(arc, np.zeros(len(arc), np.int64))
            self._arcs.altered += len(arc)

    def _add(self, table: TaskTable, row: Int64, cost: Int64, now_us: int) -> Int64:
        """Arcs of these costs to W, and W with the first."""
        price = self._policy.patience_price
        quantum = now_us // price.quantum_us
        if len(self._node) == 0:
            self._node = self._arcs.add_nodes(1)
            unbounded, zero = np.array([UNBOUNDED]), np.zeros(1, np.int64)
            self._to_sink = self._arcs.add_arcs(self._node, np.array([self._sink]), unbounded, zero)
            self._first_quantum = quantum
        risen = price.cost * (quantum - self._first_quantum)
        if quantum != self._quantum:
            self._quantum = quantum
            self._arcs.solver.set_cost(self._to_sink, np.array([risen]))
            self._arcs.altered += 1
        check_costs(self._policy, cost, "out of a task")
        head = np.full(len(row), UNSCHEDULED)
        node = np.repeat(self._node, len(row))
        return self._arcs.add_task_arcs(row, table.node[row], head, node, cost - risen)
