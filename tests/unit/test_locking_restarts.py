"""Locks in live runs whose scheduler hosts are killed: what a killed scheduler held is free again,
and claims still never conflict. Without Ray, on a hand-driven clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsync.metrics.tables import CONFLICT_COLUMNS
from tests.fixtures.killed_actors import (
    cell_and_tasks,
    check_all_placed_once,
    killed_three_times,
    make_run,
)
from tests.fixtures.live_runs import locking_arm

BOTH = ("schedulers-0", "schedulers-1")


@pytest.mark.parametrize(
    ("locked_partitions", "hosts", "in_step"),
    [(1, BOTH, True), (None, BOTH[:1], False), (None, BOTH[:1], True)],
)
def test_a_restarted_scheduler_has_no_locks_and_nobody_waits_for_ever(
    locked_partitions: int | None,
    hosts: tuple[str, ...],
    in_step: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arm, workload = locking_arm(locked_partitions), cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, arm, workload)
    outcome = killed_three_times(ray, hosts, in_step)
    count = {name: int(counts.sum()) for name, counts in outcome.metrics.count.items()}
    assert sum(count[name] for name in CONFLICT_COLUMNS) == 0
    told = check_all_placed_once(outcome, arm, workload, tmp_path)
    assert told.claims == len(told.commit_us) + told.duplicates
