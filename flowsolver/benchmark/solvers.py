"""What a benchmark measures: other solvers and ours behind one call, a network prepared once and
then solved repeatedly; and ours over rounds of changes.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.generate import Draws
from flowsolver.incremental import IncrementalSolver
from flowsolver.network import FlowNetwork
from flowsolver.solution import Solution, Status, solve

# Solves once more; the optimal cost.
Run = Callable[[], int]


@dataclass(frozen=True)
class Peer:
    """A solver that is not ours.

    Attributes:
        largest_arcs: The most arcs of a graph that is tried.
    """

    package: str
    title: str
    prepare: Callable[[FlowNetwork], Run]
    largest_arcs: int | None = None

    @property
    def importable(self) -> bool:
        return importlib.util.find_spec(self.package) is not None


def _ortools(network: FlowNetwork) -> Run:
    min_cost_flow: Any = importlib.import_module("ortools.graph.python.min_cost_flow")
    solver = min_cost_flow.SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(
        network.tail, network.head, network.capacity, network.cost
    )
    solver.set_nodes_supplies(np.arange(network.num_nodes), network.supply)

    def run() -> int:
        if solver.solve() != solver.OPTIMAL:
            raise RuntimeError(f"OR-tools ended with status {solver.status()}")
        return int(solver.optimal_cost())

    return run


def _highs(network: FlowNetwork) -> Run:
    """The flow as a linear program; all vertices of its polytope are integral."""
    optimize: Any = importlib.import_module("scipy.optimize")
    sparse: Any = importlib.import_module("scipy.sparse")
    arcs = network.num_arcs
    tail, head, capacity, cost = network.tail, network.head, network.capacity, network.cost
    column = np.arange(arcs)
    leaving_less_entering = sparse.csc_matrix(
        (
            np.repeat([1.0, -1.0], arcs),
            (np.concatenate([tail, head]), np.concatenate([column, column])),
        ),
        shape=(network.num_nodes, arcs),
    )
    bounds = np.column_stack([np.zeros(arcs), capacity])

    def run() -> int:
        found = optimize.linprog(
            cost, A_eq=leaving_less_entering, b_eq=network.supply, bounds=bounds, method="highs"
        )
        if found.status != 0:
            raise RuntimeError(f"HiGHS: {found.message}")
        return int(np.rint(found.x).astype(np.int64) @ cost)

    return run


def _networkx(network: FlowNetwork) -> Run:
    networkx: Any = importlib.import_module("networkx")
    graph = networkx.MultiDiGraph()
    for node, supply in enumerate(network.supply.tolist()):
        graph.add_node(node, demand=-supply)
    for tail, head, capacity, cost in zip(
        network.tail.tolist(),
        network.head.tolist(),
        network.capacity.tolist(),
        network.cost.tolist(),
        strict=True,
    ):
        graph.add_edge(tail, head, capacity=capacity, weight=cost)
    return lambda: int(networkx.network_simplex(graph)[0])


PEERS = {
    "ortools": Peer("ortools", "OR-tools", _ortools),
    "highs": Peer("scipy", "HiGHS (SciPy)", _highs),
    "networkx": Peer("networkx", "networkx", _networkx, largest_arcs=30_000),
}


class TimeLimitExceeded(Exception):
    """The solve was stopped at its time limit."""


def solve_within(network: FlowNetwork, algorithm: str, limit_s: float) -> Solution:
    """Solve with our algorithm, or a race (+ between names), within a time limit.

    Raises:
        TimeLimitExceeded: if it was stopped.
    """
    solution = solve(network, algorithm.split("+"), max_seconds=limit_s)
    if solution.status is Status.BUDGET:
        raise TimeLimitExceeded
    if solution.status is not Status.OPTIMAL:
        raise RuntimeError(f"{algorithm} ended {solution.status.name}")
    return solution


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
