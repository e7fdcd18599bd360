"""The price the default algorithm's placement from scratch begins with where more tasks want in
than there is room for."""

import numpy as np
import pytest

from flowsolver import FlowNetwork, certify, solve
from flowsolver.generate import GraphOptions, quincy_graph


@pytest.mark.parametrize("percent_used", [102, 120])
def test_tasks_that_have_gone_do_not_spoil_it(percent_used):
    """Nodes left in place, without supply: what they hung on is still a way around, not room."""
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
