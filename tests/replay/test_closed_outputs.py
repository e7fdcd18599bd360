"""A run whose output nobody reads, that finds no room for it, or that a terminal cannot show, is
written all the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.commands import AGORA
from tests.fixtures.small_run import SMALL_RUN
from tests.fixtures.stopping import ROOT


def run(folder: Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    """A run in a process, which is whole."""
    (folder / "run.toml").write_text(SMALL_RUN)
    command = [*AGORA, "run", "--config", folder / "run.toml", "--out", folder / "run"]
    ended = subprocess.run(command, cwd=ROOT, check=False, timeout=120, **options)
    for name in ("summary.json", "report.html", "manifest.json"):
        assert (folder / "run" / name).exists()
    return ended


@pytest.mark.parametrize("unread", ["stdout", "stderr", "both", "full stdout", "full stderr"])
def test_a_run_is_whole_though_nothing_can_be_printed(tmp_path: Path, unread: str) -> None:
    read, closed = os.pipe()
    os.close(read)
    broken = open("/dev/full", "w") if "full" in unread else os.fdopen(closed, "w")  # noqa: SIM115
    with broken:
        ended = run(
            tmp_path,
            stdout=subprocess.DEVNULL if "stderr" in unread else broken,
            stderr=subprocess.PIPE if "stdout" in unread else broken,
        )
    assert (ended.returncode == 0) == ("stderr" in unread)
    if unread == "full stdout":
        last = ended.stderr.decode().splitlines()[-1]
        assert last == "error: standard output: No space left on device"


def test_a_terminal_that_lacks_characters_costs_no_results(tmp_path: Path) -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = run(tmp_path, env=ascii_only, capture_output=True)
    assert ended.returncode == 0 and b"?" in ended.stdout, ended.stderr
