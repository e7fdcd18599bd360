"""Price refine when cost scaling goes on from relaxation's answer (Firmament, OSDI 2016, section
6.2 and figure 13).

Cells of 12,500 machines x 12 slots under the Quincy policy. Relaxation has the optimum; then 100
tasks go and 100 come, and cost scaling solves what has become of the network from relaxation's
flow, beginning with

- relaxation's prices, refined: how a handover is done here;
- relaxation's prices as they are;
- zero prices, as they are: what cost scaling would have if prices could not be handed over;
- zero prices, refined: prices found from the flow alone;
- nothing at all: from scratch.

Times are process time, the median over rounds; the ratio is to the first. The paper saw refined
prices make it 4 times quicker.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from flowsolver import IncrementalSolver, Status, _flowsolver, solve
from flowsolver.generate import GraphOptions, SchedulingGraph, contended_options, quincy_graph
from tests.benchmarks.bench_flow_changes import BATCH, MACHINES, Cell

ROUNDS = 7
PAPER_RATIO = 4
CELLS: dict[str, Callable[[], SchedulingGraph]] = {
    "50 % used": lambda: quincy_graph(GraphOptions(MACHINES, 50), 1),
    "90 % used": lambda: quincy_graph(GraphOptions(MACHINES), 1),
    "99 % used": lambda: quincy_graph(GraphOptions(MACHINES, 99), 1),
    "102 % used": lambda: quincy_graph(GraphOptions(MACHINES, 102, 6), 1),
    "90 % used, contended": lambda: quincy_graph(contended_options(MACHINES), 1),
}


class Handover(Cell):
    """Relaxation's answers round by round, and cost scaling from each on the next round's
    network."""

    def __init__(self, graph: SchedulingGraph) -> None:
        super().__init__(graph)
        self.solver = IncrementalSolver(graph.network, "relaxation")
        self.resolve()
        self.seconds: dict[str, list[float]] = {}

    def round(self) -> None:
        flow, price = self.solver.flow(), self.solver.potential()
        places, *arcs = self.batch()[0]
        self.depart(places)
        self.arrive(places, *arcs)
        network, nodes, ids = self.solver.snapshot()
        flow = np.concatenate([flow, np.zeros(ids[-1] + 1, dtype=np.int64)])[ids]
        price = np.concatenate([price, np.zeros(nodes[-1] + 1, dtype=np.int64)])[nodes]
        zero = np.zeros_like(price)
        self.resolve()
        for name, prices, refine in (
            ("relaxation's prices, refined", price, True),
            ("relaxation's prices", price, False),
            ("zero prices", zero, False),
            ("zero prices, refined", zero, True),
        ):
            self.time(
                name, partial(_flowsolver.cost_scaling_from, network.core, flow, prices, refine)
            )
        self.time("from scratch", lambda: solve(network, "cost_scaling"))

    def time(self, name: str, run: Callable[[], Any]) -> None:
        begin = time.process_time()
        solution = run()
        self.seconds.setdefault(name, []).append(time.process_time() - begin)
        assert solution.status is Status.OPTIMAL
        assert solution.cost == self.solver.cost


@pytest.mark.parametrize("case", CELLS)
def test_price_refine(benchmark: Any, case: str) -> None:
    benchmark.group = (
        f"cost scaling from relaxation's answer: {MACHINES:,} machines, {case}, "
        f"{BATCH} gone and {BATCH} come"
    )
    cell = Handover(CELLS[case]())
    benchmark.pedantic(cell.round, rounds=ROUNDS)
    ms = {name: 1e3 * statistics.median(seconds) for name, seconds in cell.seconds.items()}
    (_, refined), *others = ms.items()
    note = "; ".join(
        f"{name} {time_ms:.0f} ms ({time_ms / refined:.1f} times)" for name, time_ms in others
    )
    benchmark.extra_info.update(unit="ms", figure=refined, note=note)
    print(f"\n{case}: refined {refined:.0f} ms; {note} (the paper: {PAPER_RATIO} times)")
