"""Schedulers that share demand on Ray, two of them greedy and one a flow scheduler in a process of
its own. A scheduler host is killed; the logs replay, and the ledger has counted every task once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from parsync.core.addresses import CELL_SIDE
from parsync.protocols.optimistic.shared_demand import DemandLedger
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.replay import replay_master
from parsync.runtime.records import merge_parts
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import mixed_arm, small_workload
from tests.ray.killed_host import run_with_killed_host

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]
SHARED = {"prices": "implied", "share_demand": True}


def test_demand_is_shared_between_processes(tmp_path: Path) -> None:
    workload = small_workload(phase_s=0.5, machines=60)
    workload = replace(workload, duration_us=np.minimum(workload.duration_us, 500_000))
    arm = mixed_arm()
    arm = changed(arm, groups=tuple(changed(group, options=SHARED) for group in arm.groups))
    outcome, _ = run_with_killed_host(tmp_path, arm, workload, at_us=700_000)

    assembly = Assembly.of(arm, workload)
    assert merge_parts(tmp_path / "records", assembly.tables) == []
    master = assembly.master()
    beside = assembly.cell_side(master.cell)
    log = outcome.journal_dir / CELL_LOG
    assert len(list(replay_master(assembly.codec, log, master, beside))) > 0
    ledger = beside[CELL_SIDE]
    assert isinstance(ledger, DemandLedger)
    tasks = ledger.state[2]
    assert np.array_equal(tasks, np.bincount(workload.tasks.preference, minlength=len(tasks)))

    updates = pq.read_table(tmp_path / "records" / "demand_updates.parquet")
    learnt = np.bincount(updates["agent"].to_numpy(), updates["tasks"].to_numpy(), minlength=3)
    assert (learnt > 0).all(), "every scheduler learnt what others were offered"
