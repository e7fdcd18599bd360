"""What one change costs an IncrementalSolver on a solved cell of 12,500 machines x 12 slots under
the Quincy policy, and what a round costs that changes most of a network at once.

Rounds of ageing, machines that fail and come back, single tasks and batches of them, how the work
grows with the cell, and memory. A figure is the changes' calls and `resolve` together, through the
Python API. Only for single tasks, where the calls themselves take as long as the solver, the time
of the same calls with nothing to do is taken off. The peer cannot go on from an earlier answer: it
solves the changed graph from scratch.

Mass changes are at a hub (tests/fixtures/mass_changes.py). Their figure is the median over five
networks of the ratio of process times: the calls and `resolve`, less 1 ms, to `solve` of the
changed network alone by the same algorithm, which is built before.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, solve
from flowsolver.arguments import Int64Array
from tests.benchmarks.bench_flow_rounds import INCREMENTAL, Cell, graph_of, timed
from tests.benchmarks.bench_flowsolver import MACHINES, SOLVERS, peer_of
from tests.fixtures.mass_changes import MASS_CHANGES, Hub

SLOTS = 12
ROUNDS = 15
SINGLES = 3_000
WAITING = 3_000
AGEING_TARGET_MS = {"waiting": 5, "waiting and running": 30}
CHANGES_PER_MACHINE = 0.32


class AgeingCell(Cell):
    """A cell whose tasks grow older, and whose machines fail and come back."""

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


@pytest.fixture(scope="module", params=[90, 99, 102])
def cell(request: pytest.FixtureRequest) -> AgeingCell:
    return AgeingCell(graph_of(MACHINES, request.param))


def name_of(cell: Cell) -> str:
    return f"12,500 machines, {100 * cell.graph.tasks / (MACHINES * SLOTS):.0f} % used"


@SOLVERS
@pytest.mark.parametrize("who", AGEING_TARGET_MS)
def test_ageing(benchmark: Any, cell: AgeingCell, who: str, solver: str) -> None:
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
def test_machine_fails(benchmark: Any, cell: AgeingCell, solver: str) -> None:
    benchmark.group = f"machine fails: {name_of(cell)}"
    order = iter(cell.rng.permutation(MACHINES))
    against_scratch(benchmark, cell, solver, cell.fail, lambda: ((int(next(order)),), {}), 2)


def test_machine_comes_back(benchmark: Any) -> None:
    cell = AgeingCell(graph_of(MACHINES, 90))
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
    """Milliseconds."""
    return timed(lambda: [function(*arguments) for function, *arguments in calls])[0]


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
    arrival, departure = (1e3 * spent[what] / SINGLES for what in ("arrival", "departure"))
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
    note = f"{1e3 * spent / (2 * changes):.1f} us per change, calls included"
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


MASS_TARGET = 1.2
FREE_MS = 1
# changes: kinds of them. What is slow from scratch is measured with fewer.
KINDS = {
    10_000: list(MASS_CHANGES),
    40_000: [kind for kind in MASS_CHANGES if kind != "arcs added"],
    100_000: ["arcs removed", "supplies negated"],
}


def times_of(kind: str, algorithm: str, changes: int, seed: int) -> tuple[float, float]:
    """Milliseconds of a round, and from scratch."""
    hub = Hub.of(changes, seed)
    solver = IncrementalSolver(hub.network, algorithm)
    assert solver.resolve() is Status.OPTIMAL

    def change_and_resolve() -> None:
        MASS_CHANGES[kind](hub, solver)
        assert solver.resolve() is Status.OPTIMAL

    changed = timed(change_and_resolve)[0]
    network, _, _ = solver.snapshot()
    scratch, answer = timed(lambda: solve(network, algorithm))
    assert answer.cost == solver.cost
    assert solver.certify().ok
    return changed, scratch


@pytest.mark.parametrize("algorithm", INCREMENTAL)
@pytest.mark.parametrize(
    ("changes", "kind"), [(changes, kind) for changes, kinds in KINDS.items() for kind in kinds]
)
def test_mass_changes(benchmark: Any, kind: str, changes: int, algorithm: str) -> None:
    benchmark.group = f"{changes:,} changes in a round at a hub: {kind}, {algorithm}"
    times: list[tuple[float, float]] = []

    def run() -> None:
        times.extend(times_of(kind, algorithm, changes, seed) for seed in range(5))

    benchmark.pedantic(run, rounds=1)
    ratio = statistics.median((changed - FREE_MS) / scratch for changed, scratch in times)
    changed_ms, scratch_ms = (statistics.median(column) for column in zip(*times, strict=True))
    benchmark.extra_info.update(
        unit="x",
        figure=max(0.0, ratio),
        larger_is_better=False,
        target=MASS_TARGET,
        note=f"{changed_ms:.1f} ms, from scratch {scratch_ms:.1f} ms",
    )


if __name__ == "__main__":
    print(peak_bytes_per_arc(*sys.argv[1:]))
