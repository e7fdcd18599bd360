"""What is called unplaceable against trying everything, and whole runs with such units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.spec.decision_times import ModelledTime
from parsync.workload.placeability import Reach, unplaceable_units
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
