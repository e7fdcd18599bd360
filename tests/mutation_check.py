"""Bugs of the kind that a rewrite makes, planted one at a time in a copy of the repository. They
stand in planted_bugs.toml. The tests that are named beside each must find it, on as few examples as
on push.

    python -m tests.mutation_check [NAME...]

Exit status 1 if a bug is not found. Where the code has changed so much that a bug cannot be planted
any more, plant its like in the new code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS_FAILED = 1  # pytest's exit status; others mean that the tests could not run


@dataclass(frozen=True)
class Mutation:
    """A bug: `wrong` instead of `right`, which stands once in the file.

    found_by: the tests that find it, as arguments of pytest, or the source of a C++ test.
    """

    name: str
    file: str
    right: str
    wrong: str
    found_by: str

    @property
    def native(self) -> bool:
        return self.file.endswith((".cpp", ".hpp"))


with (ROOT / "tests" / "planted_bugs.toml").open("rb") as _file:
    MUTATIONS = tuple(Mutation(**bug) for bug in tomllib.load(_file)["bug"])


class Copy:
    """A copy of the repository with an environment that runs it. Its extensions are compiled anew,
    without optimisation, as soon as a native bug is planted."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "agora"
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in (*filter(None, files.split("\0")), *_extensions()):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.root / name)
        # Libraries are those of this environment. Its editable installation of Agora has no effect
        # there: a .pth file in a folder that a .pth file names is not read.
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        (libraries,) = environment.glob("lib/python*/site-packages")
        (libraries / "rest.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        self.python = environment / "bin" / "python"
        self._built = False
        where = self._run("-c", "import shared_state; print(shared_state.__file__)")
        assert Path(where.stdout.strip()).is_relative_to(self.root), where.stdout + where.stderr

    def test(self, arguments: str) -> subprocess.CompletedProcess[str]:
        """Run tests until the first fails."""
        if arguments.endswith(".cpp"):
            return self._test_native(Path(arguments).stem)
        options = ["-q", "-x", "-p", "no:xdist", "--hypothesis-profile=planted"]
        return self._run("-m", "pytest", *options, *arguments.split())

    def build(self, target: str = "all") -> None:
        """Compile what has changed, of all extensions or of one C++ test."""
        cmake, build = shutil.which("cmake"), self.root / "build" / "release"
        assert cmake is not None, "cmake is not on the path: run by make"
        if not self._built:
            self._call(
                *(cmake, "-S", self.root, "-B", build, "-G", "Ninja", "-DCMAKE_CXX_FLAGS=-O0"),
                *("-DCMAKE_BUILD_TYPE=None", f"-DPython_EXECUTABLE={sys.executable}"),
            )
            self._built = True
        self._call(cmake, "--build", build, "--target", target)

    def _test_native(self, name: str) -> subprocess.CompletedProcess[str]:
        """Compile a C++ test and run it; its status is pytest's."""
        self.build(name)
        built = self.root / "build" / "release"
        (program,) = (path for path in built.rglob(name) if path.is_file())
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        done.returncode = TESTS_FAILED if done.returncode else 0
        return done

    def _call(self, *command: object) -> None:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


def _extensions() -> Iterable[str]:
    """The extension modules beside the packages, relative to the repository."""
    for package in ("flowsolver", "shared_state", "schedulers", "parsync"):
        for path in (ROOT / package).rglob("*.so"):
            yield str(path.relative_to(ROOT))


def check(copy: Copy, mutation: Mutation) -> str:
    """Plant a bug, run the tests, and take it out again. Return what is wrong; "" if the tests
    find it."""
    path = copy.root / mutation.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(mutation.right) != 1:
        return f"cannot be planted: {mutation.file} does not hold its line once"
    try:
        path.write_text(text.replace(mutation.right, mutation.wrong), encoding="utf-8")
        if mutation.native and not mutation.found_by.endswith(".cpp"):
            copy.build()
        done = copy.test(mutation.found_by)
    finally:
        path.write_text(text, encoding="utf-8")
    if done.returncode == TESTS_FAILED:
        return ""
    if done.returncode == 0:
        return f"NOT FOUND by {mutation.found_by}"
    return f"the tests could not run: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def all_tests(chosen: Iterable[Mutation]) -> tuple[str, ...]:
    """What finds these bugs, as arguments of few calls of Copy.test(): whole files together, but
    those with options of pytest and C++ tests by themselves."""
    found_by = dict.fromkeys(mutation.found_by for mutation in chosen)
    alone = [tests for tests in found_by if " -" in tests or tests.endswith(".cpp")]
    files = dict.fromkeys(" ".join(tests for tests in found_by if tests not in alone).split())
    return (*filter(None, [" ".join(files)]), *alone)


def main(names: list[str]) -> int:
    """Check the bugs of these names, or all; return the exit status."""
    chosen = [m for m in MUTATIONS if not names or any(name in m.name for name in names)]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="agora-mutations-") as folder:
        copy = Copy(Path(folder))
        for test in all_tests(chosen):
            sound = copy.test(test)
            if sound.returncode != 0:
                print(f"{test} fails without any bug:")
                print(f"{sound.stdout[-4000:]}{sound.stderr[-4000:]}")
                return 1
        # native bugs last, since what they leave behind is compiled
        for mutation in sorted(chosen, key=lambda one: one.native):
            begun_s = time.monotonic()
            wrong = check(copy, mutation)
            failed += bool(wrong)
            print(
                f"{wrong or 'found'}: {mutation.name} ({time.monotonic() - begun_s:.0f} s)",
                flush=True,
            )
    print(f"{len(chosen) - failed} of {len(chosen)} bugs found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
