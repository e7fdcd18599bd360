"""Bugs of the kind that a rewrite of the engine makes, planted one at a time in a copy of the
repository. The tests that are named beside each must find it, on as few examples as on push.

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
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS_FAILED = 1  # pytest's exit status; others mean that the tests could not run


@dataclass(frozen=True)
class Mutation:
    """A bug: `wrong` instead of `right`, which stands once in the file.

    found_by: the tests that find it, as arguments of pytest.
    """

    name: str
    file: str
    right: str
    wrong: str
    found_by: str

    @property
    def native(self) -> bool:
        return self.file.endswith((".cpp", ".hpp"))


CELL = "tests/properties/test_cell_reference.py"
COMMIT = "shared_state/native/commit.cpp"
RELEASE = "used_.add(row * dimensions_ + r, -request[r]);"
AGENT = "parsync/protocols/native/optimistic_agent.cpp"
MUTATIONS = (
    Mutation(
        "a stale claim is told that the machine is full",
        COMMIT,
        "if (stale) return Reason::Stale;",
        "if (stale) return Reason::Full;",
        CELL,
    ),
    Mutation(
        "a release does not advance the partition's version",
        "shared_state/native/cell.cpp",
        RELEASE + "\n  touch(row);",
        RELEASE,
        CELL,
    ),
    Mutation(
        "a release moves the machine's sequence number",
        "shared_state/native/cell.cpp",
        RELEASE + "\n  touch(row);",
        RELEASE + "\n  ++rows_[row].seqnum;\n  touch(row);",
        CELL,
    ),
    Mutation(
        "a gang is torn: members that fit stay when another does not",
        COMMIT,
        "    undo<R>(claims, taken, kept);\n",
        "",
        CELL,
    ),
    Mutation(
        "events of one instant and priority are handled last come, first served",
        "parsync/core/native/event_heap.hpp",
        "return a.sequence > b.sequence;",
        "return a.sequence < b.sequence;",
        "tests/replay/test_golden_runs.py",
    ),
    Mutation(
        "the end of a task is reported one heartbeat late",
        "parsync/core/native/worker_pool.hpp",
        "return end_us / tick_us_ + (end_us % tick_us_ != 0);",
        "return end_us / tick_us_ + (end_us % tick_us_ != 0) + 1;",
        "tests/replay/test_golden_runs.py",
    ),
    Mutation(
        "a placement by price overlooks the last machine of a rack",
        "schedulers/native/placer_prices.cpp",
        "const int64_t end = std::min<int64_t>(range.end, pool.end);",
        "const int64_t end = std::min<int64_t>(range.end, pool.end) - 1;",
        "tests/properties/test_priced_placement_oracle.py",
    ),
    Mutation(
        "a task that yields its place in a flow goes where it costs more",
        "flowsolver/native/unit_source/unit_source_engine.cpp",
        "sources_.cost_through(i) != sources_.cost_through(now))",
        "false)",
        "tests/properties/test_flowsolver_histories.py",
    ),
    Mutation(
        "a view is not settled when the cell has answered",
        AGENT,
        "  parts_.cell.settle(round.plan.ticket, result.reason.span(), result.version.span());\n",
        "",
        "tests/replay/test_golden_runs.py",
    ),
    Mutation(
        "an evicted task is not queued again",
        AGENT,
        "return submit(now_us, ended.task, false, effects);",
        "return;",
        "tests/unit/test_agent.py",
    ),
    Mutation(
        "a rejected task is not offered again",
        AGENT,
        "  end_round(now_us, round, losers, effects);\n",
        "  end_round(now_us, round, {}, effects);\n",
        "tests/unit/test_agent.py",
    ),
    Mutation(
        "an agent without room does not ask again when its scheduler wants",
        AGENT,
        "const bool is_asked = retry_wanted_us_ && *retry_wanted_us_ <= now_us;",
        "const bool is_asked = false;",
        "tests/unit/test_agent.py tests/replay/test_golden_runs.py",
    ),
    Mutation(
        "of the tasks that ended since a synchronisation, only the last are told",
        "parsync/core/native/master.cpp",
        "  if (events.size() == 1) return *events[0];\n",
        "  return *events.back();\n",
        "tests/unit/test_ends_before_sync.py",
    ),
    Mutation(
        "the age of a partition counts from its first synchronisation",
        "shared_state/native/view.cpp",
        "  synced_us_[partition] = at_us;\n",
        "  if (synced_us_[partition] < 0) synced_us_[partition] = at_us;\n",
        "tests/properties/test_view_model.py",
    ),
    Mutation(
        "a conflict is counted twice",
        "parsync/metrics/conflicts.py",
        'conflicts = count["stale"] + count["full"] + count["evicted"]\n        return',
        'conflicts = count["stale"] + 2 * count["full"] + count["evicted"]\n        return',
        "tests/unit/test_metrics.py",
    ),
    Mutation(
        "what is held above a quota is never reclaimed",
        "parsync/core/coordinator.py",
        "return np.where(due[..., None], above, 0)",
        "return np.zeros_like(above)",
        "tests/unit/test_coordinator.py",
    ),
    Mutation(
        "a replay of a live log ignores the effects of schedulers",
        "parsync/runtime/live/replay.py",
        "if digest != entry.digest:",
        "if False:",
        "tests/replay/test_live_log.py::test_other_effects_of_any_core_are_found",
    ),
    Mutation(
        "a command that ended with an error has exit status 0",
        "parsync/runtime/command_line.py",
        "status = print_error(str(error))",
        "status = 0 * print_error(str(error))",
        "tests/replay/test_commands.py::test_a_mistake_is_one_line_and_exit_status_2",
    ),
    Mutation(
        "an arm whose scheduler breaks its contract takes the others with it",
        "experiments/studies/run/stages.py",
        "        if run.broken:\n",
        "        if False:\n",
        "tests/replay/test_broken_contracts.py::test_arms_beside_broken_ones_are_whole",
    ),
)


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
        options = ["-q", "-x", "-p", "no:xdist", "--hypothesis-profile=planted"]
        return self._run("-m", "pytest", *options, *arguments.split())

    def build(self) -> None:
        """Compile what has changed."""
        cmake, build = shutil.which("cmake"), self.root / "build" / "release"
        assert cmake is not None, "cmake is not on the path: run by make"
        if not self._built:
            self._call(
                *(cmake, "-S", self.root, "-B", build, "-G", "Ninja", "-DCMAKE_CXX_FLAGS=-O0"),
                *("-DCMAKE_BUILD_TYPE=None", f"-DPython_EXECUTABLE={sys.executable}"),
            )
            self._built = True
        self._call(cmake, "--build", build)

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
        if mutation.native:
            copy.build()
        done = copy.test(mutation.found_by)
    finally:
        path.write_text(text, encoding="utf-8")
    if done.returncode == TESTS_FAILED:
        return ""
    if done.returncode == 0:
        return f"NOT FOUND by {mutation.found_by}"
    return f"the tests could not run: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def main(names: list[str]) -> int:
    """Check the bugs of these names, or all; return the exit status."""
    chosen = [m for m in MUTATIONS if not names or any(name in m.name for name in names)]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="agora-mutations-") as folder:
        copy = Copy(Path(folder))
        sound = copy.test(" ".join(dict.fromkeys(" ".join(m.found_by for m in chosen).split())))
        if sound.returncode != 0:
            print(f"the tests fail without any bug:\n{sound.stdout[-4000:]}{sound.stderr[-4000:]}")
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
