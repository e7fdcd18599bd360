"""One solver on one graph, in a process of its own that ends at the time limit.

  python -m flowsolver.benchmark.child JOB      JOB: a Job as JSON

Prints a JSON object per measured solve (Sample). Exits by SIGALRM when a solve exceeds the time
limit. When its parent ends, it is killed; if the kernel does not support that, it ends at its next
sample, which nothing reads.
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
from flowsolver.benchmark.solvers import PEERS, Rounds, TimeLimitExceeded, solve_within
from flowsolver.network import FlowNetwork
from flowsolver.problem_files import parse_problem
from flowsolver.solution import algorithms, certify

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


class _TimedCall:
    """Times a call. The process dies when the call exceeds the limit."""

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


def _print_sample(sample: Sample) -> None:
    print(json.dumps(asdict(sample)), flush=True)


def _from_scratch(network: FlowNetwork, job: Job) -> None:
    timed, run = (
        _TimedCall(job.limit_s + (0 if job.solver in PEERS else _GRACE_S)),
        _runner(network, job),
    )
    begun = time.perf_counter()
    for _ in range(job.repeats):
        _print_sample(timed("scratch", run))
        if time.perf_counter() - begun > min(_REPEAT_FOR_S, job.limit_s / 2):
            return


def _through_rounds(network: FlowNetwork, job: Job) -> None:
    """Time our solver over rounds of changes, for at most the limit of one solve.

    A peer solves the network after the first round.
    """
    ours = job.solver not in PEERS
    timed = _TimedCall(job.limit_s + (_GRACE_S if ours else 0))
    rounds = Rounds(
        network,
        job.first_task,
        job.solver if ours else next(iter(algorithms())),
        job.limit_s,
        job.seed,
    )
    if not ours:
        rounds.apply(*rounds.draw(job.changes))
        _print_sample(timed("scratch", _runner(rounds.solver.snapshot()[0], job)))
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

        _print_sample(timed("incremental", incremental))
        _print_sample(timed("scratch", _runner(rounds.solver.snapshot()[0], job)))
        if time.perf_counter() - begun > job.limit_s:
            return


def _runner(network: FlowNetwork, job: Job) -> Callable[[], tuple[int, Callable[[], bool] | None]]:
    """One solve from scratch: its cost, and for our solvers a function that certifies it."""
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
    try:
        (_through_rounds if job.rounds else _from_scratch)(network, job)
    except TimeLimitExceeded:
        signal.raise_signal(signal.SIGALRM)


if __name__ == "__main__":
    main()
