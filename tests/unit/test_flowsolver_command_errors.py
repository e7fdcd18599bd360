"""`python -m flowsolver` on bad input, unusable files and streams, and Ctrl-C."""

import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from flowsolver import algorithms, certify, parse_dimacs, solve
from flowsolver.__main__ import run

ROOT = Path(__file__).parents[2]


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


GOOD = {"tail": [0], "head": [1], "capacity": [3], "cost": [1], "supply": [1, -1]}


def with_header(header):
    """A problem whose array `cost` has another header."""
    file = io.BytesIO(npz(**{name: values for name, values in GOOD.items() if name != "cost"}))
    header = header.ljust(117) + b"\n"
    with zipfile.ZipFile(file, "a") as archive:
        length = len(header).to_bytes(2, "little")
        archive.writestr("cost.npy", b"\x93NUMPY\x01\x00" + length + header + bytes(8))
    return file.getvalue()


def encrypted():
    """A problem whose entries are all marked as encrypted."""
    data = bytearray(npz(**GOOD))
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(magic, at + 1)) >= 0:
            data[at + flags] |= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (npz(**GOOD)[:100], "not a readable .npz file"),
        (npz(**GOOD).replace(b"NUMPY", b"NUMPI"), "not a readable .npz file"),
        (npz(**{k: v for k, v in GOOD.items() if k != "cost"}), "no array cost"),
        (npz(**{**GOOD, "head": [2]}), "head[0] = 2"),
        (npz(**{**GOOD, "head": [1, 1]}), "head has 2 entries, tail 1"),
        (npz(**{**GOOD, "capacity": [-1]}), "capacity[0] = -1"),
        (npz(**{**GOOD, "cost": [0.5]}), "cost holds float64"),
        (npz(**{**GOOD, "cost": [[1]]}), "cost has 2 dimensions"),
        (npz(**{**GOOD, "low": [1, 2]}), "low has 2 entries, tail 1"),
        (npz(**{**GOOD, "base_cost": [1, 2]}), "base_cost has 2 entries"),
        (npz(**{**GOOD, "cost": np.array([None])}), "not a readable .npz file"),
        (b"PK\x03\x04", "not a readable .npz file"),
        (encrypted(), "not a readable .npz file: File 'tail.npy' is encrypted"),
        (with_header(b"{'descr': '<i8',\n("), "not a readable .npz file: cost: not a header"),
        (with_header(b"{" + b"[" * 48), "not a readable .npz file: cost: not a header"),
        (
            with_header(b"{'descr': '<i8', 'fortran_order': False, 'shape': (10**9,)}"),
            "not a readable .npz file: cost: not a header",
        ),
        (
            with_header(b"{'descr': '<i8', 'fortran_order': False, 'shape': (9,)}"),
            "not a readable .npz file: cost: its header does not fit its size",
        ),
        (npz(**{**GOOD, "cost": np.array(["x" * 10**4])}), "cost holds <U10000"),
    ],
)
def test_bad_arrays_name_the_file_and_the_field(tmp_path, capsys, data, says):
    path = tmp_path / "bad.npz"
    path.write_bytes(data)
    assert run(["convert", str(path)]) == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith(f"error: {path}: ") and says in line and said.out == ""


def test_arrays_that_nobody_asked_for_are_not_decompressed(tmp_path, monkeypatch):
    """A few kilobytes may hold an array of gigabytes beside the problem's."""
    path = tmp_path / "problem.npz"
    file = io.BytesIO()
    np.savez_compressed(file, **GOOD, other=np.zeros(10**6, np.int64))
    path.write_bytes(file.getvalue())
    opened = []
    real = zipfile.ZipFile.open

    def note(archive, name, *arguments, **options):
        opened.append(getattr(name, "filename", name))
        return real(archive, name, *arguments, **options)

    monkeypatch.setattr(zipfile.ZipFile, "open", note)
    assert run(["solve", str(path)]) == 0
    assert {name.removesuffix(".npy") for name in opened} == GOOD.keys()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "expected a FILE or a command (--help lists the options)"),
        (["generate"], "Missing command"),
        (["generate", "torus"], "No such command 'torus'"),
        (["generate", "cold", "--machines", "0"], "'--machines'"),
        (["generate", "cold", "--machines", "many"], "'--machines'"),
        (["generate", "cold", "--out", "nowhere/x.min"], "nowhere/x.min: No such file"),
        (["generate", "cold", "--machines", "1", "--out", "."], ".: "),
        (["generate", "load-spreading", "--percent-used", "7"], "No such option: --percent-used"),
        (["generate", "netgen", "--arcs", "5"], "--arcs 5: must be 999 to 939960"),
        (["generate", "netgen", "--max-cost", "0"], "--max-cost 0: must be 1 to"),
        (["generate", "goto", "--arcs", "5"], "--arcs 5: must be 2000 to"),
        (["generate", "road", "--trips", "1251"], "--trips 1251: must be 1 to 1250"),
        (["generate", "cold", "--replicas", "2"], "--replicas 2: must be 1 or 3"),
        (["solve", "--max-seconds", "-1", "x"], "--max-seconds: must be more than 0, got -1.0"),
        (["solve", "--max-seconds", "nan", "x"], "--max-seconds: must be more than 0, got nan"),
        (["solve", "--max-operations", "0", "x"], "--max-operations: must be more than 0, got 0"),
        (
            ["solve", "--algorithm", "cost_scaling:alpha=1", "x"],
            "--algorithm: cost_scaling: alpha = 1, must be 2 to",
        ),
        (
            ["solve", "--algorithm", "relaxation:alpha=9", "x"],
            '--algorithm: relaxation has no setting "alpha"; it has: from_scratch',
        ),
        (
            ["solve", "--algorithm", "relaxation:from_scratch", "x"],
            "from_scratch is not NAME=on, NAME=off or NAME=NUMBER",
        ),
        (["solve", "--max-operations", "1.5", "x"], "'--max-operations'"),
        (["convert"], "'IN'"),
        (["convert", "gone.min"], "gone.min: No such file"),
        (["convert", "--to", "mps", "x"], "'--to'"),
    ],
)
def test_bad_arguments_are_one_line(arguments, says, capsys):
    assert run(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and says in line


def test_the_old_file_stays_when_the_new_one_does_not_fit(tmp_path):
    """A file-size limit is reached while the new file is written."""
    out = tmp_path / "graph.min"
    out.write_text("old")
    limited = (
        f"ulimit -f 8; exec {sys.executable} -m flowsolver generate cold --machines 100 --out {out}"
    )
    done = subprocess.run(
        ["bash", "-c", limited],
        cwd=ROOT,
        capture_output=True,
        check=False,
        preexec_fn=_ignore_file_size_signal,
    )
    assert done.returncode == 2 and done.stderr.decode() == f"error: {out}: File too large\n"
    assert out.read_text() == "old" and list(tmp_path.iterdir()) == [out]


def _ignore_file_size_signal():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_pipe_or_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "flowsolver",
            "generate",
            "cold",
            "--machines",
            "2",
            "--out",
            str(pipe),
        ],
        cwd=ROOT,
    )
    network = parse_dimacs(pipe.read_bytes()).network
    assert writer.wait() == 0
    assert certify(network, solve(network)).ok and pipe.is_fifo()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_closes_the_pipe_ends_the_command_quietly(unbuffered):
    writing = subprocess.Popen(
        [sys.executable, "-m", "flowsolver", "generate", "quincy"],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writing.stdout.read(1) == b"c"
    writing.stdout.close()
    assert (writing.wait(), writing.stderr.read()) == (1, b"")
    writing.stderr.close()


@pytest.mark.parametrize(
    ("closed", "arguments", "says"),
    [
        ("<&-", "solve", "<stdin>: closed"),
        (">&-", "generate cold --machines 2", "standard output is closed"),
    ],
)
def test_closed_streams_are_bad_input(closed, arguments, says):
    command_line = f"exec {sys.executable} -m flowsolver {arguments} {closed}"
    done = subprocess.run(
        ["bash", "-c", command_line], cwd=ROOT, capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {says}\n")


def test_ctrl_c_ends_a_long_solve_at_once(tmp_path):
    path = tmp_path / "long.npz"
    network = [
        "--nodes",
        "50000",
        "--arcs",
        "400000",
        "--sources",
        "300",
        "--sinks",
        "300",
        "--supply",
        "1000000",
    ]
    assert run(["generate", "netgen", *network, "--out", str(path)]) == 0
    slow = next(name for name in ("cycle_cancelling", "incremental_ssp") if name in algorithms())
    solving = subprocess.Popen(
        [sys.executable, "-m", "flowsolver", "solve", "--algorithm", slow, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(2)
    assert solving.poll() is None
    solving.send_signal(signal.SIGINT)
    assert solving.wait(timeout=10) in (-signal.SIGINT, 130)
    assert solving.stdout.read() == b""
    solving.stdout.close()
