"""Rounds of changes by incremental relaxation, against relaxation from scratch.

12,500 machines x 12 slots; a round is 100 tasks gone and 100 come, its figure the changes' calls and `resolve` together in
process CPU time. `scratch_ms` is a solve from scratch of the network that the rounds have led to (the best of three), in the same run.
The default algorithm's rounds: bench_flowsolver.py and bench_flow_hard_cells.py.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from flowsolver import IncrementalSolver, Status, solve
from flowsolver.generate import GraphOptions, contended_options, quincy_graph
from tests.benchmarks.bench_flowsolver import MACHINES, Rounds

ROUNDS = 60
SCRATCH_RUNS = 3
ALGORITHM = "relaxation"
CASES = {
    "50 % used": GraphOptions(MACHINES, 50),
    "90 % used": GraphOptions(MACHINES, 90),
    "99 % used": GraphOptions(MACHINES, 99),
    "102 % used": GraphOptions(MACHINES, 102, 6),
    "contended, 90 % used": contended_options(MACHINES),
}


@pytest.mark.parametrize("case", CASES)
def test_round(benchmark: Any, case: str) -> None:
    benchmark.group = "rounds: 12,500 machines, 100 tasks gone and 100 come, by relaxation"
    graph = quincy_graph(CASES[case], seed=1)
    rounds = Rounds(graph, seed=2)
    rounds.solver = IncrementalSolver(graph.network, ALGORITHM)
    assert rounds.solver.resolve() is Status.OPTIMAL
    took_ms: list[float] = []
    scanned: list[int] = []

    def run(*change: Any) -> None:
        begin = time.process_time()
        rounds.run(*change)
        took_ms.append(1e3 * (time.process_time() - begin))
        scanned.append(rounds.solver.stats.scanned)

    benchmark.pedantic(run, setup=rounds.batch, rounds=ROUNDS)
    network, _, _ = rounds.solver.snapshot()
    scratch_ms = []
    for _ in range(SCRATCH_RUNS):
        begin = time.process_time()
        fresh = solve(network, ALGORITHM)
        scratch_ms.append(1e3 * (time.process_time() - begin))
    benchmark.extra_info.update(
        unit="ms",
        label=case,
        cpu_ms_mean=float(np.mean(took_ms)),
        cpu_ms_median=float(np.median(took_ms)),
        cpu_ms_p99=float(np.percentile(took_ms, 99)),
        cpu_ms_max=max(took_ms),
        scanned_median=float(np.median(scanned)),
        scratch_ms=min(scratch_ms),
        scratch_scanned=fresh.stats.scanned,
    )
    assert fresh.cost == rounds.solver.cost
    assert rounds.solver.certify().ok
