"""A live run that was killed as a whole: its logs say what its actors would have handed over."""

from __future__ import annotations

import pytest

from parsync.metrics.summary import summarise
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.recovery import measure_killed
from tests.fixtures.live_runs import metrics_of
from tests.ray.conftest import FinishedRun

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]


def test_the_logs_of_a_run_hold_what_its_actors_handed_over(mixed_run: FinishedRun) -> None:
    arm, workload, outcome = mixed_run.arm, mixed_run.workload, mixed_run.outcome
    logs = LiveOptions(outcome.journal_dir)
    killed = measure_killed(Assembly.of(arm, workload), logs, metrics_of(workload, arm))
    assert killed.restarts == ()
    figures = summarise(killed.metrics)
    assert figures == summarise(outcome.metrics)
    assert figures.totals.still_running > 0  # with the times that they are due to end
    assert killed.ended_us >= workload.end_us
