"""Rounds of changes at hubs, nodes with thousands of half-edges, of which searches read only the
cheapest: answers stay optimal whatever changes there, and searches read few arcs."""

from __future__ import annotations

import numpy as np
import pytest

from flowsolver import IncrementalSolver, Status, solve
from flowsolver.generate import NetworkAwareGraph, network_aware_graph

MACHINES = 900
ROUNDS = 12


class HubCell:
    """A solved network-aware cell, and random changes to it."""

    def __init__(self, graph: NetworkAwareGraph, seed: int) -> None:
        self.graph = graph
        self.rng = np.random.default_rng(seed)
        network = graph.network
        self.tail, self.cost = network.tail, network.cost.copy()
        self.tasks = np.arange(graph.first_task, graph.first_task + graph.tasks)
        self.of_hubs = np.flatnonzero(
            (self.tail >= graph.first_aggregator) & (self.tail < graph.first_machine)
        )
        self.solver = IncrementalSolver(network)
        self.resolve()

    def resolve(self) -> None:
        assert self.solver.resolve() is Status.OPTIMAL

    def exchange_tasks(self) -> None:
        """Tasks go, and others come that have an arc to an aggregator and one to wait."""
        graph, rng = self.graph, self.rng
        places = rng.choice(self.tasks.size, 40, replace=False)
        self.solver.remove_nodes(self.tasks[places])
        self.tasks[places] = new = self.solver.add_nodes(np.ones(40, dtype=np.int64))
        hub = graph.first_aggregator + rng.integers(0, 4, 40)
        wait = graph.first_unscheduled + rng.integers(0, graph.jobs, 40)
        self.solver.add_arcs(new, hub, 1, 0)
        self.solver.add_arcs(new, wait, 1, 1_450 + rng.integers(0, 300, 40))

    def change_costs(self) -> None:
        arcs = self.rng.choice(self.of_hubs, 200, replace=False)
        self.cost[arcs] += self.rng.integers(-150, 151, 200)
        self.solver.set_cost(arcs, self.cost[arcs])

    def change_capacities(self) -> None:
        arcs = self.rng.choice(self.of_hubs, 200, replace=False)
        self.solver.set_capacity(arcs, self.rng.integers(0, 3, 200))

    def replace_arcs(self) -> None:
        which = self.rng.choice(self.of_hubs.size, 100, replace=False)
        arcs = self.of_hubs[which]
        machine = self.graph.first_machine + self.rng.integers(0, self.graph.machines, 100)
        cost = self.cost[arcs] + self.rng.integers(-100, 101, 100)
        tail = self.tail[arcs]
        self.solver.remove_arcs(arcs)
        added = self.solver.add_arcs(tail, machine, 1, cost)
        size = int(added.max()) + 1
        if size > self.cost.size:
            grow = size - self.cost.size
            self.cost = np.concatenate([self.cost, np.zeros(grow, dtype=np.int64)])
            self.tail = np.concatenate([self.tail, np.zeros(grow, dtype=np.int64)])
        self.cost[added], self.tail[added] = cost, tail
        self.of_hubs[which] = added

    def join_hubs(self) -> None:
        """An arc between two aggregators."""
        first = self.graph.first_aggregator
        self.solver.add_arcs([first], [first + 1 + int(self.rng.integers(0, 3))], 2, 5)


CHANGES = ["exchange_tasks", "change_costs", "change_capacities", "replace_arcs", "join_hubs"]


@pytest.mark.parametrize("percent_used", [80, 104])
@pytest.mark.parametrize("seed", [1, 2])
def test_rounds_at_hubs_stay_optimal(percent_used: int, seed: int) -> None:
    cell = HubCell(network_aware_graph(MACHINES, seed, percent_used), seed)
    for number in range(ROUNDS):
        for name in CHANGES:
            if name == "exchange_tasks" or cell.rng.integers(0, 2):
                getattr(cell, name)()
        cell.resolve()
        assert cell.solver.certify().ok, number
    network, _, _ = cell.solver.snapshot()
    assert solve(network, "network_simplex").cost == cell.solver.cost


def test_searches_read_few_arcs_of_a_hub() -> None:
    """Rounds in which tasks go and come read fewer arcs than a scan of each hub per task would."""
    cell = HubCell(network_aware_graph(MACHINES, 3), 3)
    scanned, searches = 0, 0
    for _ in range(ROUNDS):
        cell.exchange_tasks()
        cell.resolve()
        scanned += cell.solver.stats.scanned
        searches += cell.solver.stats.searches
    hub = np.bincount(cell.tail[cell.of_hubs] - cell.graph.first_aggregator).max()
    assert hub > 4_000
    assert scanned < searches * hub / 3
