"""`agora`, and `python -m experiments`: all commands (experiments/commands/).

First of all, two checks: that Python imports Agora's own packages and libraries, and not other
files of the same name, nor the code of an environment from which this one was copied. So nothing
that takes time is imported above.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

OWN = ("experiments", "parsync", "schedulers", "shared_state", "flowsolver")
LIBRARIES = ("numpy", "pyarrow", "pydantic", "msgpack", "rich", "typer", "jinja2", "matplotlib")
Find = Callable[[str], ModuleSpec | None]


def main() -> None:
    """Run the command that the process's arguments name, and exit with its status."""
    try:
        from parsync.runtime.stop_signals import exit_on_stop_signals
    except ImportError:
        _end_if_hidden()
        raise
    exit_on_stop_signals()  # before the imports, which take a while
    _end_if_hidden()
    from experiments.command_line import run_command
    from experiments.commands.registry import app

    run_command(app)


def run_module(name: str) -> None:
    """Run a command that is a module of its own, and exit with its status."""
    from parsync.runtime.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()  # before the imports, which take a while
    from experiments.command_line import run_command
    from experiments.commands.registry import COMMANDS

    run_command(import_module(COMMANDS[name][0]).app)


def _end_if_hidden() -> None:
    """End with one line if a file that does not belong to Agora hides one of its packages. Warn if
    the command runs the code of another folder."""
    copied = copied_from(Path(sys.argv[0]))
    if copied:
        print(f"note: {copied}", file=sys.stderr)
    hidden = clash()
    if hidden:
        print(f"error: {hidden}", file=sys.stderr)
        sys.exit(2)


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


if __name__ == "__main__":
    main()
