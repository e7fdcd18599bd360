"""Offers in live runs whose scheduler hosts or whose cell are killed: what was offered to a killed
scheduler is free again, nothing stays held, its tasks are placed once, and the run's log repeats.
Without Ray, on a hand-driven clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parsync.runtime.live.plan import CELL
from tests.fixtures.killed_actors import (
    cell_and_tasks,
    check_all_placed_once,
    killed_three_times,
    make_run,
    to_the_end,
)
from tests.fixtures.live_runs import offers_arm

BOTH = ("schedulers-0", "schedulers-1")


OPTIONS: list[dict[str, Any]] = [
    {},
    {"suppress": False},
    {"lock": False},
    {"gangs": "hoard"},
    {"attempts_max": 1000, "attempts_max_unplaced": 100},
]


# Any two of options, beside and in_step are seen together.
@pytest.mark.parametrize(
    ("options", "beside", "in_step"),
    [
        (options, (number % 2 == 0) ^ in_step, in_step)
        for number, options in enumerate(OPTIONS)
        for in_step in (True, False)
    ],
    ids=str,
)
def test_what_a_killed_scheduler_was_offered_is_free_again(
    options: dict[str, Any],
    beside: bool,
    in_step: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arm, workload = offers_arm(beside, **options), cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, arm, workload)
    outcome = killed_three_times(ray, BOTH, in_step)
    told = check_all_placed_once(outcome, arm, workload, tmp_path)
    assert int(outcome.metrics.count["accepted"].sum()) == len(told.commit_us)


@pytest.mark.parametrize("lock", [True, False])
def test_a_killed_cell_knows_its_offers_again(
    lock: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm, workload = offers_arm(lock=lock), cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, arm, workload)
    for at_us in (300_000, 900_000, 1_700_000):
        ray.pass_time(at_us)
        ray.kill(CELL)
        ray.restart(CELL)
    outcome = to_the_end(ray)
    check_all_placed_once(outcome, arm, workload, tmp_path)
