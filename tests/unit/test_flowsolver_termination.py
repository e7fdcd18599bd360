"""Every algorithm terminates: networks on which one once did not."""

import subprocess
import sys
from pathlib import Path

import pytest

from flowsolver import IncrementalSolver, Status, algorithms, certify, solve
from flowsolver.problem_files import parse_problem
from tests.fixtures.networks import hub_network, long_path, mixed_sign_network, ortools_cost

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
    """Prices once rose too far when a heap was made for a node's half-edges while a set gathered
    excess: reduced costs became negative, and the node was raised by 0 forever.
    """
    net = mixed_sign_network(seed)
    solution = solve(net, "relaxation", max_operations=5000 * net.num_arcs)
    if solution.status is Status.INFEASIBLE:
        assert ortools_cost(net) is None
    else:
        assert solution.status is Status.OPTIMAL
        assert certify(net, solution).ok


# A method may run this much over its budget: a few looks at its control, each of thousands of
# operations.
OVERRUN = 65_536
HARD = {
    "the circulation": lambda: parse_problem(HANG.read_bytes(), HANG.name).network,
    "both signs": lambda: mixed_sign_network(13, 300),
    "a path": lambda: long_path(3_000).network,
    "a hub": lambda: hub_network(3_000),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("algorithm", algorithms())
def test_budgets_are_respected(algorithm, kind):
    """From scratch and in resolves, wherever in the solve the budget ends."""
    net = HARD[kind]()
    whole = solve(net, algorithm)
    assert whole.status is Status.OPTIMAL
    for part in range(8):
        budget = whole.stats.operations * part // 8
        stopped = solve(net, algorithm, max_operations=budget)
        assert stopped.status in (Status.BUDGET, Status.OPTIMAL)
        assert stopped.stats.operations <= budget + OVERRUN
        assert ((stopped.flow >= 0) & (stopped.flow <= net.capacity)).all()
    solver = IncrementalSolver(net, algorithm)
    budget = 1 + whole.stats.operations // 4
    while solver.resolve(max_operations=budget) is Status.BUDGET:
        assert solver.stats.operations <= budget + OVERRUN
        budget += budget // 2
    assert solver.cost == whole.cost
    assert solver.certify().ok
