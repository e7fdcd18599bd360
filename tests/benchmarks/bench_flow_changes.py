"""What one change costs an IncrementalSolver on a solved cell of 12,500 machines x 12 slots under
the Quincy policy.

Rounds of ageing, machines that fail and come back, single tasks and batches of them, how the work
grows with the cell, and memory. A figure is the changes' calls and `resolve` together, through the
Python API. Only for single tasks, where the calls themselves take as long as the solver, the time
of the same calls with nothing to do is taken off. The peer cannot go on from an earlier answer: it
solves the changed graph from scratch.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, solve
from flowsolver.arguments import Int64Array
from flowsolver.generate import GraphOptions, SchedulingGraph, quincy_graph
from tests.benchmarks.bench_flowsolver import peer_of

MACHINES = 12_500
SLOTS = 12
ROUNDS = 15
SINGLES = 3_000
BATCH = 100
WAITING = 3_000
AGEING_TARGET_MS = {"waiting": 5, "waiting and running": 30}
CHANGES_PER_MACHINE = 0.32


class Cell:
    """A solved graph, and changes to it. New tasks are like tasks seen before, in another rack."""

    def __init__(self, graph: SchedulingGraph, seed: int = 2) -> None:
        self.graph = graph
        self.rng = np.random.default_rng(seed)
        network = graph.network
        self.tail, self.head, self.cost = network.tail, network.head, network.cost
        self.begin = graph.task_arc_begin
        self.tasks = np.arange(graph.first_task, graph.first_task + graph.tasks)
        self.machines = np.arange(graph.first_machine, graph.first_unscheduled)
        self.solver = IncrementalSolver(network)
        self.resolve()

    def resolve(self) -> None:
        assert self.solver.resolve() is Status.OPTIMAL

    def ageing(self, running: bool) -> tuple[tuple[Int64Array, Int64Array], dict[str, Any]]:
        """Arcs and their new costs: the arcs over which tasks wait dearer by one, those over which
        others run cheaper by one.

        If fewer than 3,000 tasks wait, others whose arc to wait over gets dearer, too, make up the
        number.
        """
        arcs = np.arange(self.begin[-1])
        used = self.solver.flow(arcs) > 0
        to_wait = self.head[arcs] >= self.graph.first_unscheduled
        waiting = np.flatnonzero(used & to_wait)
        others = np.flatnonzero(~used & to_wait)
        more = self.rng.choice(others, max(0, WAITING - waiting.size), replace=False)
        dearer = np.sort(np.concatenate([waiting, more]))
        cheaper = np.flatnonzero(used & ~to_wait)[: None if running else 0]
        self.cost[dearer] += 1
        self.cost[cheaper] -= 1
        changed = np.concatenate([dearer, cheaper])
        return (changed, self.cost[changed]), {}

    def age(self, arcs: Int64Array, cost: Int64Array) -> None:
        self.solver.set_cost(arcs, cost)
        self.resolve()

    def arcs_like_seen(self, count: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Arcs of `count` new tasks: which of them, head, cost."""
        graph = self.graph
        like = self.rng.integers(0, graph.tasks, count)
        size = self.begin[like + 1] - self.begin[like]
        task = np.repeat(np.arange(count), size)
        row = np.repeat(self.begin[like] - np.cumsum(size) + size, size) + np.arange(task.size)
        head = self.head[row].copy()
        full_racks = graph.machines // graph.machines_per_rack
        shift = self.rng.integers(0, full_racks, count)[task]
        for first, step in ((graph.first_rack, 1), (graph.first_machine, graph.machines_per_rack)):
            last = first + full_racks * step
            inside = (head >= first) & (head < last)
            head[inside] = first + (head[inside] - first + step * shift[inside]) % (last - first)
        return task, head, self.cost[row]

    def depart(self, places: Int64Array) -> None:
        self.solver.remove_nodes(self.tasks[places])

    def arrive(
        self, places: Int64Array, task: Int64Array, head: Int64Array, cost: Int64Array
    ) -> None:
        self.tasks[places] = self.solver.add_nodes(np.ones(places.size, dtype=np.int64))
        self.solver.add_arcs(self.tasks[places][task], head, 1, cost)

    def resolve_with(self, tasks: int) -> None:
        self.solver.set_supply([self.graph.sink], -tasks)
        self.resolve()

    def batch(self) -> tuple[tuple[Int64Array, ...], dict[str, Any]]:
        places = self.rng.choice(self.tasks.size, BATCH, replace=False)
        return (places, *self.arcs_like_seen(BATCH)), {}

    def exchange(
        self, places: Int64Array, task: Int64Array, head: Int64Array, cost: Int64Array
    ) -> None:
        self.depart(places)
        self.arrive(places, task, head, cost)
        self.resolve()

    def fail(self, machine: int) -> None:
        self.solver.remove_nodes(self.machines[machine : machine + 1])
        self.resolve()

    def preferring(self, machine: int) -> tuple[Int64Array, Int64Array]:
        """Tails and costs of the arcs that tasks of the graph have to the machine."""
        arcs = np.flatnonzero(self.head[: self.begin[-1]] == self.graph.first_machine + machine)
        return self.tail[arcs], self.cost[arcs]

    def come_back(self, machine: int, tail: Int64Array, cost: Int64Array) -> None:
        node = self.solver.add_nodes([0])
        self.machines[machine] = node[0]
        rack = self.graph.first_rack + machine // self.graph.machines_per_rack
        self.solver.add_arcs([rack, node[0]], [node[0], self.graph.sink], SLOTS, 0)
        self.solver.add_arcs(tail, np.repeat(node, tail.size), 1, cost)
        self.resolve()


@lru_cache(maxsize=1)
def graph_of(machines: int, percent_used: int) -> SchedulingGraph:
    pending = 6 if percent_used > 100 else 2
    return quincy_graph(GraphOptions(machines, percent_used, pending), seed=1)


def against_scratch(
    benchmark: Any, cell: Cell, solver: str, run: Callable[..., None], setup: Any, target_ms: int
) -> None:
    """Rounds of `run`; or one of the peer's, on what the network has become by then."""
    if solver == "agora":
        benchmark.pedantic(run, setup=setup, rounds=ROUNDS)
        benchmark.extra_info.update(unit="ms", target=target_ms)
        assert cell.solver.certify().ok
    else:
        network, _, _ = cell.solver.snapshot()
        peer = peer_of(network)
        benchmark.pedantic(peer.solve, rounds=1)
        benchmark.extra_info.update(label=solver)
        assert peer.optimal_cost() == cell.solver.cost == solve(network).cost


SOLVERS = pytest.mark.parametrize("solver", ["agora", "ortools"])


@pytest.fixture(scope="module", params=[90, 99, 102])
def cell(request: pytest.FixtureRequest) -> Cell:
    return Cell(graph_of(MACHINES, request.param))


def name_of(cell: Cell) -> str:
    return f"12,500 machines, {100 * cell.graph.tasks / (MACHINES * SLOTS):.0f} % used"


@SOLVERS
@pytest.mark.parametrize("who", AGEING_TARGET_MS)
def test_ageing(benchmark: Any, cell: Cell, who: str, solver: str) -> None:
    benchmark.group = f"ageing: {name_of(cell)}, {who} tasks older by one"
    against_scratch(
        benchmark,
        cell,
        solver,
        cell.age,
        lambda: cell.ageing("running" in who),
        AGEING_TARGET_MS[who],
    )


@SOLVERS
def test_machine_fails(benchmark: Any, cell: Cell, solver: str) -> None:
    benchmark.group = f"machine fails: {name_of(cell)}"
    order = iter(cell.rng.permutation(MACHINES))
    against_scratch(benchmark, cell, solver, cell.fail, lambda: ((int(next(order)),), {}), 2)


def test_machine_comes_back(benchmark: Any) -> None:
    cell = Cell(graph_of(MACHINES, 90))
    benchmark.group = f"machine comes back: {name_of(cell)}"
    order = iter(cell.rng.permutation(MACHINES))

    def lose_one() -> tuple[tuple[int, Int64Array, Int64Array], dict[str, Any]]:
        machine = int(next(order))
        cell.fail(machine)
        return (machine, *cell.preferring(machine)), {}

    against_scratch(benchmark, cell, "agora", cell.come_back, lose_one, 2)


@pytest.mark.parametrize("percent_used", [50, 90, 97, 99])
def test_batch(benchmark: Any, percent_used: int) -> None:
    cell = Cell(graph_of(MACHINES, percent_used))
    benchmark.group = f"100 tasks gone and 100 come: {name_of(cell)}"
    against_scratch(benchmark, cell, "agora", cell.exchange, cell.batch, 1)


def time_of(*calls: tuple[Any, ...]) -> float:
    begin = time.process_time()
    for function, *arguments in calls:
        function(*arguments)
    return time.process_time() - begin


@pytest.mark.parametrize("percent_used", [50, 90, 99])
def test_single_tasks(benchmark: Any, percent_used: int) -> None:
    """The figure is an arrival's mean; a departure's stands in the note."""
    cell = Cell(graph_of(MACHINES, percent_used))
    benchmark.group = f"one task comes: {name_of(cell)}"
    none = np.zeros(0, dtype=np.int64)
    spent = {"departure": 0.0, "arrival": 0.0}

    size = cell.tasks.size

    def run() -> None:
        for _ in range(SINGLES):
            place = cell.rng.integers(0, size, 1)
            arcs = cell.arcs_like_seen(1)
            for what, change, nothing, left in (
                ("departure", (cell.depart, place), (cell.depart, none), size - 1),
                (
                    "arrival",
                    (cell.arrive, place, *arcs),
                    (cell.arrive, none, none, none, none),
                    size,
                ),
            ):
                spent[what] += time_of(change, (cell.resolve_with, left))
                spent[what] -= time_of(nothing, (cell.resolve_with, left))

    benchmark.pedantic(run, rounds=1)
    assert cell.solver.certify().ok
    arrival, departure = (1e6 * spent[what] / SINGLES for what in ("arrival", "departure"))
    note = (
        f"mean of {SINGLES}, without the calls' own time; one goes: {departure:.1f} us (target 5)"
    )
    benchmark.extra_info.update(unit="us", figure=arrival, target=15, note=note)


@pytest.mark.parametrize("machines", [1_000, 5_000, 12_500, 50_000])
@pytest.mark.parametrize("percent_used", [50, 90, 97])
def test_growth(benchmark: Any, percent_used: int, machines: int) -> None:
    """Tasks go and come one by one, as many of them per machine, so that all cells are equally far
    from where they started."""
    cell = Cell(graph_of(machines, percent_used))
    benchmark.group = f"arcs scanned per change: {machines:,} machines, {percent_used} % used"
    changes = int(CHANGES_PER_MACHINE * machines)
    size = cell.tasks.size
    scanned, spent = 0, 0.0

    def run() -> None:
        nonlocal scanned, spent
        for _ in range(changes):
            place = cell.rng.integers(0, size, 1)
            arcs = cell.arcs_like_seen(1)
            spent += time_of((cell.depart, place), (cell.resolve_with, size - 1))
            scanned += cell.solver.stats.scanned
            spent += time_of((cell.arrive, place, *arcs), (cell.resolve_with, size))
            scanned += cell.solver.stats.scanned

    benchmark.pedantic(run, rounds=1)
    note = f"{1e6 * spent / (2 * changes):.1f} us per change, calls included"
    benchmark.extra_info.update(unit="arcs", figure=scanned / (2 * changes), note=note)


@pytest.mark.parametrize(
    "which", ["incremental_ssp", "relaxation", "cost_scaling", "network_simplex", "scratch"]
)
def test_memory(benchmark: Any, which: str, tmp_path: Path) -> None:
    """What a process of its own holds at most beyond the arrays it reads from a file: network,
    solver, solution."""
    benchmark.group = f"memory per arc: 12,500 machines, 90 % used, {which}"
    network = graph_of(MACHINES, 90).network
    file = tmp_path / "network.npz"
    np.savez(file, network.supply, network.tail, network.head, network.capacity, network.cost)
    output = ""

    def run() -> None:
        nonlocal output
        command = [sys.executable, "-m", "tests.benchmarks.bench_flow_changes", which, str(file)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    benchmark.pedantic(run, rounds=1)
    benchmark.extra_info.update(unit="bytes", figure=float(output), target=120)


def memory_in_kib(field: str) -> int:
    """Of this process, as Linux tells."""
    line = next(
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith(field)
    )
    return int(line.split()[1])


def peak_bytes_per_arc(which: str, file: str) -> float:
    with np.load(file) as arrays:
        supply, *arcs = (arrays[name] for name in arrays.files)
    before = memory_in_kib("VmRSS")
    network = FlowNetwork()
    network.add_nodes(supply)
    network.add_arcs(*arcs)
    if which == "scratch":
        assert solve(network).status is Status.OPTIMAL
    else:
        solver = IncrementalSolver(network, which)
        assert solver.resolve() is Status.OPTIMAL
    return 1024 * (memory_in_kib("VmHWM") - before) / network.num_arcs


if __name__ == "__main__":
    print(peak_bytes_per_arc(*sys.argv[1:]))
