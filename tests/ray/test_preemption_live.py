"""Production tasks take the room of tasks of lower priority, whoever's they are, on Ray: also while
a scheduler host is killed. The replay audits who ended whose tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.workloads.synthetic import SyntheticOptions, generate
from tests.fixtures.overloaded_cell import OPTIONS, arm, group
from tests.ray.killed_host import run_with_killed_host

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]


def test_production_tasks_take_the_room_of_others(tmp_path: Path) -> None:
    options = {"load_percent": (200, 30), "phase_s": 1.0, "mean_duration_s": 0.4}
    crowded = {**OPTIONS.model_dump(), **options, "production_permille": 200}
    workload = generate(SyntheticOptions.model_validate(crowded), 3)
    config = arm("diff_block", group())
    groups = tuple(each.model_copy(update={"kind": "preempting"}) for each in config.groups)
    preempting = config.model_copy(update={"groups": groups, "evictions": "lower_priority"})
    spec = preempting.seeded(3, 10_000, 50_000, live=True)
    _, replayed = run_with_killed_host(tmp_path, spec, workload, at_us=700_000)
    counts = replayed.counts
    assert counts is not None and counts.waiting == 0
    assert counts.evicted > 20 and counts.accepted == counts.submitted + counts.evicted
