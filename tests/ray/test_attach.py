"""Attaching to a running cluster by address. In processes of their own: a process is connected to
one Ray at a time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from parsync.runtime.live.cluster import connect
from shared_state.errors import AgoraError

pytestmark = pytest.mark.ray

TWO_NODES = """
import sys
from pathlib import Path
import ray
from ray._private.state import actors
from ray.cluster_utils import Cluster
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.run import run_live
from parsync.runtime.replay import replay
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload

size = {"num_cpus": 1, "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args=size)
cluster.add_node(**size)
workload, arm, nodes = small_workload(), small_arm(), set()

def note_nodes(overview):
    nodes.update(actor["Address"]["NodeID"] for actor in actors().values() if actor["State"] == "ALIVE")

directory = Path(sys.argv[1])
options = LiveOptions(directory / "journal", directory / "records", address=cluster.address, fsync=True)
outcome = run_live(arm, workload, options, 20_000_000, metrics_of(workload, arm), note_nodes)
replayed = replay(outcome.journal_dir)
assert outcome.drained and not outcome.partial, outcome.notes
assert replayed.divergence is None and replayed.counts.accepted == len(workload.arrival_rows)
assert len(nodes) == 2, nodes
assert ray.is_initialized(), "a run leaves Ray as it was"
ray.shutdown()
cluster.shutdown()
print("attached")
"""


def test_a_run_attaches_to_a_cluster_of_two_nodes(tmp_path: Path) -> None:
    environment = dict(
        os.environ, RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0"
    )
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    result = subprocess.run(
        [sys.executable, "-c", TWO_NODES, str(tmp_path)],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert result.returncode == 0 and "attached" in result.stdout, result.stderr[-3000:]


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize(
    "address", [f"127.0.0.1:{unused_port()}", "127.0.0.1:99999999", "nowhere", "127.0.0.1:"]
)
def test_an_address_nobody_answers_at_is_one_clear_line(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(AgoraError, match=f"^--address {address}: ") as caught:
        connect(address, 100, False)
    assert "\n" not in str(caught.value)
