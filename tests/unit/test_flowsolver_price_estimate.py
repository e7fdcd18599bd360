"""The estimated price from which the default algorithm starts in an oversubscribed network."""

import numpy as np
import pytest

from flowsolver import FlowNetwork, certify, solve
from flowsolver.generate import GraphOptions, quincy_graph


@pytest.mark.parametrize("percent_used", [102, 120])
def test_removed_tasks_do_not_affect_the_estimate(percent_used):
    """Removed tasks are nodes without supply: their unscheduled aggregator stays a bypass."""
    network = quincy_graph(GraphOptions(1000, percent_used), 1).network
    supply, capacity = np.array(network.supply), np.array(network.capacity)
    gone = np.flatnonzero(supply == 1)[::100]
    supply[np.argmin(supply)] += gone.size
    supply[gone] = 0
    scanned = [solve(network).stats.scanned]
    for left in (capacity, np.where(np.isin(network.tail, gone), 0, capacity)):
        cell = FlowNetwork()
        cell.add_nodes(supply)
        cell.add_arcs(network.tail, network.head, left, network.cost)
        solution = solve(cell)
        assert certify(cell, solution).ok
        scanned.append(solution.stats.scanned)
    assert max(scanned[1:]) < 2 * scanned[0], scanned
