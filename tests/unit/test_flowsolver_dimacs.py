"""DIMACS files and `python -m flowsolver solve`."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from flowsolver import (
    DimacsError,
    FlowNetwork,
    Status,
    parse_dimacs,
    solve,
    write_dimacs,
    write_dimacs_solution,
)
from flowsolver.__main__ import app
from tests.fixtures.examples import examples

GOOD = (
    b"c a comment\np min 4 5\nn 1 4\nn 4 -4\na 1 2 0 4 2\na 1 3 0 2 2\na 2 3 0 2 1\n"
    b"a 2 4 0 3 3\na 3 4 0 5 1\n"
)

MALFORMED = [
    ("empty", b"", 1, "no problem line"),
    ("only comments", b"c x\nc y\n", 2, "no problem line"),
    ("unknown letter", b"p min 2 0\nx 1 2\n", 2, "a line starts with"),
    ("letter runs on", b"p min 2 0\nnode 1 2\n", 2, "a line starts with"),
    ("not min", b"p max 2 0\n", 1, 'not "min"'),
    ("min runs on", b"p minimum 2 0\n", 1, 'not "min"'),
    ("no counts", b"p min\n", 1, "number of nodes is missing"),
    ("negative count", b"p min -1 0\n", 1, "number of nodes -1 is not within"),
    ("too many nodes", b"p min 9999999999 0\n", 1, "number of nodes 9999999999 is not within"),
    (
        "nodes no line names",
        b"p min 1000000000 1\na 1 2 0 1 1\n",
        1,
        "number of nodes 1000000000 is far more than",
    ),
    ("second problem", b"p min 1 0\np min 1 0\n", 2, "second problem line"),
    ("node first", b"n 1 2\np min 1 0\n", 1, "before the problem line"),
    ("arc first", b"a 1 2 0 1 1\n", 1, "before the problem line"),
    ("node 0", b"p min 2 0\nn 0 1\n", 2, r"node 0 is not within 1\.\.2"),
    ("node twice", b"p min 2 0\nn 1 1\nn 1 1\n", 3, "node 1 has a second line"),
    ("node after arcs", b"p min 2 1\na 1 2 0 1 1\nn 1 1\n", 3, "a node after the first arc"),
    ("head beyond", b"p min 2 1\na 1 3 0 1 1\n", 2, r"head 3 is not within 1\.\.2"),
    ("missing cost", b"p min 2 1\na 1 2 0 1\n", 2, "cost is missing"),
    ("fraction", b"p min 2 1\na 1 2 0 1.5 1\n", 2, "capacity is missing or not an integer"),
    ("word", b"p min 2 1\na 1 two 0 1 1\n", 2, "head is missing or not an integer"),
    ("one field more", b"p min 2 1\na 1 2 0 1 1 7\n", 2, "more on the line"),
    ("low above capacity", b"p min 2 1\na 1 2 3 2 1\n", 2, "capacity 2 is below the lower bound 3"),
    (
        "negative capacity",
        b"p min 2 1\na 1 2 0 -1 1\n",
        2,
        "capacity -1 is below the lower bound 0",
    ),
    ("beyond int64", b"p min 2 1\na 1 2 0 1 9223372036854775808\n", 2, "cost does not fit 64 bits"),
    (
        "span beyond int64",
        b"p min 2 1\na 1 2 -9223372036854775808 9223372036854775807 1\n",
        2,
        r"capacity - lower bound does not fit",
    ),
    (
        "low times cost",
        b"p min 2 1\na 1 2 4611686018427387904 4611686018427387904 4\n",
        2,
        "lower bounds do not fit",
    ),
    ("too few arcs", b"p min 2 2\na 1 2 0 1 1\n", 2, "ends after 1 of 2 arcs"),
    ("too many arcs", b"p min 2 1\na 1 2 0 1 1\na 1 2 0 1 1\n", 3, "more than the 1 arcs"),
    ("binary", b"p min 2 1\n\x00\xff\n", 2, "a line starts with"),
]


@pytest.mark.parametrize(
    ("text", "line", "message"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED]
)
def test_malformed(text, line, message):
    with pytest.raises(DimacsError, match=rf"^net\.min:{line}: .*{message}"):
        parse_dimacs(text, "net.min")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b" ", b"\t"),
        GOOD.rstrip(b"\n"),
        b"\n\n" + GOOD + b"\n  \nc end",
        GOOD.replace(b"\na", b"\n  a"),
    ],
    ids=["plain", "crlf", "tabs", "no final newline", "blank lines", "indented"],
)
def test_layouts(text):
    problem = parse_dimacs(text)
    assert problem.network.num_arcs == 5
    assert solve(problem.network).cost == 14


INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(INT64, min_size=1, max_size=8), st.data())
@examples(200)
def test_any_network_reads_back_as_written(supply, data):
    node = st.integers(0, len(supply) - 1)
    arcs = data.draw(st.lists(st.tuples(node, node, st.integers(0, 2**63 - 1), INT64), max_size=12))
    network = FlowNetwork()
    network.add_nodes(supply)
    columns = np.array(arcs, dtype=np.int64).reshape(-1, 4).T
    network.add_arcs(*columns)
    text = write_dimacs(network, ["made by a test", "n 1 7"])
    assert text.startswith(b"c made by a test\nc n 1 7\np min ")
    problem = parse_dimacs(text)
    for name in ("tail", "head", "capacity", "cost", "supply"):
        np.testing.assert_array_equal(getattr(network, name), getattr(problem.network, name))
    assert problem.base_cost == 0 and not problem.low.any()


small = st.integers(-20, 20)


@given(st.integers(1, 6), st.data())
@examples(200)
def test_taking_lower_bounds_out_changes_no_answer(nodes, data):
    """Flow `low` is sent on every arc; supplies and the base cost change accordingly."""
    node = st.integers(1, nodes)
    arcs = data.draw(
        st.lists(st.tuples(node, node, small, st.integers(0, 30), small), min_size=1, max_size=12)
    )
    sent = [data.draw(st.integers(low, low + room)) for _, _, low, room, _ in arcs]
    supply = [0] * (nodes + 1)
    for (tail, head, *_), x in zip(arcs, sent, strict=True):  # the supplies that this flow meets
        supply[tail] += x
        supply[head] -= x
    lines = [f"p min {nodes} {len(arcs)}", *(f"n {v} {supply[v]}" for v in range(1, nodes + 1))]
    lines += [f"a {tail} {head} {low} {low + room} {cost}" for tail, head, low, room, cost in arcs]
    problem = parse_dimacs("\n".join(lines).encode())
    solution = solve(problem.network)
    assert solution.status is Status.OPTIMAL
    flow = solution.flow + problem.low
    left = list(supply)
    for (tail, head, low, room, _), x in zip(arcs, flow.tolist(), strict=True):
        assert low <= x <= low + room
        left[tail] -= x
        left[head] += x
    assert not any(left)
    prices = [cost for *_, cost in arcs]
    cost = sum(c * x for c, x in zip(prices, flow.tolist(), strict=True))
    assert (
        cost
        == solution.cost + problem.base_cost
        <= sum(c * x for c, x in zip(prices, sent, strict=True))
    )
    written = write_dimacs_solution(problem, solution).decode().splitlines()
    assert written[0] == f"s {cost}"
    rows = [
        f"f {tail} {head} {x}" for (tail, head, *_), x in zip(arcs, flow.tolist(), strict=True) if x
    ]
    assert written[1:] == rows


def test_no_flow_is_written_without_an_optimum():
    problem = parse_dimacs(b"p min 1 0\nn 1 1\n")
    with pytest.raises(ValueError, match="UNBALANCED"):
        write_dimacs_solution(problem, solve(problem.network))


def run(*arguments, stdin=b""):
    return subprocess.run(
        [sys.executable, "-m", "flowsolver", "solve", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
    )


def test_command_reads_standard_input_and_prints_json():
    done = run("--json", "--certify", "-", stdin=GOOD)
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert (answer["cost"], answer["status"], answer["certified"]) == (
        14,
        Status.OPTIMAL.name,
        True,
    )
    assert answer["solve_ms"] >= 0


def test_command_refuses_a_malformed_file_with_one_line():
    done = run("-", stdin=b"p min 2 1\na 1 2 0 one 1\n")
    assert (done.returncode, done.stdout) == (2, b"")
    line = "error: <stdin>:2: capacity is missing or not an integer"
    assert done.stderr.decode().splitlines() == [line]


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (b"p min 2 1\nn 1 1\na 1 2 0 1 1\n", "UNBALANCED", "unbalanced"),
        (b"p min 2 0\nn 1 1\nn 2 -1\n", "INFEASIBLE", "infeasible"),
        (b"p min 2 1\na 1 2 0 1 4611686018427387904\n", "BAD_COST_RANGE", "cost out of range"),
        (
            b"p min 2 1\nn 1 4611686018427387904\nn 2 -4611686018427387904\na 1 2 0 1 1\n",
            "BAD_CAPACITY_RANGE",
            "capacity out of range",
        ),
    ],
)
def test_command_on_networks_without_an_answer(text, status, message):
    done = CliRunner().invoke(app, ["solve", "--json", "-"], input=text)
    assert done.exit_code == 2
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["cost"]) == (status, None)
    assert done.stderr.startswith(f"error: <stdin>: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.min"], "nowhere.min: No such file"),
        (
            ["--algorithm", "simplex", "-"],
            '--algorithm: no algorithm "simplex"; known: incremental_ssp',
        ),
    ],
)
def test_command_refuses_bad_arguments(arguments, message):
    done = CliRunner().invoke(app, ["solve", *arguments])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {message}")
