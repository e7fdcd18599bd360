"""One solver on one graph, in a process of its own that ends at the time limit whatever the solver
does.

    python -m flowsolver.benchmark.child JOB      JOB: a Job as JSON

Prints a JSON object per measured solve (Sample); exits by SIGALRM when a solve is over the time
limit. When its parent ends, it is killed; where the kernel does not offer that, it ends at its next
sample, which nobody reads.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from flowsolver.arguments import Int64Array
from flowsolver.benchmark.peers import PEERS, OverTime, solve_within
from flowsolver.benchmark.rounds import Rounds
from flowsolver.network import FlowNetwork
from flowsolver.problem_files import parse_problem
from flowsolver.solution import algorithms, certify

_GRACE_S = 5.0  # for ours, which stop by themselves
_REPEAT_FOR_S = 2.0
_PR_SET_PDEATHSIG = 1  # prctl(2)


@dataclass(frozen=True)
class Job:
    """graph: an .npz file. rounds: 0 to solve the graph from scratch, else changes to go through
    after that. parent: the bench's process id."""

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
    """One solve. certified: of ours, checked after the solve and not timed."""

    mode: str
    seconds: float
    cpu_seconds: float
    cost: int
    certified: bool | None


class _Limited:
    """Times a call; the process dies when that takes longer than the limit."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def __call__(
        self, mode: str, run: Callable[[], tuple[int, Callable[[], bool] | None]]
    ) -> Sample:
        signal.setitimer(signal.ITIMER_REAL, self._limit_s)
        wall, cpu = time.perf_counter(), time.process_time()
        cost, certified = run()
        seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
        signal.setitimer(signal.ITIMER_REAL, 0)
        return Sample(mode, seconds, cpu_seconds, cost, None if certified is None else certified())


def _say(sample: Sample) -> None:
    print(json.dumps(asdict(sample)), flush=True)


def _from_scratch(network: FlowNetwork, job: Job) -> None:
    timed, run = (
        _Limited(job.limit_s + (0 if job.solver in PEERS else _GRACE_S)),
        _runner(network, job),
    )
    begun = time.perf_counter()
    for _ in range(job.repeats):
        _say(timed("scratch", run))
        if time.perf_counter() - begun > min(_REPEAT_FOR_S, job.limit_s / 2):
            return


def _through_rounds(network: FlowNetwork, job: Job) -> None:
    """Ours go through the rounds, for as long as the limit of one solve; a peer solves the network
    after the first."""
    ours = job.solver not in PEERS
    timed = _Limited(job.limit_s + (_GRACE_S if ours else 0))
    rounds = Rounds(
        network,
        job.first_task,
        job.solver if ours else next(iter(algorithms())),
        job.limit_s,
        job.seed,
    )
    if not ours:
        rounds.apply(*rounds.draw(job.changes))
        _say(timed("scratch", _runner(rounds.solver.snapshot()[0], job)))
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

        _say(timed("incremental", incremental))
        _say(timed("scratch", _runner(rounds.solver.snapshot()[0], job)))
        if time.perf_counter() - begun > job.limit_s:
            return


def _runner(network: FlowNetwork, job: Job) -> Callable[[], tuple[int, Callable[[], bool] | None]]:
    """One solve from scratch: its cost, and for ours how to certify it."""
    if job.solver in PEERS:
        solve_it = PEERS[job.solver].make_ready(network)
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
    try:
        (_through_rounds if job.rounds else _from_scratch)(network, job)
    except OverTime:
        signal.raise_signal(signal.SIGALRM)


if __name__ == "__main__":
    main()
