"""The incremental solver on full, oversubscribed and contended cells.

After every round the cost is that of a solve from scratch, and both certificates hold: that of the
whole state, and that of what was touched.
"""

import itertools

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, certify, solve
from flowsolver.generate import GraphOptions, contended_options, quincy_graph
from tests.fixtures.networks import check_resolved, ortools_cost

CELLS = {
    "full": GraphOptions(60, 100, 6),
    "1.01": GraphOptions(60, 101, 6),
    "1.05": GraphOptions(60, 105, 6),
    "1.2": GraphOptions(60, 120, 6),
    "contended 0.9": contended_options(60, 90),
    "contended 1.05": contended_options(60, 105, 6),
}


class Cell:
    """A solved cell and its live tasks."""

    def __init__(self, options, seed):
        self.graph = quincy_graph(options, seed)
        self.rng = np.random.default_rng(seed)
        self.solver = IncrementalSolver(self.graph.network)
        assert self.solver.resolve() is Status.OPTIMAL
        self.alive = np.arange(self.graph.first_task, self.graph.first_task + self.graph.tasks)
        # each access to a column copies it
        head, cost = self.graph.network.head, self.graph.network.cost
        begin = self.graph.task_arc_begin
        self.ways = [(head[a:b], cost[a:b]) for a, b in itertools.pairwise(begin)]

    def replace(self, count):
        """Some tasks leave and as many arrive, each with the arcs of an earlier one."""
        place = self.rng.choice(self.alive.size, count, replace=False)
        self.solver.remove_nodes(self.alive[place])
        self.alive[place] = self.solver.add_nodes(np.ones(count, dtype=np.int64))
        arcs = []
        for task in self.alive[place]:
            head, cost = self.ways[self.rng.integers(len(self.ways))]
            arcs.append(self.solver.add_arcs(np.full(head.size, task), head, 1, cost))
        return arcs

    def check(self):
        assert self.solver.resolve() is Status.OPTIMAL
        network, _, _ = self.solver.snapshot()
        fresh = solve(network)
        assert self.solver.cost == fresh.cost
        assert certify(network, fresh).ok
        assert self.solver.certify().ok
        assert self.solver.certify_touched().ok


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_tasks_come_and_go(cell, seed):
    cell = Cell(CELLS[cell], seed)
    for count in (1, 20, 100, 5, 20):
        cell.replace(count)
        cell.check()


@pytest.mark.parametrize("cell", CELLS)
def test_costs_of_tasks_move(cell):
    """Waiting gets more expensive and staying cheaper, and back again: the cost is what it was."""
    cell = Cell(CELLS[cell], seed=3)
    graph, solver = cell.graph, cell.solver
    network, first_cost = graph.network, solver.cost
    of_tasks = np.flatnonzero(network.tail >= graph.first_task)
    waits = of_tasks[
        (network.head[of_tasks] >= graph.first_unscheduled)
        & (network.head[of_tasks] < graph.first_task)
    ]
    used = np.flatnonzero(solver.flow()[of_tasks] > 0)
    for arcs, step in ((waits, 1), (of_tasks[used], -1), (waits, 40), (of_tasks[::3], 7)):
        solver.set_cost(arcs, np.maximum(0, network.cost[arcs] + step))
        cell.check()
    solver.set_cost(of_tasks, network.cost[of_tasks])
    cell.check()
    assert solver.cost == first_cost


def test_machines_fail_and_return():
    cell = Cell(CELLS["1.05"], seed=4)
    graph, solver = cell.graph, cell.solver
    network = graph.network
    to_sink = np.flatnonzero((network.head == 0) & (network.tail < graph.first_unscheduled))
    first_cost = solver.cost
    solver.set_capacity(to_sink[:5], 0)
    cell.check()
    assert solver.cost > first_cost
    cell.replace(20)
    solver.remove_nodes([graph.first_machine + 9])  # new tasks, not placed yet, have arcs to it
    cell.check()
    solver.set_capacity(to_sink[:5], graph.slots_per_machine)
    cell.check()


def test_a_task_that_becomes_an_ordinary_node():
    """A task gets arcs into it, another supply, an arc without capacity, or no arcs at all."""
    cell = Cell(CELLS["contended 1.05"], seed=5)
    solver, (a, b, c, d) = cell.solver, cell.alive[:4]
    solver.add_arcs([a], [b], 1, 3)
    cell.check()
    solver.set_supply([c, 0], [2, -cell.graph.tasks - 1])
    network = cell.graph.network
    arcs_of_c, arcs_of_d = np.flatnonzero(network.tail == c), np.flatnonzero(network.tail == d)
    cell.check()
    solver.set_supply([c, 0], [0, -cell.graph.tasks + 1])
    solver.set_capacity(arcs_of_d[:1], 0)
    cell.check()
    assert not solver.flow()[arcs_of_c].any()
    solver.set_capacity(arcs_of_d, 0)
    assert solver.resolve() is Status.INFEASIBLE
    solver.set_capacity(arcs_of_d[-1:], 1)
    cell.check()
    new = cell.replace(3)
    cell.check()
    solver.remove_arcs(np.concatenate(new))
    assert solver.resolve() is Status.INFEASIBLE


def test_an_aggregator_joins_and_leaves():
    """New nodes between tasks and machines get prices at which the assigned tasks stay optimal."""
    cell = Cell(CELLS["1.2"], seed=6)
    solver, graph = cell.solver, cell.graph
    before = solver.cost
    hub = solver.add_nodes([0])[0]
    machines = graph.first_machine + np.arange(graph.machines)
    solver.add_arcs(np.full(machines.size, hub), machines, 2, 0)
    solver.add_arcs(cell.alive[::2], np.full(cell.alive[::2].size, hub), 1, 0)
    cell.check()
    assert solver.cost < before
    solver.remove_nodes([hub])
    cell.check()
    assert solver.cost == before


def test_solve_from_scratch_of_a_cell_whose_jobs_have_grown():
    """An unscheduled aggregator with slightly less capacity than tasks still counts as a bypass:
    the start is near the optimum.
    """
    cell = Cell(GraphOptions(200, 120, 6), seed=7)
    for _ in range(10):
        cell.replace(20)
        assert cell.solver.resolve() is Status.OPTIMAL
    network, _, _ = cell.solver.snapshot()
    grown, first = solve(network), solve(cell.graph.network)
    assert grown.cost == cell.solver.cost
    assert grown.stats.scanned < 4 * first.stats.scanned


@pytest.mark.parametrize("percent_used", [100, 105])
def test_prices_of_a_whole_cell_move_up_and_down(percent_used):
    """The cell has more machines than a search settles before the search from the targets starts:
    slots get more expensive, and cheaper again.
    """
    cell = Cell(GraphOptions(600, percent_used, 6), seed=3)
    machines = np.arange(cell.graph.first_machine, cell.graph.first_machine + 600)
    prices = [cell.solver.potential()[machines]]
    more = cell.solver.add_nodes(np.ones(600, dtype=np.int64))
    for task in more:
        head, cost = cell.ways[cell.rng.integers(len(cell.ways))]
        cell.solver.add_arcs(np.full(head.size, task), head, 1, cost)
    cell.solver.set_supply([cell.graph.sink], -(cell.alive.size + more.size))
    cell.check()
    prices.append(cell.solver.potential()[machines])
    for some in np.array_split(more, 2):
        cell.solver.remove_nodes(some)
        more = np.setdiff1d(more, some)
        cell.solver.set_supply([cell.graph.sink], -(cell.alive.size + more.size))
        cell.check()
    prices.append(cell.solver.potential()[machines])
    assert (prices[1] > prices[0]).mean() > 0.9
    assert (prices[2] < prices[1]).mean() > 0.9


class TiedCell:
    """A task on each machine, all tied through one hub. Each may wait, at a cost."""

    def __init__(self, machines):
        self.machines = machines
        self.sink, self.hub = 0, 1
        machine, task = 2 + np.arange(machines), 2 + machines + np.arange(machines)
        network = FlowNetwork()
        network.add_nodes(
            np.concatenate([[-machines, 0], np.zeros(machines, int), np.ones(machines, int)])
        )
        network.add_arcs(machine, np.full(machines, self.sink), 1, 0)
        network.add_arcs(np.full(machines, self.hub), machine, 2, 0)
        network.add_arcs(task, np.full(machines, self.hub), 1, 0)
        network.add_arcs(task, np.full(machines, self.sink), 1, 5)
        self.solver = IncrementalSolver(network)
        assert self.solver.resolve() is Status.OPTIMAL
        assert self.solver.cost == 0

    def one_more(self):
        """A task that can but go to the hub."""
        task = self.solver.add_nodes([1])
        self.solver.add_arcs(task, [self.hub], 1, 0)
        self.solver.set_supply([self.sink], [-self.machines - 1])
        return task


@pytest.mark.parametrize("dearer", [1, 2, 4])
def test_a_task_whose_second_path_is_slightly_more_expensive(dearer):
    """Among more full and tied machines than a search settles before the search from the targets
    starts.
    """
    cell = TiedCell(400)
    cell.solver.add_arcs(cell.one_more(), [cell.sink], 1, dearer)
    assert cell.solver.resolve() is Status.OPTIMAL
    assert cell.solver.cost == dearer
    check_resolved(cell.solver)


@pytest.mark.parametrize("other_way", [2, 6, 7, 8, 9, 20])
def test_a_search_that_reaches_many_ties_at_a_distance(other_way):
    """A new task takes the slot of one that could go to the hub for 3 more: all machines are tied
    at that distance.
    """
    cell = TiedCell(1500)
    solver = cell.solver
    taken, owner = solver.add_nodes([0, 1])
    solver.add_arcs([taken, owner, owner], [cell.sink, taken, cell.hub], 1, [0, 0, 3])
    solver.set_supply([cell.sink], [-cell.machines - 1])
    assert solver.resolve() is Status.OPTIMAL
    task = solver.add_nodes([1])
    solver.add_arcs(np.repeat(task, 2), [taken, cell.sink], 1, [0, other_way])
    solver.set_supply([cell.sink], [-cell.machines - 2])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == min(other_way, 3 + 5)
    # given up and met, not all of the machines looked through
    assert solver.stats.settled < 300 or other_way < 8
    check_resolved(solver)


def test_a_search_that_was_stopped_before_it_gave_up():
    """The next search, for another task, is complete."""
    stopped = 0
    for budget in range(0, 3000, 500):
        cell = TiedCell(1500)
        first = cell.one_more()
        stopped += cell.solver.resolve(max_operations=budget) is Status.BUDGET
        cell.solver.remove_nodes(first)
        cell.solver.add_arcs(cell.one_more(), [cell.sink], 1, 6)
        assert cell.solver.resolve() is Status.OPTIMAL
        assert cell.solver.cost == 5
        check_resolved(cell.solver)
    assert stopped > 0


def test_all_arcs_of_one_task_change():
    """The task is rechecked once."""
    places = 2000
    sink, place, task = 0, 1 + np.arange(places), 1 + places + np.arange(places)
    network = FlowNetwork()
    network.add_nodes(np.concatenate([[-places], np.zeros(places, int), np.ones(places, int)]))
    network.add_arcs(place, np.full(places, sink), 2, 0)
    network.add_arcs(task, np.full(places, sink), 1, 100)
    network.add_arcs(task, place, 1, 5)
    first = np.full(places, task[0])
    many = np.arange(network.num_arcs, network.num_arcs + places)
    network.add_arcs(first, place, 1, np.arange(places))
    solver = IncrementalSolver(network)
    assert solver.resolve() is Status.OPTIMAL
    solver.set_cost(many, np.maximum(np.arange(places) - 1, 0))
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)
    assert solver.stats.repaired == 1


@pytest.mark.parametrize("seed", range(4))
def test_costs_of_both_signs_as_wide_as_32_bits(seed):
    """The difference of two costs is wider than a cost."""
    rng = np.random.default_rng(seed)
    tasks, machines, most = 12, 3, 2**31 - 1
    sink = tasks + machines
    task, machine = np.arange(tasks), tasks + np.arange(machines)

    def costs(size):
        return rng.integers(-most, most + 1, size)

    network = FlowNetwork()
    network.add_nodes(np.concatenate([np.ones(tasks, int), np.zeros(machines, int), [-tasks]]))
    network.add_arcs(np.repeat(task, machines), np.tile(machine, tasks), 1, costs(tasks * machines))
    network.add_arcs(task, np.full(tasks, sink), 1, np.abs(costs(tasks)))
    network.add_arcs(machine, np.full(machines, sink), 3, costs(machines))
    fresh = solve(network)
    assert fresh.status is Status.OPTIMAL
    assert certify(network, fresh).ok
    assert fresh.cost == ortools_cost(network)
    solver = IncrementalSolver(network)
    for _ in range(6):
        assert solver.resolve() is Status.OPTIMAL
        check_resolved(solver)
        assert solver.cost == ortools_cost(solver.snapshot()[0])
        arcs = rng.choice(network.num_arcs, 20, replace=False)
        solver.set_cost(arcs, costs(arcs.size))
