"""A run whose output nobody reads, or that finds no room, is written all the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from experiments.analysis.run_directory import MANIFEST
from tests.fixtures.commands import AGORA
from tests.fixtures.stopping import ROOT
from tests.replay.test_progress import CONFIG

AGORA_RUN = (*AGORA, "run", "--runtime", "virtual")


@pytest.mark.parametrize("unread", ["stdout", "stderr", "both", "full stdout", "full stderr"])
def test_a_run_is_whole_though_nothing_can_be_printed(tmp_path: Path, unread: str) -> None:
    config = tmp_path / "run.toml"
    text = CONFIG.replace("machines = 400", "machines = 60").replace("seeds = 2", "seeds = 1")
    config.write_text(text, "utf-8")
    read, closed = os.pipe()
    os.close(read)
    broken = open("/dev/full", "w") if "full" in unread else os.fdopen(closed, "w")  # noqa: SIM115
    with broken:
        ended = subprocess.run(
            [*AGORA_RUN, "--config", str(config), "--out", str(tmp_path / "run")],
            stdout=subprocess.DEVNULL if "stderr" in unread else broken,
            stderr=subprocess.DEVNULL if "stdout" in unread else broken,
            cwd=ROOT,
            check=False,
            timeout=120,
        )
    assert (ended.returncode == 0) == ("stderr" in unread)
    assert (tmp_path / "run" / MANIFEST).exists() and (tmp_path / "run" / "report.html").exists()
