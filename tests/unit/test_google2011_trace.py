"""The real trace, if it is there: counts its documentation and Firmament's setting give."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from experiments.workloads.google2011 import Google2011Options, load
from experiments.workloads.inspection import describe
from parsync.workload.checks import validate
from shared_state.tasks import TaskClass

ROOT = Path(
    os.environ.get("AGORA_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces"
)
FOLDER = ROOT / "google2011"

pytestmark = [
    pytest.mark.trace,
    pytest.mark.skipif(
        not FOLDER.is_dir(),
        reason=f"no trace at {FOLDER}: set AGORA_TRACES to the folder that holds google2011/",
    ),
]


def test_slots() -> None:
    workload = load(Google2011Options(directory=FOLDER), seed=1)
    validate(workload)
    facts = workload.facts
    assert facts["machines_up_at_start"] == 12_477 and workload.cell.machines == 12_480
    assert facts["tasks_running_in_trace_at_start"] == 132_982
    assert len(workload.tasks) == 190_926
    assert facts["tasks_pending_beyond_slots_at_start"] == 6_562
    assert facts["tasks_pending_machine_not_in_cell_at_start"] == 13
    assert len(workload.initial.task) == 132_982 - 6_562 - 13
    assert np.bincount(workload.initial.machine).max() == 13
    # 144,339 tasks are submitted before the window, 57,152 - 10,565 first SUBMITs follow.
    assert facts["tasks_pending_at_start"] == 144_339 - len(workload.initial.task)
    assert facts["tasks_arriving_later"] == 57_152 - 10_565 == 46_587
    assert (
        facts["runs_ended"],
        facts["runs_open_at_end"],
        facts["runs_open_ended_with_their_job"],
    ) == (58_585, 131_409, 68_370)
    assert (
        facts["machine_additions"],
        facts["machine_removals"],
        facts["machine_updates_ignored"],
    ) == (6, 7, 13)
    assert workload.end_us == 5_011_086_346 // 50 + 1
    services = workload.tasks.task_class == TaskClass.SERVICE
    assert np.array_equal(services, workload.duration_us == -1) and np.array_equal(
        services, workload.tasks.preference == 0
    )
    assert services.sum() == 131_409 - 68_370 + facts["tasks_never_run"]
    assert describe(workload)["jobs"] == 4_895


def test_requests_exceed_capacity_where_the_trace_says() -> None:
    exact = load(Google2011Options(directory=FOLDER, resources="requests", overcommit=1.0), seed=1)
    validate(exact)
    assert exact.facts["machines_above_cpu_ppm_limit_at_start"] == 10_303
    assert exact.facts["machines_above_mem_ppm_limit_at_start"] == 5_692
    assert len(exact.initial.task) == 132_982 - 13
    at_start = exact.cell.capacity.sum(axis=0) - exact.cell.capacity[
        exact.machine_events.machine[exact.machine_events.at_us == 0]
    ].sum(axis=0)
    assert at_start.tolist() == [6_603_250_000, pytest.approx(5_862.75e6, abs=1e4)]


def test_a_short_run() -> None:
    whole = load(Google2011Options(directory=FOLDER, speedup=100), seed=1)
    short = load(Google2011Options(directory=FOLDER, speedup=100, duration_s=5.0), seed=1)
    validate(short)
    early = whole.arrival_us < 5_000_000
    # A batch cut by the end arrives with the tasks that made it; all earlier ones are the same.
    assert np.array_equal(
        short.arrival_us[:-1], whole.arrival_us[early][: len(short.arrival_us) - 1]
    )
