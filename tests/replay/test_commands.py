"""`agora`: its commands as a shell calls them, their help, and completion."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

from experiments.commands.registry import COMMANDS, app
from tests.fixtures.commands import ended

ROOT = Path(__file__).parents[2]
AGORA = Path(sys.executable).parent / "agora"


def agora(
    *arguments: str, environment: dict[str, str] | None = None, command: Sequence[str | Path] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*(command or [AGORA]), *arguments],
        env={**os.environ, "COLUMNS": "80", **(environment or {})},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def help_of(command: str) -> subprocess.CompletedProcess[str]:
    return agora(command, "--help")


def test_the_script_is_installed() -> None:
    (script,) = entry_points(group="console_scripts", name="agora")
    assert script.value == "experiments.__main__:main" and AGORA.exists()


def test_alone_it_prints_the_help_and_every_command() -> None:
    alone, asked = agora(), agora("--help")
    assert alone.returncode == asked.returncode == 0 and alone.stdout == asked.stdout
    for name, (_, what) in COMMANDS.items():
        assert f"  {name}" in alone.stdout and what in alone.stdout


def test_the_version_is_the_package_s() -> None:
    done = agora("--version")
    assert done.returncode == 0 and done.stdout.startswith(f"agora {version('agora')}")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_within_80_columns(command: str) -> None:
    done = help_of(command)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(f"Usage: agora {command} ")
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("run", "experiments.parsync_vs_flow"),
        ("compare", "experiments.compare"),
        ("report", "experiments.report"),
        ("replay", "experiments.commands.replay"),
        ("explain", "experiments.explain"),
        ("actors", "experiments.actors"),
        ("solve", "flowsolver"),
    ],
)
def test_a_module_is_the_same_command(command: str, module: str) -> None:
    here = help_of(command).stdout.partition("\n")
    there = agora("--help", command=[sys.executable, "-m", module]).stdout.partition("\n")
    assert here[2] == there[2] != ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bogus"], "error: No such command 'bogus' (--help lists the options)"),
        (["run", "stray"], "error: Got unexpected extra argument"),
        (["compare"], "error: Missing argument 'RUN'"),
        (["report"], "error: Missing argument 'RUN'"),
        (["replay"], "error: Missing argument 'RUN'"),
        (["report", "gone"], "error: gone: no such directory"),
        (["replay", "gone"], "error: gone: no such directory"),
        (["explain"], "error: Missing argument 'RUN'"),
        (["explain", "gone"], "error: gone: no such directory"),
        (["explain", "gone", "--worst", "0"], "error: Invalid value for '--worst': "),
        (["actors", "--address", "nowhere"], "error: --address nowhere: "),
        (["model", "--load", "100"], "error: --tasks 2000: expected at most the 0 idle slots"),
        (["solve"], "error: expected a FILE or a command (--help lists the options)"),
        (["solve", "gone.min"], "error: gone.min: No such file or directory"),
        (["solve", "convert"], "error: Missing argument 'IN'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(arguments: list[str], says: str) -> None:
    done = ended("agora", app, *arguments)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(says)


def test_a_mistake_is_told_in_the_same_way_by_a_process() -> None:
    done, here = agora("report", "gone"), ended("agora", app, "report", "gone")
    assert (done.returncode, done.stdout, done.stderr) == (here.returncode, "", here.stderr)
    assert here.returncode == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_in_this_process_prints_what_it_does_in_its_own(command: str) -> None:
    """So that other tests of what commands print need no processes."""
    assert ended("agora", app, command, "--help").stdout == help_of(command).stdout


def test_solve_takes_a_file_or_a_command_of_the_solver(tmp_path: Path) -> None:
    file = tmp_path / "graph.min"
    assert agora("solve", "generate", "quincy", "--machines", "5", "--out", str(file)).stdout == ""
    short = ended("agora", app, "solve", file, "--certify")
    long = ended("agora", app, "solve", "solve", file)
    assert short.returncode == 0 and short.stdout.startswith("s ") and short.stdout == long.stdout
    usage = ended("agora", app, "solve", file, "--help").stdout.partition("\n")[0]
    assert usage == "Usage: agora solve [OPTIONS] [FILE]"


@pytest.fixture(scope="module")
def completion() -> str:
    """The script that --show-completion prints in bash."""
    return agora(command=["bash", "-c", '"$0" --show-completion; true', AGORA]).stdout


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (["agora", ""], [*COMMANDS]),
        (["agora", "re"], ["reproduce", "report", "replay"]),
        (["agora", "run", "--see"], ["--seed", "--seeds"]),
        (["agora", "run", "--runtime", ""], ["ray", "virtual"]),
        (["agora", "compare", "--metric", "delay_m"], ["delay_mean_us"]),
        (["agora", "solve", "generate", "co"], ["contended", "cold"]),
    ],
)
def test_a_shell_completes(completion: str, words: list[str], offers: list[str]) -> None:
    ask = completion + '\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
    ask += '_agora_completion agora; printf "%s\\n" "${COMPREPLY[@]}"'
    environment = {"PATH": f"{AGORA.parent}:{os.environ['PATH']}"}
    done = agora(*words, environment=environment, command=["bash", "-c", ask, "bash"])
    assert done.stderr == "" and done.stdout.split() == offers


def test_completion_installs_itself(tmp_path: Path) -> None:
    """`true` keeps bash from becoming the command: its parent tells the shell."""
    ask = ["bash", "-c", '"$0" --install-completion; true', AGORA]
    done = agora(environment={"HOME": str(tmp_path)}, command=ask)
    assert "bash completion installed" in done.stdout and done.stderr == ""
    assert "agora" in (tmp_path / ".bashrc").read_text()


def test_a_closed_standard_output_is_one_line() -> None:
    done = agora("report", "run", command=["bash", "-c", 'exec "$@" >&-', "bash", AGORA])
    assert (done.returncode, done.stderr) == (2, "error: standard output is closed\n")
