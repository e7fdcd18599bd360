"""Decomposition of aggregated flow into placements, fit and gangs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers.flow.extraction import fit_together, in_whole_gangs, place_singly, trace
from schedulers.flow.policies.policy import to_aggregator
from shared_state.tasks import PreferenceCatalog
from tests.flow_world import catalog_of, tasks_of


@given(st.data())
def test_tasks_reach_the_machines_exactly_as_often_as_flow_does(data: st.DataObject) -> None:
    # X = 0 leads to racks 1 and 2 and to a set 3; the set leads to machines and to rack 2; racks
    # lead to machines.
    tails = np.array([0, 0, 0, 3, 3, 1, 1, 2, 2], np.int64)
    heads = np.concatenate(
        [to_aggregator(np.array([1, 2, 3])), [4], to_aggregator(np.array([2])), [0, 1, 2, 3]]
    )
    flow = np.zeros(9, np.int64)
    start = data.draw(st.lists(st.sampled_from([-1, -2, -3, -4, 5]), max_size=20))
    for at in start:  # send one unit from each start down random arcs
        while at < 0:
            arc = data.draw(st.sampled_from(np.flatnonzero(tails == -1 - at).tolist()))
            flow[arc] += 1
            at = int(heads[arc])
    machine = trace(np.array(start, np.int64), tails, heads, flow, 4)
    direct = np.bincount(np.array([s for s in start if s >= 0], np.int64), minlength=6)
    into = direct + np.bincount(heads[heads >= 0], weights=flow[heads >= 0], minlength=6).astype(
        np.int64
    )
    assert np.bincount(machine, minlength=6).tolist() == into.tolist()
    assert all(m == s for s, m in zip(start, machine.tolist(), strict=True) if s >= 0)


def test_flow_that_is_none_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="aggregator"):
        trace(
            to_aggregator(np.zeros(2, np.int64)),
            np.zeros(1, np.int64),
            np.array([3]),
            np.array([1]),
            1,
        )


@given(st.data())
def test_what_fits_fits_together_and_nothing_single_is_refused(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    numbers = st.integers(0, 6)
    request = np.array(
        data.draw(st.lists(st.tuples(numbers, numbers), min_size=n, max_size=n)), np.int64
    )
    machine = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.int64)
    free = np.array(
        data.draw(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=3)), np.int64
    )
    fits = fit_together(tasks_of(np.arange(n), request=request), machine, free)
    taken = np.zeros_like(free)
    np.add.at(taken, machine[fits], request[fits])
    assert np.all(taken <= free)
    for m in range(3):
        first = np.flatnonzero(machine == m)[:1]
        assert all(fits[first] == np.all(request[first] <= free[m], axis=1))


def test_single_placements_take_the_cheapest_machine_that_fits_as_long_as_that_beats_waiting() -> (
    None
):
    catalog = catalog_of([{"machine": {2: 1}, "elsewhere": 9, "unscheduled": 0}])
    free = np.array([[5, 5], [5, 0], [5, 5]], np.int64)
    tasks = tasks_of(np.arange(3), request=np.full((3, 2), 3, np.int64), preference=1)
    chosen = place_singly(tasks, np.full(3, 10), free, catalog, np.zeros(3, np.int32), stream=3)
    assert chosen.tolist() == [2, 0, -1]
    chosen = place_singly(tasks, np.full(3, 9), free, catalog, np.zeros(3, np.int32), stream=3)
    assert chosen.tolist() == [2, -1, -1]  # waiting costs no more than elsewhere


def test_single_placements_without_preference_start_at_a_random_row() -> None:
    tasks = tasks_of(np.arange(1))
    rack, worth, none = np.zeros(50, np.int32), np.ones(1, np.int64), PreferenceCatalog.empty()
    rows = {
        int(place_singly(tasks, worth, np.ones((50, 1), np.int64), none, rack, key)[0])
        for key in range(20)
    }
    assert len(rows) > 10


def test_only_gangs_whose_waiting_tasks_all_have_a_place_are_whole() -> None:
    placed = np.array([1, 1, -1, 2, 3], np.int64)
    waiting = np.array([1, 1, -1, -1, 2, 2, 3, 4], np.int64)
    assert in_whole_gangs(placed, waiting).tolist() == [True, True, True, False, True]
