"""The solver's graph, with what its arcs stand for and how much a round changed it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flowsolver import FlowNetwork, IncrementalSolver
from schedulers import _native
from schedulers.flow.policies.policy import TaskArcs
from shared_state.tasks import Int64

UNSCHEDULED = np.iinfo(np.int64).min  # a task's destination when its flow goes to U_j


class JoiningTasks(NamedTuple):
    """n tasks that join the graph: int64[n] each.

    Attributes:
        row: Of the task table.
        node: Of the task.
        unscheduled_node: Of its U_j.
        unscheduled_cost: Of the arc there.
    """

    row: Int64
    node: Int64
    unscheduled_node: Int64
    unscheduled_cost: Int64


class SolverGraph:
    """Adds nodes and arcs to an incremental solver, and keeps whose arcs they are
    (native/flow_graph.hpp).

    added: nodes and arcs added in the current round. altered: capacities and costs of arcs set in
    it.

    Arcs out of aggregators are never removed. Several of the solver's may stand for one row of the
    graph's table of them (aggregators.InnerArcs).
    """

    def __init__(self) -> None:
        self.solver = IncrementalSolver(FlowNetwork())
        self._arcs = _native.FlowArcs()
        self.added = 0
        self.altered = 0

    def add_nodes(self, n: int, supply: int = 0) -> Int64:
        """Add n nodes and return their ids, int64[n]."""
        self.added += n
        return self.solver.add_nodes(np.full(n, supply, np.int64))

    def add_arcs(self, tail: Int64, head: Int64, capacity: Int64, cost: Int64) -> Int64:
        """Add k arcs between nodes and return their ids, int64[k]."""
        arc = self._add(tail, head, capacity, cost)
        self._arcs.add_others(arc)
        return arc

    def add_inner_arcs(
        self, inner: Int64, tail: Int64, head: Int64, capacity: Int64, cost: Int64
    ) -> Int64:
        """Add k arcs out of aggregators, which stand for these rows, and return their ids,
        int64[k]."""
        arc = self._add(tail, head, capacity, cost)
        self._arcs.add_inner(arc, inner)
        return arc

    def add_joining_tasks(
        self, tasks: JoiningTasks, arcs: TaskArcs, machine_node: Int64, aggregator_node: Int64
    ) -> None:
        """Add the arcs of tasks that join the graph, of one unit each: those that the policy gives
        them, then those to their U_j.

        Args:
            tasks: The tasks.
            arcs: From each of them, `row` counting from 0 to n - 1.
            machine_node: int64[M], where these arcs enter machines.
            aggregator_node: int64[A], the nodes of aggregators.
        """
        tail, head, cost = self._arcs.join(
            tasks.row,
            tasks.node,
            arcs.row,
            arcs.head,
            arcs.cost,
            tasks.unscheduled_node,
            tasks.unscheduled_cost,
            machine_node,
            aggregator_node,
        )
        self._arcs.name(self._add(tail, head, np.ones(len(tail), np.int64), cost))

    def add_task_arcs(
        self, row: Int64, node: Int64, head: Int64, head_node: Int64, cost: Int64
    ) -> Int64:
        """Add k further arcs of one unit out of the nodes of tasks in these rows and return their
        ids, int64[k]."""
        arc = self._add(node, head_node, np.ones(len(node), np.int64), cost)
        self._arcs.add_of_tasks(arc, row, head)
        return arc

    def change_arcs(self, arc: Int64, capacity: Int64, cost: Int64) -> None:
        """Set the capacities and costs of arcs some of which differ, int64[k] each."""
        if len(arc):
            self.solver.set_arcs(arc, capacity, cost)
        self.altered += len(arc)

    def take_flow(self, inner_flow: Int64) -> None:
        """Take in what the last solve changed.

        Args:
            inner_flow: int64[rows], the flow of the arcs out of aggregators, changed in place.
        """
        arc, flow = self.solver.changed_flow()
        self._arcs.take_flow(arc, flow, inner_flow)

    # --- tasks (rows, int64[n]), and their flow after the last solve -----------------------------

    def next_hop(self, row: Int64) -> Int64:
        """The arc that carries each task's unit, int64[n]."""
        arc: Int64 = self._arcs.next_hop(row)
        return arc

    def destination(self, row: Int64) -> Int64:
        """Where that arc leads, int64[n]: a machine row, to_aggregator(a), or UNSCHEDULED."""
        head: Int64 = self._arcs.destination(row)
        return head

    def sent(self, row: Int64) -> tuple[Int64, Int64]:
        """The tasks whose flow does not go to their U_j, and where it goes: rows and heads."""
        sent: tuple[Int64, Int64] = self._arcs.sent(row)
        return sent

    def arcs_of(self, row: Int64) -> tuple[Int64, TaskArcs]:
        """The arcs that these tasks joined the graph with, those to their U_j among them (head
        UNSCHEDULED): ids, int64[k], and what was asked for, `row` counting from 0 to n - 1."""
        task, arc, head, cost = self._arcs.lists(row)
        return arc, TaskArcs(task, head, cost)

    def _add(self, tail: Int64, head: Int64, capacity: Int64, cost: Int64) -> Int64:
        arc = self.solver.add_arcs(tail, head, capacity, cost)
        self.added += len(arc)
        return arc
