"""What somebody else's code raised, as messages say it: in one line, with the line of theirs."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from schedulers.entry_points import LONGEST, cause, raised

OUTER = "from {helper} import fail\n\n\ndef call(error):\n    fail(error)\n"
HELPER = "def fail(error):\n    raise error\n"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    """A package, and a module that is in none; both call a helper beside them."""
    folder = tmp_path / "raised_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(OUTER.format(helper="raised_package.helper"))
    (folder / "helper.py").write_text(HELPER)
    (tmp_path / "raised_module.py").write_text(OUTER.format(helper="raised_helper"))
    (tmp_path / "raised_helper.py").write_text(HELPER)
    monkeypatch.syspath_prepend(tmp_path)
    names = ("raised_package", "raised_package.helper", "raised_module", "raised_helper")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("raised_package"), import_module("raised_module")


def caught(module: ModuleType, error: Exception) -> Exception:
    try:
        module.call(error)
    except Exception as found:
        return found
    raise AssertionError("it did not raise")


def test_the_line_is_the_innermost_of_the_owners_package_or_file(modules) -> None:
    package, module = modules
    of_package = caught(package, KeyError(7))
    assert raised(of_package, package.call) == "KeyError: 7 (helper.py, line 2)"
    of_module = caught(module, KeyError(7))
    assert raised(of_module, module.call) == "KeyError: 7 (raised_module.py, line 5)"
    assert cause(of_module, module.call) == f"{module.__file__}, line 5: KeyError: 7"


def test_without_a_line_of_the_owners_it_is_the_innermost_and_never_ours(modules) -> None:
    _, module = modules
    assert raised(caught(module, KeyError(7)), object()) == "KeyError: 7 (raised_helper.py, line 2)"
    try:
        raise KeyError(7)
    except KeyError as ours:
        assert raised(ours, object()) == "KeyError: 7"


def test_a_message_is_one_line_of_limited_length() -> None:
    class Secret(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert raised(ValueError("a\n  b")) == "ValueError: a b"
    assert raised(ValueError()) == "ValueError"
    assert raised(Secret()) == "Secret: (its message cannot be shown)"
    long = raised(ValueError("x" * 1000))
    assert len(long) == LONGEST and long.endswith("x…")
