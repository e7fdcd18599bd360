"""Production tasks take the room of tasks of lower priority, whoever's they are, on Ray: also while
a scheduler host is killed. The replay audits who ended whose tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.workloads.synthetic import generate
from experiments.workloads.synthetic_options import SyntheticOptions
from parsync.runtime import replay
from parsync.runtime.live.monitor import RunStatus
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.run import run_live
from tests.fixtures.live_runs import metrics_of
from tests.fixtures.overloaded_cell import OPTIONS, arm, group
from tests.ray.test_killed_actors import kill

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]


def test_production_tasks_take_the_room_of_others(tmp_path: Path) -> None:
    options = {"load_percent": (200, 30), "phase_s": 1.0, "mean_duration_s": 0.4}
    crowded = {**OPTIONS.model_dump(), **options, "production_permille": 200}
    workload = generate(SyntheticOptions.model_validate(crowded), 3)
    config = arm("diff_block", group())
    groups = tuple(each.model_copy(update={"kind": "preempting"}) for each in config.groups)
    preempting = config.model_copy(update={"groups": groups, "evictions": "lower_priority"})
    spec = preempting.spec(3, 10_000, 50_000, live=True)
    todo = ["schedulers-0"]

    def killer(status: RunStatus) -> None:
        if todo and status.at_us >= 700_000:
            kill(todo.pop())

    live = LiveOptions(tmp_path / "journal", tmp_path / "records")
    outcome = run_live(spec, workload, live, 20_000_000, metrics_of(workload, spec), killer)
    assert outcome.drained and not outcome.partial, outcome.notes
    assert not todo and outcome.epochs["schedulers-0"] == 2

    replayed = replay.replay(outcome.journal_dir)  # raises InvariantViolation
    assert replayed.divergence is None and replayed.gaps == ()
    counts = replayed.counts
    assert counts is not None and counts.waiting == 0
    assert counts.evicted > 20 and counts.accepted == counts.submitted + counts.evicted
