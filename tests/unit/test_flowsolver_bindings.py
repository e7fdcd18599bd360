"""The Python interface of the native module agrees with C++: statuses, type stub, default."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from flowsolver import STATUS_TEXT, IncrementalSolver, Status, algorithms, solve, solve_max_flow
from flowsolver import _flowsolver as native

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
    assert stub_names(STUB.body) - {"Int64Array"} == public


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
