"""The solver's graph, with what its arcs stand for and how much a round changed it."""

from __future__ import annotations

import numpy as np

from flowsolver import FlowNetwork, IncrementalSolver
from schedulers.flow.task_table import NO_ROW
from shared_state.tasks import Int64

UNSCHEDULED = np.iinfo(np.int64).min  # a task's destination when its flow goes to U_j


class SolverGraph:
    """Adds nodes and arcs to an incremental solver, and keeps whose arcs they are.

    row_of_arc: int64[arcs], the row of the task table whose arc it is, else NO_ROW. head_of_arc:
    int64[arcs], where a task's arc leads to: a machine row, to_aggregator(a), or
    UNSCHEDULED. added: nodes and arcs added in the current round. altered: capacities and
    costs of arcs set in it.

    Arcs out of aggregators are never removed. Several of the solver's may stand for one row of the
    graph's table of them (aggregators.InnerArcs).
    """

    def __init__(self) -> None:
        self.solver = IncrementalSolver(FlowNetwork())
        self.row_of_arc: Int64 = np.zeros(0, np.int64)
        self.head_of_arc: Int64 = np.zeros(0, np.int64)
        self._inner_of_arc: Int64 = np.zeros(0, np.int64)  # the row of an arc out of an aggregator
        self._inner_flow: Int64 = np.zeros(0, np.int64)  # by arc: as of the last add_flow_to()
        self.added = 0
        self.altered = 0

    def add_nodes(self, n: int, supply: int = 0) -> Int64:
        """Add n nodes and return their ids, int64[n]."""
        self.added += n
        return self.solver.add_nodes(np.full(n, supply, np.int64))

    def add_arcs(self, tail: Int64, head: Int64, capacity: Int64, cost: Int64) -> Int64:
        """Add k arcs between nodes and return their ids, int64[k]."""
        arc = self.solver.add_arcs(tail, head, capacity, cost)
        self.added += len(arc)
        short = (int(arc.max()) + 1 if len(arc) else 0) - len(self.row_of_arc)
        if short > 0:
            more = max(short, len(self.row_of_arc))
            self.row_of_arc = np.concatenate([self.row_of_arc, np.full(more, NO_ROW, np.int64)])
            self.head_of_arc = np.concatenate([self.head_of_arc, np.zeros(more, np.int64)])
            self._inner_of_arc = np.concatenate([self._inner_of_arc, np.full(more, NO_ROW)])
            self._inner_flow = np.concatenate([self._inner_flow, np.zeros(more, np.int64)])
        self.row_of_arc[arc] = NO_ROW  # ids are used again
        return arc

    def add_inner_arcs(
        self, inner: Int64, tail: Int64, head: Int64, capacity: Int64, cost: Int64
    ) -> Int64:
        """Add k arcs out of aggregators, which stand for these rows, and return their ids,
        int64[k]."""
        arc = self.add_arcs(tail, head, capacity, cost)
        self._inner_of_arc[arc] = inner
        return arc

    def move_flow(self, arc: Int64, flow: Int64, inner_flow: Int64) -> None:
        """Bring the flow of the arcs out of aggregators up to date.

        Args:
            arc: int64[k], all whose flow has changed since the last call.
            flow: int64[k], theirs now.
            inner_flow: int64[rows], changed in place.
        """
        inner = self._inner_of_arc[arc]
        is_inner = inner >= 0
        arc, flow = arc[is_inner], flow[is_inner]
        np.add.at(inner_flow, inner[is_inner], flow - self._inner_flow[arc])
        self._inner_flow[arc] = flow

    def change_arcs(self, arc: Int64, capacity: Int64, cost: Int64) -> None:
        """Set the capacities and costs of arcs some of which differ, int64[k] each."""
        if len(arc):
            self.solver.set_arcs(arc, capacity, cost)
        self.altered += len(arc)

    def add_task_arcs(
        self, row: Int64, node: Int64, head: Int64, head_node: Int64, cost: Int64
    ) -> Int64:
        """Add k arcs of one unit out of the nodes of tasks in these rows and return their ids,
        int64[k]."""
        arc = self.add_arcs(node, head_node, np.ones(len(node), np.int64), cost)
        self.row_of_arc[arc] = row
        self.head_of_arc[arc] = head
        return arc
