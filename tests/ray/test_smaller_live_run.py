"""A live run on a smaller cell than the one that its arm is compared on: it replays from its own
workload, and its twin in virtual time has the same cell."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from experiments.analysis.run_directory import read_summary
from experiments.campaign.preconditions import make_run_directory
from experiments.campaign.progress import ProgressReport
from experiments.campaign.running import make_workload
from experiments.campaign.running_live import run_arm_live
from experiments.commands.replay import main
from experiments.config.run_config import LiveConfig, RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.results.loaded_run import load_run
from experiments.studies.run.execution import run
from experiments.studies.run.killed_runs import finish_killed
from tests.fixtures.overloaded_cell import OPTIONS, arm, group

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray", "no_figures")]
CONFIG = RunConfig(
    runtime="ray",
    live=LiveConfig(machines=30),
    seeds=2,
    settle_s=0.1,
    drain_s=5.0,
    workload=WorkloadConfig.of(
        "synthetic", OPTIONS.model_copy(update={"load_percent": (60,), "phase_s": 2.0})
    ),
    arms=(arm("state_aligned", group()),),
)


def test_it_replays_and_is_predicted_on_its_own_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = make_workload(CONFIG, CONFIG.seed)
    directory = make_run_directory(tmp_path / "run", CONFIG, workload)
    report = ProgressReport(Console(quiet=True))
    live = partial(run_arm_live, held=None)
    assert run(CONFIG, workload, directory, report, live, Interruption()) == 0
    (found,) = read_summary(directory).live_runs
    assert found.machines == 30 and found.totals.censored == 0
    assert found.prediction is not None
    assert found.prediction.overall.submitted == found.overall.submitted
    loaded = load_run(directory).arm(found.slug)
    assert loaded.workload.cell.machines == 30
    capsys.readouterr()
    assert main([str(directory)]) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert f"{found.slug}: ok: " in said and "computed again, equal: " in said

    (directory / "summary.json").unlink()
    (directory / "arms" / found.slug / "figures.json").unlink()
    finish_killed(directory)  # from its tables
    (again,) = read_summary(directory).live_runs
    assert (again.overall.delay_mean_us, again.machines) == (found.overall.delay_mean_us, 30)
