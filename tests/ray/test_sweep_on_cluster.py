"""`agora sweep --address` on two nodes of which one is lost, and `agora frontier --address` on the
other: every run is done, and its digest is that of the same run here."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments.analysis.frontier_model import FRONTIER, POINTS, read_frontier
from experiments.campaign.running import seed_figures
from experiments.config.run_config import load_config
from experiments.studies.frontiers.grid import make_grid
from experiments.studies.sweeps.sweep_file import read_sweep
from tests.fixtures.frontier_toml import FRONTIER_TOML
from tests.fixtures.ray_nodes import RayNodes
from tests.replay.test_sweeps import small

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    cluster = RayNodes()
    try:
        yield cluster
    finally:
        cluster.stop()


def test_a_sweep_on_two_nodes_of_which_one_is_lost(nodes: RayNodes, tmp_path: Path) -> None:
    file, out = small(tmp_path, seeds=6, phase_s=2.0), tmp_path / "out"
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
    rows = pq.read_table(out / "points.parquet").to_pylist()
    assert len({(row["combination"], row["arm"], row["seed"]) for row in rows}) == 24
    row, sweep = rows[-1], read_sweep(file, {})
    config = sweep.combinations[row["combination"]].config
    (arm,) = (arm for arm in config.arms if arm.name == row["arm"])
    assert row["digest"] == seed_figures(config, arm, row["seed"]).digest


def test_a_frontier_on_a_cluster(nodes: RayNodes, tmp_path: Path) -> None:
    file, out = tmp_path / "frontier.toml", tmp_path / "out"
    file.write_text(FRONTIER_TOML)
    command = [sys.executable, "-m", "experiments.frontier", file, "--out", out]
    ended = nodes.try_command([*command, "--address", nodes.address], limit_s=300.0)
    assert ended.returncode == 0, ended.stderr
    assert "of processor time" in ended.stderr and "Traceback" not in ended.stderr
    assert (out / "frontier.html").is_file() and read_frontier(out / FRONTIER).seeds == [1, 2]
    rows = pq.read_table(out / POINTS).to_pylist()
    here = [
        seed_figures(one.config, one.arm, one.seed)
        for _, one in make_grid(load_config(file)).points()
    ]
    assert sorted(row["digest"] for row in rows) == sorted(one.digest for one in here)
