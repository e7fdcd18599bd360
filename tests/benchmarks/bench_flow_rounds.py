"""Rounds in which 100 tasks go and 100 come, solved incrementally: cells of 12,500 machines x 12
slots under the Quincy policy.

A figure is the changes' calls and `resolve` together, through the Python API.

- Beside OR-tools, which cannot go on from an earlier answer: it solves the graph from scratch.
- Network-aware cells, beside OR-tools, too.
- Every algorithm that keeps its state, against itself from scratch (Firmament, OSDI 2016, figure
  11; the paper saw incremental cost scaling take a quarter less under this policy). Process time,
  the median over rounds.
- Where room has a price: full, oversubscribed and contended cells. Process time; the mean is the
  benchmark's, the 99th percentile and the most are in its extra information.
- Cost scaling that goes on from relaxation's answer (section 6.2, figure 13).
- How soon the loser of a race of two algorithms stops.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest

from flowsolver import IncrementalSolver, Solution, Status, _flowsolver, algorithms, solve
from flowsolver.arguments import Int64Array
from flowsolver.benchmark.solvers import Rounds
from flowsolver.generate import (
    GraphOptions,
    SchedulingGraph,
    contended_options,
    network_aware_graph,
    quincy_graph,
)
from tests.benchmarks.bench_flowsolver import MACHINES, SOLVERS, peer_of

BATCH = 100
DEFAULT, *OTHERS = algorithms()
INCREMENTAL = ("incremental_ssp", "relaxation", "cost_scaling", "network_simplex")


@lru_cache(maxsize=1)
def graph_of(machines: int, percent_used: int) -> SchedulingGraph:
    pending = 6 if percent_used > 100 else 2
    return quincy_graph(GraphOptions(machines, percent_used, pending), seed=1)


class Cell:
    """A solved graph, and changes to it. New tasks are like tasks seen before, in another rack."""

    def __init__(
        self,
        graph: SchedulingGraph,
        algorithm: str | Sequence[str] = DEFAULT,
        *,
        seed: int = 2,
    ) -> None:
        self.graph = graph
        self.rng = np.random.default_rng(seed)
        network = graph.network
        self.tail, self.head, self.cost = network.tail, network.head, network.cost
        self.begin = graph.task_arc_begin
        self.tasks = np.arange(graph.first_task, graph.first_task + graph.tasks)
        self.machines = np.arange(graph.first_machine, graph.first_unscheduled)
        self.solver = IncrementalSolver(network, algorithm)
        self.resolve()

    def resolve(self) -> None:
        assert self.solver.resolve() is Status.OPTIMAL

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

    def exchanges(self, benchmark: Any, rounds: int) -> list[float]:
        """Process time of each round, ms; certified at the end."""
        took_ms: list[float] = []

        def run(*batch: Int64Array) -> None:
            took_ms.append(timed(lambda: self.exchange(*batch))[0])

        benchmark.pedantic(run, setup=self.batch, rounds=rounds)
        assert self.solver.certify().ok
        return took_ms


def timed(
    call: Callable[..., Any], *, clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """Milliseconds that a call took, and what it returned."""
    begin = clock()
    result = call()
    return 1e3 * (clock() - begin), result


@SOLVERS
@pytest.mark.benchmark(group="resolve: 12,500 machines, 90 % used, 100 tasks gone and 100 come")
def test_later_round(benchmark: Any, solver: str) -> None:
    cell = Cell(graph_of(MACHINES, 90))
    if solver == "agora":
        benchmark.pedantic(cell.exchange, setup=cell.batch, rounds=20)
        benchmark.extra_info.update(unit="ms")
        assert cell.solver.certify().ok
    else:
        for _ in range(20):
            cell.exchange(*cell.batch()[0])
        network, _, _ = cell.solver.snapshot()
        peer = peer_of(network)
        benchmark.pedantic(peer.solve, rounds=1)
        assert peer.optimal_cost() == cell.solver.cost


NETWORK_AWARE_TARGET_MS = 5


@SOLVERS
@pytest.mark.benchmark(group="resolve: network-aware, 12,500 machines, 100 gone and 100 come")
def test_network_aware_round(benchmark: Any, solver: str) -> None:
    """A few aggregators with arcs to every machine, of equal costs by the thousand."""
    graph = network_aware_graph(MACHINES, seed=1)
    rounds = Rounds(graph.network, graph.first_task, DEFAULT, limit_s=600, seed=1)
    rounds.resolve()
    if solver == "agora":
        took_ms: list[float] = []

        def change(*changes: Int64Array) -> None:
            rounds.apply(*changes)
            rounds.resolve()

        def run(*changes: Int64Array) -> None:
            took_ms.append(timed(partial(change, *changes))[0])

        benchmark.pedantic(run, setup=lambda: (rounds.draw(BATCH), {}), rounds=60)
        note = f"median {np.median(took_ms):.1f}, most {max(took_ms):.1f} ms of process time"
        benchmark.extra_info.update(unit="ms", target=NETWORK_AWARE_TARGET_MS, note=note)
        assert rounds.solver.certify().ok
    else:
        rounds.apply(*rounds.draw(BATCH))
        rounds.resolve()
        network, _, _ = rounds.solver.snapshot()
        peer = peer_of(network)
        benchmark.pedantic(peer.solve, rounds=1)
        assert peer.optimal_cost() == rounds.solver.cost


CELLS = {
    "50 % used": GraphOptions(MACHINES, 50),
    "90 % used": GraphOptions(MACHINES, 90),
    "97 % used": GraphOptions(MACHINES, 97),
    "99 % used": GraphOptions(MACHINES, 99),
    "102 % used": GraphOptions(MACHINES, 102, 6),
    "contended, 90 % used": contended_options(MACHINES),
}


@pytest.mark.parametrize("case", CELLS)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_rounds(benchmark: Any, algorithm: str, case: str) -> None:
    benchmark.group = (
        f"{algorithm}, incremental: {MACHINES:,} machines, {case}, {BATCH} gone and {BATCH} come"
    )
    cell = Cell(quincy_graph(CELLS[case], 1), algorithm)
    took_ms = cell.exchanges(benchmark, rounds=40)
    network, _, _ = cell.solver.snapshot()
    scratch_ms, fresh = timed(lambda: solve(network, algorithm))
    assert (fresh.status, fresh.cost) == (Status.OPTIMAL, cell.solver.cost)
    round_ms = float(np.median(took_ms))
    note = (
        f"mean {np.mean(took_ms):.1f}, most {max(took_ms):.1f} ms; from scratch "
        f"{scratch_ms:.0f} ms: {scratch_ms / round_ms:.1f} times"
    )
    benchmark.extra_info.update(unit="ms", figure=round_ms, note=note)
    print(f"\n{algorithm}, {case}: {round_ms:.2f} ms a round; {note}")


# The cell, and what a batch may take on average, ms.
WHERE_ROOM_HAS_A_PRICE = {
    "contended, 90 % used": (contended_options(MACHINES), 10),
    "100 % used": (GraphOptions(MACHINES, 100, 6), 40),
    "101 % used": (GraphOptions(MACHINES, 101, 6), 40),
    "102 % used": (GraphOptions(MACHINES, 102, 6), 40),
    "105 % used": (GraphOptions(MACHINES, 105, 6), 40),
    "120 % used": (GraphOptions(MACHINES, 120, 6), 40),
    "contended, 105 % used": (contended_options(MACHINES, 105, 6), 40),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", WHERE_ROOM_HAS_A_PRICE)
def test_where_room_has_a_price(benchmark: Any, case: str, seed: int) -> None:
    benchmark.group = "resolve: 12,500 machines, 100 tasks gone and 100 come, room has a price"
    options, target_ms = WHERE_ROOM_HAS_A_PRICE[case]
    took_ms = Cell(quincy_graph(options, seed), seed=seed + 1).exchanges(benchmark, rounds=200)
    benchmark.extra_info.update(
        unit="ms",
        target_ms=target_ms,
        label=f"{case}, seed {seed}",
        cpu_ms_mean=float(np.mean(took_ms)),
        cpu_ms_p99=float(np.percentile(took_ms, 99)),
        cpu_ms_max=max(took_ms),
    )


PAPER_RATIO = 4  # by which refined prices make it quicker
HANDED_OVER = {
    "50 % used": GraphOptions(MACHINES, 50),
    "90 % used": GraphOptions(MACHINES),
    "99 % used": GraphOptions(MACHINES, 99),
    "102 % used": GraphOptions(MACHINES, 102, 6),
    "90 % used, contended": contended_options(MACHINES),
}


@pytest.mark.parametrize("case", HANDED_OVER)
def test_price_refine(benchmark: Any, case: str) -> None:
    """Relaxation has the optimum; 100 tasks go and 100 come, and cost scaling solves what has
    become of the network from relaxation's flow. It begins with relaxation's prices, refined (how
    a handover is done here) or as they are; with zero prices, as they are (what it would have if
    prices could not be handed over) or refined; or with nothing at all."""
    benchmark.group = (
        f"cost scaling from relaxation's answer: {MACHINES:,} machines, {case}, "
        f"{BATCH} gone and {BATCH} come"
    )
    cell = Cell(quincy_graph(HANDED_OVER[case], 1), "relaxation")
    took_ms: dict[str, list[float]] = {}

    def hand_over() -> None:
        flow, price = cell.solver.flow(), cell.solver.potential()
        places, *arcs = cell.batch()[0]
        cell.depart(places)
        cell.arrive(places, *arcs)
        network, nodes, ids = cell.solver.snapshot()
        flow = np.concatenate([flow, np.zeros(ids[-1] + 1, dtype=np.int64)])[ids]
        price = np.concatenate([price, np.zeros(nodes[-1] + 1, dtype=np.int64)])[nodes]
        zero = np.zeros_like(price)
        cell.resolve()
        ways: dict[str, Callable[[], Any]] = {
            name: partial(_flowsolver.cost_scaling_from, network.core, flow, prices, refine)
            for name, prices, refine in (
                ("relaxation's prices, refined", price, True),
                ("relaxation's prices", price, False),
                ("zero prices", zero, False),
                ("zero prices, refined", zero, True),
            )
        }
        ways["from scratch"] = lambda: solve(network, "cost_scaling")
        for name, way in ways.items():
            ms, solution = timed(way)
            took_ms.setdefault(name, []).append(ms)
            assert (solution.status, solution.cost) == (Status.OPTIMAL, cell.solver.cost)

    benchmark.pedantic(hand_over, rounds=7)
    (_, refined), *others = ((name, statistics.median(ms)) for name, ms in took_ms.items())
    note = "; ".join(f"{name} {ms:.0f} ms ({ms / refined:.1f} times)" for name, ms in others)
    benchmark.extra_info.update(unit="ms", figure=refined, note=note)
    print(f"\n{case}: refined {refined:.0f} ms; {note} (the paper: {PAPER_RATIO} times)")


class Race:
    """Times of the default algorithm alone and in a race with another, in turns.

    The figure is the time from the winner's end until the loser had stopped and freed its memory,
    the median over races; the most, and how much longer a race takes than the default alone, stand
    in the note. These are times of the clock, since two threads are at it: on a machine with other
    work they say more about that.
    """

    TARGET_MS = 1

    def __init__(self) -> None:
        self.alone_ms: list[float] = []
        self.raced_ms: list[float] = []
        self.stopped_ms: list[float] = []

    def turn(
        self, alone: Callable[[], Any], race: Callable[[], Any], seconds: Callable[[Any], float]
    ) -> None:
        self.alone_ms.append(timed(alone, clock=time.perf_counter)[0])
        ms, result = timed(race, clock=time.perf_counter)
        self.raced_ms.append(ms)
        self.stopped_ms.append(1e3 * seconds(result))

    def report(self, benchmark: Any) -> None:
        alone_ms = statistics.median(self.alone_ms)
        note = (
            f"at most {max(self.stopped_ms):.2f}; race "
            f"{statistics.median(self.raced_ms) - alone_ms:+.2f} ms to {alone_ms:.2f} alone"
        )
        figure = statistics.median(self.stopped_ms)
        benchmark.extra_info.update(unit="ms", figure=figure, target=self.TARGET_MS, note=note)


def stop_seconds(solution: Any) -> float:
    assert isinstance(solution, Solution)
    return solution.stop_seconds


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("percent_used", [90, 102])
def test_race_from_scratch(benchmark: Any, percent_used: int, other: str) -> None:
    benchmark.group = (
        f"losers stop: {MACHINES:,} machines, {percent_used} % used, from scratch, against {other}"
    )
    network = graph_of(MACHINES, percent_used).network
    race = Race()
    alone, raced = partial(solve, network), partial(solve, network, [DEFAULT, other])
    benchmark.pedantic(race.turn, args=(alone, raced, stop_seconds), rounds=9)
    race.report(benchmark)


@pytest.mark.parametrize("other", OTHERS)
def test_race_in_rounds(benchmark: Any, other: str) -> None:
    benchmark.group = (
        f"losers stop: {MACHINES:,} machines, 90 % used, 100 tasks gone and 100 come, against "
        f"{other}"
    )
    graph = graph_of(MACHINES, 90)
    one, both = Cell(graph), Cell(graph, [DEFAULT, other])  # the same changes in both
    race = Race()

    def run() -> None:
        alone, raced = (partial(cell.exchange, *cell.batch()[0]) for cell in (one, both))
        race.turn(alone, raced, lambda _: both.solver.stop_seconds)

    benchmark.pedantic(run, rounds=30)
    assert one.solver.cost == both.solver.cost
    race.report(benchmark)
