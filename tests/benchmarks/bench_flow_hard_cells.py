"""Batches of changes in the cells where room has a price: full, oversubscribed, contended; 12,500
machines x 12 slots.

A round is 100 tasks gone and 100 come; its figure is the changes' calls and `resolve` together, in
process CPU time. The mean is the benchmark's, the 99th percentile and the most are in its extra
information. Certified at the end. What a peer takes from scratch on such graphs:
bench_flowsolver.py.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from flowsolver.generate import GraphOptions, contended_options, quincy_graph
from tests.benchmarks.bench_flowsolver import MACHINES, Rounds

ROUNDS = 200
SEEDS = 1, 2

# The cell, and what a batch may take on average, ms.
CASES = {
    "contended, 90 % used": (contended_options(MACHINES), 10),
    "100 % used": (GraphOptions(MACHINES, 100, 6), 40),
    "101 % used": (GraphOptions(MACHINES, 101, 6), 40),
    "102 % used": (GraphOptions(MACHINES, 102, 6), 40),
    "105 % used": (GraphOptions(MACHINES, 105, 6), 40),
    "120 % used": (GraphOptions(MACHINES, 120, 6), 40),
    "contended, 105 % used": (contended_options(MACHINES, 105, 6), 40),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES)
def test_batch(benchmark: Any, case: str, seed: int) -> None:
    benchmark.group = "resolve: 12,500 machines, 100 tasks gone and 100 come, room has a price"
    options, target_ms = CASES[case]
    rounds = Rounds(quincy_graph(options, seed), seed=seed + 1)
    took_ms: list[float] = []

    def run(*change: Any) -> None:
        begin = time.process_time()
        rounds.run(*change)
        took_ms.append(1e3 * (time.process_time() - begin))

    benchmark.pedantic(run, setup=rounds.batch, rounds=ROUNDS)
    benchmark.extra_info.update(
        unit="ms",
        target_ms=target_ms,
        label=f"{case}, seed {seed}",
        cpu_ms_mean=float(np.mean(took_ms)),
        cpu_ms_p99=float(np.percentile(took_ms, 99)),
        cpu_ms_max=max(took_ms),
    )
    assert rounds.solver.certify().ok
