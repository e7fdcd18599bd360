"""Units that can never be placed leave the queue with their reason, and all others are placed,
whatever the protocol and the kind of scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from parsync.spec.decision_times import CountedTime
from schedulers.unplaceable import Unplaceable
from tests.fixtures.unit_workloads import SECOND, Event, Unit, run_units, unit_arm, unit_workload

PROTOCOLS = Path(__file__).parents[1] / "fixtures" / "protocols"
OPTIMISTIC = {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.05}


def task(*request: int, **of_unit: Any) -> Unit:
    return Unit((request,), is_gang=False, **of_unit)


def gang(count: int, *request: int, **of_unit: Any) -> Unit:
    return Unit((request,) * count, **of_unit)


@dataclass(frozen=True)
class Case:
    """An arm and a unit that it can never place, among others that it can.

    Args:
        never: The unit.
        why: The reason.
        group: Of the group.
        quotas: Of the arm.
        events: The machine events.
    """

    never: Unit
    why: Unplaceable
    group: dict[str, Any] = field(default_factory=dict)
    quotas: dict[str, Any] | None = None
    events: tuple[Event, ...] = ()


def optimistic(**options: Any) -> dict[str, Any]:
    return {"protocol": {**OPTIMISTIC, **options}}


FLOW = {"kind": "flow_load_spreading", "decision": CountedTime()}
PATIENT = {"options": {"patience_s": 0.1}}
LOCKING = {"protocol": {"kind": "locking", "retry_s": 0.01}}
LOCKS_ONE = {"protocol": {"kind": "locking", "retry_s": 0.01, "locked_partitions": 1}}
WHOLE = {"kind": "preferred_first"}
ALL_OR_NOTHING = optimistic(commit_mode="all_or_nothing")
REQUEUE = optimistic(losers="requeue", requeue_s=0.01)
QUOTAS = {"interval_s": 0.05, "groups": [{"name": "a", "maximum": 0.5}, {"name": "b"}]}
GANG_TOO_LARGE = Unplaceable.GANG_TOO_LARGE
GONE = ((0, 3, False),)  # the largest machine is never up

# machines of 4, 4, 4 and 8
CASES = {
    "gang, optimistic": Case(gang(6, 4), GANG_TOO_LARGE),
    "gang, all or nothing": Case(gang(6, 4), GANG_TOO_LARGE, ALL_OR_NOTHING),
    "gang, requeue": Case(gang(6, 4), GANG_TOO_LARGE, REQUEUE),
    "gang, flow": Case(gang(6, 4), GANG_TOO_LARGE, FLOW),
    "gang, patient": Case(gang(6, 4), GANG_TOO_LARGE, PATIENT),
    "gang, whole queue": Case(gang(6, 4), GANG_TOO_LARGE, WHOLE),
    "gang, locking": Case(gang(6, 4), GANG_TOO_LARGE, LOCKING),
    "gang that fits no partition, locking": Case(gang(4, 4), GANG_TOO_LARGE, LOCKS_ONE),
    "gang while a machine is down": Case(gang(4, 4), GANG_TOO_LARGE, events=GONE),
    "task, other partitions": Case(
        task(8), Unplaceable.NO_MACHINE, optimistic(only_partitions=[0])
    ),
    "task, machine never up": Case(task(8), Unplaceable.NO_MACHINE, events=GONE),
    "task, machine never up, locking": Case(task(8), Unplaceable.NO_MACHINE, LOCKING, events=GONE),
    "task, machine never up, flow": Case(task(8), Unplaceable.NO_MACHINE, FLOW, events=GONE),
    "task, hold_max": Case(task(8), Unplaceable.ABOVE_LIMIT, optimistic(hold_max=0.35)),
    "gang, hold_max": Case(gang(4, 2), Unplaceable.ABOVE_LIMIT, optimistic(hold_max=0.35)),
    "gang, jobs_max": Case(gang(6, 4), GANG_TOO_LARGE, optimistic(jobs_max=1)),
    "gang, quota": Case(gang(6, 2), Unplaceable.ABOVE_QUOTA, quotas=QUOTAS),
    "task, constraint": Case(task(6, allowed=(0, 1)), Unplaceable.CONSTRAINED),
    "task, constraint, flow": Case(
        task(6, allowed=(0, 1)), Unplaceable.CONSTRAINED, {**FLOW, "kind": "flow"}
    ),
    "task, constraint, locking": Case(task(6, allowed=(0, 1)), Unplaceable.CONSTRAINED, LOCKING),
    "task, larger than the cell's": Case(task(9), Unplaceable.LARGER_THAN_EVERY_MACHINE),
}


def run_case(case: Case) -> tuple[list[int], list[int], set[int], int]:
    """The tasks placed and sorted out, the reasons, and how many tasks the unit has."""
    count = len(case.never.requests)
    others = [task(1, submit_us=SECOND + number * 10_000) for number in range(20)]
    others.append(gang(3, 1, submit_us=2 * SECOND))
    arm = unit_arm(**{"protocol": OPTIMISTIC, **case.group}, quotas=case.quotas)
    names = () if case.quotas is None else ("a", "b")
    workload = unit_workload([[4], [4], [4], [8]], [case.never, *others], case.events, names)
    placed, sorted_out, tables = run_units(arm, workload)
    reasons = {int(code) for part in tables.get("unplaceable", []) for code in part["abandoned"]}
    assert sorted(placed + sorted_out) == list(range(count + 23))
    return placed, sorted_out, reasons, count


@pytest.mark.parametrize("name", CASES)
def test_all_others_are_placed(name: str) -> None:
    case = CASES[name]
    placed, sorted_out, reasons, count = run_case(case)
    assert sorted_out == list(range(count))
    assert placed == list(range(count, count + 23))
    assert reasons == {case.why}


def test_protocols_without_schedulers_get_what_some_machine_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They place the tasks of gangs one by one."""
    monkeypatch.syspath_prepend(PROTOCOLS)
    queues = {"kind": None, "protocol": {"kind": "machine_queues"}}
    case = Case(task(9), Unplaceable.LARGER_THAN_EVERY_MACHINE, queues)
    placed, sorted_out, reasons, _ = run_case(case)
    assert placed == list(range(1, 24)) and sorted_out == [0] and reasons == {case.why}
    placed, sorted_out, _, _ = run_case(Case(gang(6, 4), GANG_TOO_LARGE, queues))
    assert placed == list(range(29)) and not sorted_out


def test_what_waits_for_a_machine_that_comes_up_is_placed_then() -> None:
    events = ((0, 3, False), (3 * SECOND, 3, True))
    workload = unit_workload([[4], [4], [4], [8]], [task(8), task(1)], events)
    placed, sorted_out, _ = run_units(unit_arm(OPTIMISTIC), workload)
    assert placed == [0, 1] and not sorted_out


@pytest.mark.parametrize("protocol", [OPTIMISTIC, LOCKING["protocol"]])
def test_a_task_whose_machine_is_lost_for_good_is_sorted_out(protocol: dict[str, Any]) -> None:
    """It ran there, and no other machine holds it."""
    events = ((SECOND, 3, False),)
    units = [task(8, run_us=5 * SECOND), task(1, submit_us=2 * SECOND)]
    workload = unit_workload([[4], [4], [4], [8]], units, events)
    placed, sorted_out, tables = run_units(unit_arm(protocol), workload)
    assert placed == [0, 1] and sorted_out == [0]
    assert tables["unplaceable"][0]["abandoned"].tolist() == [Unplaceable.NO_MACHINE]


@pytest.mark.parametrize("kind", ["flow_load_spreading", "flow"])
def test_a_gang_without_room_keeps_no_other_from_a_flow_scheduler(kind: str) -> None:
    """It waits as one machine goes down for good. The flow would start some of its tasks, and gives
    their places to those that come after it."""
    events = ((SECOND // 2, 1, False),)
    blocker, waits = task(8, run_us=SECOND), gang(2, 8, submit_us=SECOND // 10)
    others = [gang(2, 4, submit_us=SECOND // 5), task(3, submit_us=SECOND // 4)]
    workload = unit_workload([[8], [8]], [blocker, waits, *others], events)
    arm = unit_arm(OPTIMISTIC, partitions=1, kind=kind, decision=CountedTime())
    placed, sorted_out, _ = run_units(arm, workload)
    assert sorted(set(placed)) == [0, 3, 4, 5] and not sorted_out
