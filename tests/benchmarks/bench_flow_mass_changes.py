"""Rounds that change most of a network at once, against the same algorithm from scratch: at most
1.2 times its time plus 1 ms, for every algorithm that keeps its state.

The network is a hub (tests/fixtures/mass_changes.py). A figure is the median over five networks of
the ratio of process times: the calls that change the network and `resolve`, less 1 ms, to `solve`
of the changed network alone, which is built before. Both run in the same process, one after the
other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from flowsolver import IncrementalSolver, Status, solve
from tests.fixtures.mass_changes import MASS_CHANGES, Hub

REPEATS = 5
TARGET = 1.2
FREE_S = 1e-3
ALGORITHMS = ["incremental_ssp", "cost_scaling", "relaxation", "network_simplex"]
# changes: kinds of them. What is slow from scratch is measured with fewer.
KINDS = {
    10_000: list(MASS_CHANGES),
    40_000: [kind for kind in MASS_CHANGES if kind != "arcs added"],
    100_000: ["arcs removed", "supplies negated"],
}


def seconds_of(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def times_of(kind: str, algorithm: str, changes: int, seed: int) -> tuple[float, float]:
    """Of a round, and from scratch."""
    hub = Hub.of(changes, seed)
    solver = IncrementalSolver(hub.network, algorithm)
    assert solver.resolve() is Status.OPTIMAL

    def change_and_resolve() -> None:
        MASS_CHANGES[kind](hub, solver)
        assert solver.resolve() is Status.OPTIMAL

    changed = seconds_of(change_and_resolve)
    network, _, _ = solver.snapshot()
    answers = []
    scratch = seconds_of(lambda: answers.append(solve(network, algorithm)))
    assert answers[0].cost == solver.cost
    assert solver.certify().ok
    return changed, scratch


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("changes", "kind"), [(changes, kind) for changes, kinds in KINDS.items() for kind in kinds]
)
def test_mass_changes(benchmark: Any, kind: str, changes: int, algorithm: str) -> None:
    benchmark.group = f"{changes:,} changes in a round at a hub: {kind}, {algorithm}"
    times: list[tuple[float, float]] = []

    def run() -> None:
        times.extend(times_of(kind, algorithm, changes, seed) for seed in range(REPEATS))

    benchmark.pedantic(run, rounds=1)
    ratio = statistics.median((changed - FREE_S) / scratch for changed, scratch in times)
    changed_s, scratch_s = (statistics.median(column) for column in zip(*times, strict=True))
    benchmark.extra_info.update(
        unit="x",
        figure=max(0.0, ratio),
        larger_is_better=False,
        target=TARGET,
        note=f"{1e3 * changed_s:.1f} ms, from scratch {1e3 * scratch_s:.1f} ms",
    )
