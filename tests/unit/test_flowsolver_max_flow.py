"""Maximum flow of minimum cost: small networks with known answers, statuses, the command."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

from flowsolver import UNBOUNDED, Status, algorithms, certify, solve_max_flow
from tests.fixtures.networks import network

ALL = list(algorithms())


def proven(net, most) -> bool:
    sent = copy.copy(net)
    sent.set_supply(np.arange(net.num_nodes), most.supply)
    return certify(sent, most.solution).ok


@pytest.mark.parametrize("algorithm", [*ALL, ["relaxation", "network_simplex"]], ids=str)
@pytest.mark.parametrize(
    ("supply", "arcs", "amount", "cost"),
    [
        ([], [], 0, 0),
        ([5, -3], [], 0, 0),
        ([5, 0, -9], [(0, 1, 3, 1), (1, 2, UNBOUNDED, 1), (0, 2, 1, 7)], 4, 13),
        # the cheaper source sends, the dearer one keeps
        ([2, 2, -2], [(0, 2, 9, 5), (1, 2, 9, 3)], 2, 6),
        # the nearer sink takes
        ([2, -2, -2], [(0, 1, 9, 5), (0, 2, 9, 3)], 2, 6),
        # as much as possible comes first, even where it is dear
        ([1, 1, 0, -2], [(0, 2, 1, 1), (1, 2, 1, 100), (2, 3, 2, 1)], 2, 103),
        # negative cycles are filled, too
        ([1, 0, -1], [(0, 1, 1, 1), (1, 2, 1, 1), (1, 1, 3, -2)], 1, -4),
    ],
)
def test_known_answers(algorithm, supply, arcs, amount, cost):
    net = network(supply, arcs)
    most = solve_max_flow(net, algorithm)
    assert (most.solution.status, most.amount, most.solution.cost) == (Status.OPTIMAL, amount, cost)
    assert most.supply[most.supply > 0].sum() == amount == -most.supply[most.supply < 0].sum()
    assert proven(net, most)


def test_statuses():
    unbounded = network([1, -1], [(0, 1, UNBOUNDED, -1), (1, 0, UNBOUNDED, -1)])
    assert solve_max_flow(unbounded).solution.status is Status.UNBOUNDED
    dear = network([1, -1], [(0, 1, 1, 2**62)])
    assert solve_max_flow(dear).solution.status is Status.BAD_COST_RANGE
    large = network([2**62, 2**62, -1], [(0, 2, 1, 1)])
    assert solve_max_flow(large).solution.status is Status.BAD_CAPACITY_RANGE
    with pytest.raises(TypeError, match="network: expected a FlowNetwork"):
        solve_max_flow(None)


def run(*arguments: str, text: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "flowsolver", "solve", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_the_command():
    text = "p min 3 3\nn 1 9\nn 3 -4\na 1 2 0 3 1\na 1 3 0 2 5\na 2 3 0 9 1\n"
    refused = run(text=text)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "unbalanced" in refused.stderr
    done = run("--max-flow", "--certify", text=text)
    assert (done.returncode, done.stdout) == (0, "s 11\nf 1 2 3\nf 1 3 1\nf 2 3 3\n")
    told = json.loads(run("--max-flow", "--certify", "--json", text=text).stdout)
    assert (told["sent"], told["certified"]) == (4, True)
    bounded = run("--max-flow", text=text.replace("a 1 2 0", "a 1 2 1"))
    assert bounded.returncode == 2
    assert "<stdin>: --max-flow does not support lower bounds" in bounded.stderr
