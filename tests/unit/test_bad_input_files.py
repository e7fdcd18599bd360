"""Files the other commands cannot use: one line naming file, line or field, and exit status 2."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.commands.compare import app as compare
from experiments.commands.report import app as report
from flowsolver.__main__ import run as flowsolver
from tests.fixtures.commands import exit_status
from tests.fixtures.pickles import MakesAFile
from tests.unit.run_factory import write_synthetic_run

ROOT = Path(__file__).parents[2]
NULL = "null, please"
SOLVABLE = "p min 2 1\nn 1 3\nn 2 -3\na 1 2 0 5 1\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "bad.min:1: no problem line"),
        ("p min 2 1\nn 7 3\n", "bad.min:2: node 7 is not within 1..2"),
        ("p min 2 1\nn 1 3\nn 2 -2\na 1 2 0 5 1\n",
         "bad.min: unbalanced: the supplies do not sum to zero"),
        ("p min 2 1\nn 1 3\nn 2 -3\na 1 2 0 1 1\n",
         "bad.min: infeasible: no flow meets the supplies"),
        (f"p min 2 1\nn 1 {9 * 10**18}\nn 2 {-9 * 10**18}\na 1 2 0 {9 * 10**18} {9 * 10**18}\n",
         "bad.min: cost out of range"),
    ],
)  # fmt: skip
def test_networks_without_an_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (tmp_path / "bad.min").write_text(text)
    assert flowsolver(["solve", str(tmp_path / "bad.min")]) == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert says in line and said.out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["solve", "gone.min"], "gone.min: No such file"),
        (["solve", "."], ".: Is a directory"),
        (["convert"], "'IN'"),
        (["solve", "x", "--algorithm", "guess"], 'no algorithm "guess"; known: '),
        (["solve", "x", "--guess"], "--guess"),
        (["guess"], "guess"),
        ([], "command"),
    ],
)
def test_solver_arguments(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert flowsolver(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def solving_into(output: int | str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "good.min").write_text(SOLVABLE)
    command = [sys.executable, "-m", "flowsolver", "solve", str(tmp_path / "good.min")]
    target = os.open(output, os.O_WRONLY) if isinstance(output, str) else output
    try:
        return subprocess.run(
            command, cwd=ROOT, stdout=target, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(target)


def test_an_answer_that_does_not_fit_on_the_disk(tmp_path: Path) -> None:
    done = solving_into("/dev/full", tmp_path)
    line = "error: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, line)


def test_an_answer_nobody_reads(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = solving_into(writer, tmp_path)
    assert done.returncode == 1 and done.stderr == ""


def without(summary: dict[str, Any], path: str, replacement: Any = None) -> dict[str, Any]:
    """A copy with one field gone, or replaced."""
    copy: dict[str, Any] = json.loads(json.dumps(summary))
    place: Any = copy
    *above, last = path.split(".")
    for name in above:
        place = place[int(name) if name.isdecimal() else name]
    if replacement is None:
        del place[last]
    else:
        place[last] = replacement
    return copy


def changed(summary: dict[str, Any], path: str, value: Any) -> str:
    return json.dumps(without(summary, path, value if value is not None else NULL)).replace(
        f'"{NULL}"', "null"
    )


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_synthetic_run(
        tmp_path_factory.mktemp("runs") / "run",
        names=("ParSync adaptive",),
        seeds=(1, 2),
        step_us=2_000_000,
    )


@pytest.fixture(scope="module")
def summary(whole_run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((whole_run / "summary.json").read_text())
    return loaded


Change = Callable[[dict[str, Any]], str]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _: "", "not readable as JSON"),
        (lambda _: "half a", "not readable as JSON"),
        (lambda _: "[1, 2]", "expected an object, got a list"),
        (lambda _: '{"format": 99}',
         "field format: expected 12, as this version of Agora writes it, got 99"),
        (lambda good: json.dumps(without(good, "workload")), "field workload is missing"),
        (lambda good: json.dumps(without(good, "workload.phases")),
         "field workload.phases is missing"),
        (lambda good: json.dumps(without(good, "arms.0.overall")),
         "field arms[0].overall is missing"),
        *(
            (partial(changed, path=path, value=value), f"field {says}")
            for path, value, says in (
                ("workload", 5, "workload: expected an object"),
                ("paired.seeds", "1, 2", "paired.seeds: expected a list"),
                ("partial", "no", "partial: expected true or false"),
                ("arms.0.overall.delay_mean_us", nan,
                 "arms[0].overall.delay_mean_us: expected a number, got nan"),
                ("arms.0.overall.delay_mean_us", "soon",
                 "arms[0].overall.delay_mean_us: expected a number, got 'soon'"),
                ("arms.0.overall.delay_mean_us", True,
                 "arms[0].overall.delay_mean_us: expected a number, got True"),
                ("arms.0.overall.conflict_rate", [],
                 "arms[0].overall.conflict_rate: expected a number, got a list"),
                ("arms.0.overall.jct_mean_us", 1e300,
                 "arms[0].overall.jct_mean_us: expected a number, got 1e+300"),
                ("arms.0.overall.censored", -inf,
                 "arms[0].overall.censored: expected a number, got -inf"),
                ("arms.0.overall.claims", None,
                 "arms[0].overall.claims: expected a whole number, got null"),
                ("arms.0.seeds.0.overall.preferred_share", "half",
                 "arms[0].seeds[0].overall.preferred_share: expected a number"),
                ("arms.0.agents.3.backlog_mean", "a few",
                 "arms[0].agents[3].backlog_mean: expected a number"),
                ("arms.0.groups.0.agents", [99],
                 "arms[0].groups[0].agents: expected indices into agents"),
                ("arms.0.phases", [],
                 "arms[0].phases: expected as many entries as workload.phases"),
                ("arms.0.rivals", [[1, 2], [3]], "arms[0].rivals: expected rows of equal length"),
                ("arms.0.staleness.mean_us", ["old"],
                 "arms[0].staleness.mean_us[0]: expected a number"),
                ("arms.0.regret.decision.0.tasks", 0,
                 "arms[0].regret.decision[0].tasks: input should be greater than or equal to 1"),
                ("arms.0.clock_notes.tick_us", "often",
                 "arms[0].clock_notes.tick_us: expected a number"),
                ("arms.0.slug", "../../x", "arms[0].slug: string should match"),
                ("arms.0.name", "\ud800", "arms[0].name: expected Unicode text"),
                ("paired.seeds", [1, 2, 7], "paired.seeds: arms[0].seeds has no seed 7"),
                ("paired.arms", {}, "paired.arms: 'parsync-adaptive' is missing"),
                ("workload.capacity", [1, 2],
                 "workload.capacity: expected one number per dimension"),
                ("workload.end_us", 10**30,
                 "workload.end_us: expected a number of at most 63 bits"),
                ("workload.facts.tasks_pending_at_start", "all",
                 "workload.facts.tasks_pending_at_start: expected a whole"),
                ("settle_us", "briefly", "settle_us: expected a whole number, got 'briefly'"),
                ("config.deep", nested(60), "config.deep"),
            )
        ),
        (lambda good: json.dumps(good)[:-1] + ', "seed": ' + "9" * 5000 + "}",
         "not readable as JSON: a number has too many digits"),
        (lambda _: "[" * 100_000, "not readable as JSON: nested too deeply"),
    ],
)  # fmt: skip
def test_a_summary_that_is_not_one(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    summary: dict[str, Any],
    change: Change,
    says: str,
) -> None:
    (tmp_path / "summary.json").write_text(change(summary))
    for command in (compare, report):
        assert exit_status(command, tmp_path) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{tmp_path / 'summary.json'}: {says}" in line
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


def archive(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def one_array(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive_of(header: bytes) -> bytes:
    """An archive of one array with this header, and no content."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        members.writestr("bucket_us.npy", b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(118))
    return file.getvalue()


def encrypted(whole: bytes) -> bytes:
    """The archive with its first entry marked as encrypted."""
    data = bytearray(whole)
    data[whole.index(b"PK\x03\x04") + 6] |= 1
    data[whole.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


HUGE = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1125899906842624,)}"


@pytest.mark.parametrize(
    "damaged",
    [
        lambda whole, stranger: pickle.dumps(stranger),
        lambda whole, stranger: archive(bucket_us=np.array([stranger], dtype=object)),
        lambda whole, stranger: one_array(np.zeros(3)),
        lambda whole, stranger: b"",
        lambda whole, stranger: whole[: len(whole) // 2],
        lambda whole, stranger: whole[:500] + bytes(200) + whole[700:],
        lambda whole, stranger: encrypted(whole),
        lambda whole, stranger: archive_of(b"{'descr': '<i8',("),
        lambda whole, stranger: archive_of(HUGE),
    ],
    ids=[
        *("pickle", "objects", "one array", "empty", "torn", "damaged", "encrypted"),
        *("no header", "huge"),
    ],
)
def test_series_that_are_none(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    whole_run: Path,
    damaged: Callable[[bytes, MakesAFile], bytes],
) -> None:
    run = Path(shutil.copytree(whole_run, tmp_path / "run"))
    series = run / "arms" / "parsync-adaptive" / "series.npz"
    series.write_bytes(damaged(series.read_bytes(), MakesAFile(tmp_path / "executed")))
    assert exit_status(report, run) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{series}: cannot read the series" in line
    assert not (tmp_path / "executed").exists()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-700])


def overwrite(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04 and no more")


def rewrite(path: Path, **arrays: np.ndarray | None) -> None:
    """The series with some arrays replaced, or left out."""
    with np.load(path) as file:
        known = {name: file[name] for name in file.files} | arrays
    np.savez_compressed(path, **{name: a for name, a in known.items() if a is not None})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (cut, "cannot read the series: "),
        (overwrite, "cannot read the series: "),
        (Path.unlink, "cannot read the series: No such file"),
        (partial(rewrite, claims=None), "claims is missing"),
        (partial(rewrite, claims=np.zeros(3)), "claims: expected [8, "),
        (partial(rewrite, bucket_us=np.zeros(1)), "bucket_us: expected at least 1"),
        (partial(rewrite, ages=np.zeros((1, 2, 3))), "ages: expected [n, 3, "),
        (partial(rewrite, delay_share=np.array(["a"])), "delay_share: expected numbers, got <U1"),
        (partial(rewrite, agents_queued=None), "agents_queued is missing"),
        (partial(rewrite, agents_at_us=np.zeros(2), agents_agent=np.array([0, 99]),
                 agents_queued=np.zeros(2)),
         "agents_agent: expected 0 to 7"),
    ],
)  # fmt: skip
def test_a_series_that_is_not_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], whole_run: Path, damage: Any, says: str
) -> None:
    run = Path(shutil.copytree(whole_run, tmp_path / "run"))
    series = run / "arms" / "parsync-adaptive" / "series.npz"
    damage(series)
    assert exit_status(report, run) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{series}: {says}" in line
    assert not (run / "report.html").exists()
