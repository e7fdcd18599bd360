"""A stop signal at any moment of a command, from its first line on: one line, status 128 + the
signal's number, nothing half written, no process left."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from tests.fixtures.examples import some_of
from tests.fixtures.stopping import stop_when
from tests.replay.test_stopped_runs import HOW_TO_STOP, MAIN, configuration
from tests.unit.run_factory import write_synthetic_run

NAMES = ("StateSync aligned quality-first", "ParSync adaptive")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("synthetic") / "run"
    return write_synthetic_run(directory, names=NAMES, step_us=2_000_000)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("experiments.compare", ["RUN", "--out", "OUT.html"]),
        ("experiments.report", ["RUN"]),
        ("experiments.commands.replay", ["RUN"]),
        ("flowsolver", ["generate", "quincy", "--machines", "20000", "--out", "OUT.npz"]),
    ],
)
def test_a_signal_at_any_moment_of_a_short_command(
    module: str, arguments: list[str], run: Path, tmp_path: Path
) -> None:
    put = {
        "RUN": str(run),
        "OUT.html": str(tmp_path / "o.html"),
        "OUT.npz": str(tmp_path / "o.npz"),
    }
    arguments = [put.get(word, word) for word in arguments]
    stopped = 0
    for step in range(6):
        number, status, said, group = HOW_TO_STOP[step % len(HOW_TO_STOP)]
        end = stop_when(lambda: True, module, arguments, number, group, step * 0.15)
        if end.status == status:
            assert end.err == f"{said}\n", end.err
            stopped += 1
        else:  # it had ended before
            assert end.status in (0, 2), end
        assert end.left == []
        assert not list(tmp_path.glob("*.partial")) and not list(run.rglob("*.partial"))
    assert stopped >= 2


def test_a_signal_at_random_moments_of_a_short_run(tmp_path: Path) -> None:
    """Where it comes before there is anything, nothing is left of the run; else what there is."""
    arguments = [*configuration(tmp_path, phase_s=0.5), "--seeds", "2"]
    draws = random.Random(14)
    directory = tmp_path / "run"
    for number, status, said, group in HOW_TO_STOP * len(some_of(range(4))):
        delay_s = draws.uniform(0, 4)
        stopped = stop_when(lambda: True, MAIN, arguments, number, group, delay_s)
        where = f"{signal.Signals(number).name} after {delay_s:.3f} s: {stopped}"
        assert stopped.status in (status, 0) and stopped.left == [], where
        assert "Traceback" not in stopped.err and "ignored" not in stopped.err, where
        if stopped.status:
            assert stopped.err.splitlines()[-1] == said, where
        if directory.exists():
            assert read_summary(directory).arms, where
            assert not list(directory.glob("*.partial")), where
            for path in sorted(directory.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            directory.rmdir()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_solver_bench_keeps_what_it_has_and_its_solver_ends_with_it(
    number: int, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = [
        "bench",
        "--out",
        out,
        "--machines",
        "3000",
        "--figures",
        "utilisation",
        "--peers",
        "none",
    ]
    arguments += ["--algorithms", "cycle_cancelling,incremental_ssp", "--time-limit", "60"]
    stopped = stop_when(lambda: out.exists(), "flowsolver", arguments, number, False, 2.0)
    assert stopped.left == [] and "Traceback" not in stopped.err
    if number == signal.SIGKILL:
        assert stopped.status == -number
        return
    assert stopped.status == 143
    assert stopped.err.splitlines()[-1] == "terminated (SIGTERM)"
    assert json.loads((out / "bench.json").read_text())["partial"]
