"""`agora sweep --address` on two nodes of which one is lost: every run is done, and its digest is
that of the same run here."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments.running import seed_figures
from experiments.sweeps.sweep_file import read_sweep
from tests.fixtures.ray_nodes import RayNodes
from tests.replay.test_sweeps import small

pytestmark = pytest.mark.ray


def test_a_sweep_on_two_nodes_of_which_one_is_lost(tmp_path: Path) -> None:
    file, out = small(tmp_path, seeds=6, phase_s=2.0), tmp_path / "out"
    nodes = RayNodes()
    try:
        lost = nodes.second_node()
        command = [sys.executable, "-m", "experiments.sweep", file, "--out", out]
        with ThreadPoolExecutor(1) as beside:
            done = beside.submit(
                nodes.try_command, [*command, "--address", nodes.address], limit_s=300.0
            )
            while not (done.done() or len(list((out / "points").glob("*.json"))) >= 2):
                time.sleep(0.05)
            nodes.lose(lost)
            ended = done.result()
        assert ended.returncode == 0, ended.stderr
        assert "of processor time" in ended.stderr and "Traceback" not in ended.stderr
    finally:
        nodes.stop()
    rows = pq.read_table(out / "points.parquet").to_pylist()
    assert len({(row["combination"], row["arm"], row["seed"]) for row in rows}) == 24
    row, sweep = rows[-1], read_sweep(file, {})
    config = sweep.combinations[row["combination"]].config
    (arm,) = (arm for arm in config.arms if arm.name == row["arm"])
    assert row["digest"] == seed_figures(config, arm, row["seed"]).digest
