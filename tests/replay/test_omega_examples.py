"""examples/omega: every event of Omega's architectures is audited, and the picture is drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from experiments.config import load_config
from experiments.running import make_workload
from experiments.workload_config import WorkloadConfig
from experiments.workloads.service_batch import SPEC
from shared_state.tasks import TaskClass
from tests.replay.test_mixed_cell import Watched

EXAMPLES = Path("examples/omega")
CONFIG = load_config(EXAMPLES / "run.toml")
SMALL = {
    "machines": 100,
    "duration_s": 150.0,
    "batch": {"interarrival_s": 2.0, "tasks_per_job": 20.0, "run_s": 10.0},
    "service": {"interarrival_s": 20.0, "tasks_per_job": 10.0, "run_s": 30.0, "pickiness": 0.25},
}


@pytest.mark.parametrize("arm", CONFIG.arms, ids=lambda arm: arm.name)
def test_no_invariant_breaks_and_every_task_runs_once(arm: object) -> None:
    options = SPEC.parse_options(SMALL)
    config = CONFIG.model_copy(
        update={"arms": (arm,), "workload": WorkloadConfig.of("service_batch", options)}
    )
    workload = make_workload(config, config.seed)
    run = Watched(config, workload, 500, until_us=600_000_000)
    tasks = len(workload.arrival_rows)
    assert run.queued == run.counts.waiting == run.counts.running == 0
    assert run.counts.accepted == tasks > 500
    assert run.witness.placed == set(range(tasks))
    assert max(run.witness.ended.values()) == 1
    assert (workload.tasks.task_class == TaskClass.SERVICE).any()


def test_the_picture_is_drawn_of_a_sweep(tmp_path: Path) -> None:
    """Of two arms, one of which saturates and has lower bounds then."""
    rows = [
        {
            "arm": arm,
            'arms."Shared".groups.service.decision.job_us': t_job,
            "arms.Single.groups.all.decision.job_us": t_job,
            "seed": seed,
            "lower_bounds": "job_wait_batch_mean_us" if t_job > 1000 else "",
            "job_wait_batch_mean_us": 5.0 * t_job,
            "job_wait_service_mean_us": 7.0 * t_job,
            "service_useful_share": 0.1,
            "service_wasted_share": 0.2,
            "service_conflict_fraction": None if arm == "Single" else 0.5,
        }
        for arm in ("Single", "Shared")
        for t_job in (1_000, 1_000_000)
        for seed in (1, 2)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "points.parquet")
    png = tmp_path / "omega.png"
    command = [sys.executable, str(EXAMPLES / "figure.py"), str(tmp_path), str(png)]
    subprocess.run(command, check=True)
    assert png.read_bytes().startswith(b"\x89PNG")
