"""What is called unplaceable, each reason by hand and against trying everything, and whole runs
with such units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime
from parsync.workload.placeability import Reach, unplaceable_units
from schedulers.unplaceable import NEVER_US, Unplaceable
from tests.fixtures.examples import examples
from tests.fixtures.unit_workloads import (
    SECOND,
    Event,
    Unit,
    has_place,
    run_units,
    states,
    unit_workload,
)

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


FOUR: Limits = [[4]] * 4
LARGER, NO_MACHINE = Unplaceable.LARGER_THAN_EVERY_MACHINE, Unplaceable.NO_MACHINE
GANG, LIMIT, QUOTA = Unplaceable.GANG_TOO_LARGE, Unplaceable.ABOVE_LIMIT, Unplaceable.ABOVE_QUOTA
DOWN, UP, NEVER_UP = (3 * SECOND, 1, False), (5 * SECOND, 1, True), (0, 1, False)
TURNS = ((0, 0, False), (SECOND, 0, True), (SECOND, 1, False))  # never four at once
QUOTAS = {"quota_of": np.array([0, 1, 1], np.int32), "quota_max": np.array([[4], [3]])}
HOLDS = {"holds": np.array([4])}
ALL = {"allowed": (0, 1, 2, 3)}


@pytest.mark.parametrize(
    ("limits", "units", "events", "reach", "expected"),
    [
        (FOUR, [task(4), task(5)], (), {}, {1: (0, LARGER)}),
        # larger than every machine that its scheduler may use, or that its constraint allows
        ([[4], [4], [8], [4]], [task(6)], (), {}, {}),
        ([[4], [4], [8], [4]], [task(6)], (), {"only": (0,)}, {0: (0, NO_MACHINE)}),
        ([[4], [8], [4], [4]], [task(6, allowed=(1, 2))], (), {}, {}),
        (
            [[4], [8], [4], [4]],
            [task(6, allowed=(2, 3))],
            (),
            {},
            {0: (0, Unplaceable.CONSTRAINED)},
        ),
        # a machine that goes down for good counts until then
        ([[4], [8]], [task(6)], (DOWN, UP), {}, {}),
        ([[4], [8]], [task(6)], (DOWN,), {}, {0: (3 * SECOND, NO_MACHINE)}),
        ([[4], [8]], [task(6)], (NEVER_UP,), {}, {0: (0, NO_MACHINE)}),
        ([[4], [8]], [task(6)], (NEVER_UP, UP), {}, {}),
        # a gang of equal tasks larger than the cell, or than what its constraint leaves it
        (FOUR, [gang(*[3] * 4)], (), {}, {}),
        (FOUR, [gang(*[3] * 4, **ALL)], (), {}, {}),
        (FOUR, [gang(*[3] * 5)], (), {}, dict.fromkeys(range(5), (0, GANG))),
        (FOUR, [gang(*[3] * 5, **ALL)], (), {}, dict.fromkeys(range(5), (0, GANG))),
        (FOUR, [gang(3, 3, allowed=(1, 3))], (), {}, {}),
        (FOUR, [gang(3, 3, 3, allowed=(1, 3))], (), {}, dict.fromkeys(range(3), (0, GANG))),
        # a gang needs its machines at once
        (FOUR, [gang(4, 4, 4)], TURNS, {}, {}),
        (FOUR, [gang(4, 4, 4, 4)], TURNS, {}, dict.fromkeys(range(4), (0, GANG))),
        (
            FOUR,
            [gang(4, 4, 4, 4)],
            ((SECOND, 0, False),),
            {},
            dict.fromkeys(range(4), (SECOND, GANG)),
        ),
        # Unlike tasks are packed: neither the room in all nor the number of tasks of any size tells
        # that these do not fit. So many that they are not searched wait.
        ([[4], [4]], [gang(3, 3, 1, 1)], (), {}, {}),
        ([[4], [4]], [gang(3, 3, 2)], (), {}, dict.fromkeys(range(3), (0, GANG))),
        ([[4]] * 20, [gang(*[3] * 19, 2, 2, 2)], (), {}, {}),
        # one task that is never placed takes its gang along
        (FOUR, [gang(1, 5, 1), task(1)], (), {}, dict.fromkeys(range(3), (0, LARGER))),
        # a gang larger than what a decision may lock: a partition has two machines
        (FOUR, [gang(3, 3)], (), {"at_once": 1}, {}),
        (FOUR, [gang(3, 3, 3)], (), {"at_once": 1}, dict.fromkeys(range(3), (0, GANG))),
        (FOUR, [gang(3, 3, 3)], (), {"at_once": 2}, {}),
        # above what a scheduler, or its quota group, may hold
        (FOUR, [task(4), gang(2, 2)], (), HOLDS, {}),
        (FOUR, [gang(2, 3)], (), HOLDS, dict.fromkeys(range(2), (0, LIMIT))),
        ([[9]], [task(5)], (), HOLDS, {0: (0, LIMIT)}),
        (FOUR, [task(4), gang(1, 2)], (), QUOTAS, {}),
        (FOUR, [task(4), gang(2, 2)], (), QUOTAS, dict.fromkeys((1, 2), (0, QUOTA))),
        # gangs are no units where tasks are placed one by one
        (FOUR, [gang(*[4] * 9)], (), {"places_gangs": False, **HOLDS}, {}),
    ],
)
def test_units_that_can_never_be_placed(
    limits: Limits,
    units: list[Unit],
    events: tuple[Event, ...],
    reach: dict[str, Any],
    expected: dict[int, tuple[int, Unplaceable]],
) -> None:
    assert found(limits, units, events, **reach) == expected


def test_a_part_of_a_gang_is_judged_by_itself() -> None:
    """The others run already: what was lost may find a place."""
    workload = unit_workload(FOUR, [gang(*[4] * 4)], [(SECOND, 0, False)])
    never = unplaceable_units(workload, Reach(np.zeros(4, np.int32)))
    assert never is not None
    assert never.among(np.arange(4), SECOND - 1) is None
    whole = never.among(np.arange(4), SECOND)
    assert whole is not None and whole.all()
    assert never.among(np.array([2]), SECOND) is None


AMOUNT = st.integers(1, 5)
LIMITS = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=4)


@st.composite
def cells(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[Event], list[Unit]]:
    limits = draw(LIMITS)
    machines = len(limits)
    at = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, machines - 1)), unique=True))
    events = [(second * SECOND, machine, draw(st.booleans())) for second, machine in at]
    units = draw(
        st.lists(
            st.builds(
                Unit,
                st.lists(st.tuples(AMOUNT, AMOUNT), min_size=1, max_size=5).map(tuple),
                st.integers(0, 4).map(lambda second: second * SECOND),
                st.none()
                | st.sets(st.integers(0, machines - 1), min_size=1).map(
                    lambda allowed: tuple(sorted(allowed))
                ),
            ),
            min_size=1,
            max_size=4,
        )
    )
    return limits, events, sorted(units, key=lambda unit: unit.submit_us)


def ever_has_place(
    unit: Unit, limits: Sequence[tuple[int, int]], events: list[Event], usable: set[int]
) -> bool:
    """Whether the unit has a place on the empty cell at some time from its submission on."""
    over_time = states(len(limits), events)
    ends = [at_us for at_us, _ in over_time[1:]] + [1 << 60]
    allowed = usable if unit.allowed is None else usable & set(unit.allowed)
    return any(
        has_place(limits, up & allowed, unit.requests)
        for (_, up), end_us in zip(over_time, ends, strict=True)
        if end_us > unit.submit_us
    )


@examples(150)
@given(cells(), st.sets(st.integers(0, 1), min_size=1))
def test_no_unit_that_is_called_unplaceable_has_a_place(
    cell: tuple[list[tuple[int, int]], list[Event], list[Unit]], only: set[int]
) -> None:
    """And each that is not has one, where machines do not change and gangs are small."""
    limits, events, units = cell
    workload = unit_workload(limits, units, events)
    partition = (np.arange(len(limits)) * 2 // len(limits)).astype(np.int32)
    never = unplaceable_units(workload, Reach(partition, tuple(only)))
    usable = {machine for machine in range(len(limits)) if int(partition[machine]) in only}
    first = 0
    for unit in units:
        rows = np.arange(first, first + len(unit.requests))
        first += len(rows)
        among = None if never is None else never.among(rows, unit.submit_us)
        has = ever_has_place(unit, limits, events, usable)
        assert among is None or among.all()
        if among is not None:
            assert not has
        elif not events or len(set(unit.requests)) == 1:
            assert has


EQUAL = st.builds(
    lambda request, count, second, is_gang: Unit(
        (request,) * (count if is_gang else 1), second * SECOND // 10, None, is_gang
    ),
    st.tuples(AMOUNT, AMOUNT),
    st.integers(1, 8),
    st.integers(0, 9),
    st.booleans(),
)
PROTOCOLS = (
    {"kind": "optimistic", "sync": "state_staggered", "gap_s": 0.05},
    {"kind": "optimistic", "sync": "state_aligned", "gap_s": 0.05, "losers": "requeue"},
    {"kind": "locking", "retry_s": 0.01},
)


@examples(25)
@given(
    LIMITS,
    st.lists(EQUAL, min_size=1, max_size=12),
    st.sampled_from(PROTOCOLS),
    st.sampled_from(["best_fit", "random"]),
)
def test_a_run_places_every_unit_but_those(
    limits: list[tuple[int, int]], units: list[Unit], protocol: dict[str, object], kind: str
) -> None:
    group = GroupConfig(
        name="g", kind=kind, count=2, decision=ModelledTime(task_us=300), protocol=protocol
    )
    arm = ArmConfig(name="arm", partitions=1, groups=(group,))
    placed, sorted_out, _ = run_units(arm, unit_workload(limits, units))
    expected: list[int] = []
    first = 0
    for unit in sorted(units, key=lambda unit: unit.submit_us):
        if not has_place(limits, set(range(len(limits))), unit.requests):
            expected += range(first, first + len(unit.requests))
        first += len(unit.requests)
    assert sorted_out == expected
    assert placed == sorted(set(range(first)) - set(expected))
