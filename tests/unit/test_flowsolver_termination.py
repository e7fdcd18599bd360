"""Every algorithm comes to an end: networks on which one did not."""

import subprocess
import sys
from pathlib import Path

import pytest

from flowsolver import Status, algorithms, certify, solve
from tests.fixtures.networks import mixed_sign_network, peers_cost

ROOT = Path(__file__).parents[2]
# A circulation of 160 nodes and 2,201 arcs with costs of both signs.
HANG = ROOT / "tests" / "data" / "relaxation_hang.npz"
HANG_COST = -252921838878  # by OR-tools


@pytest.mark.parametrize("algorithm", algorithms())
def test_a_circulation_that_relaxation_never_solved(algorithm):
    """In a process of its own, so that the test ends if the solver does not."""
    command = [sys.executable, "-m", "flowsolver", "solve", str(HANG), "--algorithm", algorithm]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"s {HANG_COST}"


@pytest.mark.parametrize("seed", range(54))
def test_relaxation_ends_where_costs_have_both_signs(seed):
    """Prices once rose too far where a node's arcs were put in order by price for the first time
    while a set was gathering excess: reduced costs fell below 0, and the node was raised by 0 for
    ever."""
    net = mixed_sign_network(seed)
    solution = solve(net, "relaxation", max_operations=5000 * net.num_arcs)
    if solution.status is Status.INFEASIBLE:
        assert peers_cost(net) is None
    else:
        assert solution.status is Status.OPTIMAL
        assert certify(net, solution).ok
