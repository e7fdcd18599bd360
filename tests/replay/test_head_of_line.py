"""What happens behind a gang for which there is no room, in whole runs: those that fit go ahead for
head_of_line_s, then the gang holds the queue until it is placed."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from parsync.spec.decision_times import ModelledTime
from tests.fixtures.unit_workloads import SECOND, Unit, run_units, unit_arm, unit_workload

BLOCKER_S, END_S = 3, 10
GANG = range(1, 6)  # its tasks, behind the one that is in its way
EVERY_US = 50_000
SMALL = [
    Unit(((1,),), at_us, is_gang=False, run_us=SECOND // 2)
    for at_us in range(SECOND // 5, END_S * SECOND, EVERY_US)
]
UNITS = [
    Unit(((2,),), 0, is_gang=False, run_us=BLOCKER_S * SECOND),
    Unit(((3,),) * 5, SECOND // 10),
    *SMALL,
]
OPTIMISTIC = {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.05}
LARGE_TASK = [
    Unit(((3,), (3,)), 0, is_gang=False, run_us=BLOCKER_S * SECOND),
    Unit(((4,),), SECOND // 10, is_gang=False),
    *SMALL,
]
PROTOCOLS: dict[str, dict[str, Any]] = {
    "cut at syncs": OPTIMISTIC,
    "uncut": {**OPTIMISTIC, "cut_at_sync": False},
    "waits for commits": {**OPTIMISTIC, "commit_pipelining": False},
    "sync at every attempt": {"kind": "optimistic", "sync": "every_attempt", "gap_s": 0.05},
    "all or nothing": {**OPTIMISTIC, "commit_mode": "all_or_nothing"},
    "freed at once": {**OPTIMISTIC, "freed_at_once": True},
    "hold_max": {**OPTIMISTIC, "hold_max": 1.0},
    "jobs_max": {**OPTIMISTIC, "jobs_max": 1000},
    "quotas": OPTIMISTIC,
    "locking": {"kind": "locking", "retry_s": 0.01},
}
QUOTAS = {"interval_s": 0.05, "groups": [{"name": "a"}]}


def run(
    name: str,
    head_of_line_s: float | str,
    units: list[Unit] = UNITS,
    machines: int = 5,
    task_us: float = 300,
) -> tuple[np.ndarray, list[dict[str, int]]]:
    """When each task was committed, int64[n], and the rows of the table `holds`."""
    protocol = {**PROTOCOLS[name], "head_of_line_s": head_of_line_s}
    quotas = QUOTAS if name == "quotas" else None
    arm = unit_arm(protocol, quotas=quotas, decision=ModelledTime(task_us=task_us))
    workload = unit_workload([[4]] * machines, units, quotas=() if quotas is None else ("a",))
    placed, sorted_out, tables = run_units(arm, workload)
    assert placed == list(range(len(workload.tasks))) and not sorted_out
    at_us = np.zeros(len(workload.tasks), np.int64)
    for part in tables["tasks"]:
        at_us[part["task"]] = part["commit_us"]
    holds = [
        {column: int(values[row]) for column, values in part.items()}
        for part in tables.get("holds", [])
        for row in range(len(part["task"]))
    ]
    return at_us, holds


@cache
def run_of(name: str, head_of_line_s: float | str) -> tuple[np.ndarray, list[dict[str, int]]]:
    """The same of UNITS on five machines."""
    return run(name, head_of_line_s)


def submitted(units: list[Unit] = UNITS) -> np.ndarray:
    return np.repeat([unit.submit_us for unit in units], [len(unit.requests) for unit in units])


@pytest.mark.parametrize("name", PROTOCOLS)
def test_in_strict_order_nothing_passes(name: str) -> None:
    at_us, _ = run_of(name, 0)
    assert at_us[GANG].min() > BLOCKER_S * SECOND
    assert at_us[6:].min() > at_us[GANG].max()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_gang_that_never_holds_starves_while_others_come(name: str) -> None:
    at_us, _ = run_of(name, "inf")
    assert at_us[GANG].min() > END_S * SECOND
    assert (at_us - submitted())[6:].max() < SECOND // 4


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_gang_holds_the_queue_once_it_has_waited(name: str) -> None:
    (at_us, _), submit_us = run_of(name, 2.0), submitted()
    gang_us = int(at_us[GANG].max())
    assert BLOCKER_S * SECOND < gang_us < (BLOCKER_S + 1) * SECOND
    since_us = submit_us[1] + 2 * SECOND
    early = np.flatnonzero(submit_us < since_us - SECOND // 4)[6:]
    late = np.flatnonzero((submit_us > since_us + SECOND // 4) & (submit_us < gang_us))
    assert len(early) > 20 and (at_us - submit_us)[early].max() < SECOND // 4
    assert len(late) > 10 and at_us[late].min() > gang_us


@pytest.mark.parametrize("name", ["cut at syncs", "sync at every attempt", "locking"])
def test_a_single_task_holds_the_queue_like_a_gang(name: str) -> None:
    units = LARGE_TASK
    at_us, _ = run(name, 2.0, units, machines=2)
    assert BLOCKER_S * SECOND < at_us[2] < (BLOCKER_S + 1) * SECOND
    submit_us = submitted(units)
    behind = np.flatnonzero((submit_us > 2.5 * SECOND) & (submit_us < at_us[2]))
    assert len(behind) and at_us[behind].min() > at_us[2]


@pytest.mark.parametrize("name", ["cut at syncs", "uncut", "sync at every attempt"])
def test_those_behind_get_their_turn_where_the_view_changes_faster_than_it_decides(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the waiting gang takes five times as long as the gap between two syncs."""
    monkeypatch.setitem(PROTOCOLS[name], "gap_s", 0.007)
    at_us, _ = run(name, math.inf, task_us=7_000)
    assert (at_us - submitted())[6:].max() < 2 * SECOND


@pytest.mark.parametrize("name", ["cut at syncs", "uncut", "hold_max", "quotas", "locking"])
def test_what_waits_behind_a_gang_that_holds_the_queue_is_recorded(name: str) -> None:
    submit_us = submitted()
    for head_of_line_s in (0, 2.0):
        at_us, holds = run_of(name, head_of_line_s)
        longest = max(holds, key=lambda hold: hold["until_us"] - hold["from_us"])
        gang_us = int(at_us[GANG].max())
        assert longest["task"] == GANG[0]
        assert abs(longest["until_us"] - gang_us) < SECOND // 10
        behind = np.count_nonzero((submit_us < gang_us) & (at_us > gang_us))
        assert behind > 10 and abs(longest["behind"] - behind) <= 2
    assert not run_of(name, "inf")[1]
