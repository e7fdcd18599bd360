"""Nothing that reads or writes files does so by pickle: unpickling a stranger's file executes it.

(Ray and multiprocessing pickle what goes between our own processes, in memory.)
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("flowsolver", "shared_state", "schedulers", "parsync", "experiments")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
EXECUTING = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def breaches(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        found += [name for name in names if name.partition(".")[0] in EXECUTING]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.load":
            allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
            if not (allowed and isinstance(allowed[0], ast.Constant) and allowed[0].value is False):
                found.append(ast.unparse(node))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".read_pickle"):
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_unpickles(package: str) -> None:
    sources = [path for path in SOURCES if path.is_relative_to(ROOT / package)]
    assert sources
    assert not {str(path): b for path in sources if (b := breaches(path.read_text("utf-8")))}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from cloudpickle import loads",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "pd.read_pickle(path)",
    ],
)
def test_the_check_finds_what_it_looks_for(source: str) -> None:
    assert breaches(source)
