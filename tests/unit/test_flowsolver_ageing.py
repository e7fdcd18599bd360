"""Rounds of ageing costs: waiting gets more expensive, staying gets cheaper, and machines fail."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flowsolver import FlowNetwork, IncrementalSolver, Status
from tests.fixtures.changing_cell import Cell, as_many_come_as_go
from tests.fixtures.examples import examples
from tests.fixtures.network_strategies import networks, unit_source_networks
from tests.fixtures.networks import CELLS, check_resolved, ortools_answer

ALGORITHM = "incremental_ssp"
KINDS = [*CELLS, "load spreading"]


def arcs_of_tasks(cell):
    """(ids, rows, whether used, whether to an unscheduled aggregator) of live arcs out of tasks."""
    arcs, rows = cell.rows()
    own = np.isin(rows[:, 0], cell.tasks)
    arcs, rows = arcs[own], rows[own]
    return arcs, rows, cell.solver.flow(arcs) > 0, np.isin(rows[:, 1], cell.unscheduled)


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_with_failures(kind):
    """Every round is certified and has the cost from scratch, whatever changed at once."""
    cell = Cell(kind, ALGORITHM)
    lost = None
    for round_number in range(12):
        cell.age()
        if round_number % 3 == 1:
            as_many_come_as_go(cell)
        if round_number % 4 == 2:
            machines = cell.rng.choice(cell.machines, 2, replace=False)
            lost = machines, cell.remove(machines)
        if round_number % 4 == 0 and lost is not None:
            cell.add_back(*lost, 0)
        cell.resolve()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_waiting_gets_more_expensive(kind, step):
    """Waiting gets more expensive for all waiting tasks until none prefers it to another task's
    slot.
    """
    cell = Cell(kind, ALGORITHM)
    for _ in range(5):
        arcs, rows, used, to_wait = arcs_of_tasks(cell)
        cell.solver.set_cost(arcs[used & to_wait], rows[used & to_wait, 3] + step)
        cell.resolve()


@pytest.mark.parametrize("kind", KINDS)
def test_changes_that_agree_with_the_flow_need_no_search(kind):
    """A full arc that gets cheaper, or an empty one that gets more expensive, causes no search."""
    cell = Cell(kind, ALGORITHM)
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
    cell = Cell(kind, ALGORITHM)
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
    solver = IncrementalSolver(network)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 5 * waiting
    who_waits = to_wait[solver.flow(to_wait) > 0]
    solver.set_cost(who_waits, np.full(waiting, 6))
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)
    change = min(waiting, tied)
    assert solver.cost == 5 * change + 6 * (waiting - change)
    assert solver.stats.settled <= 2


@pytest.mark.parametrize("kind", ["nearly full", "slightly oversubscribed", "contended"])
def test_a_rack_fails_and_returns(kind):
    """All its tasks are displaced at once. When it is back, the cost is what it was."""
    cell = Cell(kind, ALGORITHM)
    cell.age()
    cell.resolve()
    before = cell.solver.cost
    rack = cell.machines[: cell.graph.machines_per_rack]
    rows = cell.remove(rack)
    cell.resolve()
    assert cell.solver.cost > before
    cell.add_back(rack, rows, 0)
    cell.resolve()
    assert cell.solver.cost == before


@st.composite
def cost_rounds(draw):
    """Per round: how much the costs of full, empty and half-full arcs change, and for which ids
    (modulo).
    """
    step = st.integers(-4, 4)
    return draw(st.lists(st.tuples(step, step, step, st.integers(1, 3)), min_size=1, max_size=6))


@examples(150)
@given(net=st.one_of(networks(), unit_source_networks()), rounds=cost_rounds())
def test_bulk_costs_of_any_network(net, rounds):
    """Costs of many arcs change at once, depending on their flow: certified, and OR-tools' cost."""
    solver = IncrementalSolver(net)
    assume(net.num_arcs > 0 and solver.resolve() is Status.OPTIMAL)
    cost = net.cost
    for full, empty, partial, share in rounds:
        flow = solver.flow()
        change = np.select([flow == net.capacity, flow == 0], [full, empty], partial)
        chosen = np.arange(0, net.num_arcs, share)
        cost[chosen] += change[chosen]
        solver.set_cost(chosen, cost[chosen])
        assert solver.resolve() is Status.OPTIMAL
        check_resolved(solver)
        assert (Status.OPTIMAL, solver.cost) == ortools_answer(solver.snapshot()[0])
