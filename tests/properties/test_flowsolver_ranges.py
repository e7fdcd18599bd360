"""Unbounded capacities and maximum flows of minimum cost, against OR-tools and a search for
negative cycles, on small random networks."""

import copy

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow

from flowsolver import (
    UNBOUNDED,
    FlowNetwork,
    IncrementalSolver,
    Status,
    algorithms,
    certify,
    solve,
    solve_max_flow,
)
from tests.fixtures.examples import examples
from tests.fixtures.network_strategies import networks
from tests.fixtures.networks import ortools_answer, violations

ENOUGH = 10**6  # more than all supplies and bounded capacities of these networks together


def has_negative_cycle(net: FlowNetwork, arcs: np.ndarray) -> bool:
    """Bellman and Ford, from all nodes at once."""
    distance = [0] * net.num_nodes
    tail, head, cost = net.tail.tolist(), net.head.tolist(), net.cost.tolist()
    for _ in range(net.num_nodes + 1):
        moved = False
        for a in arcs.tolist():
            if distance[tail[a]] + cost[a] < distance[head[a]]:
                distance[head[a]] = distance[tail[a]] + cost[a]
                moved = True
        if not moved:
            return False
    return True


@examples(300)
@given(networks(), st.data())
def test_unbounded_arcs(network, data):
    chance = data.draw(st.sampled_from([0.2, 0.6, 1.0]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    chosen = np.flatnonzero((rng.random(network.num_arcs) < chance) & (network.capacity > 0))
    finite = copy.copy(network)
    finite.set_capacity(chosen, ENOUGH)
    expected = ortools_answer(finite)
    if expected[0] is Status.OPTIMAL and has_negative_cycle(network, chosen):
        expected = Status.UNBOUNDED, None
    event(expected[0].name)
    network.set_capacity(chosen, rng.choice([2**61, 2**62, UNBOUNDED], chosen.size))
    for algorithm in algorithms():
        assert violations(network, solve(network, algorithm), expected) == [], algorithm


@examples(300)
@given(networks(), st.sampled_from(list(algorithms())))
def test_maximum_flow_of_minimum_cost(network, algorithm):
    peer = min_cost_flow.SimpleMinCostFlow()
    if network.num_arcs > 0:
        peer.add_arcs_with_capacity_and_unit_cost(
            network.tail, network.head, network.capacity, network.cost
        )
    peer.set_nodes_supplies(np.arange(network.num_nodes), network.supply)
    assert peer.solve_max_flow_with_min_cost() == peer.OPTIMAL
    most = solve_max_flow(network, algorithm)
    assert most.solution.status is Status.OPTIMAL
    assert (most.amount, most.solution.cost) == (peer.maximum_flow(), peer.optimal_cost())
    sent = copy.copy(network)
    sent.set_supply(np.arange(network.num_nodes), most.supply)
    assert certify(sent, most.solution).ok
    assert (np.abs(most.supply) <= np.abs(network.supply)).all()
    assert (most.supply * network.supply >= 0).all()


# Sums of these around a node are within the range of the solver's sums, at its edge, or beyond it.
CAPACITIES = [0, 1, 10**6, 2**40, *(2**bits for bits in range(56, 63)), UNBOUNDED]

KINDS_OF_CHANGE = ["capacity", "cost", "supply", "add", "remove"]


@examples(300)
@given(st.data())
def test_the_status_does_not_depend_on_what_capacities_once_were(data):
    """Capacities, supplies and costs go out of range and come back. After every change the status
    and the cost are those of a solve from scratch of the snapshot."""
    nodes = data.draw(st.integers(2, 6))
    node, capacity = st.integers(0, nodes - 1), st.sampled_from(CAPACITIES)
    cost = st.sampled_from([0, 1, 2, 7, -1, -2, -5, -(2**33), 2**40, 2**58])
    arc = st.tuples(node, node, capacity, cost)
    first = data.draw(st.lists(arc, min_size=1, max_size=10))
    net = FlowNetwork()
    net.add_nodes(np.zeros(nodes, np.int64))
    net.add_arcs(*np.array(first, np.int64).T)
    solvers = {name: IncrementalSolver(net, name) for name in algorithms()}
    live = list(range(len(first)))
    for _ in range(data.draw(st.integers(1, 6))):
        changes: list[tuple[str, list]] = []
        for what in data.draw(st.lists(st.sampled_from(KINDS_OF_CHANGE))):
            if what == "add":
                changes.append(("add_arcs", [[end] for end in data.draw(arc)]))
            elif what == "supply":
                most = data.draw(st.sampled_from([1, 2**33, 2**57, 2**60, 2**61]))
                unbalanced = data.draw(st.sampled_from([0, 0, 0, 1]))
                ends = [data.draw(node), data.draw(node)]
                if ends[0] != ends[1]:
                    changes.append(("set_supply", [range(nodes), [0] * nodes]))
                    changes.append(("set_supply", [ends, [most, unbalanced - most]]))
            elif live and what == "remove":
                changes.append(("remove_arcs", [[live.pop(data.draw(node) % len(live))]]))
            elif live:
                chosen = live[data.draw(node) % len(live)]
                value = data.draw(capacity if what == "capacity" else cost)
                changes.append((f"set_{what}", [[chosen], [value]]))
        for name, arguments in changes:
            ids = {tuple(_ids(getattr(solver, name)(*arguments))) for solver in solvers.values()}
            assert len(ids) == 1
            live.extend(ids.pop())
        for algorithm, solver in solvers.items():
            status = solver.resolve()
            now = solver.snapshot()[0]
            fresh = solve(now, algorithm)
            event(f"{status.name}")
            assert status is fresh.status, algorithm
            if status is Status.OPTIMAL:
                assert solver.cost == fresh.cost
                assert solver.certify().ok


def _ids(added: np.ndarray | None) -> list[int]:
    return [] if added is None else added.tolist()
