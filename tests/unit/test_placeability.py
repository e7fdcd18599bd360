"""Units that can never be placed: each reason for it, and what is left to wait."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.workload.placeability import Reach, unplaceable_units
from schedulers.unplaceable import NEVER_US, Unplaceable
from tests.fixtures.unit_workloads import SECOND, Event, Unit, unit_workload

Limits = list[list[int]]


def found(
    limits: Limits, units: list[Unit], events: tuple[Event, ...] = (), **of_reach: object
) -> dict[int, tuple[int, Unplaceable]]:
    """From when on tasks that their agent has can never be placed, and why, by task."""
    workload = unit_workload(limits, units, events)
    partition = np.arange(len(limits), dtype=np.int32) // 2
    never = unplaceable_units(workload, Reach(partition, **of_reach))  # type: ignore[arg-type]
    if never is None:
        return {}
    first_us = np.minimum(never.task_us, never.gang_us)
    return {
        task: (int(first_us[task]), Unplaceable(int(never.reason[task])))
        for task in np.flatnonzero(first_us < NEVER_US).tolist()
    }


def task(*request: int, **of_unit: object) -> Unit:
    return Unit((request,), is_gang=False, **of_unit)  # type: ignore[arg-type]


def gang(*sizes: int, **of_unit: object) -> Unit:
    return Unit(tuple((size,) for size in sizes), **of_unit)  # type: ignore[arg-type]


FOUR: Limits = [[4], [4], [4], [4]]


def test_a_task_larger_than_every_machine() -> None:
    assert found(FOUR, [task(4), task(5)]) == {1: (0, Unplaceable.LARGER_THAN_EVERY_MACHINE)}


def test_a_task_larger_than_every_machine_that_its_scheduler_may_use() -> None:
    limits = [[4], [4], [8], [4]]
    assert found(limits, [task(6)]) == {}
    assert found(limits, [task(6)], only=(0,)) == {0: (0, Unplaceable.NO_MACHINE)}


def test_a_task_larger_than_every_machine_that_its_constraint_allows() -> None:
    limits = [[4], [8], [4], [4]]
    assert found(limits, [task(6, allowed=(1, 2))]) == {}
    assert found(limits, [task(6, allowed=(2, 3))]) == {0: (0, Unplaceable.CONSTRAINED)}


def test_a_machine_that_goes_down_for_good_counts_until_then() -> None:
    limits = [[4], [8]]
    down, up = (3 * SECOND, 1, False), (5 * SECOND, 1, True)
    assert found(limits, [task(6)], (down, up)) == {}
    assert found(limits, [task(6)], (down,)) == {0: (3 * SECOND, Unplaceable.NO_MACHINE)}
    assert found(limits, [task(6)], ((0, 1, False),)) == {0: (0, Unplaceable.NO_MACHINE)}
    assert found(limits, [task(6)], ((0, 1, False), up)) == {}


@pytest.mark.parametrize("of_unit", [{}, {"allowed": (0, 1, 2, 3)}])
def test_a_gang_of_equal_tasks_larger_than_the_cell(of_unit: dict[str, object]) -> None:
    assert found(FOUR, [gang(*[3] * 4, **of_unit)]) == {}
    too_large = (0, Unplaceable.GANG_TOO_LARGE)
    assert found(FOUR, [gang(*[3] * 5, **of_unit)]) == dict.fromkeys(range(5), too_large)


def test_a_gang_needs_its_machines_at_once() -> None:
    """Each of the four machines is up at some time, but never more than three are."""
    turns = ((0, 0, False), (SECOND, 0, True), (SECOND, 1, False))
    gone = (0, Unplaceable.GANG_TOO_LARGE)
    assert found(FOUR, [gang(4, 4, 4)], turns) == {}
    assert found(FOUR, [gang(4, 4, 4, 4)], turns) == dict.fromkeys(range(4), gone)
    late = ((SECOND, 0, False),)
    until = (SECOND, Unplaceable.GANG_TOO_LARGE)
    assert found(FOUR, [gang(4, 4, 4, 4)], late) == dict.fromkeys(range(4), until)


def test_a_gang_that_its_constraint_leaves_too_little() -> None:
    too_large = (0, Unplaceable.GANG_TOO_LARGE)
    assert found(FOUR, [gang(3, 3, allowed=(1, 3))]) == {}
    assert found(FOUR, [gang(3, 3, 3, allowed=(1, 3))]) == dict.fromkeys(range(3), too_large)


def test_unlike_tasks_of_a_gang_are_packed() -> None:
    """Neither the room in all nor the number of tasks of any size tells that these do not fit."""
    limits = [[4], [4]]
    too_large = (0, Unplaceable.GANG_TOO_LARGE)
    assert found(limits, [gang(3, 3, 1, 1)]) == {}
    assert found(limits, [gang(3, 3, 2)]) == dict.fromkeys(range(3), too_large)


def test_a_gang_that_the_search_leaves_open_waits() -> None:
    """Three of every four tasks of 3 take a machine each, so the tasks of 2 have no room; but so
    many are not searched."""
    assert found([[4]] * 20, [gang(*[3] * 19, 2, 2, 2)]) == {}


def test_one_task_that_is_never_placed_takes_its_gang_along() -> None:
    assert found(FOUR, [gang(1, 5, 1), task(1)]) == dict.fromkeys(
        range(3), (0, Unplaceable.LARGER_THAN_EVERY_MACHINE)
    )


def test_a_gang_larger_than_what_a_decision_may_lock() -> None:
    """A partition has two machines."""
    too_large = (0, Unplaceable.GANG_TOO_LARGE)
    assert found(FOUR, [gang(3, 3)], at_once=1) == {}
    assert found(FOUR, [gang(3, 3, 3)], at_once=1) == dict.fromkeys(range(3), too_large)
    assert found(FOUR, [gang(3, 3, 3)], at_once=2) == {}


def test_units_above_what_a_scheduler_may_hold() -> None:
    above = (0, Unplaceable.ABOVE_LIMIT)
    holds = np.array([4])
    assert found(FOUR, [task(4), gang(2, 2)], holds=holds) == {}
    assert found(FOUR, [gang(2, 3)], holds=holds) == dict.fromkeys(range(2), above)
    assert found([[9]], [task(5)], holds=holds) == {0: above}


def test_units_above_the_maximum_of_their_quota_group() -> None:
    above = (0, Unplaceable.ABOVE_QUOTA)
    quotas = {"quota_of": np.array([0, 1, 1], np.int32), "quota_max": np.array([[4], [3]])}
    assert found(FOUR, [task(4), gang(1, 2)], **quotas) == {}
    assert found(FOUR, [task(4), gang(2, 2)], **quotas) == {1: above, 2: above}


def test_gangs_are_no_units_where_tasks_are_placed_one_by_one() -> None:
    assert found(FOUR, [gang(*[4] * 9)], places_gangs=False, holds=np.array([4])) == {}


def test_a_part_of_a_gang_is_judged_by_itself() -> None:
    """The others run already: what was lost may find a place."""
    workload = unit_workload(FOUR, [gang(*[4] * 4)], [(SECOND, 0, False)])
    never = unplaceable_units(workload, Reach(np.zeros(4, np.int32)))
    assert never is not None
    assert never.among(np.arange(4), SECOND - 1) is None
    whole = never.among(np.arange(4), SECOND)
    assert whole is not None and whole.all()
    assert never.among(np.array([2]), SECOND) is None
