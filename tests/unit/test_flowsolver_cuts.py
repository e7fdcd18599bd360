"""INFEASIBLE comes with a cut that proves it, for every algorithm: from scratch, under changes and
in races. A set that is no proof fails its certificate.
"""

import json
from functools import partial

import numpy as np
import pytest

from flowsolver import (
    FlowNetwork,
    IncrementalSolver,
    Solution,
    Status,
    algorithms,
    certify,
    certify_cut,
    solve,
    write_dimacs,
)
from flowsolver.__main__ import run
from flowsolver.generate import GraphOptions, quincy_graph
from tests.fixtures.networks import (
    WIDE,
    check_solution,
    grid,
    hub,
    network,
    ortools_cost,
    path,
    star,
)

ALL = list(algorithms())
RACES = {
    "race": {"algorithm": ALL},
    "deterministic race": {"algorithm": ALL, "deterministic": True},
    "deterministic race of two": {
        "algorithm": ["cost_scaling", "successive_shortest_path"],
        "deterministic": True,
    },
}
ANSWERERS = {**{name: {"algorithm": name} for name in ALL}, **RACES}
each_answerer = pytest.mark.parametrize("how", ANSWERERS.values(), ids=ANSWERERS)


def with_capacity(net, capacity):
    rows = np.stack([net.tail, net.head, capacity, net.cost], axis=1)
    return network(net.supply, rows)


def full_cell(seed):
    """More tasks than can run and wait."""
    graph = quincy_graph(GraphOptions(20, 110, 20), seed)
    net = graph.network
    waiting = (net.head == graph.sink) & (net.tail >= graph.first_unscheduled)
    return with_capacity(net, np.where(waiting & (net.tail < graph.first_task), 0, net.capacity))


def torn_grid(seed):
    """A corner with a source hangs on arcs that are too narrow."""
    net = grid(seed)
    supply = net.supply
    supply[0] += 90
    supply[40] -= 90
    torn = FlowNetwork()
    torn.add_nodes(supply)
    torn.add_arcs(net.tail, net.head, net.capacity, net.cost)
    return torn


def islands(_):
    """Supplies balance overall, but on neither island, on which some of it could be sent."""
    return network([5, -1, 1, -5], [(0, 1, 9, 1), (1, 0, 9, 1), (2, 3, 9, 1), (3, 2, 9, 1)])


INFEASIBLE = {
    "full cell": full_cell,
    "torn grid": torn_grid,
    "islands": islands,
    "narrow hub": partial(hub, leaves=80, capacity=3),
    "narrow star": lambda seed: with_capacity(star(seed), star(seed).capacity.clip(max=30)),
    "narrow path": lambda seed: with_capacity(path(seed), np.full(2 * 79, 2)),
}


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("family", INFEASIBLE)
@each_answerer
def test_infeasible_is_proven(how, family, seed):
    net = INFEASIBLE[family](seed)
    assert ortools_cost(net) is None
    solution = solve(net, **how)
    check_solution(net, solution, None)
    assert (np.diff(solution.cut) > 0).all()


@each_answerer
def test_rounds_are_proven(how):
    """A hub becomes infeasible for one reason after another while leaves are removed, then feasible
    again.
    """
    net = hub(3, leaves=70)
    centre = net.num_nodes - 1
    solver = IncrementalSolver(net, **how)
    assert solver.cut.size == 0
    source = int(np.flatnonzero(net.supply[:centre] == 5)[0])
    for _ in range(3):
        assert solver.resolve() is Status.OPTIMAL
        assert solver.cut.size == 0
        with pytest.raises(RuntimeError, match="did not end INFEASIBLE"):
            solver.certify_cut()
        solver.set_capacity([source], [2])
        assert solver.resolve() is Status.INFEASIBLE
        assert solver.cut.tolist() == [source]
        certificate = solver.certify_cut()
        assert certificate.ok
        assert (certificate.nodes, certificate.supply, certificate.capacity) == (1, 5, 2)
        live, nodes, _ = solver.snapshot()
        gone = nodes[(live.supply == 0) & (nodes != centre)][0]
        solver.remove_nodes([gone])
        new = solver.add_nodes([4, -4])
        assert solver.resolve() is Status.INFEASIBLE
        live, nodes, _ = solver.snapshot()
        assert np.isin(solver.cut, nodes).all()
        assert solver.certify_cut().ok
        assert certify_cut(live, np.searchsorted(nodes, solver.cut)).ok
        assert solver.stats.disproved == 0
        solver.add_arcs([new[0], centre], [centre, new[1]], WIDE, 200)
        solver.set_capacity([source], [WIDE])


def test_a_cut_of_removed_nodes_proves_nothing():
    solver = IncrementalSolver(network([2, 0, -2], [(0, 1, 2, 0), (1, 2, 1, 0)]))
    assert solver.resolve() is Status.INFEASIBLE
    assert solver.cut.tolist() == [0, 1]
    solver.remove_nodes([1])
    certificate = solver.certify_cut()
    assert not certificate.ok
    assert certificate.unknown_nodes == 1


def two_ways():
    """Supply of 5, and arcs of capacity 4 out of nodes 0, 1 and 2 together."""
    return network(
        [2, 3, 0, 0, -5],
        [(0, 2, 9, 1), (1, 2, 9, 1), (2, 3, 1, 1), (2, 4, 3, 1), (3, 4, 9, 1), (3, 0, 9, 1)],
    )


MUTATIONS = {
    "a node less": lambda cut: cut[1:],
    "a node more": lambda cut: np.append(cut, 4),
    "a node twice": lambda cut: np.append(cut, 0),
    "no such node": lambda cut: np.append(cut, 5),
    "below zero": lambda cut: np.append(cut, -1),
    "other nodes": lambda cut: cut + 2,
    "no node": lambda cut: cut[:0],
    "all nodes": lambda cut: np.arange(5),
}


@pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS)
def test_what_is_no_cut_is_not_certified(mutate):
    net = two_ways()
    good = solve(net)
    assert good.cut.tolist() == [0, 1, 2]
    assert certify(net, good).ok
    spoilt = Solution(good.status, 0, good.flow, good.potential, good.stats, cut=mutate(good.cut))
    assert not certify(net, spoilt).ok


def test_an_optimum_claimed_infeasible_is_not_certified():
    net = network([1, -1], [(0, 1, 1, 1)])
    good = solve(net)
    for cut in ([0], [1], [0, 1], []):
        lie = Solution(
            Status.INFEASIBLE, 0, good.flow, good.potential, good.stats, cut=np.array(cut)
        )
        assert not certify(net, lie).ok


@pytest.fixture
def infeasible_file(tmp_path):
    file = tmp_path / "narrow.min"
    file.write_bytes(write_dimacs(two_ways()))
    return str(file)


@pytest.mark.parametrize("name", ALL)
def test_command_names_the_cut(infeasible_file, name, capsysbinary):
    assert run(["solve", infeasible_file, "--algorithm", name, "--certify"]) == 2
    assert capsysbinary.readouterr().err.decode() == (
        f"error: {infeasible_file}: infeasible: no flow meets the supplies: "
        "3 nodes have a supply of 5, and arcs of capacity 4 out of them: 1, 2, 3 (certified)\n"
    )


def test_command_names_a_few_nodes_of_many(tmp_path, capsysbinary):
    file = tmp_path / "star.min"
    file.write_bytes(write_dimacs(hub(1, leaves=60, capacity=0)))
    assert run(["solve", str(file)]) == 2
    assert capsysbinary.readouterr().err.endswith(b", ...\n")


def test_command_says_that_lower_bounds_are_removed(tmp_path, capsysbinary):
    file = tmp_path / "bounds.min"
    file.write_bytes(b"p min 2 1\nn 1 7\nn 2 -7\na 1 2 2 6 1\n")
    assert run(["solve", str(file)]) == 2
    assert capsysbinary.readouterr().err.endswith(
        b"1 node has a supply of 5, and arcs of capacity 4 out of it: 1 (lower bounds removed)\n"
    )


def test_command_gives_the_cut_as_json(infeasible_file, capsysbinary):
    assert run(["solve", infeasible_file, "--certify", "--json"]) == 2
    answer = json.loads(capsysbinary.readouterr().out)
    assert answer["status"] == "INFEASIBLE"
    assert answer["cut"] == {"supply": 5, "capacity": 4, "nodes": [1, 2, 3]}
    assert answer["certified"] is True


def test_command_says_that_a_cut_is_no_proof(infeasible_file, monkeypatch, capsysbinary):
    def lies(net, *_, **__):
        good = solve(net)
        return Solution(good.status, 0, good.flow, good.potential, good.stats, cut=good.cut[1:])

    monkeypatch.setattr("flowsolver.commands.solve.solve", lies)
    assert run(["solve", infeasible_file, "--certify"]) == 1
    assert b"the answer failed its certificate: 2 nodes have" in capsysbinary.readouterr().err
