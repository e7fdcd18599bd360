"""Unbounded capacities and maximum flows of minimum cost, against OR-tools and a search for
negative cycles, on small random networks."""

import copy

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow

from flowsolver import UNBOUNDED, FlowNetwork, Status, algorithms, certify, solve, solve_max_flow
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


@settings(max_examples=300, deadline=None)
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


@settings(max_examples=300, deadline=None)
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
