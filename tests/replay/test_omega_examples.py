"""examples/omega: every event of Omega's architectures is audited, and the picture is drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from experiments.campaign.running import make_workload
from experiments.commands.run import app
from experiments.config.run_config import load_config
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.papers.chapter import FigureRun
from experiments.papers.runs import PlatformRuns
from experiments.results import load_run
from experiments.results.mapreduce import run_times_of, speedups
from experiments.workloads.service_batch import SPEC
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from tests.fixtures.commands import exit_status, in_one_process, without_figures
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


MAPREDUCE = load_config(EXAMPLES / "mapreduce.toml")


def run_status(folder: Path) -> int:
    """Run the configuration in a folder. The status of the command."""
    config, out = str(folder / "run.toml"), str(folder / "out")
    with without_figures(), in_one_process():
        return exit_status(app, "--config", config, "--out", out)


@pytest.fixture(scope="module")
def mapreduce_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example on a small cell, for a short time."""
    folder = tmp_path_factory.mktemp("mapreduce")
    text = (EXAMPLES / "mapreduce.toml").read_text()
    for given, small in (
        ("machines = 500", "machines = 60"),
        ("duration_s = 7_200.0", "duration_s = 300.0"),
        ("workers = [5, 11, 100]", "workers = [3, 10]"),
        ("map_s = 20.0", "map_s = 4.0"),
        ("reduce_s = 40.0", "reduce_s = 4.0"),
    ):
        assert given in text
        text = text.replace(given, small)
    (folder / "run.toml").write_text(text)
    assert run_status(folder) == 0
    return folder / "out"


def test_the_mapreduce_example_compares_the_policies_of_the_paper() -> None:
    policies = [arm.groups[-1].options["policy"] for arm in MAPREDUCE.arms]
    assert policies == ["requested", "max_parallelism", "global_cap", "relative_job_size"]


def test_speed_ups_are_read_from_a_run(mapreduce_run: Path) -> None:
    requested, most, _, relative = load_run(mapreduce_run).arms
    run_us = run_times_of(requested)
    assert requested.workload.mapreduce is not None
    assert len(run_us) == len(requested.workload.mapreduce) > 5
    assert (speedups(requested, requested) == 1).all()
    assert np.median(speedups(most, requested)) > 1.2
    assert np.median(speedups(relative, requested)) > 1.2


def test_a_run_for_a_figure_keeps_what_the_tables_of_a_run_tell(
    mapreduce_run: Path, tmp_path: Path
) -> None:
    config = load_config(mapreduce_run.parent / "run.toml")
    arm, seeds = config.arms[1], (config.seed,)
    run = FigureRun("most", config, arm, draws_series=False, keeps_mapreduce=True)
    runs = PlatformRuns(tmp_path)
    runs.run(runs.missing((run,), seeds), Interruption(), lambda: None)
    kept = runs.mapreduce_results((run,), seeds).first("most")
    loaded = load_run(mapreduce_run).arms[1]
    assert kept["run_us"].tolist() == run_times_of(loaded).tolist()
    cell = loaded.table("cell", ["at_us", "used_permille"])
    arriving = cell["at_us"].to_numpy() <= 300_000_000
    for name, column in (("used_at_us", "at_us"), ("used_permille", "used_permille")):
        assert kept[name].tolist() == cell[column].to_numpy()[arriving].tolist()
    assert 10 < len(kept["used_at_us"]) < len(cell), "the drain is left out"


def test_a_run_without_mapreduce_jobs_has_no_speed_ups(tmp_path: Path) -> None:
    """It is offered many times what its cell holds, too, and still has a report."""
    text = """
name = "none"
seeds = 1
[workload]
kind = "service_batch"
machines = 10
duration_s = 20.0
batch = { interarrival_s = 1.0, tasks_per_job = 2.0, run_s = 1.0 }
[[arms]]
name = "all"
partitions = 1
[[arms.groups]]
name = "all"
kind = "random"
count = 1
protocol = { kind = "optimistic", sync = "every_attempt", gap_s = 1.0 }
"""
    (tmp_path / "run.toml").write_text(text)
    assert run_status(tmp_path) == 0
    (arm,) = load_run(tmp_path / "out").arms
    with pytest.raises(AgoraError, match="has no MapReduce jobs"):
        run_times_of(arm)
