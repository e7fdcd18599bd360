"""Cost scaling between resolves: its graph, flow and prices under changes, and local rounds."""

import numpy as np
import pytest

from flowsolver import FlowNetwork, IncrementalSolver, Status, solve
from flowsolver.generate import GraphOptions, quincy_graph
from tests.fixtures.networks import check_resolved, hub, ortools_cost


def network(tail, head, capacity, cost, supply):
    net = FlowNetwork()
    net.add_nodes(np.array(supply, dtype=np.int64))
    net.add_arcs(tail, head, capacity, cost)
    return net


def check(solver):
    assert solver.resolve() is Status.OPTIMAL
    assert solver.cost == ortools_cost(solver.snapshot()[0])
    check_resolved(solver)


def star(leaves):
    """Sources 1..leaves, each with an arc to the sink 0 at a cost of its number."""
    source = np.arange(1, leaves + 1)
    supply = np.concatenate([[-leaves], np.ones(leaves, dtype=np.int64)])
    return network(
        source, np.zeros(leaves, dtype=np.int64), np.ones(leaves, dtype=np.int64), source, supply
    )


def test_many_arcs_at_one_node():
    """Its block grows repeatedly, and shrinks; removed ids are reused."""
    solver = IncrementalSolver(star(5), "cost_scaling")
    check(solver)
    for count in (1, 30, 200):
        nodes = solver.add_nodes(np.ones(count, dtype=np.int64))
        solver.add_arcs(nodes, [0] * count, 1, np.arange(count))
        solver.add_arcs(nodes, [1] * count, 1, -1)
        solver.set_capacity([0], [count + 1])
        solver.set_supply([0], [-5 - count])
        check(solver)
        solver.remove_nodes(nodes[: count // 2])
        solver.set_supply([0], [-5 - count + count // 2])
        check(solver)
        solver.remove_nodes(nodes[count // 2 :])
        solver.set_supply([0], [-5])
        check(solver)


def test_a_capacity_that_comes_later():
    net = network([1, 1, 2], [0, 2, 0], [1, 0, 1], [9, 1, 1], [-1, 1, 0])
    solver = IncrementalSolver(net, "cost_scaling")
    check(solver)
    solver.set_capacity([1], [1])
    check(solver)
    assert solver.flow().tolist() == [0, 1, 1]
    solver.set_capacity([1], [0])
    check(solver)
    assert solver.cost == 9


def test_a_loop_whose_cost_becomes_negative():
    net = network([1, 1], [0, 1], [1, 4], [9, 2], [-1, 1])
    solver = IncrementalSolver(net, "cost_scaling")
    check(solver)
    solver.set_cost([1], [-2])
    check(solver)
    assert solver.changed_flow()[0].tolist() == [1]
    solver.set_capacity([1], [3])
    check(solver)
    assert solver.cost == 3
    solver.remove_nodes([1])
    solver.set_supply([0], [0])
    check(solver)
    assert solver.cost == 0


def test_infeasible_and_feasible_again():
    solver = IncrementalSolver(star(6), "cost_scaling")
    check(solver)
    for _ in range(3):
        solver.set_capacity([2], [0])
        assert solver.resolve() is Status.INFEASIBLE
        assert solver.resolve() is Status.INFEASIBLE
        solver.set_capacity([2], [1])
        check(solver)


@pytest.mark.parametrize("cost", [-(2**20), 2**20, -(2**40), 2**40])
def test_costs_far_beyond_the_earlier_ones(cost):
    graph = quincy_graph(GraphOptions(30, 95), 2)
    solver = IncrementalSolver(graph.network, "cost_scaling")
    check(solver)
    arcs = np.flatnonzero(solver.flow() > 0)[::7]
    solver.set_cost(arcs, cost)
    check(solver)
    solver.set_cost(arcs, graph.network.cost[arcs])
    check(solver)
    assert solver.cost == solve(graph.network).cost


def test_nodes_beyond_the_scale():
    """Sixteen times as many nodes as at first: prices are rescaled meanwhile."""
    solver = IncrementalSolver(star(4), "cost_scaling")
    check(solver)
    for count in range(5, 70, 4):
        nodes = solver.add_nodes([1, 1, 1, 1])
        solver.add_arcs(nodes, [0, 1, 2, 3], 1, [5, -3, 2, 1])
        solver.set_capacity(np.arange(4), count)
        solver.set_supply([0], [-count - 3])
        check(solver)


def test_a_machine_with_all_its_tasks_fails_and_comes_back():
    graph = quincy_graph(GraphOptions(60, 97), 3)
    net = graph.network
    solver = IncrementalSolver(net, "cost_scaling")
    check(solver)
    for machine in (0, 17, 41):
        node = graph.first_machine + machine
        rack = graph.first_rack + machine // graph.machines_per_rack
        preferring = np.flatnonzero((net.head == node) & (net.tail != rack))
        solver.remove_nodes([node])
        check(solver)
        again = solver.add_nodes([0])
        solver.add_arcs([rack, again[0]], [again[0], graph.sink], 12, 0)
        solver.add_arcs(
            net.tail[preferring], np.repeat(again, preferring.size), 1, net.cost[preferring]
        )
        check(solver)


def change_leaves(solver, hub_node, rng):
    """Cheap wide arcs between leaves; some leaves are removed, and one gets their supply; others
    are added.
    """
    net, nodes, _ = solver.snapshot()
    leaves = rng.permutation(np.flatnonzero(nodes != hub_node))
    ends, gone, heir = nodes[leaves[:20]], leaves[20:24], leaves[24]
    solver.add_arcs(ends[:10], ends[10:], rng.integers(1, 1_000_000, 10), -35)
    solver.remove_nodes(nodes[gone])
    solver.set_supply([nodes[heir]], [net.supply[heir] + net.supply[gone].sum()])
    come = solver.add_nodes([3, -5, 2, 0])
    at_hub = np.full(come.size, hub_node)
    solver.add_arcs(np.concatenate([come, at_hub]), np.concatenate([at_hub, come]), 1_000_000, 200)


@pytest.mark.parametrize(
    "racers", [["cost_scaling"], ["cost_scaling", "successive_shortest_path"]], ids="+".join
)
def test_leaves_of_a_hub_come_and_go(racers):
    """The hub has far more half-edges than a relabel looks at one by one."""
    for seed in range(12):
        net, rng = hub(seed, leaves=150), np.random.default_rng(seed)
        solver = IncrementalSolver(net, racers, deterministic=True)
        assert solver.resolve() is Status.OPTIMAL
        for _ in range(4):
            change_leaves(solver, net.num_nodes - 1, rng)
            assert solver.resolve() is Status.OPTIMAL
            check_resolved(solver)


@pytest.mark.parametrize("budget", [0, 3000, 10_000])
def test_leaves_of_a_hub_come_and_go_while_a_resolve_is_stopped(budget):
    for seed in range(12):
        net, rng = hub(seed, leaves=150), np.random.default_rng(seed)
        solver = IncrementalSolver(net, "cost_scaling")
        assert solver.resolve() is Status.OPTIMAL
        for _ in range(2):
            change_leaves(solver, net.num_nodes - 1, rng)
            solver.resolve(max_operations=budget)
            change_leaves(solver, net.num_nodes - 1, rng)
            assert solver.resolve() is Status.OPTIMAL
            check_resolved(solver)


def test_rounds_are_local():
    """One task is replaced by a similar one: few arcs are scanned, and no distant price is
    repaired.
    """
    graph = quincy_graph(GraphOptions(400, 50), 5)
    net = graph.network
    solver = IncrementalSolver(net, "cost_scaling")
    check(solver)
    begin = graph.task_arc_begin
    scanned = []
    for task in range(20):
        solver.remove_nodes([graph.first_task + task])
        node = solver.add_nodes([1])
        row = slice(begin[task + 50], begin[task + 51])
        solver.add_arcs(np.repeat(node, row.stop - row.start), net.head[row], 1, net.cost[row])
        check(solver)
        scanned.append(solver.stats.scanned)
    assert np.median(scanned) < net.num_arcs / 20
