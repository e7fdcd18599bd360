"""The fluid problem on random small catalogs against a linear program with a variable for every set
and machine, solved by OR-tools (GLOP)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.linear_solver import pywraplp

from schedulers.objective import placement_cost
from schedulers.prices.fluid import FluidObjective, FluidOptimum, FluidProblem, solve_fluid
from shared_state.tasks import PreferenceCatalog
from tests.fixtures.examples import examples

NEAR = 1e-6


@st.composite
def problems(draw: st.DrawFn, alike: bool) -> FluidProblem:
    """alike: one cost of preferred machines, one elsewhere, no racks and one run time, so that the
    problem is a maximum flow."""
    machines = draw(st.integers(1, 7))
    rack = np.array(sorted(draw(st.integers(0, 2)) for _ in range(machines)), np.int32)
    sets = draw(st.integers(1, 5))
    machine, machine_cost, listed_racks, rack_cost = [], [], [], []
    machine_offsets, rack_offsets, elsewhere = [0, 0], [0, 0], [0]
    for _ in range(sets):
        away = 10 if alike else draw(st.integers(6, 20))
        chosen = sorted(draw(st.sets(st.integers(0, machines - 1), max_size=machines)))
        machine += chosen
        machine_cost += [0 if alike else draw(st.integers(0, 3)) for _ in chosen]
        near = [] if alike else sorted(draw(st.sets(st.sampled_from(sorted(set(rack.tolist()))))))
        listed_racks += near
        rack_cost += [draw(st.integers(3, 6)) for _ in near]
        machine_offsets.append(len(machine))
        rack_offsets.append(len(listed_racks))
        elsewhere.append(away)
    catalog = PreferenceCatalog(
        np.array(machine_offsets),
        np.array(machine, np.int32),
        np.array(machine_cost, np.int64),
        np.array(rack_offsets),
        np.array(listed_racks, np.int32),
        np.array(rack_cost, np.int64),
        np.array(elsewhere, np.int64),
        np.array(elsewhere, np.int64),
    )
    length = np.full(sets + 1, 1.5)
    if not alike:
        length = np.array([draw(st.integers(1, 8)) / 4 for _ in range(sets + 1)])
    slots = np.array([draw(st.integers(0, 4)) for _ in range(machines)], np.float64)
    rate = np.array([draw(st.integers(0, 12)) / 4 for _ in range(sets + 1)])
    return FluidProblem(
        catalog=catalog,
        rack=rack,
        slots=slots,
        rate_per_s=rate,
        preferred_us=length * draw(st.sampled_from([0.5, 0.7, 1.0])) * 1e6,
        elsewhere_us=length * 1e6,
    )


def oracle(problem: FluidProblem, objective: FluidObjective) -> tuple[float | None, float]:
    """The best preferred tasks per second, or the lowest cost per second, None if there is no
    feasible plan; and the largest factor of all rates. One variable for each set and machine."""
    sets, machines = len(problem.rate_per_s), len(problem.rack)
    pairs = np.indices((sets, machines)).reshape(2, -1).astype(np.int32)
    cost, preferred = placement_cost(problem.catalog, problem.rack, pairs[0], pairs[1])
    length = np.where(preferred, problem.preferred_us[pairs[0]], problem.elsewhere_us[pairs[0]])

    def program(scaled: bool) -> float | None:
        solver = pywraplp.Solver.CreateSolver("GLOP")
        load = solver.NumVar(0, 1e3, "load") if scaled else 1.0
        x = [solver.NumVar(0, solver.infinity(), "") for _ in range(sets * machines)]
        for one in range(sets):
            its = x[one * machines : (one + 1) * machines]
            solver.Add(sum(its) == float(problem.rate_per_s[one]) * load)
        for one in range(machines):
            work = [
                x[s * machines + one] * float(length[s * machines + one] * 1e-6)
                for s in range(sets)
            ]
            solver.Add(sum(work) <= float(problem.slots[one]))
        if scaled:
            solver.Maximize(load)
        elif objective is FluidObjective.COST:
            solver.Minimize(sum(v * int(c) for v, c in zip(x, cost, strict=True)))
        else:
            solver.Maximize(sum(v for v, is_one in zip(x, preferred, strict=True) if is_one))
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            return None
        return float(solver.Objective().Value())

    return program(False), program(True) or 0.0


def check(problem: FluidProblem, objective: FluidObjective) -> None:
    expected, load = oracle(problem, objective)
    found = solve_fluid(problem, objective)
    if not isinstance(found, FluidOptimum):
        assert load <= 1 + NEAR
        assert found.highest_load == pytest.approx(load, abs=NEAR)
        return
    assert expected is not None or load == pytest.approx(1, abs=NEAR)
    if expected is None:
        return
    arriving, asking = problem.rate_per_s.sum(), problem.rate_per_s[problem.prefers].sum()
    if objective is FluidObjective.COST:
        assert (found.cost_mean or 0.0) * arriving == pytest.approx(expected, rel=NEAR, abs=1e-5)
    else:
        assert (found.preferred_share or 0.0) * asking == pytest.approx(expected, abs=1e-5)
    assert (found.preferred_per_s <= problem.rate_per_s + NEAR).all()
    assert found.busy_slots <= problem.slots.sum() + NEAR
    assert (found.slot_price >= 0).all()
    check_prices(problem, objective, found)


def check_prices(problem: FluidProblem, objective: FluidObjective, found: FluidOptimum) -> None:
    """Weak duality: each task pays its cost and the price of the slots that it holds at the place
    that is cheapest for it, and all slots are paid for. With the optimum's prices the sum is the
    optimum."""
    sets, machines = len(problem.rate_per_s), len(problem.rack)
    pairs = np.indices((sets, machines)).reshape(2, -1).astype(np.int32)
    cost, preferred = placement_cost(problem.catalog, problem.rack, pairs[0], pairs[1])
    length = np.where(preferred, problem.preferred_us[pairs[0]], problem.elsewhere_us[pairs[0]])
    paid = cost if objective is FluidObjective.COST else -preferred.astype(np.int64)
    total = (paid + length * 1e-6 * found.slot_price[pairs[1]]).reshape(sets, machines)
    dual = float(problem.rate_per_s @ total.min(axis=1) - problem.slots @ found.slot_price)
    if objective is FluidObjective.COST:
        value = (found.cost_mean or 0.0) * float(problem.rate_per_s.sum())
    else:
        value = -float(found.preferred_per_s.sum())
    assert dual == pytest.approx(value, rel=1e-5, abs=1e-4)


@examples(120)
@given(problem=problems(alike=True), objective=st.sampled_from(FluidObjective))
def test_the_maximum_flow_is_the_optimum(problem: FluidProblem, objective: FluidObjective) -> None:
    check(problem, objective)


@examples(120)
@given(problem=problems(alike=False), objective=st.sampled_from(FluidObjective))
def test_the_linear_program_is_the_optimum(
    problem: FluidProblem, objective: FluidObjective
) -> None:
    check(problem, objective)
