"""placement_cost against its definition, and refusal of malformed catalogs."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers.objective import UNPLACED, native_catalog, placement_cost
from shared_state.tasks import CellSpec, PreferenceCatalog
from tests.fixtures.examples import examples

MACHINES, RACKS = 12, 4
RACK = np.repeat(np.arange(RACKS, dtype=np.int32), 3)


def cell(rack=RACK):
    ones = np.ones((len(rack), 1), np.int64)
    return CellSpec(("slots",), ones, rack, np.zeros(len(rack), np.int64), np.array([1000]))


def catalog_of(sets):
    """sets: (machine -> cost, rack -> cost, elsewhere, unscheduled) each, in order."""
    machine = [sorted(s[0].items()) for s in sets]
    rack = [sorted(s[1].items()) for s in sets]

    def flat(lists, i, dtype):
        return np.array([entry[i] for entries in lists for entry in entries], dtype)

    return PreferenceCatalog(
        np.cumsum([0, *map(len, machine)], dtype=np.int64),
        flat(machine, 0, np.int32),
        flat(machine, 1, np.int64),
        np.cumsum([0, *map(len, rack)], dtype=np.int64),
        flat(rack, 0, np.int32),
        flat(rack, 1, np.int64),
        np.array([s[2] for s in sets], np.int64),
        np.array([s[3] for s in sets], np.int64),
    )


costs = st.integers(0, 100)
one_set = st.tuples(
    st.dictionaries(st.integers(0, MACHINES - 1), costs),
    st.dictionaries(st.integers(0, RACKS - 1), costs),
    costs,
    costs,
)


@examples(80)
@given(st.lists(one_set, min_size=1, max_size=4), st.data())
def test_cost_is_as_defined(sets, data):
    catalog = catalog_of(sets)
    pairs = st.tuples(st.integers(0, len(sets) - 1), st.integers(UNPLACED, MACHINES - 1))
    tasks = data.draw(st.lists(pairs, max_size=20))
    preference = np.array([k for k, _ in tasks], np.int32)
    machine = np.array([m for _, m in tasks], np.int32)
    cost, preferred = placement_cost(catalog, RACK, preference, machine)
    assert cost.dtype == np.int64 and preferred.dtype == np.bool_
    for i, (k, m) in enumerate(tasks):
        machines, racks, elsewhere, unscheduled = sets[k]
        expected = (
            unscheduled if m == UNPLACED else machines.get(m, racks.get(int(RACK[m]), elsewhere))
        )
        assert cost[i] == expected and preferred[i] == (m in machines)


def test_bad_tasks_are_refused():
    catalog = PreferenceCatalog.empty()
    for preference, machine in ((1, 0), (-1, 0), (0, MACHINES), (0, -2)):
        with pytest.raises(ValueError, match=r"\[0\]"):
            placement_cost(
                catalog, RACK, np.array([preference], np.int32), np.array([machine], np.int32)
            )
    with pytest.raises(ValueError, match="one machine per preference"):
        placement_cost(catalog, RACK, np.zeros(2, np.int32), np.zeros(1, np.int32))


GOOD = catalog_of([({}, {}, 0, 0), ({1: 5, 4: 6}, {0: 7, 2: 7}, 9, 99)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": np.array([4, 1], np.int32)}, "set 1: machines must ascend"),
        ({"machine": np.array([1, 1], np.int32)}, "set 1: machines must ascend"),
        ({"machine": np.array([1, MACHINES], np.int32)}, "set 1: a machine the cell does not have"),
        ({"machine": np.array([-1, 1], np.int32)}, "set 1: a machine the cell does not have"),
        ({"rack": np.array([2, 0], np.int32)}, "set 1: racks must ascend"),
        ({"rack": np.array([0, RACKS], np.int32)}, "set 1: a rack the cell does not have"),
        ({"machine_offsets": np.array([0, 0, 3])}, "set 1: offsets out of range"),
        ({"machine_offsets": np.array([0, 2, 1])}, "set 1: offsets out of range"),
        ({"rack_offsets": np.array([0, 0])}, "different numbers of sets"),
        ({"machine_cost": np.array([5])}, "one cost per machine"),
    ],
)
def test_malformed_catalogs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        native_catalog(dataclasses.replace(GOOD, **change), cell())


def test_racks_must_be_in_order():
    with pytest.raises(ValueError, match="non-decreasing"):
        native_catalog(GOOD, cell(RACK[::-1].copy()))
