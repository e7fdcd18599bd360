"""Races: the answer of any of several algorithms, from scratch and over changes; Ctrl-C ends a long
solve."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, algorithms, certify, solve
from flowsolver.generate import contended_options, quincy_graph

ALL = list(algorithms())


@pytest.fixture(scope="module")
def cell():
    return quincy_graph(contended_options(60, 97, 10), seed=3)


@pytest.mark.parametrize("deterministic", [False, True])
def test_winner_answers(cell, deterministic):
    begin = time.perf_counter()
    solution = solve(cell.network, ALL, deterministic=deterministic)
    assert 0 <= solution.stop_seconds < time.perf_counter() - begin
    assert solution.status is Status.OPTIMAL
    assert certify(cell.network, solution).ok
    assert solution.winner in ALL


def test_deterministic_winner_took_the_fewest_operations(cell):
    alone = {name: solve(cell.network, name) for name in ALL}
    order = sorted(ALL, key=lambda name: alone[name].stats.operations)
    for names in (ALL, ALL[::-1], order[1:]):
        first = solve(cell.network, names, deterministic=True)
        assert first.winner == min(names, key=lambda name: alone[name].stats.operations)
        assert first.stats.operations == alone[first.winner].stats.operations
        np.testing.assert_array_equal(first.flow, alone[first.winner].flow)


def test_one_algorithm_is_no_race(cell):
    for names in (ALL[-1], [ALL[-1]]):
        solution = solve(cell.network, names)
        assert (solution.winner, solution.stop_seconds) == (ALL[-1], 0.0)


@pytest.mark.parametrize("deterministic", [False, True])
def test_race_proves_infeasibility(deterministic):
    net = FlowNetwork()
    net.add_nodes([2, 0, -2])
    net.add_arcs([0, 1], [1, 2], [2, 1], 0)
    assert solve(net, ALL, deterministic=deterministic).status is Status.INFEASIBLE
    solver = IncrementalSolver(net, ALL, deterministic=deterministic)
    assert solver.winner is None
    assert solver.resolve() is Status.INFEASIBLE
    assert solver.winner in ALL
    solver.set_capacity([1], 2)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.certify().ok


def rounds(solver, graph, count=12):
    """Departures, arrivals and ageing; yields after each resolve."""
    rng = np.random.default_rng(11)
    net = graph.network
    head, cost, begin = net.head, net.cost, graph.task_arc_begin
    alive = np.arange(graph.first_task, graph.first_task + graph.tasks)
    for _ in range(count):
        leaving = rng.choice(alive, 6, replace=False)
        solver.remove_nodes(leaving)
        like = rng.integers(0, graph.tasks, 9)
        coming = solver.add_nodes(np.ones(like.size, dtype=np.int64))
        for node, k in zip(coming.tolist(), like.tolist(), strict=True):
            rows = np.arange(begin[k], begin[k + 1])
            solver.add_arcs(np.full(rows.size, node), head[rows], 1, cost[rows])
        alive = np.concatenate([np.setdiff1d(alive, leaving), coming])
        solver.set_supply([graph.sink], [-alive.size])
        machines = np.flatnonzero(head == graph.sink)
        solver.set_capacity(
            rng.choice(machines[net.capacity[machines] <= 12], 2), rng.integers(8, 13, 2)
        )
        waiting = np.flatnonzero(
            (net.tail >= graph.first_unscheduled) & (net.tail < graph.first_task)
        )
        solver.set_capacity(waiting, alive.size)
        yield solver.resolve()


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    "names", [ALL, ALL[1:], ALL[::-1]], ids=["all", "none local", "local last"]
)
def test_every_round_is_optimal_whichever_racer_wins(cell, names, deterministic):
    solver = IncrementalSolver(cell.network, names, deterministic=deterministic)
    before = solver.flow()
    stopping = []
    began = time.perf_counter()
    for status in rounds(solver, cell):
        assert status is Status.OPTIMAL
        assert 0 <= solver.stop_seconds < time.perf_counter() - began  # that round's alone
        stopping.append(solver.stop_seconds)
        assert solver.certify().ok
        assert solver.certify_touched().ok
        assert solver.certify_changes().ok
        network, _, arcs = solver.snapshot()
        assert solver.cost == solve(network).cost
        changed, now = solver.changed_flow()
        known = np.zeros(arcs.max() + 1, dtype=np.int64)
        known[: before.size] = before[: known.size]
        known[changed] = now
        np.testing.assert_array_equal(known[arcs], solver.flow(arcs))
        before = solver.flow()
        began = time.perf_counter()
    assert deterministic or max(stopping) > 0  # losers are told to stop when the winner has ended


def test_deterministic_rounds_do_not_depend_on_timing(cell):
    def history():
        solver = IncrementalSolver(cell.network, ALL, deterministic=True)
        return [
            (solver.winner, solver.stats.operations, solver.flow().tobytes())
            for _ in rounds(solver, cell)
        ]

    assert history() == history()


LONG_SOLVE = """
import signal, sys
from flowsolver import IncrementalSolver, solve
from flowsolver.generate import contended_options, quincy_graph
signal.signal(signal.SIGINT, signal.default_int_handler)
network = quincy_graph(contended_options(2000, 105, 50), 1).network
names = ["cycle_cancelling", "successive_shortest_path"]
algorithm = names[0] if sys.argv[1] == "alone" else names
print("solving", flush=True)
try:
    if sys.argv[2] == "resolve":
        IncrementalSolver(network, algorithm).resolve()
    else:
        solve(network, algorithm)
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("solved", flush=True)
"""


@pytest.mark.parametrize("how", ["alone", "race"])
@pytest.mark.parametrize("call", ["solve", "resolve"])
def test_ctrl_c_ends_a_long_solve(how, call):
    with subprocess.Popen(
        [sys.executable, "-c", LONG_SOLVE, how, call], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "solving\n"
            time.sleep(0.3)
            os.kill(process.pid, signal.SIGINT)
            assert process.communicate(timeout=60)[0] == "interrupted\n"
        finally:
            process.kill()
