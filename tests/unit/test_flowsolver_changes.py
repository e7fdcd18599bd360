"""Every algorithm under every kind of change: the cost of a solve from scratch afterwards, and the
old cost once the change is undone.
"""

from enum import Enum
from functools import cache

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Solution, Status, algorithms, certify, solve
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
from tests.fixtures.networks import check_resolved, network, ortools_answer


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
    capacities, costs = net.capacity, net.cost
    capacities[arc], costs[arc] = capacity, cost
    return network(net.supply, np.stack([net.tail, net.head, capacities, costs], axis=1))


@cache
def table_3():
    """Every arc of the situations with every change, small and large: (network, solution, arc,
    change, network after).
    """
    rows = []
    for net in situations():
        solution = solve(net)
        assert solution.status is Status.OPTIMAL
        for arc in range(net.num_arcs):
            capacity, cost = int(net.capacity[arc]), int(net.cost[arc])
            for by in (1, 2, 7):
                rows.append(
                    (
                        net,
                        solution,
                        arc,
                        Change.MORE_CAPACITY,
                        changed(net, arc, capacity + by, cost),
                    )
                )
                if by <= capacity:
                    rows.append(
                        (
                            net,
                            solution,
                            arc,
                            Change.LESS_CAPACITY,
                            changed(net, arc, capacity - by, cost),
                        )
                    )
                rows.append(
                    (net, solution, arc, Change.DEARER, changed(net, arc, capacity, cost + by))
                )
                rows.append(
                    (net, solution, arc, Change.CHEAPER, changed(net, arc, capacity, cost - by))
                )
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
        solver = IncrementalSolver(net, algorithm)
        assert solver.resolve() is Status.OPTIMAL
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
    solver = IncrementalSolver(FlowNetwork(), algorithm)
    assert solver.resolve() is Status.OPTIMAL
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
def test_cancelled_before_it_began(algorithm):
    cell = Cell("contended and oversubscribed", algorithm)
    before = cell.solver.cost
    undo = all_costs_anew(cell)
    cell.solver.cancel()
    assert cell.solver.resolve() is Status.CANCELLED
    assert cell.solver.cost == before
    cell.resolve()
    undo()
    cell.resolve()
    assert cell.solver.cost == before


@pytest.mark.parametrize("algorithm", algorithms())
def test_a_node_of_a_supply_beyond_the_engines_width(algorithm):
    """The engine is replaced by a wider one before it gets the node."""
    net = FlowNetwork()
    net.add_nodes([1, -1])
    net.add_arcs([0], [1], 1, 3)
    solver = IncrementalSolver(net, algorithm)
    assert solver.resolve() is Status.OPTIMAL
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
    solver = IncrementalSolver(net)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == heads - 1 + 5 + 1
