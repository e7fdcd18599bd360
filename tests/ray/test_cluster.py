"""docs/cluster.md followed literally: two nodes on this machine, a token, and a run on both of
them. Then what a user may get wrong, a wheel, and nodes that are lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsync.runtime import replay
from tests.fixtures.ray_nodes import RayNodes

pytestmark = pytest.mark.ray

CONFIG = """
seeds = 1
settle_s = 0.1
runtime = "ray"

[synthetic]
machines = 200
mean_duration_s = 0.5
batch_tasks = 20
phase_s = 1.5
load_percent = [40, 80]

[[arms]]
name = "small"
sync = "diff_block"
partitions = 6
gap_s = 0.2
groups = [{ name = "greedy", kind = "random", count = 4 }]
"""

# Each actor's name and node, in the order in which they were created.
WHERE = """
import json, sys, ray
from ray._private.state import actors
ray.init(address=sys.argv[1], logging_level="ERROR")
found = [(a["StartTime"], a["Name"], a["Address"]["NodeID"], a["NumRestarts"]) for a in actors().values()]
print(json.dumps([entry[1:] for entry in sorted(found)]))
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    cluster = RayNodes()
    try:
        cluster.second_node()
        yield cluster
    finally:
        cluster.stop()


def config(folder: Path, text: str = CONFIG) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_page_s_commands_run_an_arm_on_both_nodes(nodes: RayNodes, tmp_path: Path) -> None:
    nodes.shell(f"{nodes.run.strip()} --config {config(tmp_path)}")
    run = nodes.shared / "agora" / "runs" / "first"
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    [arm] = summary["arms"]
    assert not summary["partial"]
    assert arm["totals"]["committed"] == summary["workload"]["arrivals"] > 0
    assert (run / "report.html").exists()
    assert replay.replay(run / "arms" / "small" / "log").divergence is None
    where = json.loads(nodes.shell(f"python -c '{WHERE}' {nodes.address}"))
    node_of = {name: node for name, node, _ in where}
    home = node_of["cell"]
    assert node_of["schedulers-0"] != home, "the first host goes to the other node"
    assert {node_of[n] for n in ("schedulers-1", "workers", "source", "coordinator")} == {home}
