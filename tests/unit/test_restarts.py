"""How restarts of live actors are told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from experiments.analysis.cell_watch import Watched
from experiments.analysis.summary_model import Restart, restart_count
from experiments.campaign.arm_runners import ArmJob, run_and_show
from experiments.campaign.progress import ProgressReport
from experiments.campaign.running import ArmRun
from experiments.config.run_config import RunConfig
from experiments.interruption import Interruption
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.spec.arm import ArmConfig
from tests.fixtures.live_runs import small_workload

BACK = Restart(actor="schedulers-1", at_us=12_300_000, away_us=1_450_000)
GONE = Restart(actor="source", at_us=900_000, away_us=None)


def test_a_restart_names_the_actor_the_time_and_how_long_it_was_away() -> None:
    told = "schedulers-1 was lost 12.3 s into the run and was back 1.45 s later"
    assert BACK.sentence == told
    assert GONE.sentence == "source was lost 900 ms into the run and did not come back"


@pytest.mark.parametrize(
    ("restarts", "told"),
    [([], ""), ([BACK], "1 restart"), ([BACK, BACK], "2 restarts"), ([GONE], "1 actor lost")],
)
def test_the_table_has_their_number(restarts: list[Restart], told: str) -> None:
    assert restart_count(restarts) == told


def test_each_is_told_as_its_arm_ends(tmp_path: Path) -> None:
    group = SimpleNamespace(name="greedy", count=1)
    arm = cast(ArmConfig, SimpleNamespace(name="[ParSync]", groups=[group]))
    config = cast(RunConfig, SimpleNamespace(arms=[arm], seed=1))
    workload = small_workload()
    metrics = RunMetrics(RunFrame(workload.phases, 1, partitions=1))

    def run_arm(*_: object) -> ArmRun:
        return ArmRun(arm, metrics, "", {}, "", 3.0, Watched(), restarts=[BACK, GONE])

    with (tmp_path / "terminal").open("w") as terminal:
        console = Console(record=True, file=terminal)
        run_and_show(
            config,
            ArmJob(arm, run_arm, tmp_path / "arm"),
            workload,
            "1/1 [ParSync]",
            ProgressReport(console),
            Interruption(),
        )
    assert console.export_text().splitlines()[-3:] == [
        "1/1 [ParSync]: done in 3.0 s",
        f"  {BACK.sentence}",
        f"  {GONE.sentence}",
    ]
