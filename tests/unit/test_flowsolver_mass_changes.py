"""Rounds that change most of a network at once: correct, and with no more work than from scratch;
and small rounds after them.
"""

from __future__ import annotations

import numpy as np
import pytest

from flowsolver import IncrementalSolver, Status, solve
from tests.fixtures.mass_changes import MASS_CHANGES, Hub
from tests.fixtures.networks import check_resolved

ALGORITHMS = ["incremental_ssp", "cost_scaling", "relaxation", "network_simplex"]
LEAVES = 4_000  # each change is one of more than the 2,048 that are still told one by one
LEAST_WORK = 16_384  # what a round may always try before it is solved from scratch


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", MASS_CHANGES)
def test_no_more_work_than_from_scratch(kind: str, algorithm: str) -> None:
    hub = Hub.of(LEAVES, 1)
    solver = IncrementalSolver(hub.network, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    MASS_CHANGES[kind](hub, solver)
    assert solver.resolve() is Status.OPTIMAL
    work = solver.stats.operations
    check_resolved(solver)
    network, _, _ = solver.snapshot()
    scratch = solve(network, algorithm)
    assert solver.cost == scratch.cost
    assert work <= 1.2 * scratch.stats.operations + LEAST_WORK


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_round_after_another(algorithm: str) -> None:
    """All kinds of mass changes in turn, each followed by a small round. The reported flow changes
    add up to the flow.
    """
    hub = Hub.of(LEAVES, 2)
    solver = IncrementalSolver(hub.network, algorithm)
    known = np.zeros(hub.network.num_arcs, dtype=np.int64)

    def resolve() -> None:
        nonlocal known
        assert solver.resolve() is Status.OPTIMAL
        check_resolved(solver)
        _, _, arcs = solver.snapshot()
        changed, flow = solver.changed_flow()
        known = np.append(known, np.zeros(max(0, arcs.max() + 1 - known.size), dtype=np.int64))
        known[changed] = flow
        assert np.array_equal(known[arcs], solver.flow(arcs))

    resolve()
    for kind in ("costs redrawn", "supplies negated", "arcs added", "capacities redrawn"):
        MASS_CHANGES[kind](hub, solver)
        resolve()
        solver.set_cost(np.arange(10), 7)
        solver.set_capacity(np.arange(10, 20), 9)
        resolve()
    MASS_CHANGES["arcs removed"](hub, solver)
    resolve()
    known[np.arange(hub.leaves)] = 0
    solver.add_arcs(2 + np.arange(10), np.zeros(10, dtype=np.int64), 50, 3)
    resolve()
    gone = 2 + np.arange(0, hub.leaves, 2)
    solver.remove_nodes(gone)
    assert solver.resolve() is Status.UNBALANCED
    network, _, _ = solver.snapshot()
    solver.set_supply([0], network.supply[0] - network.supply.sum())
    resolve()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_comes_and_goes_in_one_round(algorithm: str) -> None:
    """More changes than there are nodes and arcs, all of them undone: the optimum stays."""
    hub = Hub.of(LEAVES, 3)
    solver = IncrementalSolver(hub.network, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    before = solver.cost
    leaf = solver.add_nodes(np.resize([1, -1], LEAVES))
    arcs = solver.add_arcs(leaf, np.zeros(LEAVES, dtype=np.int64), 9, 1)
    solver.set_cost(arcs, 5)
    solver.set_capacity(arcs, 3)
    solver.remove_arcs(arcs[::2])
    solver.remove_nodes(leaf)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == before
    check_resolved(solver)
    assert solver.add_nodes([0])[0] == leaf[-1]  # the last removed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("times", [1, 20])
def test_a_mass_change_within_budgets(algorithm: str, times: int) -> None:
    """Stopped at its budget several times, then not."""
    hub = Hub.of(LEAVES, 4)
    solver = IncrementalSolver(hub.network, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    MASS_CHANGES["arcs removed"](hub, solver)
    for _ in range(times):
        assert solver.resolve(max_operations=10_000) in (Status.BUDGET, Status.OPTIMAL)
    while solver.resolve() is not Status.OPTIMAL:
        pass
    check_resolved(solver)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_mass_change_without_an_answer(algorithm: str) -> None:
    """All arcs of the hubs are removed, which disconnects every leaf; then they are added again."""
    hub = Hub.of(LEAVES, 5)
    solver = IncrementalSolver(hub.network, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    before = solver.cost
    net = hub.network
    arcs = np.arange(4 * LEAVES)
    for _ in range(3):
        solver.remove_arcs(arcs)
        assert solver.resolve() is Status.INFEASIBLE
        assert solver.certify_cut().ok
        rows = np.arange(4 * LEAVES)
        arcs = solver.add_arcs(net.tail[rows], net.head[rows], net.capacity[rows], net.cost[rows])
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cost == before
        check_resolved(solver)
