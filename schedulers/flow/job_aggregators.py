"""The unscheduled aggregators U_j of the flow graph: what a job's tasks that stay waiting flow
through, and where the waiting price sits."""

from __future__ import annotations

import numpy as np

from schedulers.flow.policies.policy import UNBOUNDED, TimePrice
from schedulers.flow.solver_graph import SolverGraph
from schedulers.flow.task_table import TaskTable
from shared_state.tasks import Int64


class JobAggregators:
    """One node and one arc to the sink for each job with tasks in the graph. The task table keeps
    them (native/unscheduled_aggregators.hpp)."""

    def __init__(self, graph: SolverGraph, sink: int, wait_price: TimePrice) -> None:
        self._graph = graph
        self._sink = sink
        self._wait_price = wait_price

    def enter(self, table: TaskTable, row: Int64, quantum: int) -> Int64:
        """Add tasks (rows, int64[n]) to their jobs' aggregators.

        Args:
            table: Of the tasks.
            row: The tasks.
            quantum: The current one.

        Returns: int64[n], what the waiting price of a task's job has in excess of its own. It is
            negative if the task came later than the job's first.
        """
        first, lateness = table.enter_jobs(row, self._wait_price.quantum_us)
        if len(first):
            node = self._graph.add_nodes(len(first))
            arc = self._graph.add_arcs(
                node,
                np.full(len(first), self._sink),
                np.full(len(first), UNBOUNDED),
                self._wait_price.cost * (quantum - first),
            )
            table.name_jobs(node, arc)
        return self._wait_price.cost * lateness

    def close_empty(self, table: TaskTable) -> None:
        """Remove the aggregators of jobs without tasks."""
        node = table.close_empty_jobs()
        if len(node):
            self._graph.solver.remove_nodes(node)

    def price_waiting(self, table: TaskTable, quantum: int) -> None:
        """Set the waiting price of all jobs to that of this quantum."""
        _, arc, first = table.open_jobs()
        self._graph.solver.set_cost(arc, self._wait_price.cost * (quantum - first))
        self._graph.altered += len(arc)
