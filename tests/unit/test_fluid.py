"""The fluid problem where its answer is known in closed form, what it refuses, and what the oracle
of tests/properties/test_fluid_oracle.py does not ask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from schedulers.prices import fluid
from schedulers.prices.fluid import (
    FluidObjective,
    FluidOptimum,
    FluidProblem,
    NoSteadyState,
    random_share,
    solve_fluid,
)
from shared_state.tasks import PreferenceCatalog

SHARE, COST = FluidObjective.PREFERRED_SHARE, FluidObjective.COST
SECOND_US = 1e6


def catalog(
    sets: Sequence[Sequence[int]],
    elsewhere: Sequence[int] | None = None,
    racks: Sequence[Sequence[tuple[int, int]]] | None = None,
    costs: Sequence[int] | None = None,
) -> PreferenceCatalog:
    """Preferred machines of sets 1, 2, ...; they cost 0, or `costs` by machine, and others 1,000.
    racks: (rack, cost) by set."""
    racks = [[] for _ in sets] if racks is None else racks
    machine = np.array([m for one in sets for m in one], np.int32)
    rack = [pair for one in racks for pair in one]
    away = [1000] * len(sets) if elsewhere is None else elsewhere
    return PreferenceCatalog(
        machine_offsets=np.cumsum([0, 0, *map(len, sets)]),
        machine=machine,
        machine_cost=np.zeros(len(machine), np.int64)
        if costs is None
        else np.array(costs, np.int64)[machine],
        rack_offsets=np.cumsum([0, 0, *map(len, racks)]),
        rack=np.array([number for number, _ in rack], np.int32),
        rack_cost=np.array([cost for _, cost in rack], np.int64),
        elsewhere_cost=np.array([0, *away], np.int64),
        unscheduled_cost=np.array([2000] * (len(sets) + 1), np.int64),
    )


def problem(
    of: PreferenceCatalog,
    slots: Sequence[float],
    rates: Sequence[float],
    permille: int = 700,
    rack: Sequence[int] | None = None,
    seconds: Sequence[float] | None = None,
    held: float = 0.0,
) -> FluidProblem:
    """rates: of set 0, 1, ...; seconds: run times elsewhere, 1 s unless given."""
    elsewhere_us = np.array(seconds if seconds is not None else [1.0] * len(rates)) * SECOND_US
    return FluidProblem(
        catalog=of,
        rack=np.array(rack if rack is not None else [0] * len(slots), np.int32),
        slots=np.array(slots, np.float64),
        rate_per_s=np.array(rates, np.float64),
        preferred_us=elsewhere_us * (permille / 1000),
        elsewhere_us=elsewhere_us,
        held_slots=held,
    )


def best(of: FluidProblem, objective: FluidObjective = SHARE) -> FluidOptimum:
    found = solve_fluid(of, objective)
    assert isinstance(found, FluidOptimum)
    return found


def test_one_set_gets_its_machines_slots_over_the_shorter_run_time() -> None:
    # 2 slots hold 2 / 0.7 tasks per second; 8 are left for the others
    of = problem(catalog([[0]]), [2, 8], [0, 5])
    found = best(of)
    assert found.preferred_share == pytest.approx(2 / 0.7 / 5)
    assert found.busy_slots == pytest.approx(2 + 5 - 2 / 0.7)
    assert found.slot_price == pytest.approx([1 / 0.7, 0])
    assert best(of, COST).cost_mean == pytest.approx(1000 * (1 - 2 / 0.7 / 5))
    assert best(of, COST).slot_price == pytest.approx([1000 / 0.7, 0])


def test_tasks_without_preferences_take_room_and_cost_nothing() -> None:
    of = problem(catalog([[0]]), [2, 8], [4, 2])
    found = best(of, COST)
    assert found.preferred_share == pytest.approx(1.0)
    assert found.cost_mean == pytest.approx(0.0, abs=1e-6)
    assert found.busy_slots == pytest.approx(4 + 1.4)
    only_others = best(problem(catalog([[0]]), [2, 8], [4, 0]), COST)
    assert (only_others.preferred_share, only_others.cost_mean) == (None, 0.0)


@pytest.mark.parametrize("objective", list(FluidObjective))
@pytest.mark.parametrize(
    ("seconds", "load"),
    [
        # machines 0 and 1 are full of their own tasks, 1 / 0.7 per second each; machine 2 has the
        # others: 6 load - 2 / 0.7 = 1
        ([1.0, 1.0, 1.0], (1 + 2 / 0.7) / 6),
        # set 1 fits machine 0, and all other work is of set 2, of 2 s:
        # 0.7 * 3 load + 2 * (3 load - 1 / 1.4) = 2
        ([1.0, 1.0, 2.0], (2 + 2 / 1.4) / 8.1),
    ],
)
def test_more_work_than_slots_has_no_steady_state(
    objective: FluidObjective, seconds: list[float], load: float
) -> None:
    """By the maximum flow, and by the linear program where run times differ."""
    of = problem(catalog([[0], [1]]), [1, 1, 1], [0, 3, 3], seconds=seconds)
    found = solve_fluid(of, objective)
    assert isinstance(found, NoSteadyState)
    assert found.highest_load == pytest.approx(load, rel=1e-6)
    for factor, is_steady in ((1 - 1e-5, True), (1 + 1e-5, False)):
        rate = 3 * load * factor
        near = problem(of.catalog, [1, 1, 1], [0, rate, rate], seconds=seconds)
        assert isinstance(solve_fluid(near, objective), FluidOptimum) == is_steady


def test_no_slots_hold_no_load() -> None:
    none = solve_fluid(problem(catalog([[0]]), [0, 0], [1, 1]), COST)
    assert isinstance(none, NoSteadyState)
    assert none.highest_load == pytest.approx(0.0)
    held = solve_fluid(problem(catalog([[0]]), [2, 8], [0, 5], held=10), SHARE)
    assert isinstance(held, NoSteadyState)
    assert held.highest_load == pytest.approx(0.0)


def test_held_slots_count_for_the_cell_and_not_for_a_machine() -> None:
    of = problem(catalog([[0]]), [2, 8], [0, 5], held=4)
    assert best(of).preferred_share == pytest.approx(2 / 0.7 / 5)
    assert best(of).busy_slots == pytest.approx(2 + 5 - 2 / 0.7 + 4)


def test_a_program_of_too_many_variables_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fluid, "MOST_COLUMNS", 3)
    of = problem(catalog([[0], [0]]), [1, 9], [0, 2, 2], seconds=[1, 1, 2])
    with pytest.raises(ArithmeticError, match="has 4 variables: too many"):
        solve_fluid(of, COST)


def test_sets_of_equal_lists_share_in_proportion_to_their_rates() -> None:
    of = problem(catalog([[0], [0]]), [1, 9], [0, 1, 3], permille=1000)
    assert best(of).preferred_per_s == pytest.approx([0, 0.25, 0.75])


def test_random_placement_gets_the_share_of_slots_that_sets_list() -> None:
    of = problem(catalog([[0], [1, 2]]), [1, 2, 3, 4], [7, 1, 3])
    assert random_share(of) == pytest.approx((1 * 0.1 + 3 * 0.5) / 4)
    assert random_share(problem(catalog([[0]]), [1, 2], [5, 0])) is None
    assert random_share(problem(catalog([[0]]), [0, 0], [5, 1])) is None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("slots", np.array([1.0]), r"slots: expected 2 numbers, got shape \(1,\)"),
        ("slots", np.array([1.0, -1.0]), r"slots\[1\]: .* at least 0, got -1.0"),
        ("rate_per_s", np.array([0.0, np.nan]), r"rate_per_s\[1\]: .* finite .* got nan"),
        ("rate_per_s", np.zeros(3), "rate_per_s: expected 2 numbers"),
        ("elsewhere_us", np.array([0.0, np.inf]), r"elsewhere_us\[1\]: .* got inf"),
        ("preferred_us", np.array([0.0, 2e6]), r"preferred_us\[1\]: expected at most elsewhere_us"),
        ("held_slots", -1.0, "held_slots: .* got -1.0"),
    ],
)
def test_bad_input_is_named(field: str, value: object, message: str) -> None:
    good = problem(catalog([[0]]), [1, 1], [0, 1])
    fields = {name: getattr(good, name) for name in FluidProblem.__dataclass_fields__}
    with pytest.raises(ValueError, match=message):
        FluidProblem(**{**fields, field: value})
