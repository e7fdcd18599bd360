"""A command sees to stop signals at its first line: what `python -m` imports before that must take
no time, or Ctrl-C ends it with a traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import flowsolver

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "pyarrow", "pydantic", "typer", "matplotlib", "ray", "multiprocessing")


@pytest.mark.parametrize(
    "imported",
    [
        "experiments.__main__",
        "experiments.report",
        "flowsolver.commands.stop_signals",
        "parsync.runtime.stop_signals",
    ],
)
def test_what_comes_before_the_first_line_is_light(imported: str) -> None:
    code = f"import sys, {imported}; print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


STOP_SIGNALS = r"from [\w.]+\.stop_signals import exit_on_stop_signals"
RUN_MODULE = r"from experiments\.__main__ import run_module"  # which sees to them first


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("experiments/actors.py", RUN_MODULE),
        ("experiments/compare.py", RUN_MODULE),
        ("experiments/parsync_vs_flow.py", RUN_MODULE),
        ("experiments/report/__main__.py", STOP_SIGNALS),
        ("experiments/commands/replay.py", STOP_SIGNALS),
        ("flowsolver/__main__.py", STOP_SIGNALS),
    ],
)
def test_every_command_sees_to_stop_signals_first(file: str, first: str) -> None:
    lines = (ROOT / file).read_text().splitlines()
    imports = [line.strip() for line in lines if line.strip().startswith(("import ", "from "))]
    assert re.fullmatch(first, next(line for line in imports if "__future__" not in line))


@pytest.mark.parametrize("command", ["run", "compare", "report", "actors", "model"])
def test_the_options_of_a_command_need_no_library(command: str) -> None:
    """So that --help and completion answer at once."""
    code = f"import sys, experiments.commands.{command}; "
    code += f"print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "['typer']\n"


def test_every_name_of_the_solver_is_there() -> None:
    assert {*flowsolver.__all__, "solution", "network"} <= set(dir(flowsolver))
    for name in flowsolver.__all__:
        assert getattr(getattr(flowsolver, name), "__name__", name) == name
    assert flowsolver.solution.solve is flowsolver.solve
    with pytest.raises(AttributeError, match="'flowsolver' has no attribute 'nothing'"):
        _ = flowsolver.nothing  # type: ignore[attr-defined]
