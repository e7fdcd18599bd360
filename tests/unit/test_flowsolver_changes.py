"""IncrementalSolver under every kind of change, for every algorithm: the cost of a solve from
scratch afterwards, certified, and the old cost once the change is undone; rounds that change most
of a network; the default algorithm on full, contended and ageing cells.
"""

import copy
import threading
from enum import Enum
from functools import cache

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Solution, Status, algorithms, certify, solve
from flowsolver.generate import GraphOptions, contended_options, quincy_graph
from tests.fixtures.changing_cell import (
    KINDS_OF_CHANGE,
    Cell,
    ageing,
    all_costs_anew,
    arrivals,
    departures,
    machines_fail,
    machines_shrink,
    nobody_may_wait,
    some_dearer,
)
from tests.fixtures.mass_changes import MASS_CHANGES, Hub
from tests.fixtures.networks import CELLS, check_resolved, network, ortools_answer

DEFAULT = "incremental_ssp"


def check(solver):
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)


def resolved(net, algorithm=DEFAULT):
    solver = IncrementalSolver(net, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    return solver


class Change(Enum):
    MORE_CAPACITY = "increasing arc capacity"
    LESS_CAPACITY = "decreasing arc capacity"
    DEARER = "increasing arc cost"
    CHEAPER = "decreasing arc cost"


def sign(reduced_cost):
    return int(np.sign(reduced_cost))


def breaks(change, reduced_cost, flow, capacity, reduced_cost_after):
    """Table 3 of Firmament (OSDI 2016): whether a change of an arc breaks feasibility or
    optimality, that is, whether the old flow and potentials stop proving each other optimal.

    By kind of change and sign of the reduced cost before it. False is a green cell, True a red one,
    a condition an orange one. `capacity` is the new one. Two exceptions to the table: an arc of
    reduced cost 0 that gets cheaper breaks nothing if it is full, and an arc without capacity may
    have any cost.
    """
    return {
        Change.MORE_CAPACITY: {-1: True, 0: False, 1: False},
        Change.LESS_CAPACITY: {-1: True, 0: flow > capacity, 1: False},
        Change.DEARER: {-1: reduced_cost_after > 0 and capacity > 0, 0: flow > 0, 1: False},
        Change.CHEAPER: {-1: False, 0: flow < capacity, 1: reduced_cost_after < 0 and capacity > 0},
    }[change][sign(reduced_cost)]


def situations():
    """Networks with arcs of every sign of reduced cost, empty, full, in between, and without
    capacity.
    """
    supply = [6, 0, 0, 2, -5, -3]
    arcs = [
        (0, 1, 4, 2),
        (0, 2, 4, 5),
        (0, 2, 1, 1),
        (0, 4, 9, 30),
        (1, 4, 3, 3),
        (1, 4, 3, 3),
        (2, 4, 5, 2),
        (2, 5, 5, 2),
        (3, 5, 2, 4),
        (3, 2, 2, 2),
        (1, 2, 0, -9),
        (4, 1, 2, 9),
        (5, 0, 0, 4),
        (5, 5, 2, -3),
        (2, 3, 1, -2),
    ]
    yield network(supply, arcs)
    rng = np.random.default_rng(8)
    tail, head = rng.integers(0, 7, (2, 22))
    capacity, sent = rng.integers(0, 4, 22), rng.integers(0, 4, 22)
    supply = np.zeros(7, dtype=np.int64)
    np.add.at(supply, tail, np.minimum(sent, capacity))
    np.add.at(supply, head, -np.minimum(sent, capacity))
    yield network(supply, np.stack([tail, head, capacity, rng.integers(-2, 5, 22)], axis=1))


def changed(net, arc, capacity, cost):
    """A copy of the network with another capacity and cost of one arc."""
    other = copy.copy(net)
    other.set_capacity([arc], capacity)
    other.set_cost([arc], cost)
    return other


@cache
def table_3():
    """Every arc of the situations with every change, small and large: (network, solution, arc,
    change, network after).
    """
    rows = []
    for net in situations():
        solution = solve(net)
        assert solution.status is Status.OPTIMAL
        for arc, (capacity, cost) in enumerate(zip(net.capacity, net.cost, strict=True)):
            for by in (1, 2, 7):
                after = {
                    Change.MORE_CAPACITY: (capacity + by, cost),
                    Change.LESS_CAPACITY: (capacity - by, cost),
                    Change.DEARER: (capacity, cost + by),
                    Change.CHEAPER: (capacity, cost - by),
                }
                rows += [
                    (net, solution, arc, change, changed(net, arc, *values))
                    for change, values in after.items()
                    if values[0] >= 0
                ]
    return rows


@cache
def answers_to_table_3():
    return [ortools_answer(after) for *_, after in table_3()]


def reduced_cost(net, potential, arc):
    return int(net.cost[arc] - potential[net.tail[arc]] + potential[net.head[arc]])


def test_table_3_says_what_breaks_the_old_solution():
    """The old flow and potentials pass their certificate after the change if and only if the table
    says so. A flow that violates nothing is still optimal, and only less capacity makes one
    infeasible. Every cell occurs, and orange ones with both answers.
    """
    seen = set()
    for net, old, arc, change, after in table_3():
        before, now = reduced_cost(net, old.potential, arc), reduced_cost(after, old.potential, arc)
        said = breaks(change, before, old.flow[arc], after.capacity[arc], now)
        kept = Solution(old.status, int(old.flow @ after.cost), old.flow, old.potential, old.stats)
        certificate = certify(after, kept)
        assert certificate.ok == (not said), (change, arc, before, now)
        assert certificate.capacity_violations == 0 or change is Change.LESS_CAPACITY
        assert certificate.balance_violations == 0
        if not said:
            assert solve(after).cost == kept.cost
        seen.add((change, sign(before), bool(said)))
    green = {
        (Change.MORE_CAPACITY, 0),
        (Change.MORE_CAPACITY, 1),
        (Change.LESS_CAPACITY, 1),
        (Change.DEARER, 1),
    }
    green.add((Change.CHEAPER, -1))
    red = {(Change.MORE_CAPACITY, -1), (Change.LESS_CAPACITY, -1)}
    cells = {(change, where) for change in Change for where in (-1, 0, 1)}
    assert seen == {
        (*cell, said)
        for cell in cells
        for said in (True, False)
        if cell not in (green if said else red)
    }


def test_what_breaks_the_proof_may_leave_the_flow_optimal():
    """The table is about flow and potentials together: an arc that all flow must use and that gets
    more expensive is in an orange cell whose condition holds, yet the same flow is the only one.
    """
    net = network([2, -2], [(0, 1, 3, 4)])
    old = solve(net)
    dearer = changed(net, 0, 3, 5)
    kept = Solution(old.status, 10, old.flow, old.potential, old.stats)
    assert certify(dearer, kept).slackness_violations == 1
    assert solve(dearer).cost == kept.cost


@pytest.mark.parametrize("algorithm", algorithms())
def test_every_cell_of_table_3_is_repaired(algorithm):
    for (net, _, arc, _, after), (status, cost) in zip(
        table_3(), answers_to_table_3(), strict=True
    ):
        solver = resolved(net, algorithm)
        before = solver.cost
        solver.set_capacity([arc], [after.capacity[arc]])
        solver.set_cost([arc], [after.cost[arc]])
        assert solver.resolve() is status
        if status is Status.OPTIMAL:
            assert solver.cost == cost
            assert solver.certify().ok
        solver.set_arcs([arc], [net.capacity[arc]], [net.cost[arc]])
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cost == before
        assert solver.certify().ok
        solver.set_arcs([arc], after.capacity[arc], after.cost[arc])
        assert solver.resolve() is status


@pytest.mark.parametrize("kind", ["nearly full", "oversubscribed", "contended", "load spreading"])
@pytest.mark.parametrize("change", KINDS_OF_CHANGE)
@pytest.mark.parametrize("algorithm", algorithms())
def test_a_change_and_its_reversal(algorithm, change, kind):
    cell = Cell(kind, algorithm)
    before = cell.solver.cost
    undo = change(cell)
    cell.resolve()
    undo()
    cell.resolve()
    assert cell.solver.cost == before


@pytest.mark.parametrize("algorithm", algorithms())
def test_waiting_is_forbidden_and_allowed_again(algorithm):
    """Infeasible, with other changes meanwhile; then unbalanced; then feasible again."""
    cell = Cell("oversubscribed", algorithm)
    before = cell.solver.cost
    undo_waiting = nobody_may_wait(cell)
    assert cell.solver.resolve() is Status.INFEASIBLE
    undo_costs = some_dearer(cell)
    assert cell.solver.resolve() is Status.INFEASIBLE
    assert cell.solver.cost == before
    cell.solver.set_supply([cell.graph.sink], [-1])
    assert cell.solver.resolve() is Status.UNBALANCED
    undo_costs()
    cell.meet_sink()
    undo_waiting()
    cell.resolve()
    assert cell.solver.cost == before


@pytest.mark.parametrize(
    "kind",
    [
        "half full",
        "full",
        "slightly oversubscribed",
        "contended and oversubscribed",
        "load spreading",
    ],
)
@pytest.mark.parametrize("algorithm", algorithms())
def test_rounds_of_a_cell(algorithm, kind):
    """Arrivals, departures, ageing, machines lost and recovered: each round certified, with the
    cost of a solve from scratch.
    """
    cell = Cell(kind, algorithm)
    for round_number in range(12):
        cell.remove(cell.rng.choice(cell.tasks, 10, replace=False))
        cell.arrive(cell.rng.integers(0, cell.graph.tasks, cell.rng.integers(1, 20)))
        cell.age()
        if round_number % 4 == 1:
            machines_return = machines_fail(cell)
        elif round_number % 4 == 3:
            machines_return()
        cell.resolve()


@pytest.mark.parametrize("algorithm", algorithms())
def test_changed_flow_adds_up(algorithm):
    """The changes that `changed_flow` reports, round by round, add up to the flow."""
    cell = Cell("contended and oversubscribed", algorithm)
    known = np.zeros(0, dtype=np.int64)
    for change in (arrivals, machines_shrink, departures, ageing, all_costs_anew):
        arcs, flow = cell.solver.changed_flow()
        now = cell.solver.flow()
        known = np.concatenate([known, np.zeros(now.size - known.size, dtype=np.int64)])
        assert (known[arcs] != flow).all()
        known[arcs] = flow
        live = cell.rows()[0]
        np.testing.assert_array_equal(known[live], now[live])
        gone = np.ones(known.size, dtype=bool)
        change(cell)
        gone[np.intersect1d(cell.rows()[0], live)] = False
        known[gone] = 0
        cell.resolve()


@pytest.mark.parametrize("algorithm", algorithms())
def test_grown_from_an_empty_network_and_back(algorithm):
    solver = resolved(FlowNetwork(), algorithm)
    tasks, sink = solver.add_nodes([1, 1]), solver.add_nodes([-2])
    solver.add_arcs(tasks, np.repeat(sink, 2), 1, [3, -4])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == -1
    check_resolved(solver)
    solver.remove_nodes(np.concatenate([tasks, sink]))
    assert solver.resolve() is Status.OPTIMAL
    assert (solver.cost, solver.num_nodes, solver.num_arcs) == (0, 0, 0)


@pytest.mark.parametrize("algorithm", algorithms())
def test_sink_can_be_replaced(algorithm):
    """The largest sink is the root. It can be removed, and another one can be added."""
    solver = IncrementalSolver(
        network([2, 0, 0, -2], [(0, 1, 1, 1), (0, 2, 2, 4), (1, 3, 5, 0), (2, 3, 5, 0)]), algorithm
    )
    assert solver.resolve() is Status.OPTIMAL
    solver.remove_nodes([3])
    assert solver.resolve() is Status.UNBALANCED
    sink = solver.add_nodes([-2])
    solver.add_arcs([1, 2, 2], np.repeat(sink, 3), [9, 1, 9], [7, 1, 0])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 8
    check_resolved(solver)
    solver.set_supply([0, int(sink[0])], [-2, 2])
    assert solver.resolve() is Status.INFEASIBLE
    solver.add_arcs(sink, [0], 5, 1)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 2
    check_resolved(solver)


@pytest.mark.parametrize("algorithm", algorithms())
def test_values_out_of_range_and_back(algorithm):
    """Large values need wider arithmetic, and beyond that give a status. The solver recovers from
    both.
    """
    solver = IncrementalSolver(
        network([4, 0, 0, -4], [(0, 1, 1, 1), (0, 2, 9, 4), (1, 3, 5, 0), (2, 3, 5, 0)]), algorithm
    )
    for cost, status in (
        (2**62, Status.BAD_COST_RANGE),
        (2**40, Status.OPTIMAL),
        (4, Status.OPTIMAL),
    ):
        solver.set_cost([1], [cost])
        assert solver.resolve() is status
        if status is Status.OPTIMAL:
            assert solver.cost == 1 + 3 * cost
            check_resolved(solver)
    for capacity in (2**62, 2**40, 5):
        solver.set_capacity([2], [capacity])
        assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 13
    for supply, status in (
        (2**61, Status.BAD_CAPACITY_RANGE),
        (2**40, Status.INFEASIBLE),
        (4, Status.OPTIMAL),
    ):
        solver.set_supply([0, 3], [supply, -supply])
        assert solver.resolve() is status
    assert solver.cost == 13
    check_resolved(solver)


@pytest.mark.parametrize("algorithm", algorithms())
def test_a_node_of_a_supply_beyond_the_engines_width(algorithm):
    """The engine is replaced by a wider one before it gets the node."""
    net = FlowNetwork()
    net.add_nodes([1, -1])
    net.add_arcs([0], [1], 1, 3)
    solver = resolved(net, algorithm)
    units = 2**33
    (source,) = solver.add_nodes([units])
    solver.add_arcs([source], [1], units, 2)
    solver.set_supply([1], [-1 - units])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 3 + 2 * units
    assert solver.certify().ok


def test_a_source_of_hundreds_of_thousands_of_arcs():
    heads = 270_000
    net = FlowNetwork()
    net.add_nodes([1] + [0] * heads + [-1])
    net.add_arcs(np.zeros(heads, np.int64), np.arange(1, heads + 1), 1, np.arange(heads) + 5)
    net.add_arcs([heads], [heads + 1], 1, 1)
    solver = resolved(net)
    assert solver.cost == heads - 1 + 5 + 1


def small():
    """0 -> {1, 2} -> 3: two units, the way over 1 is cheaper and takes one."""
    net = FlowNetwork()
    net.add_nodes([2, 0, 0, -2])
    net.add_arcs([0, 0, 1, 2], [1, 2, 3, 3], [1, 2, 5, 5], [1, 4, 0, 0])
    solver = resolved(net)
    assert solver.cost == 5
    return solver


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.remove_nodes([1, 9]), r"nodes\[1\] = 9: no such node"),
        (lambda s: s.remove_nodes([1, 1]), "nodes names 1 twice"),
        (lambda s: s.remove_arcs([-1]), r"arcs\[0\] = -1: no such arc"),
        (lambda s: s.remove_arcs([2, 2]), "arcs names 2 twice"),
        (lambda s: s.set_capacity([0, 1], [1, -1]), r"capacity\[1\] = -1: negative"),
        (lambda s: s.set_cost([0, 1], [1, 2, 3]), "cost has 3 entries, expected 2"),
        (lambda s: s.set_supply([0, 4], 0), r"nodes\[1\] = 4: no such node"),
        (lambda s: s.add_arcs([0, 0], [1, 7], 1, 1), r"head\[1\] = 7: no such node"),
    ],
)
def test_bad_changes_change_nothing(call, message):
    solver = small()
    with pytest.raises(ValueError, match=message):
        call(solver)
    assert (solver.num_nodes, solver.num_arcs) == (4, 4)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 5
    check_resolved(solver)


def test_second_thread_is_refused_or_waits_for_its_turn():
    """Concurrent calls never corrupt: each either works or raises RuntimeError."""
    solver = IncrementalSolver(quincy_graph(GraphOptions(200), seed=1).network)
    statuses: list[Status] = []
    refused: list[RuntimeError] = []

    def run():
        for _ in range(20):
            try:
                statuses.append(solver.resolve())
            except RuntimeError as error:
                refused.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {Status.OPTIMAL}
    assert len(statuses) + len(refused) == 40
    check_resolved(solver)


def test_congested_cell_is_solved_in_phases():
    """If searches scan most of the graph, all unbalanced nodes are searched from at once."""
    graph = quincy_graph(contended_options(60, 120, 25), seed=1)
    network = graph.network
    solver = resolved(network)
    to_unscheduled = np.flatnonzero(
        (network.head >= graph.first_unscheduled) & (network.head < graph.first_task)
    )
    solver.set_cost(
        to_unscheduled, network.cost[to_unscheduled] + 20 * (np.arange(to_unscheduled.size) % 7)
    )
    assert solver.resolve() is Status.OPTIMAL
    assert solver.stats.phases > 0
    check_resolved(solver)


KINDS = [*CELLS, "load spreading"]


def arcs_of_tasks(cell):
    """(ids, rows, whether used, whether to an unscheduled aggregator) of live arcs out of tasks."""
    arcs, rows = cell.rows()
    own = np.isin(rows[:, 0], cell.tasks)
    arcs, rows = arcs[own], rows[own]
    return arcs, rows, cell.solver.flow(arcs) > 0, np.isin(rows[:, 1], cell.unscheduled)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_waiting_gets_more_expensive(kind, step):
    """Waiting gets more expensive for all waiting tasks until none prefers it to another task's
    slot.
    """
    cell = Cell(kind, DEFAULT)
    for _ in range(5):
        arcs, rows, used, to_wait = arcs_of_tasks(cell)
        cell.solver.set_cost(arcs[used & to_wait], rows[used & to_wait, 3] + step)
        cell.resolve()


@pytest.mark.parametrize("kind", ["slightly oversubscribed", "oversubscribed"])
@pytest.mark.parametrize("dearer", [1, 3])
def test_places_go_to_those_who_wait_after_waiting_became_dearer(kind, dearer):
    """Some of the waiting tasks, or all of them, would leave for less and less; other arcs of some
    get cheaper. Then places come free, which the right ones get.
    """
    cell = Cell(kind, DEFAULT)
    for share in (0.5, 1, 1, 0.2, 1, 0.5, 1, 1):
        arcs, rows, used, to_wait = arcs_of_tasks(cell)
        risen = used & to_wait & (cell.rng.random(arcs.size) < share)
        cell.solver.set_cost(arcs[risen], rows[risen, 3] + dearer)
        fallen = ~used & ~to_wait & (cell.rng.random(arcs.size) < 0.02)
        cell.solver.set_cost(arcs[fallen], rows[fallen, 3] - dearer)
        cell.resolve()
        cell.remove(cell.rng.choice(cell.tasks, 5, replace=False))
        cell.meet_sink()
        cell.resolve()


@pytest.mark.parametrize("kind", KINDS)
def test_changes_that_agree_with_the_flow_need_no_search(kind):
    """A full arc that gets cheaper, or an empty one that gets more expensive, causes no search."""
    cell = Cell(kind, DEFAULT)
    for _ in range(3):
        arcs, rows, used, _ = arcs_of_tasks(cell)
        before = cell.solver.cost
        cell.solver.set_cost(arcs, rows[:, 3] + np.where(used, -3, 2))
        cell.resolve()
        assert cell.solver.cost == before - 3 * np.count_nonzero(used)
        assert cell.solver.changed_flow()[0].size == 0
        assert cell.solver.stats.searches == 0


@pytest.mark.parametrize(
    "kind", ["slightly oversubscribed", "oversubscribed", "contended and oversubscribed"]
)
def test_all_slots_get_more_expensive_alike(kind):
    """In a cell without a free slot, if waiting gets more expensive for all tasks, no task moves:
    the prices of all slots rise by the same amount.
    """
    cell = Cell(kind, DEFAULT)
    _, _, used, to_wait = arcs_of_tasks(cell)
    waiting = np.count_nonzero(used & to_wait)
    assert waiting == cell.tasks.size - cell.machines.size * cell.graph.slots_per_machine
    for step in (1, 1, 50):
        arcs, rows, _, to_wait = arcs_of_tasks(cell)
        before = cell.solver.cost
        cell.solver.set_cost(arcs[to_wait], rows[to_wait, 3] + step)
        cell.resolve()
        assert cell.solver.cost == before + step * waiting


@pytest.mark.parametrize(("waiting", "tied"), [(40, 20), (20, 40), (30, 30)])
def test_tied_tasks_change_places_without_search(waiting, tied):
    """Some tasks wait at the cost of a slot, and as many would leave theirs for that cost. Waiting
    gets more expensive, and as many as possible change places.
    """
    machines = 400
    sink, hub, room, machine = 0, 1, 2, 3 + np.arange(machines)
    task = 3 + machines + np.arange(machines + waiting)
    wait = np.full(task.size, 9)
    wait[: waiting + tied] = 5
    network = FlowNetwork()
    network.add_nodes(
        np.concatenate([[-task.size, 0, 0], np.zeros(machines, int), np.ones(task.size, int)])
    )
    network.add_arcs(machine, np.full(machines, sink), 1, 0)
    network.add_arcs(np.full(machines, hub), machine, 1, 0)
    network.add_arcs([room], [sink], task.size, 0)
    network.add_arcs(task, np.full(task.size, hub), 1, 0)
    to_wait = network.add_arcs(task, np.full(task.size, room), 1, wait)
    solver = resolved(network)
    assert solver.cost == 5 * waiting
    who_waits = to_wait[solver.flow(to_wait) > 0]
    solver.set_cost(who_waits, np.full(waiting, 6))
    check(solver)
    change = min(waiting, tied)
    assert solver.cost == 5 * change + 6 * (waiting - change)
    assert solver.stats.settled <= 2


def test_a_task_that_becomes_an_ordinary_node():
    """A task gets arcs into it, another supply, an arc without capacity, or no arcs at all."""
    cell = Cell("contended and oversubscribed", DEFAULT)
    solver, (a, b, c, d) = cell.solver, cell.tasks[:4]
    arcs, rows = cell.rows()
    of_c, of_d = arcs[rows[:, 0] == c], arcs[rows[:, 0] == d]
    solver.add_arcs([a], [b], 1, 3)
    cell.resolve()
    solver.set_supply([c, 0], [2, -cell.tasks.size - 1])
    cell.resolve()
    solver.set_supply([c, 0], [0, -cell.tasks.size + 1])
    solver.set_capacity(of_d[:1], 0)
    cell.resolve()
    assert not solver.flow(of_c).any()
    solver.set_capacity(of_d, 0)
    assert solver.resolve() is Status.INFEASIBLE
    solver.set_capacity(of_d[-1:], 1)
    cell.resolve()


def test_an_aggregator_joins_and_leaves():
    """New nodes between tasks and machines get prices at which the assigned tasks stay optimal."""
    cell = Cell("oversubscribed", DEFAULT)
    solver, before = cell.solver, cell.solver.cost
    (hub,) = solver.add_nodes([0])
    solver.add_arcs(np.full(cell.machines.size, hub), cell.machines, 2, 0)
    solver.add_arcs(cell.tasks[::2], np.full(cell.tasks[::2].size, hub), 1, 0)
    cell.resolve()
    assert solver.cost < before
    solver.remove_nodes([hub])
    cell.resolve()
    assert solver.cost == before


@pytest.mark.parametrize("percent_used", [100, 105])
def test_prices_of_a_whole_cell_move_up_and_down(percent_used):
    """The cell has more machines than a search settles before the search from the targets starts:
    slots get more expensive, and cheaper again.
    """
    graph = quincy_graph(GraphOptions(600, percent_used, 6), 3)
    net, begin, solver = graph.network, graph.task_arc_begin, resolved(graph.network)
    machines = slice(graph.first_machine, graph.first_unscheduled)
    prices = [solver.potential()[machines]]
    like = np.random.default_rng(3).integers(0, graph.tasks, 600)
    more = solver.add_nodes(np.ones(600, dtype=np.int64))
    rows = np.concatenate([np.arange(begin[i], begin[i + 1]) for i in like])
    owner = np.repeat(more, begin[like + 1] - begin[like])
    solver.add_arcs(owner, net.head[rows], 1, net.cost[rows])
    for gone in ([], *np.array_split(more, 2)):
        if len(gone):
            solver.remove_nodes(gone)
        solver.set_supply([graph.sink], -(solver.num_nodes - graph.first_task))
        check(solver)
        prices.append(solver.potential()[machines])
    assert (prices[1] > prices[0]).mean() > 0.9
    assert (prices[3] < prices[1]).mean() > 0.9


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
    for budget in range(1, 3000, 500):
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
    solver = resolved(network)
    solver.set_cost(many, np.maximum(np.arange(places) - 1, 0))
    check(solver)
    assert solver.stats.repaired == 1


WITH_ENGINES = ["incremental_ssp", "cost_scaling", "relaxation", "network_simplex"]


LEAVES = 4_000  # each change is one of more than the 2,048 that are still told one by one


LEAST_WORK = 16_384  # what a round may always try before it is solved from scratch


@pytest.mark.parametrize("algorithm", WITH_ENGINES)
@pytest.mark.parametrize("kind", MASS_CHANGES)
def test_no_more_work_than_from_scratch(kind, algorithm):
    hub = Hub.of(LEAVES, 1)
    solver = resolved(hub.network, algorithm)
    MASS_CHANGES[kind](hub, solver)
    assert solver.resolve() is Status.OPTIMAL
    work = solver.stats.operations
    check_resolved(solver)
    network, _, _ = solver.snapshot()
    scratch = solve(network, algorithm)
    assert solver.cost == scratch.cost
    assert work <= 1.2 * scratch.stats.operations + LEAST_WORK


@pytest.mark.parametrize("algorithm", WITH_ENGINES)
def test_one_round_after_another(algorithm):
    """All kinds of mass changes in turn, each followed by a small round. The reported flow changes
    add up to the flow.
    """
    hub = Hub.of(LEAVES, 2)
    solver = IncrementalSolver(hub.network, algorithm)
    known = np.zeros(hub.network.num_arcs, dtype=np.int64)

    def resolve():
        nonlocal known
        check(solver)
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


@pytest.mark.parametrize("algorithm", WITH_ENGINES)
def test_what_comes_and_goes_in_one_round(algorithm):
    """More changes than there are nodes and arcs, all of them undone: the optimum stays."""
    hub = Hub.of(LEAVES, 3)
    solver = resolved(hub.network, algorithm)
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


@pytest.mark.parametrize("algorithm", WITH_ENGINES)
@pytest.mark.parametrize("times", [1, 20])
def test_a_mass_change_within_budgets(algorithm, times):
    """Stopped at its budget several times, then not."""
    hub = Hub.of(LEAVES, 4)
    solver = resolved(hub.network, algorithm)
    MASS_CHANGES["arcs removed"](hub, solver)
    for _ in range(times):
        assert solver.resolve(max_operations=10_000) in (Status.BUDGET, Status.OPTIMAL)
    while solver.resolve() is not Status.OPTIMAL:
        pass
    check_resolved(solver)


@pytest.mark.parametrize("algorithm", WITH_ENGINES)
def test_a_mass_change_without_an_answer(algorithm):
    """All arcs of the hubs are removed, which disconnects every leaf; then they are added again."""
    hub = Hub.of(LEAVES, 5)
    solver = resolved(hub.network, algorithm)
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
