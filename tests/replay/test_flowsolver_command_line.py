"""`python -m flowsolver solve|generate|convert`, as a user runs them."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from flowsolver import Status, algorithms, parse_dimacs, solve, write_dimacs
from flowsolver.__main__ import run
from flowsolver.generate import GraphOptions, quincy_graph

ROOT = Path(__file__).parents[2]
BOUNDED = b"p min 3 3\nn 1 4\nn 3 -4\na 1 2 1 4 2\na 1 3 -1 2 5\na 2 3 0 9 1\n"
FAMILIES = [
    "quincy",
    "contended",
    "cold",
    "oversubscribed",
    "load-spreading",
    "network-aware",
    "netgen",
    "goto",
    "gridgen",
    "road",
]
GENERAL = ["netgen", "goto", "gridgen", "road"]


def command(*arguments, stdin=b""):
    """What a process would leave, in this one."""
    streams = [io.TextIOWrapper(io.BytesIO(data)) for data in (stdin, b"", b"")]
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        status = run([*arguments])
    for stream in streams[1:]:
        stream.flush()
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    return subprocess.CompletedProcess(arguments, status, out, err)


def process(*arguments, stdin=b""):
    return subprocess.run(
        [sys.executable, "-m", "flowsolver", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=ROOT,
    )


def answer_of(text):
    """Cost and flow by (tail, head) of a DIMACS solution."""
    rows = [line.split() for line in text.decode().splitlines()]
    (cost,) = [int(row[1]) for row in rows if row[0] == "s"]
    return cost, {(int(row[1]), int(row[2])): int(row[3]) for row in rows if row[0] == "f"}


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_graphs_solve(family, tmp_path, capsysbinary):
    size = [] if family in GENERAL else ["--machines", "30"]
    assert run(["generate", family, *size, "--seed", "7"]) == 0
    made, said = capsysbinary.readouterr()
    assert said == b""
    again = made.decode().splitlines()[0].split()
    assert again[:4] == ["c", "flowsolver", "generate", family] and "--seed 7" in " ".join(again)
    path = tmp_path / "graph.min"
    assert run([*again[2:], "--out", str(path)]) == 0
    assert path.read_bytes() == made
    assert run(["solve", "--json", "--certify", str(path)]) == 0
    answer = json.loads(capsysbinary.readouterr().out)
    assert answer["certified"]
    problem = parse_dimacs(made)
    assert (answer["nodes"], answer["arcs"]) == (
        problem.network.num_nodes,
        problem.network.num_arcs,
    )
    assert answer["cost"] == solve(problem.network).cost


def test_generate_writes_the_graph_of_the_library(tmp_path):
    out = tmp_path / "graph.npz"
    options = "--machines 15 --percent-used 80 --percent-pending 5 --slots 4 --machines-per-rack 7"
    done = process("generate", "quincy", *options.split(), "--seed", "3", "--out", str(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    network = quincy_graph(GraphOptions(15, 80, 5, 4, 7), 3).network
    with np.load(out) as arrays:
        assert sorted(arrays.files) == ["capacity", "cost", "head", "supply", "tail"]
        for field in arrays.files:
            np.testing.assert_array_equal(arrays[field], getattr(network, field))
    assert [path.name for path in tmp_path.iterdir()] == ["graph.npz"]


def check_by_hand(problem, answer):
    """Check a DIMACS solution: bounds, balance, cost and, if it has prices, optimality. Uses the
    file formats only.
    """
    arcs, excess, flow, price, cost = {}, {}, {}, {}, None
    for kind, *row in (line.split() for line in problem.decode().splitlines()):
        if kind == "n":
            excess[row[0]] = int(row[1])
        elif kind == "a":
            arcs.setdefault((row[0], row[1]), []).append([int(row[4]), int(row[2]), int(row[3])])
    for kind, *row in (line.split() for line in answer.decode().splitlines()):
        if kind == "s":
            cost = int(row[0])
        elif kind == "f":
            flow[row[0], row[1]] = flow.get((row[0], row[1]), 0) + int(row[2])
        elif kind == "p":
            price[row[0]] = int(row[1])
    assert flow.keys() <= arcs.keys()
    for (tail, head), parallel in arcs.items():
        sent = flow.get((tail, head), 0)
        excess[tail] = excess.get(tail, 0) - sent
        excess[head] = excess.get(head, 0) + sent
        left = sent - sum(low for _, low, _ in parallel)
        # whose flow is whose is not said: the cheapest first
        for unit_cost, low, high in sorted(parallel):
            x = low + min(max(left, 0), high - low)
            left -= x - low
            cost -= unit_cost * x
            reduced = unit_cost + price[tail] - price[head]
            assert (reduced >= 0 or x == high) and (reduced <= 0 or x == low)
        assert left == 0
    assert cost == 0 and not any(excess.values())


def with_bounds_and_parallel_arcs():
    rng = np.random.default_rng(4)
    tail, head, cost = rng.integers(1, 9, 60), rng.integers(1, 9, 60), rng.integers(-9, 30, 60)
    low, room = rng.integers(-4, 5, 60), rng.integers(0, 12, 60)
    sent = low + rng.integers(0, room + 1)
    supply = np.bincount(tail, sent, 9) - np.bincount(head, sent, 9)
    lines = ["p min 8 60", *(f"n {node} {int(supply[node])}" for node in range(1, 9))]
    lines += [
        "a {} {} {} {} {}".format(*row)
        for row in zip(tail, head, low, low + room, cost, strict=True)
    ]
    return "\n".join(lines).encode()


@pytest.mark.parametrize("algorithm", algorithms())
@pytest.mark.parametrize("family", ["load-spreading", "oversubscribed", "netgen", "bounds"])
def test_another_checker_accepts_the_solution(family, algorithm, tmp_path, capsysbinary):
    path = tmp_path / "net.min"
    size = ["--nodes", "60", "--arcs", "400", "--sources", "5", "--sinks", "7", "--min-cost", "-20"]
    if family == "bounds":
        path.write_bytes(with_bounds_and_parallel_arcs())
    else:
        size = size if family == "netgen" else ["--machines", "10", "--slots", "4"]
        assert run(["generate", family, *size, "--out", str(path)]) == 0
    assert run(["solve", "--potentials", "--algorithm", algorithm, str(path)]) == 0
    check_by_hand(path.read_bytes(), capsysbinary.readouterr().out)


def test_solve_is_a_replacement_for_cs2():
    """No arguments: the problem from standard input, the flow to standard output."""
    problem = with_bounds_and_parallel_arcs()
    bare, asked = (command("solve", *more, stdin=problem) for more in ([], ["--potentials", "-"]))
    assert asked.stdout.startswith(bare.stdout) and bare.stdout.startswith(b"s ")
    check_by_hand(problem, asked.stdout)


def test_at_a_budget_the_flow_reached_is_printed():
    network = quincy_graph(GraphOptions(200), 1).network
    text = write_dimacs(network)
    budget = str(solve(network).stats.operations // 2)
    done = command("solve", "--max-operations", budget, "-", stdin=text)
    assert done.returncode == 3
    comment, *_ = done.stdout.decode().splitlines()
    unsent = int(
        re.fullmatch(
            r"c stopped at its budget: not optimal, (\d+) units of supply not sent", comment
        )[1]
    )
    cost, flow = answer_of(done.stdout)
    price = {
        (t + 1, h + 1): c for t, h, c in zip(network.tail, network.head, network.cost, strict=True)
    }
    assert sum(price[arc] * x for arc, x in flow.items()) == cost
    excess = np.concatenate([[0], network.supply])
    for (tail, head), x in flow.items():
        assert x > 0
        excess[tail] -= x
        excess[head] += x
    assert excess[excess > 0].sum() == unsent
    assert done.stderr == b""

    done = command("solve", "--max-operations", budget, "--certify", "--json", "-", stdin=text)
    answer = json.loads(done.stdout)
    assert done.returncode == 3
    assert (answer["status"], answer["cost"], answer["cost_reached"]) == ("BUDGET", None, cost)
    assert answer["unsent"] == unsent and "certified" not in answer
    assert command("solve", "--max-seconds", "1e-9", "-", stdin=text).returncode == 3
    endless = ["--max-seconds", "1e300", "--max-operations", str(10**30)]
    assert command("solve", *endless, "-", stdin=text).returncode == 0


def test_a_race_reports_its_winner():
    text = write_dimacs(quincy_graph(GraphOptions(40), 1).network)
    racers = ("successive_shortest_path", "incremental_ssp")
    alone = [
        json.loads(command("solve", "--json", "--algorithm", name, "-", stdin=text).stdout)
        for name in racers
    ]
    both = ["solve", "--json", "--deterministic", "--algorithm", "+".join(racers), "-"]
    race = [json.loads(command(*both, stdin=text).stdout) for _ in range(2)]
    winner = min(alone, key=lambda answer: answer["operations"])["algorithm"]
    assert [answer["algorithm"] for answer in race] == [winner] * 2
    assert {answer["cost"] for answer in (*alone, *race)} == {race[0]["cost"]}
    refused = command("solve", "--algorithm", "incremental_ssp+guess", "-", stdin=text)
    assert refused.returncode == 2 and refused.stderr.startswith(
        b'error: --algorithm: no algorithm "guess"; known: '
    )
    refused = command("solve", "--algorithm", "relaxation+relaxation", stdin=text)
    assert (
        refused.returncode == 2
        and refused.stderr == b'error: --algorithm: algorithm "relaxation" given twice\n'
    )


def test_convert_there_and_back(tmp_path):
    """DIMACS with lower bounds, to .npz and to DIMACS without: the cost is the file's, or less by
    what the comment says."""
    bounded = command("solve", "-", stdin=BOUNDED)
    cost, flow = answer_of(bounded.stdout)
    to_npz = command("convert", "-", str(tmp_path / "x.npz"), stdin=BOUNDED)
    assert to_npz.returncode == 0
    assert command("solve", str(tmp_path / "x.npz")).stdout == bounded.stdout
    plain = command("convert", str(tmp_path / "x.npz"))
    comment = plain.stdout.decode().splitlines()[0]
    base = int(
        re.fullmatch(r"c lower bounds are taken out: costs here are lower by (-?\d+), .*", comment)[
            1
        ]
    )
    assert base == 1 * 2 - 1 * 5
    assert answer_of(command("solve", "-", stdin=plain.stdout).stdout)[0] == cost - base
    piped = command("convert", "--to", "npz", "-", stdin=BOUNDED)
    assert piped.stdout == (tmp_path / "x.npz").read_bytes()
    assert command("convert", "-", stdin=plain.stdout).stdout == b"".join(
        plain.stdout.splitlines(keepends=True)[1:]
    )
    assert flow == {(1, 2): 4, (2, 3): 4}


def test_pack_leaves_the_cost():
    text = (
        b"p min 6 7\nn 2 5\nn 5 -5\na 2 5 0 2 3\na 2 4 0 9 9\na 2 5 0 1 3\na 2 5 0 1 4\n"
        b"a 4 4 0 5 2\na 4 5 0 9 0\na 6 1 0 0 1\n"
    )
    packed = process("convert", "--pack", "-", stdin=text)
    assert (
        packed.stdout
        == b"p min 3 4\nn 1 5\nn 3 -5\na 1 3 0 3 3\na 1 2 0 9 9\na 1 3 0 1 4\na 2 3 0 9 0\n"
    )
    costs = [
        answer_of(command("solve", "-", stdin=form).stdout)[0] for form in (text, packed.stdout)
    ]
    assert costs == [22, 22]
    both = b"p min 2 2\na 1 2 0 4611686018427387904 1\na 1 2 0 4611686018427387904 1\n"
    refused = command("convert", "--pack", "-", stdin=both)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr == b"error: <stdin>: the capacity of parallel arcs does not fit 64 bits\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["solve"],
        ["convert"],
        ["bench"],
        ["generate"],
        *(["generate", family] for family in FAMILIES),
    ],
)
def test_every_help_explains_every_option(arguments, capsys):
    assert run([*arguments, "--help"]) == 0
    said = capsys.readouterr().out
    options = re.findall(r"^  (--[a-z-]+)(?: [^ \n]+)?(?:  +|\n +)(\S)", said, re.M)
    assert len(options) == len(re.findall(r"^  --", said, re.M)) > 0
    assert not [option for option, explained in options if explained == "["]
    assert arguments != ["solve"] or all(f"    {name}  " in said for name in algorithms())


def test_statuses_of_the_library_are_those_of_the_command():
    done = process("solve", "--json", "-", stdin=b"p min 2 0\nn 1 1\nn 2 -1\n")
    assert done.returncode == 2 and json.loads(done.stdout)["status"] == Status.INFEASIBLE.name
