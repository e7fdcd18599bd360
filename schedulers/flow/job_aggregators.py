"""The unscheduled aggregators U_j of the flow graph: what a job's tasks that stay waiting flow
through, and where the waiting price sits."""

from __future__ import annotations

import numpy as np

from schedulers.flow.policies.policy import UNBOUNDED, TimePrice
from schedulers.flow.solver_graph import SolverGraph
from schedulers.flow.task_table import NO_NODE, NO_ROW
from shared_state.tasks import Int64


class JobAggregators:
    """One node and one arc to the sink for each job with tasks in the graph.

    Columns by place, int64 each; a job's place is used again after the job. node: NO_NODE where the
    place is free. arc: to the sink. first_quantum: from which that arc counts the waiting price.
    tasks: how many are in the graph.
    """

    def __init__(self, graph: SolverGraph, sink: int, wait_price: TimePrice) -> None:
        self.node: Int64 = np.zeros(0, np.int64)
        self.arc: Int64 = np.zeros(0, np.int64)
        self.first_quantum: Int64 = np.zeros(0, np.int64)
        self.tasks: Int64 = np.zeros(0, np.int64)
        self._place_of: dict[int, int] = {}  # by job
        self._free: list[int] = []
        self._graph = graph
        self._sink = sink
        self._wait_price = wait_price

    def enter(self, job: Int64, submitted: Int64, quantum: int) -> Int64:
        """Add tasks to their jobs' aggregators.

        Args:
            job: int64[n], of each task.
            submitted: int64[n], the quantum in which each was submitted.
            quantum: The current one.

        Returns: int64[n], the place of each task's job.
        """
        distinct, which = np.unique(job, return_inverse=True)
        place = np.array([self._place_of.get(j, NO_ROW) for j in distinct.tolist()], np.int64)
        new = np.flatnonzero(place == NO_ROW)
        if len(new):
            place[new] = self._reserve(len(new))
            self._place_of.update(zip(distinct[new].tolist(), place[new].tolist(), strict=True))
            first = np.full(len(distinct), np.iinfo(np.int64).max)
            np.minimum.at(first, which, submitted)
            self.first_quantum[place[new]] = first[new]
            self.tasks[place[new]] = 0
            self.node[place[new]] = self._graph.add_nodes(len(new))
            self.arc[place[new]] = self._graph.add_arcs(
                self.node[place[new]],
                np.full(len(new), self._sink),
                np.full(len(new), UNBOUNDED),
                self._wait_price.cost * (quantum - first[new]),
            )
        self.tasks[place] += np.bincount(which, minlength=len(distinct))
        return place[which]

    def leave(self, job: Int64) -> None:
        """Tasks of these jobs left the graph (int64[n], one entry for each)."""
        distinct, count = np.unique(job, return_counts=True)
        place = np.array([self._place_of[j] for j in distinct.tolist()], np.int64)
        self.tasks[place] -= count

    def close_empty(self) -> None:
        """Remove the aggregators of jobs without tasks."""
        empty = np.flatnonzero((self.node != NO_NODE) & (self.tasks == 0))
        if len(empty) == 0:
            return
        self._graph.solver.remove_nodes(self.node[empty])
        self.node[empty] = NO_NODE
        gone = set(empty.tolist())
        self._place_of = {j: place for j, place in self._place_of.items() if place not in gone}
        self._free += empty[::-1].tolist()

    def price_waiting(self, quantum: int) -> None:
        """Set the waiting price of all jobs to that of this quantum."""
        place = np.flatnonzero(self.node != NO_NODE)
        cost = self._wait_price.cost * (quantum - self.first_quantum[place])
        self._graph.solver.set_cost(self.arc[place], cost)
        self._graph.altered += len(place)

    def _reserve(self, n: int) -> Int64:
        """Reserve n free places."""
        short = n - len(self._free)
        if short > 0:
            old = len(self.node)
            more = max(short, old, 64)
            for name in ("node", "arc", "first_quantum", "tasks"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more, np.int64)]))
            self.node[old:] = NO_NODE
            self._free = list(range(old + more - 1, old - 1, -1)) + self._free
        return np.array([self._free.pop() for _ in range(n)], np.int64)
