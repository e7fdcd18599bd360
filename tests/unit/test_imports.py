"""A file that hides a package, and a command that was copied, are told in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path

import pytest

import experiments
from experiments.__main__ import LIBRARIES, OWN, clash, copied_from

ROOT = Path(experiments.__file__).parents[1]


def test_nothing_hides_a_package_here() -> None:
    assert clash() == ""


@pytest.mark.parametrize("name", [*OWN[1:], *LIBRARIES])
def test_a_file_that_hides_a_package_is_named_with_what_it_hides(tmp_path: Path, name: str) -> None:
    hiding = tmp_path / f"{name}.py"
    hiding.touch()

    def find(module: str) -> ModuleSpec | None:
        return spec_from_file_location(name, hiding) if module == name else find_spec(module)

    line = clash(find=find)
    assert line.startswith(f"{hiding}: has the name of the package {name!r} and hides /")
    assert "\n" not in line


def test_the_command_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").touch()
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "--version"],
        cwd=ROOT,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path}/numpy.py: has the name of the package 'numpy'")


def test_a_copied_command_says_whose_code_it_runs(tmp_path: Path) -> None:
    for name in ("original", "copy"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "pyvenv.cfg").touch()
    original = tmp_path / "original"
    assert copied_from(original / "bin" / "agora", original) == ""
    said = copied_from(tmp_path / "copy" / "bin" / "agora", original)
    assert f"copy/bin/agora is a copy: it runs the code of {original}; " in said
    assert copied_from(ROOT / "experiments" / "__main__.py") == ""


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_rebuilds_in_a_copied_folder(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    (tmp_path / ".venv" / ".ready").touch()
    cache = tmp_path / "build" / "release" / "CMakeCache.txt"
    cache.parent.mkdir(parents=True)

    def planned(folder: Path) -> str:
        (scripts / "agora").write_text(f"#!{folder}/.venv/bin/python\n")
        done = subprocess.run(
            ["make", "-n", "setup"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert "rm -rf .venv" not in planned(tmp_path)
    assert "rm -rf .venv" in planned(tmp_path.parent / "original")
    check = planned(tmp_path).split("mkdir -p build\n")[1].split("\n.venv/bin/cmake")[0]
    for home, kept in ((tmp_path, True), (tmp_path.parent, False)):
        cache.parent.mkdir(exist_ok=True)
        cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n")
        subprocess.run(["sh", "-c", check], cwd=tmp_path, check=True, capture_output=True)
        assert cache.exists() is kept
