"""Incremental cost scaling against cost scaling from scratch (Firmament, OSDI 2016, figure 11).

Cells of 12,500 machines x 12 slots under the Quincy policy; in each round 100 tasks go and 100 come. Times are process time, the
median over rounds; from scratch is what the last round's network takes in the same run. The paper saw incremental cost scaling
take a quarter less under this policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from flowsolver import IncrementalSolver, Status, solve
from flowsolver.generate import GraphOptions, SchedulingGraph, contended_options, quincy_graph
from tests.benchmarks.bench_flow_changes import BATCH, MACHINES, Cell

ROUNDS = 20
PAPER_RATIO = 1.3
CELLS: dict[str, Callable[[], SchedulingGraph]] = {
    "50 % used": lambda: quincy_graph(GraphOptions(MACHINES, 50), 1),
    "90 % used": lambda: quincy_graph(GraphOptions(MACHINES), 1),
    "97 % used": lambda: quincy_graph(GraphOptions(MACHINES, 97), 1),
    "99 % used": lambda: quincy_graph(GraphOptions(MACHINES, 99), 1),
    "102 % used": lambda: quincy_graph(GraphOptions(MACHINES, 102, 6), 1),
    "90 % used, contended": lambda: quincy_graph(contended_options(MACHINES), 1),
}


@pytest.mark.parametrize("case", CELLS)
def test_rounds(benchmark: Any, case: str) -> None:
    benchmark.group = f"cost scaling, incremental: {MACHINES:,} machines, {case}, {BATCH} gone and {BATCH} come"
    cell = Cell(CELLS[case]())
    cell.solver = IncrementalSolver(cell.graph.network, "cost_scaling")
    cell.resolve()
    benchmark.pedantic(cell.exchange, setup=cell.batch, rounds=ROUNDS)
    assert cell.solver.certify().ok
    network, _, _ = cell.solver.snapshot()
    begin = time.process_time()
    fresh = solve(network, "cost_scaling")
    scratch_ms = 1e3 * (time.process_time() - begin)
    assert fresh.status is Status.OPTIMAL
    assert fresh.cost == cell.solver.cost
    round_ms = 1e3 * benchmark.stats.stats.median
    note = f"from scratch {scratch_ms:.0f} ms: {scratch_ms / round_ms:.1f} times (the paper: {PAPER_RATIO})"
    benchmark.extra_info.update(unit="ms", figure=round_ms, note=note)
    print(f"\n{case}: {round_ms:.1f} ms a round; {note}")
