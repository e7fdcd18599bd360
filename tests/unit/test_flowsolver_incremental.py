"""IncrementalSolver: ids, changed flow, statuses, threads, budgets, cancellation, phases."""

import threading

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, algorithms, solve
from flowsolver.generate import GraphOptions, contended_options, network_aware_graph, quincy_graph
from tests.fixtures.networks import check_resolved


def small():
    """0 -> {1, 2} -> 3: two units, the way over 1 is cheaper and takes one."""
    net = FlowNetwork()
    net.add_nodes([2, 0, 0, -2])
    net.add_arcs([0, 0, 1, 2], [1, 2, 3, 3], [1, 2, 5, 5], [1, 4, 0, 0])
    solver = IncrementalSolver(net)
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 5
    return solver


def test_changed_flow_is_the_difference():
    solver = small()
    before = solver.flow()
    solver.set_capacity([0], [2])
    assert solver.resolve() is Status.OPTIMAL
    arcs, flow = solver.changed_flow()
    after = solver.flow()
    np.testing.assert_array_equal(np.flatnonzero(before != after), arcs)
    np.testing.assert_array_equal(after[arcs], flow)
    np.testing.assert_array_equal(solver.flow(arcs), flow)
    assert solver.cost == 2
    assert solver.resolve() is Status.OPTIMAL
    assert solver.changed_flow()[0].size == 0


def test_first_resolve_reports_all_flow():
    arcs, flow = small().changed_flow()
    assert arcs.tolist() == [0, 1, 2, 3]
    assert flow.tolist() == [1, 1, 1, 1]


def test_ids_are_reused_only_after_a_resolve():
    solver = small()
    a = solver.add_nodes([0, 0])
    arcs = solver.add_arcs(a, [3, 3], 1, 1)
    solver.remove_nodes(a)
    assert not set(solver.add_nodes([0, 0]).tolist()) & set(a.tolist())
    with pytest.raises(ValueError, match="no such arc"):
        solver.set_cost(arcs, 3)
    assert solver.resolve() is Status.OPTIMAL
    assert set(solver.add_nodes([0, 0]).tolist()) == set(a.tolist())
    assert solver.add_arcs([0, 0], [3, 3], 1, 1).tolist() == arcs.tolist()[::-1]
    assert solver.resolve() is Status.OPTIMAL
    check_resolved(solver)


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


def test_bad_statuses_pass():
    """Unbalanced, infeasible and out-of-range changes can be undone or repaired, and nothing is
    lost.
    """
    solver = small()
    solver.set_supply([0], [3])
    assert solver.resolve() is Status.UNBALANCED
    assert solver.cost == 5
    assert solver.changed_flow()[0].size == 0
    with pytest.raises(RuntimeError, match="nothing to certify"):
        solver.certify()
    solver.set_supply([3], [-3])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 9
    solver.set_supply([0, 3], [4, -4])
    assert solver.resolve() is Status.INFEASIBLE
    solver.set_capacity([1], [10])
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == 13
    check_resolved(solver)
    for cost, status in (
        (2**62, Status.BAD_COST_RANGE),
        (2**40, Status.OPTIMAL),
        (4, Status.OPTIMAL),
    ):
        solver.set_cost([1], [cost])
        assert solver.resolve() is status
    assert solver.cost == 13
    for capacity in (2**62, 2**40, 5):
        solver.set_capacity([2], [capacity])
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cost == 13
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
    solver = IncrementalSolver(network)
    assert solver.resolve() is Status.OPTIMAL
    to_unscheduled = np.flatnonzero(
        (network.head >= graph.first_unscheduled) & (network.head < graph.first_task)
    )
    solver.set_cost(
        to_unscheduled, network.cost[to_unscheduled] + 20 * (np.arange(to_unscheduled.size) % 7)
    )
    assert solver.resolve() is Status.OPTIMAL
    assert solver.stats.phases > 0
    check_resolved(solver)


# Made in each test: a native object in a module's globals may outlive nanobind's check for leaks.
STOPPED = {
    "nearly full": lambda: quincy_graph(GraphOptions(40, 97, 10), 2),
    "contended": lambda: quincy_graph(contended_options(40, 105, 10), 2),
    "network-aware": lambda: network_aware_graph(60, 1),
}
RACE = ("cost_scaling", "relaxation")


def resolve_repeatedly(solver, most, **budget):
    """The number of stopped resolves, and the final status."""
    for stops in range(most):
        status = solver.resolve(**budget)
        reached = solver.flow_reached()
        live, _, arcs = solver.snapshot()
        assert ((reached[arcs] >= 0) & (reached[arcs] <= live.capacity)).all()
        if status is not Status.BUDGET:
            return stops, status
    raise AssertionError(f"{most} resolves were not enough")


@pytest.mark.parametrize("algorithm", [*algorithms(), RACE], ids=str)
@pytest.mark.parametrize("cell", STOPPED)
def test_any_budget_suffices_eventually(cell, algorithm):
    """Each path found is lasting progress, so there are at most about as many resolves as tasks."""
    graph = STOPPED[cell]()
    solver = IncrementalSolver(graph.network, algorithm, deterministic=algorithm == RACE)
    most = 10 * graph.tasks
    fresh = solve(graph.network, "incremental_ssp").stats.operations
    stops, status = resolve_repeatedly(solver, most, max_operations=0)
    assert stops > 0
    assert status is Status.OPTIMAL
    check_resolved(solver)
    for gone, budget in (
        (5, {"max_operations": 0}),
        (10, {"max_operations": fresh // 100}),
        (15, {"max_seconds": 0.0}),
    ):
        solver.remove_nodes(np.arange(graph.first_task + gone - 5, graph.first_task + gone))
        solver.set_supply([graph.sink], [gone - graph.tasks])
        used = np.flatnonzero(solver.flow())
        solver.set_cost(used[used >= graph.task_arc_begin[gone]][::2], 9 + gone)
        _, status = resolve_repeatedly(solver, most, **budget)
        assert status is Status.OPTIMAL
        check_resolved(solver)


@pytest.mark.parametrize(("algorithm", "own_work"), [("cost_scaling", "relabels")])
def test_an_algorithm_returns_after_the_next_answer(algorithm, own_work):
    graph = STOPPED["contended"]()
    solver = IncrementalSolver(graph.network, algorithm)
    stops, _ = resolve_repeatedly(solver, 10 * graph.tasks, max_operations=0)
    assert stops > 8
    assert getattr(solver.stats, own_work) == 0  # shortest paths ended it
    before = solver.flow()
    solver.set_cost(np.flatnonzero(before[: graph.task_arc_begin[20]]), 100)
    assert solver.resolve() is Status.OPTIMAL
    assert getattr(solver.stats, own_work) > 0
    check_resolved(solver)
    arcs, flow = solver.changed_flow()
    np.testing.assert_array_equal(np.flatnonzero(before != solver.flow()), arcs)
    np.testing.assert_array_equal(solver.flow(arcs), flow)


@pytest.mark.parametrize("algorithm", algorithms())
def test_any_budget_suffices_to_prove_infeasibility(algorithm):
    graph = STOPPED["nearly full"]()
    solver = IncrementalSolver(graph.network, algorithm)
    last = np.arange(*graph.task_arc_begin[-2:])
    solver.set_capacity(last, 0)
    _, status = resolve_repeatedly(solver, 10 * graph.tasks, max_operations=0)
    assert status is Status.INFEASIBLE
    solver.set_capacity(last, 1)
    _, status = resolve_repeatedly(solver, 10 * graph.tasks, max_operations=0)
    assert status is Status.OPTIMAL
    check_resolved(solver)


ROUNDS_OF_EVERY_END = {
    Status.OPTIMAL: lambda solver: None,
    Status.UNBALANCED: lambda solver: solver.set_supply([0], [3]),
    Status.INFEASIBLE: lambda solver: solver.set_capacity([2, 3], 0),
    Status.BAD_COST_RANGE: lambda solver: solver.set_cost([0], [2**60]),
    Status.BAD_CAPACITY_RANGE: lambda solver: solver.set_supply([0], [2**62]),
}


@pytest.mark.parametrize("end", ROUNDS_OF_EVERY_END)
@pytest.mark.parametrize("algorithm", [*algorithms(), RACE], ids=str)
def test_a_cancellation_is_for_one_round(algorithm, end):
    """If none is running, a cancellation ends the next resolve, whatever its status would be, and
    no other.
    """
    net, _, _ = small().snapshot()
    solver = IncrementalSolver(net, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    ROUNDS_OF_EVERY_END[end](solver)
    solver.cancel()
    solver.cancel()
    assert solver.resolve() is Status.CANCELLED
    assert solver.resolve() is end
    assert solver.resolve() is end


@pytest.mark.parametrize("algorithm", ["incremental_ssp", RACE], ids=str)
def test_a_cancellation_from_another_thread_is_for_one_round(algorithm):
    """During a resolve, a cancellation ends it or comes too late; after it, it ends the next."""
    solver = IncrementalSolver(STOPPED["nearly full"]().network, algorithm)
    assert solver.resolve() is Status.OPTIMAL
    used = np.flatnonzero(solver.flow())
    cost = solver.snapshot()[0].cost[used]
    for round_number in range(30):
        solver.set_cost(used, cost + round_number % 3)
        other = threading.Thread(target=solver.cancel)
        other.start()
        ends = [solver.resolve()]
        other.join()
        ends += [solver.resolve(), solver.resolve()]
        assert ends.count(Status.CANCELLED) <= 1
        assert ends[-1] is Status.OPTIMAL
    check_resolved(solver)
