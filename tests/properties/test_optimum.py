"""BestPlacement against scipy's assignment on one row per slot, and against every placement there
is where packing is hard. (The relaxation, where requests differ: tests/cpp/schedulers_optimum.cpp.)
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from schedulers.objective import UNPLACED, BestPlacement, placement_cost
from shared_state.tasks import CellSpec, PreferenceCatalog, fits
from tests.fixtures.examples import examples
from tests.greedy_world import cell_of
from tests.unit.test_objective import catalog_of

MACHINES, RACK_SIZE = 7, 3


def cell(dimensions: int = 1) -> CellSpec:
    return cell_of(np.full((MACHINES, dimensions), 9), rack_size=RACK_SIZE)


@st.composite
def catalogs(draw: st.DrawFn, ordered: bool) -> PreferenceCatalog:
    """Sets whose costs fall from elsewhere over the rack to the machine, or any costs at all."""
    sets = [({}, {}, 0, 0)]
    for _ in range(draw(st.integers(0, 3))):
        bounds = ((0, 5), (5, 10), (10, 20)) if ordered else ((0, 20),) * 3
        machine, rack, elsewhere = (st.integers(*bound) for bound in bounds)
        machines = draw(st.dictionaries(st.integers(0, MACHINES - 1), machine, max_size=4))
        racks = draw(st.dictionaries(st.integers(0, (MACHINES - 1) // RACK_SIZE), rack, max_size=2))
        sets.append((machines, racks, draw(elsewhere), draw(st.integers(0, 30))))
    return catalog_of(sets)


def price(catalog: PreferenceCatalog, preference: np.ndarray, machine: np.ndarray) -> np.ndarray:
    return placement_cost(
        catalog, cell().rack, preference.astype(np.int32), machine.astype(np.int32)
    )[0]


@examples(150)
@given(catalogs(ordered=True), st.data())
def test_alike_tasks_are_assigned_as_well_as_can_be(
    catalog: PreferenceCatalog, data: st.DataObject
) -> None:
    preference = np.array(
        data.draw(st.lists(st.integers(0, catalog.sets - 1), min_size=1, max_size=14)), np.int32
    )
    ask = np.array(data.draw(st.tuples(st.integers(0, 3), st.integers(1, 3))), np.int64)
    room = np.array(
        data.draw(
            st.lists(st.tuples(*[st.integers(-2, 7)] * 2), min_size=MACHINES, max_size=MACHINES)
        )
    )
    count = len(preference)
    best = BestPlacement(cell(2), catalog).cost(room, preference, np.broadcast_to(ask, (count, 2)))

    def holds(free: np.ndarray) -> int:
        return max((k for k in range(count + 1) if k and fits(k * ask, free)), default=0)

    slot = np.repeat(np.arange(MACHINES), [holds(free) for free in room])
    columns = np.concatenate([slot, np.full(count, UNPLACED)])
    cost = price(catalog, np.repeat(preference, len(columns)), np.tile(columns, count)).reshape(
        count, -1
    )
    rows, chosen = linear_sum_assignment(cost)
    assert best.exact
    assert best.cost == cost[rows, chosen].sum()


def packed(
    catalog: PreferenceCatalog, room: np.ndarray, preference: np.ndarray, request: np.ndarray
) -> int:
    """The least cost of all placements that fit."""
    least = None
    for places in itertools.product(range(UNPLACED, MACHINES), repeat=len(preference)):
        machine = np.array(places, np.int64)
        used = np.zeros_like(room)
        placed = machine != UNPLACED
        np.add.at(used, machine[placed], request[placed])
        hosts = np.unique(machine[placed])
        if fits(used[hosts], room[hosts]).all():
            cost = int(price(catalog, preference, machine).sum())
            least = cost if least is None else min(least, cost)
    assert least is not None
    return least


@examples(40)
@given(st.booleans(), st.data())
def test_what_is_not_exact_is_a_lower_bound(ordered: bool, data: st.DataObject) -> None:
    catalog = data.draw(catalogs(ordered))
    preference = np.array(
        data.draw(st.lists(st.integers(0, catalog.sets - 1), min_size=1, max_size=3)), np.int32
    )
    pairs = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any)
    request = np.array(
        data.draw(st.lists(pairs, min_size=len(preference), max_size=len(preference))), np.int64
    )
    room = np.array(
        data.draw(
            st.lists(st.tuples(*[st.integers(-1, 6)] * 2), min_size=MACHINES, max_size=MACHINES)
        )
    )
    best = BestPlacement(cell(2), catalog).cost(room, preference, request)
    truth = packed(catalog, room, preference, request)
    assert best.cost == truth if best.exact else best.cost <= truth
    unfit = ~fits(request[:, None], room).any(axis=1)
    hopeless = int(price(catalog, preference[unfit], np.full(int(unfit.sum()), UNPLACED)).sum())
    assert best.cost >= hopeless, "what fits nowhere waits in the bound, too"


@examples(60)
@given(catalogs(ordered=True), st.data())
def test_more_room_and_fewer_tasks_never_cost_more(
    catalog: PreferenceCatalog, data: st.DataObject
) -> None:
    """With requests that differ, too: regret without migration would else exceed regret with it."""
    count = data.draw(st.integers(1, 8))
    preference = np.array(
        data.draw(st.lists(st.integers(0, catalog.sets - 1), min_size=count, max_size=count))
    )
    pairs = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any)
    request = np.array(data.draw(st.lists(pairs, min_size=count, max_size=count)), np.int64)
    machine = np.array(
        data.draw(st.lists(st.integers(0, MACHINES - 1), min_size=count, max_size=count))
    )
    stays = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    room = np.array(
        data.draw(
            st.lists(st.tuples(*[st.integers(0, 6)] * 2), min_size=MACHINES, max_size=MACHINES)
        )
    )
    everything = room.copy()
    np.add.at(everything, machine[stays], request[stays])
    solver = BestPlacement(cell(2), catalog)
    moving = solver.cost(everything, preference.astype(np.int32), request).cost
    staying = solver.cost(room, preference[~stays].astype(np.int32), request[~stays]).cost
    assert moving <= staying + int(price(catalog, preference[stays], machine[stays]).sum())


def test_set_zero_and_nobody() -> None:
    solver = BestPlacement(cell(), PreferenceCatalog.empty())
    none = np.zeros(0, np.int32)
    assert solver.cost(np.ones((MACHINES, 1), np.int64), none, np.zeros((0, 1), np.int64)).cost == 0
    many = np.zeros(50, np.int32)
    assert solver.cost(np.ones((MACHINES, 1), np.int64), many, np.ones((50, 1), np.int64)).cost == 0


def test_what_does_not_go_together_is_refused() -> None:
    solver = BestPlacement(cell(), PreferenceCatalog.empty())
    room, request = np.ones((MACHINES, 1), np.int64), np.ones((2, 1), np.int64)
    with pytest.raises(ValueError, match="there is no set 1"):
        solver.cost(room, np.array([0, 1], np.int32), request)
    with pytest.raises(ValueError, match="room: expected an array"):
        solver.cost(room[1:], np.zeros(2, np.int32), request)
    with pytest.raises(ValueError, match="request: expected an array"):
        solver.cost(room, np.zeros(3, np.int32), request)
    dear = replace(PreferenceCatalog.empty(), unscheduled_cost=np.array([1 << 58]))
    with pytest.raises(ValueError, match="out of the solver's range"):
        BestPlacement(cell(), dear).cost(0 * room, np.zeros(2, np.int32), request)
    far = catalog_of([({MACHINES: 1}, {}, 2, 3)])
    with pytest.raises(ValueError, match="machines out of range"):
        BestPlacement(cell(), far)
