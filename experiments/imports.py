"""Check that Python imports Agora's own packages and libraries, and not other files of the same
name, or the code of an environment from which this one was copied. Imports nothing that takes time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

OWN = ("experiments", "parsync", "schedulers", "shared_state", "flowsolver")
LIBRARIES = ("numpy", "pyarrow", "pydantic", "msgpack", "rich", "typer", "jinja2", "matplotlib")
Find = Callable[[str], ModuleSpec | None]


def clash(here: Path = Path(__file__).parent, find: Find = find_spec) -> str:
    """What hides a package that the commands need, in one line; "" if nothing does.

    Args:
        here: The folder of the package `experiments`.
        find: Finds a module by its name.
    """
    for name in OWN:
        found = _place(find(name))
        if found is not None and found.parent != here.parent / name:
            return _line(name, found, here.parent / name / "__init__.py")
    for name in LIBRARIES:
        found = _place(find(name))
        if found is not None and found.name != "__init__.py":
            return _line(name, found, _elsewhere(name, found.parent))
    return ""


def copied_from(script: Path, prefix: Path = Path(sys.prefix)) -> str:
    """A warning for a command in a copied environment: it runs the code of the original. "" if it
    is not a copy.

    Args:
        script: The command's own path.
        prefix: The environment that runs it.
    """
    environment = script.resolve().parent.parent
    is_one = (environment / "pyvenv.cfg").is_file()
    if not is_one or environment == prefix.resolve():
        return ""
    return (
        f"{script} is a copy: it runs the code of {prefix}; `make setup` in the copied folder "
        "makes an environment of its own"
    )


def _place(spec: ModuleSpec | None) -> Path | None:
    return None if spec is None or spec.origin is None else Path(spec.origin).resolve()


def _elsewhere(name: str, hidden_by: Path) -> Path | None:
    """The package of that name in a later folder of Python's path."""
    folders = (Path(entry or ".").resolve() for entry in sys.path)
    found = (folder / name / "__init__.py" for folder in folders if folder != hidden_by)
    return next((path for path in found if path.is_file()), None)


def _line(name: str, found: Path, meant: Path | None) -> str:
    hidden = "" if meant is None else f" and hides {meant}"
    return (
        f"{found}: has the name of the package {name!r}{hidden}; rename it, or take its folder off "
        "PYTHONPATH"
    )
