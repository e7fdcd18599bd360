"""Rounds of changes in a cell: some tasks leave, as many arrive."""

from __future__ import annotations

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.benchmark.peers import TimeLimitExceeded
from flowsolver.generate import Draws
from flowsolver.incremental import IncrementalSolver
from flowsolver.network import FlowNetwork
from flowsolver.solution import Status


class Rounds:
    """Rounds of changes. Tasks are the nodes from `first_task` on; a new task has the arcs of one
    that was there at the start.
    """

    def __init__(
        self, network: FlowNetwork, first_task: int, algorithm: str, limit_s: float, seed: int
    ) -> None:
        self.solver = IncrementalSolver(network, algorithm.split("+"))
        self._limit_s = limit_s
        self._draws = Draws(seed)
        tail = network.tail
        of_task = np.flatnonzero(tail >= first_task)
        order = of_task[np.argsort(tail[of_task], kind="stable")]
        self._head, self._cost = network.head[order], network.cost[order]
        self._tasks = network.num_nodes - first_task
        self._begin = np.concatenate(
            [[0], np.cumsum(np.bincount(tail[order] - first_task, minlength=self._tasks))]
        )
        self._alive = np.arange(first_task, network.num_nodes)

    def draw(self, changes: int) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        """Draw a round: indexes of the tasks that leave; of new tasks' arcs the task, head and
        cost.
        """
        changes = min(changes, self._tasks)
        going = np.argsort(self._draws.bits(self._tasks), kind="stable")[:changes]
        like = self._draws.below(self._tasks, changes)
        size = self._begin[like + 1] - self._begin[like]
        task = np.repeat(np.arange(changes), size)
        row = np.repeat(self._begin[like] - np.cumsum(size) + size, size) + np.arange(task.size)
        return going, task, self._head[row], self._cost[row]

    def apply(
        self, going: Int64Array, task: Int64Array, head: Int64Array, cost: Int64Array
    ) -> None:
        self.solver.remove_nodes(self._alive[going])
        self._alive[going] = self.solver.add_nodes(np.ones(going.size, dtype=np.int64))
        self.solver.add_arcs(self._alive[going][task], head, 1, cost)

    def resolve(self) -> None:
        status = self.solver.resolve(max_seconds=self._limit_s)
        if status is Status.BUDGET:
            raise TimeLimitExceeded
        if status is not Status.OPTIMAL:
            raise RuntimeError(f"a round ended {status.name}")
