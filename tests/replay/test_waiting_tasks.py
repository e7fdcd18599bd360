"""Why tasks still wait when a run ends: what the table `waiting` and explain tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.explain.arm_stories import ArmStories, Columns
from parsync.metrics.tables import NOBODY, SCHEMAS, Waiting
from parsync.spec.decision_times import CountedTime
from tests.fixtures.unit_workloads import SECOND, Unit, run_units, unit_arm, unit_workload

HOUR_US = 3600 * SECOND
OPTIMISTIC = {"kind": "optimistic", "sync": "state_aligned", "gap_s": 0.05}
LOCKING = {"kind": "locking", "retry_s": 0.01}


def one(*request: int, at_us: int, run_us: int = HOUR_US) -> Unit:
    return Unit((request,), at_us, is_gang=False, run_us=run_us)


# two resources; the first machine is small, and what runs leaves the second without r0
LIMITS = [[4, 4], [8, 8]]
UNITS = [
    one(7, 1, at_us=0),
    one(5, 2, at_us=SECOND),
    one(1, 1, at_us=2 * SECOND),
    one(1, 8, at_us=3 * SECOND),
]


def stories(protocol: dict[str, Any], **changes: Any) -> tuple[ArmStories, dict[str, Columns]]:
    """The stories of a run of UNITS, and its tables."""
    quotas, units = changes.pop("quotas", None), changes.pop("units", UNITS)
    workload = unit_workload(LIMITS, units, quotas=() if quotas is None else ("a",))
    _, _, parts = run_units(unit_arm(protocol, quotas=quotas, **changes), workload, SECOND)
    tables: dict[str, Columns] = {}
    for name, schema in SCHEMAS.items():
        rows = parts.get(name, [])
        tables[name] = {
            column: np.concatenate([part[column] for part in rows])
            if rows
            else np.zeros(0, schema.dtypes[column])
            for column in schema.columns
        }
    seen_us = workload.end_us + SECOND
    return ArmStories("arm", tables.__getitem__, workload, ["g-0"], seen_us), tables


def why(tables: dict[str, Columns]) -> dict[int, tuple[Waiting, int]]:
    """By task that waits: why, and behind which one."""
    its = tables["waiting"]
    return {
        int(task): (Waiting(int(code)), int(ahead))
        for task, code, ahead in zip(its["task"], its["why"], its["ahead"], strict=True)
    }


@pytest.mark.parametrize("protocol", [OPTIMISTIC, LOCKING], ids=["optimistic", "locking"])
def test_the_resource_that_is_short_and_the_unit_ahead_are_told(protocol: dict[str, Any]) -> None:
    told, tables = stories({**protocol, "head_of_line_s": 0})
    assert why(tables) == {
        1: (Waiting.NO_ROOM, NOBODY),
        2: (Waiting.BEHIND, 1),
        3: (Waiting.BEHIND, 1),
    }
    assert "r0 was short on 2 machines with enough of everything else" in str(told.story(1))
    assert "it is behind a unit that found no room" in str(told.story(2))
    assert "ahead of it is task 1" in str(told.story(2))
    assert not told.story(0).waits


@pytest.mark.parametrize("protocol", [OPTIMISTIC, LOCKING], ids=["optimistic", "locking"])
def test_where_others_go_ahead_each_tells_what_it_lacks(protocol: dict[str, Any]) -> None:
    told, tables = stories({**protocol, "head_of_line_s": "inf"})
    assert why(tables) == dict.fromkeys((1, 3), (Waiting.NO_ROOM, NOBODY))
    assert "r1 was short on 2 machines" in str(told.story(3)), "(task 2 runs)"


def test_partitions_that_the_scheduler_may_not_use_are_told() -> None:
    units = [one(3, 3, at_us=0), one(3, 3, at_us=SECOND)]
    told, tables = stories({**OPTIMISTIC, "only_partitions": [0]}, units=units)
    assert why(tables) == {1: (Waiting.NO_ROOM, NOBODY)}
    hidden = "1 machine in partitions that its scheduler may not use would hold it when empty"
    assert hidden in str(told.story(1))
    told, _ = stories(OPTIMISTIC)
    assert "may not use" not in str(told.story(1))


def test_what_waits_for_a_limit_says_so() -> None:
    told, tables = stories({**OPTIMISTIC, "hold_max": 0.6})
    assert why(tables)[1] == (Waiting.QUOTA, NOBODY)
    assert "hold_max" in str(told.story(1))


def test_a_job_that_is_not_admitted_says_so() -> None:
    _, tables = stories({**OPTIMISTIC, "jobs_max": 1})
    assert why(tables) == dict.fromkeys((1, 2, 3), (Waiting.JOB_NOT_ADMITTED, NOBODY))


def test_tasks_that_a_flow_scheduler_keeps_tell_why_it_kept_them() -> None:
    _, tables = stories(OPTIMISTIC, kind="flow_load_spreading", decision=CountedTime())
    assert {task for task, (code, _) in why(tables).items() if code is Waiting.NO_ROOM} <= {1, 2, 3}
    placed = set(tables["tasks"]["task"].tolist())
    assert placed | set(why(tables)) == {0, 1, 2, 3}
