"""The solvers, others' and ours, behind one call; rounds of changes; and one solver on one graph in
a process of its own, which ends at the time limit.

  python -m flowsolver.benchmark.solvers JOB      JOB: a Job as JSON

Prints a JSON object per measured solve (Sample). Exits by SIGALRM when a solve exceeds the time
limit. When its parent ends, it is killed; if the kernel does not support that, it ends at its next
sample, which nothing reads.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.choices import parse_algorithms
from flowsolver.generate import Draws
from flowsolver.incremental import IncrementalSolver
from flowsolver.network import FlowNetwork
from flowsolver.problem_files import parse_problem
from flowsolver.solution import Solution, Status, algorithms, certify, solve

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
    solution = solve(network, parse_algorithms(algorithm), max_seconds=limit_s)
    _need_optimum(algorithm, solution.status)
    return solution


def _need_optimum(what: str, status: Status) -> None:
    if status is Status.BUDGET:
        raise TimeLimitExceeded
    if status is not Status.OPTIMAL:
        raise RuntimeError(f"{what} ended {status.name}")


class Rounds:
    """Rounds of changes. Tasks are the nodes from `first_task` on; a new task has the arcs of one
    that was there at the start.
    """

    def __init__(
        self, network: FlowNetwork, first_task: int, algorithm: str, limit_s: float, seed: int
    ) -> None:
        self.solver = IncrementalSolver(network, parse_algorithms(algorithm))
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
        _need_optimum("a round", self.solver.resolve(max_seconds=self._limit_s))


_GRACE_S = 5.0  # for ours, which stop by themselves
_REPEAT_FOR_S = 2.0
_PR_SET_PDEATHSIG = 1  # prctl(2)


@dataclass(frozen=True)
class Job:
    """What to measure.

    Args:
        solver: name of a peer or of our algorithm, + between those of a race.
        graph: an .npz file.
        limit_s: time limit of one solve.
        repeats: maximum number of solves from scratch.
        rounds: 0 to solve the graph from scratch; else the number of rounds of changes after that.
        changes: tasks that leave, and that arrive, in a round.
        first_task: first task node.
        seed: of the changes.
        parent: the benchmark's process id.
    """

    solver: str
    graph: str
    limit_s: float
    repeats: int
    rounds: int
    changes: int
    first_task: int
    seed: int
    parent: int


@dataclass(frozen=True)
class Sample:
    """One solve. `certified` is for our solvers only; the check is not timed."""

    mode: str
    seconds: float
    cpu_seconds: float
    cost: int
    certified: bool | None


# Solves once: the cost, and for our solvers a function that certifies the answer.
_Solve = Callable[[], tuple[int, Callable[[], bool] | None]]


def _print_sample(job: Job, mode: str, run: _Solve) -> None:
    """Time a solve and print the sample. The process dies when it exceeds the limit."""
    limit_s = job.limit_s + (0 if job.solver in PEERS else _GRACE_S)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    wall, cpu = time.perf_counter(), time.process_time()
    cost, certified = run()
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    signal.setitimer(signal.ITIMER_REAL, 0)
    verdict = None if certified is None else certified()
    print(json.dumps(asdict(Sample(mode, seconds, cpu_seconds, cost, verdict))), flush=True)


def _from_scratch(network: FlowNetwork, job: Job) -> None:
    run = _runner(network, job)
    begun = time.perf_counter()
    for _ in range(job.repeats):
        _print_sample(job, "scratch", run)
        if time.perf_counter() - begun > min(_REPEAT_FOR_S, job.limit_s / 2):
            return


def _through_rounds(network: FlowNetwork, job: Job) -> None:
    """Time our solver over rounds of changes, for at most the limit of one solve.

    A peer solves the network after the first round.
    """
    ours = job.solver not in PEERS
    rounds = Rounds(
        network,
        job.first_task,
        job.solver if ours else next(iter(algorithms())),
        job.limit_s,
        job.seed,
    )
    if not ours:
        rounds.apply(*rounds.draw(job.changes))
        _print_sample(job, "scratch", _runner(rounds.solver.snapshot()[0], job))
        return
    rounds.resolve()
    begun = time.perf_counter()
    for _ in range(job.rounds):
        changes = rounds.draw(job.changes)

        def incremental(
            changes: tuple[Int64Array, ...] = changes,
        ) -> tuple[int, Callable[[], bool]]:
            rounds.apply(*changes)
            rounds.resolve()
            return rounds.solver.cost, lambda: rounds.solver.certify().ok

        _print_sample(job, "incremental", incremental)
        _print_sample(job, "scratch", _runner(rounds.solver.snapshot()[0], job))
        if time.perf_counter() - begun > job.limit_s:
            return


def _runner(network: FlowNetwork, job: Job) -> _Solve:
    """A solve from scratch."""
    if job.solver in PEERS:
        solve_it = PEERS[job.solver].prepare(network)
        return lambda: (solve_it(), None)

    def run() -> tuple[int, Callable[[], bool]]:
        solution = solve_within(network, job.solver, job.limit_s)
        return solution.cost, lambda: certify(network, solution).ok

    return run


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != job.parent:  # it ended before
        return
    network = parse_problem(Path(job.graph).read_bytes(), job.graph).network
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        (_through_rounds if job.rounds else _from_scratch)(network, job)
    except TimeLimitExceeded:
        signal.raise_signal(signal.SIGALRM)


if __name__ == "__main__":
    main()
