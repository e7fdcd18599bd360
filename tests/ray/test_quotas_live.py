"""Quota groups on Ray. A scheduler host is killed; its agents learn again what their tasks hold,
the logs replay, and a group stays near its maximum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.runtime.assembly import Assembly
from parsync.runtime.records import merge_parts
from parsync.workload.workload import QuotaMembership
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import small_arm, small_workload
from tests.ray.killed_host import run_with_killed_host

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]
MAXIMUM_PERMILLE = 200


def test_quotas_are_obeyed_between_processes(tmp_path: Path) -> None:
    workload = small_workload(phase_s=1.0, machines=60)
    group = (workload.tasks.job % 3 == 0).astype(np.int32)  # a third is of the second group
    workload = replace(
        workload,
        duration_us=np.minimum(workload.duration_us, 500_000),
        quotas=QuotaMembership(("free", "capped"), group),
    )
    groups = (
        QuotaGroup(name="free", minimum=0.3),
        QuotaGroup(name="capped", maximum=MAXIMUM_PERMILLE / 1000),
    )
    arm = changed(small_arm(), quotas=QuotaSpec(groups=groups))
    run_with_killed_host(tmp_path, arm, workload, at_us=1_200_000)

    assert merge_parts(tmp_path / "records", Assembly.of(arm, workload).tables) == []
    shares = pq.read_table(tmp_path / "records" / "quota_shares.parquet").to_pandas()
    use = pq.read_table(tmp_path / "records" / "quota_use.parquet").to_pandas()
    maximum = int(workload.cell.limit.sum()) * MAXIMUM_PERMILLE // 1000
    capped = shares[shares.quota_group == 1]
    assert len(capped) > 10 and (capped.limit <= maximum).all() and (capped.wanted > maximum).any()
    held = use[use.quota_group == 1].held
    assert maximum / 2 < held.max() <= 1.5 * maximum
