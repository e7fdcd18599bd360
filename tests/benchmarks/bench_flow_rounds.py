"""Every incremental algorithm against itself from scratch (Firmament, OSDI 2016, figure 11).

Cells of 12,500 machines x 12 slots under the Quincy policy; in each round 100 tasks go and 100
come. Times are process time, the median over rounds; from scratch is what the last round's network
takes in the same run. The paper saw incremental cost scaling take a quarter less than from scratch
under this policy.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from flowsolver import IncrementalSolver, Status, solve
from flowsolver.generate import GraphOptions, contended_options, quincy_graph
from tests.benchmarks.bench_flow_changes import BATCH, MACHINES, Cell

ROUNDS = 40
ALGORITHMS = ("incremental_ssp", "relaxation", "cost_scaling", "network_simplex")
CELLS = {
    "50 % used": GraphOptions(MACHINES, 50),
    "90 % used": GraphOptions(MACHINES, 90),
    "97 % used": GraphOptions(MACHINES, 97),
    "99 % used": GraphOptions(MACHINES, 99),
    "102 % used": GraphOptions(MACHINES, 102, 6),
    "contended, 90 % used": contended_options(MACHINES),
}


@pytest.mark.parametrize("case", CELLS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rounds(benchmark: Any, algorithm: str, case: str) -> None:
    benchmark.group = (
        f"{algorithm}, incremental: {MACHINES:,} machines, {case}, {BATCH} gone and {BATCH} come"
    )
    cell = Cell(quincy_graph(CELLS[case], 1))
    cell.solver = IncrementalSolver(cell.graph.network, algorithm)
    cell.resolve()
    took_ms: list[float] = []

    def exchange(*change: Any) -> None:
        begin = time.process_time()
        cell.exchange(*change)
        took_ms.append(1e3 * (time.process_time() - begin))

    benchmark.pedantic(exchange, setup=cell.batch, rounds=ROUNDS)
    assert cell.solver.certify().ok
    network, _, _ = cell.solver.snapshot()
    begin = time.process_time()
    fresh = solve(network, algorithm)
    scratch_ms = 1e3 * (time.process_time() - begin)
    assert fresh.status is Status.OPTIMAL
    assert fresh.cost == cell.solver.cost
    round_ms = float(np.median(took_ms))
    note = (
        f"mean {np.mean(took_ms):.1f}, most {max(took_ms):.1f} ms; from scratch {scratch_ms:.0f} "
        "ms:"
        f" {scratch_ms / round_ms:.1f} times"
    )
    benchmark.extra_info.update(unit="ms", figure=round_ms, note=note)
    print(f"\n{algorithm}, {case}: {round_ms:.2f} ms a round; {note}")
