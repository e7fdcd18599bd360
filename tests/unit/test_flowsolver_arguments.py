"""What the Python interface accepts and refuses: masks, setters, copies, pickles, errors; and that
it agrees with C++: statuses, type stub, default.
"""

import ast
import copy
import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from flowsolver import (
    STATUS_TEXT,
    FlowNetwork,
    IncrementalSolver,
    Status,
    algorithms,
    certify,
    certify_cut,
    parse_dimacs,
    solve,
    solve_max_flow,
    write_dimacs,
)
from flowsolver import _flowsolver as native
from tests.fixtures.networks import network

COLUMNS = ("tail", "head", "capacity", "cost", "supply")


@pytest.fixture
def net() -> FlowNetwork:
    return network([4, 0, -4], [(0, 1, 3, 1), (0, 2, 2, 5), (1, 2, 3, 1)])


def equal(one: FlowNetwork, other: FlowNetwork) -> bool:
    return all(np.array_equal(getattr(one, c), getattr(other, c)) for c in COLUMNS)


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_of_a_network_is_equal_and_independent(net, again):
    other = again(net)
    assert equal(net, other)
    other.add_nodes([7])
    other.set_cost([0], 9)
    assert net.num_nodes == 3
    assert net.cost[0] == 1


@pytest.mark.parametrize("algorithm", algorithms())
def test_solutions_and_certificates_survive_pickling(net, algorithm):
    solution = solve(net, algorithm)
    other = pickle.loads(pickle.dumps(solution))
    assert (other.status, other.cost, other.winner) == (Status.OPTIMAL, 11, algorithm)
    assert np.array_equal(other.flow, solution.flow)
    assert other.stats.operations == solution.stats.operations > 0
    assert repr(other.stats) == repr(solution.stats)
    certificate = pickle.loads(pickle.dumps(certify(net, copy.deepcopy(solution))))
    assert certificate.ok
    assert certificate.arcs_checked == 3


def test_the_proof_that_a_network_is_infeasible_survives_pickling():
    net = FlowNetwork()
    net.add_nodes([2**62, 2**62, -(2**62), -(2**62)])
    net.add_arcs([0], [2], [1], [0])
    proof = pickle.loads(pickle.dumps(certify_cut(net, [0, 1])))
    assert proof.ok
    assert (proof.nodes, proof.supply, proof.capacity) == (2, 2**63, 1)
    lacking = pickle.loads(pickle.dumps(certify_cut(net, [2, 3, 9])))
    assert (lacking.ok, lacking.unknown_nodes, lacking.supply) == (False, 1, -(2**63))
    assert "supply=9223372036854775808" in repr(proof)


def test_an_incremental_solver_cannot_be_copied(net):
    solver = IncrementalSolver(net)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            attempt(solver)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda n: n.set_capacity([0, 3], 1), r"arcs\[1\] = 3: no such arc"),
        (lambda n: n.set_capacity([0, -1], 1), r"arcs\[1\] = -1: no such arc"),
        (lambda n: n.set_capacity([0, 1], [1, -1]), r"capacity\[1\] = -1: negative"),
        (lambda n: n.set_cost([0, 1], [1, 2, 3]), "cost has 3 entries, expected 2"),
        (lambda n: n.set_supply([0, 3], 1), r"nodes\[1\] = 3: no such node"),
        (lambda n: n.add_arcs([0, 0], [1, 3], 1, 1), r"head\[1\] = 3: no such node"),
        (lambda n: n.add_arcs([0, -1], 1, 1, 1), r"tail\[1\] = -1: no such node"),
        (lambda n: n.add_arcs([0, 0], 1, [1, -1], 1), r"capacity\[1\] = -1: negative"),
        (lambda n: n.add_arcs([0, 0], [1, 1, 1], 1, 1), "head has 3 entries, expected 2"),
        (lambda n: n.add_nodes(np.array([2**63], dtype=np.uint64)), "beyond int64"),
        (lambda n: n.set_supply([True, False], 1), "mask has an entry for each of the 3 ids"),
    ],
)
def test_a_refused_change_changes_nothing(net, change, says):
    before = copy.copy(net)
    with pytest.raises(ValueError, match=says):
        change(net)
    assert equal(net, before)


@pytest.mark.parametrize(
    ("arcs", "capacity", "cost", "says"),
    [
        ([0, 3], 1, 1, r"arcs\[1\] = 3: no such arc"),
        ([0, 1], [1, -1], 1, r"capacity\[1\] = -1: negative"),
        ([0, 1], [1, 1, 1], 1, "capacity has 3 entries, expected 2"),
        ([0, 1], 1, [1, 1, 1], "cost has 3 entries, expected 2"),
    ],
)
def test_a_refused_change_of_a_solvers_arcs_changes_nothing(net, arcs, capacity, cost, says):
    solver = IncrementalSolver(net)
    with pytest.raises(ValueError, match=says):
        solver.set_arcs(arcs, capacity, cost)
    assert equal(solver.snapshot()[0], net)


def test_setters_of_a_network_and_masks(net):
    """A mask names the ids where it is True."""
    net.set_capacity([0, 1], [5, 6])
    net.set_cost(2, -7)
    net.set_supply([0, 2], [1, -1])
    assert net.capacity.tolist() == [5, 6, 3]
    assert net.cost.tolist() == [1, 5, -7]
    assert net.supply.tolist() == [1, 0, -1]
    net.set_cost(0, 1)
    net.set_cost([False, True, True], 8)
    assert net.cost.tolist() == [1, 8, 8]
    net.set_cost(np.zeros(3, bool), 0)
    assert net.cost.tolist() == [1, 8, 8]

    solver = IncrementalSolver(net)
    solver.remove_arcs(np.array([True, False, False]))
    assert solver.num_arcs == 2
    with pytest.raises(ValueError, match=r"arcs\[0\] = 0: no such arc"):
        solver.set_cost(np.array([True, True, False]), 1)
    solver.add_arcs([0], [1], 4, 1)
    solver.set_supply(np.array([True, False, True]), [2, -2])
    assert solver.resolve() is Status.OPTIMAL
    ids = solver.flow().size
    with pytest.raises(ValueError, match=f"each of the {ids} ids, got 2 entries"):
        solver.remove_arcs([True, False])
    with pytest.raises(ValueError, match="got a single boolean"):
        solver.remove_nodes(True)


@pytest.mark.parametrize("field", ["supply", "tail", "head", "capacity", "cost"])
@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        (None, TypeError, "expected integers, got None"),
        ([True], ValueError, "holds booleans, expected integers"),
        ([1.0], ValueError, "holds float64, expected integers"),
        (["1"], ValueError, "holds <U1, expected integers"),
        ([None], ValueError, r"\[0\]: expected an integer, got None"),
        ([2**63], ValueError, "beyond int64"),
        ([2**80], ValueError, "beyond int64"),
        ([[1]], ValueError, "has 2 dimensions, expected 1"),
        ([[1], [1, 2]], ValueError, "expected a list of integers"),
        pytest.param(object(), ValueError, "expected an integer, got object", id="an object"),
    ],
    ids=str,
)
def test_values_that_are_no_integers_are_refused_by_name(net, field, value, kind, says):
    arguments = {"supply": [1], "tail": [0], "head": [1], "capacity": [1], "cost": [1]}
    arguments[field] = value
    with pytest.raises(kind, match=rf"^{field}.*{says}"):
        net.add_nodes(arguments.pop("supply"))
        net.add_arcs(**arguments)


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda n: solve(None), TypeError, "network: expected a FlowNetwork, got NoneType"),
        (lambda n: solve([1]), TypeError, "network: expected a FlowNetwork, got list"),
        (lambda n: IncrementalSolver(None), TypeError, "network: expected a FlowNetwork"),
        (lambda n: write_dimacs(None), TypeError, "network: expected a FlowNetwork"),
        (lambda n: certify(n, None), TypeError, "solution: expected a Solution, got NoneType"),
        (lambda n: certify(None, solve(n)), TypeError, "network: expected a FlowNetwork"),
        (lambda n: solve(n, None), TypeError, "algorithm: expected a name or several"),
        (lambda n: solve(n, 3), TypeError, "algorithm: expected a name or several, got int"),
        (lambda n: solve(n, [None]), TypeError, "algorithm: expected a name or several"),
        (lambda n: solve(n, "ssp"), ValueError, 'no algorithm "ssp"; known: incremental_ssp, '),
        (lambda n: solve(n, []), ValueError, "no algorithm given"),
        (lambda n: IncrementalSolver(n, []), ValueError, "no algorithm given"),
        (lambda n: IncrementalSolver(n, "ssp"), ValueError, 'no algorithm "ssp"; known: '),
        (lambda n: solve(n, ["relaxation"] * 2), ValueError, "given twice"),
        (lambda n: certify_cut(n, [0.5]), ValueError, "cut holds float64"),
        (lambda n: certify_cut(n, [[0, 1]]), ValueError, "2 dimensions"),
        (lambda n: solve(n, max_seconds="1"), TypeError, "max_seconds: expected a number"),
        (lambda n: solve(n, max_seconds=float("nan")), ValueError, "max_seconds = nan"),
        (lambda n: solve(n, max_operations=1.5), TypeError, "max_operations: expected an int"),
        (lambda n: solve(n, max_operations=True), TypeError, "max_operations: expected an int"),
        (lambda n: solve(n, max_operations=-1), ValueError, "max_operations = -1: must be more"),
        (
            lambda n: solve(n, max_operations=0),
            ValueError,
            "max_operations = 0: must be more than 0",
        ),
        (lambda n: solve(n, max_seconds=0), ValueError, "max_seconds = 0: must be more than 0"),
        (
            lambda n: IncrementalSolver(n).resolve(max_operations=0),
            ValueError,
            "max_operations = 0: must be more than 0",
        ),
        (lambda n: parse_dimacs("p min 0 0"), TypeError, "text: expected bytes, got str"),
        (lambda n: FlowNetwork(3), TypeError, "core: expected nothing"),
    ],
)
def test_wrong_arguments_are_named(net, call, kind, says):
    with pytest.raises(kind, match=says):
        call(net)


def test_every_status_has_a_meaning_and_a_docstring():
    assert set(STATUS_TEXT) == set(Status)
    assert all(status.__doc__ for status in Status)
    with pytest.raises(TypeError):
        STATUS_TEXT[Status.OPTIMAL] = "fine"


PACKAGE = Path(native.__file__).parent


STUB = ast.parse((PACKAGE / "_flowsolver.pyi").read_text())


def enumerators(header: str, enum: str) -> list[str]:
    """The enumerators of a C++ enum in Python's spelling: kBadCostRange -> BAD_COST_RANGE."""
    text = (PACKAGE / "native" / header).read_text()
    found = re.search(rf"enum class {enum}\b[^{{]*{{(.*?)}};", text, re.DOTALL)
    assert found is not None
    names = re.findall(r"\bk([A-Z]\w*)", re.sub(r"//[^\n]*", "", found[1]))
    return [re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper() for name in names]


def stub_names(body: list[ast.stmt]) -> set[str]:
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    return names | {
        target.id for node in body if isinstance(node, ast.Assign) for target in node.targets
    }


def test_every_status_of_cpp_is_bound_typed_and_explained():
    statuses = enumerators("network.hpp", "Status")
    assert len(statuses) == 8
    assert [status.name for status in Status] == statuses
    assert [status.name for status in STATUS_TEXT] == statuses
    (stub,) = (
        node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == "Status"
    )
    assert stub_names(stub.body) == set(statuses)


def test_the_stub_names_what_the_module_has():
    public = {name for name in vars(native) if not name.startswith("_")}
    assert stub_names(STUB.body) - {"Int64Array", "NativeChoice"} == public


@pytest.mark.parametrize(
    "stub",
    [node for node in STUB.body if isinstance(node, ast.ClassDef)],
    ids=lambda node: node.name,
)
def test_the_stub_names_what_each_class_has(stub):
    if stub.name == "Status":
        return
    bound = {name for name in vars(getattr(native, stub.name)) if not name.startswith("_")}
    assert {name for name in stub_names(stub.body) if not name.startswith("_")} == bound


@pytest.mark.parametrize("function", [solve, solve_max_flow, IncrementalSolver.__init__])
def test_the_default_algorithm_is_the_first_one_of_cpp(function):
    assert inspect.signature(function).parameters["algorithm"].default == next(iter(algorithms()))
