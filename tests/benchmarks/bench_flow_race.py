"""How soon the losers of a race stop: the default and one other algorithm on 12,500 machines x 12
slots, Quincy policy.

The figure is the time from the winner's end until the loser had stopped and freed its memory, the
median over races; the most, and how much longer a race takes than the default alone in the same
run, stand in the note. These are times of the clock, since two threads are at it: on a machine with
other work they say more about that. From scratch, and round by round as 100 tasks go and 100 come.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from flowsolver import IncrementalSolver, Solution, algorithms, solve
from tests.benchmarks.bench_flow_changes import MACHINES, Cell, graph_of

RACES = 9
ROUNDS = 30
DEFAULT, *OTHERS = algorithms()
TARGET_MS = 1


def elapsed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def report(benchmark: Any, stopped: list[float], raced: list[float], alone: list[float]) -> None:
    longer_ms = 1e3 * (statistics.median(raced) - statistics.median(alone))
    note = (
        f"at most {1e3 * max(stopped):.2f}; race {longer_ms:+.2f} ms to "
        f"{1e3 * statistics.median(alone):.2f} alone"
    )
    benchmark.extra_info.update(
        unit="ms", figure=1e3 * statistics.median(stopped), target=TARGET_MS, note=note
    )


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("percent_used", [90, 102])
def test_from_scratch(benchmark: Any, percent_used: int, other: str) -> None:
    benchmark.group = (
        f"losers stop: {MACHINES:,} machines, {percent_used} % used, from scratch, against {other}"
    )
    network = graph_of(MACHINES, percent_used).network
    stopped: list[float] = []
    raced: list[float] = []
    alone: list[float] = []

    def run() -> None:
        alone.append(elapsed(lambda: solve(network))[0])
        took, solution = elapsed(lambda: solve(network, [DEFAULT, other]))
        assert isinstance(solution, Solution)
        raced.append(took)
        stopped.append(solution.stop_seconds)

    benchmark.pedantic(run, rounds=RACES)
    report(benchmark, stopped, raced, alone)


@pytest.mark.parametrize("other", OTHERS)
def test_rounds(benchmark: Any, other: str) -> None:
    benchmark.group = (
        f"losers stop: {MACHINES:,} machines, 90 % used, 100 tasks gone and 100 come, against "
        f"{other}"
    )
    cells = [Cell(graph_of(MACHINES, 90)) for _ in range(2)]  # the same changes in both
    cells[1].solver = IncrementalSolver(cells[1].graph.network, [DEFAULT, other])
    cells[1].resolve()
    stopped: list[float] = []
    raced: list[float] = []
    alone: list[float] = []

    def run() -> None:
        for cell, took in zip(cells, (alone, raced), strict=True):
            change, _ = cell.batch()
            took.append(elapsed(partial(cell.exchange, *change))[0])
        stopped.append(cells[1].solver.stop_seconds)

    benchmark.pedantic(run, rounds=ROUNDS)
    assert cells[0].solver.cost == cells[1].solver.cost
    report(benchmark, stopped, raced, alone)
