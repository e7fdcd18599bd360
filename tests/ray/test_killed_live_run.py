"""A live run that was killed as a whole: its logs say what its actors would have handed over."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import summarise
from parsync.runtime.assembly import Assembly
from parsync.runtime.live import run as live_run
from parsync.runtime.live.killed_run import measure_killed
from parsync.runtime.live.plan import LiveOptions
from tests.fixtures.live_runs import mixed_arm, small_workload

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]


def test_the_logs_of_a_run_hold_what_its_actors_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_run, "remove_records", lambda directory: None)
    workload, arm = small_workload(), mixed_arm()
    metrics = partial(
        RunMetrics,
        workload.phases,
        arm.agents,
        partitions=arm.partitions,
        job_of=workload.tasks.job,
    )
    options = LiveOptions(tmp_path)
    outcome = live_run.run_live(arm, workload, options, 20_000_000, metrics, lambda status: None)
    killed = measure_killed(Assembly.of(arm, workload), options, metrics)
    assert not outcome.partial and killed.restarts == ()
    figures = summarise(killed.metrics)
    assert figures == summarise(outcome.metrics)
    assert figures.totals.still_running > 0  # with the times that they are due to end
    assert killed.ended_us >= workload.end_us
