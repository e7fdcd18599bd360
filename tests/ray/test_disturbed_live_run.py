"""A live run whose machine is busy with something else says so, and is not ranked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from parsync.metrics.kinds.validity import Cause, validity
from parsync.runtime.live.liveness import RunStatus
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.run import run_live
from parsync.runtime.records import merge_parts
from tests.fixtures.live_runs import metrics_of, small_arm, small_workload

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]
PHASE_S = 2.0


@pytest.fixture
def busy_machine() -> Iterator[Callable[[RunStatus], None]]:
    """From the first status on, three processes per processor that do nothing but use it: before,
    they would only keep the run from its start."""
    hogs: list[subprocess.Popen[bytes]] = []

    def keep_busy(status: RunStatus) -> None:
        if not hogs:
            use_it = [sys.executable, "-c", "while True: pass"]
            hogs.extend(subprocess.Popen(use_it) for _ in range(3 * (os.cpu_count() or 1)))

    yield keep_busy
    for hog in hogs:
        hog.kill()
        hog.wait()


def test_processes_that_use_all_processors_disturb_a_live_run(
    tmp_path: Path, busy_machine: Callable[[RunStatus], None]
) -> None:
    arm, workload = small_arm(), small_workload(PHASE_S)
    options = LiveOptions(tmp_path / "journal", tmp_path / "records")
    outcome = run_live(arm, workload, options, 20_000_000, metrics_of(workload, arm), busy_machine)
    assert not outcome.partial, outcome.notes
    found = validity(outcome.metrics.samples("actors"), {0: "schedulers-0", 1: "schedulers-1"})
    assert {load.actor for load in found.actors} == {
        "schedulers-0",
        "schedulers-1",
        "cell",
        "workers",
        "source",
    }
    assert found.is_disturbed, found
    assert any(one.cause is Cause.LATENESS for one in found.disturbances)
    assert "late (95th percentile; limit 2 ms) in second" in found.text
    merge_parts(tmp_path / "records", outcome.metrics.tables)
    table = pq.read_table(tmp_path / "records" / "actors.parquet").to_pydict()
    assert set(table["actor"]) == {0, 1, -1, -2, -4}
    assert np.all(np.array(table["length_us"]) >= 1_000_000)
