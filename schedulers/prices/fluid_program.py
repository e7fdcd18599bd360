"""The fluid problem as a linear program, solved by HiGHS.

Variables are the parts of each set's tasks that get each place: classes of machines that the set
lists, racks that it lists, and elsewhere. Rows are divided by their capacities and costs by their
mean, so that HiGHS's absolute tolerances mean the same for small and large cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from schedulers.prices.fluid_classes import NO_RACK, Float64, FluidClasses, Plan

_US = 1e-6
_INFEASIBLE = 2  # of scipy's statuses


class _Program:
    """The columns and rows of a small problem. Columns: its entries, its rack entries, and one for
    each set's tasks elsewhere. Rows with capacities: its classes, its racks, and the cell."""

    def __init__(self, classes: FluidClasses, capacity: float) -> None:
        self.classes = classes
        sets = np.arange(len(classes.rate_per_s))
        in_class, rack_set, rack = classes.entry_class, classes.rack_set, classes.rack_entry
        self.set = np.concatenate([classes.entry_set, rack_set, sets])
        self.cost = np.concatenate(
            [classes.entry_cost, classes.rack_cost, classes.elsewhere_cost]
        ).astype(np.float64)
        rate = classes.rate_per_s[self.set]
        length_us = np.where(
            np.arange(len(self.set)) < len(in_class),
            classes.preferred_us[self.set],
            classes.elsewhere_us[self.set],
        )
        self.slots = rate * length_us * _US  # that a column of 1 holds
        room = np.concatenate([classes.capacity, classes.rack_capacity, [capacity]])
        self.room = np.where(room > 0, 1.0, 0.0)
        self.divisor = np.where(room > 0, room, 1.0)  # of each row, by which it was divided
        first_rack = len(classes.capacity)
        cell = first_rack + len(classes.rack_capacity)
        entries = np.arange(len(in_class))
        rack_entries = len(in_class) + np.arange(len(rack_set))
        nested = classes.rack_of[in_class] != NO_RACK
        every = np.arange(len(self.set))
        self.row = np.concatenate(
            [
                in_class,
                first_rack + classes.rack_of[in_class[nested]].astype(np.int64),
                first_rack + rack,
                np.full(len(every), cell),
            ]
        )
        self.column = np.concatenate([entries, entries[nested], rack_entries, every])

    def solve(self, cost: Float64, extra: bool) -> Any:
        """Solve for these costs of the columns. With `extra`, a last column multiplies all
        rates."""
        columns = len(self.set) + extra
        limits = coo_array(
            (self.slots[self.column] / self.divisor[self.row], (self.row, self.column)),
            shape=(len(self.room), columns),
        ).tocsr()
        sets = len(self.classes.rate_per_s)
        value, row, column = np.ones(len(self.set)), self.set, np.arange(len(self.set))
        if extra:
            value = np.concatenate([value, np.full(sets, -1.0)])
            row = np.concatenate([row, np.arange(sets)])
            column = np.concatenate([column, np.full(sets, len(self.set))])
        placed = coo_array((value, (row, column)), shape=(sets, columns)).tocsr()
        return linprog(
            cost,
            A_ub=limits,
            b_ub=self.room,
            A_eq=placed,
            b_eq=np.zeros(sets) if extra else np.ones(sets),
            bounds=(0, None),
            method="highs",
        )


def cheapest_plan(classes: FluidClasses, capacity: float) -> Plan | None:
    """The plan of the lowest cost, None if the work is more than the cell can do.

    Args:
        classes: The small problem.
        capacity: Slots of the whole cell that its tasks may hold.

    Raises:
        ArithmeticError: HiGHS did not get to an optimum.
    """
    sets = len(classes.rate_per_s)
    if not sets:
        none = np.zeros(0)
        return Plan(none, 0.0, 0.0, none, np.zeros(len(classes.rack_capacity)), 0.0)
    program = _Program(classes, capacity)
    cost_per_s = program.cost * classes.rate_per_s[program.set]
    scale = float(np.abs(cost_per_s).mean()) or 1.0
    result = program.solve(cost_per_s / scale, extra=False)
    if result.status == _INFEASIBLE:
        return None
    _check(result)
    part = np.maximum(result.x, 0.0)
    its = classes.rate_per_s[classes.entry_set] * part[: len(classes.entry_set)]
    price = np.maximum(-result.ineqlin.marginals, 0.0) * scale / program.divisor
    count, racks = len(classes.capacity), len(classes.rack_capacity)
    return Plan(
        preferred_per_s=np.bincount(classes.entry_set, its, sets).astype(np.float64),
        busy_slots=float(program.slots @ part),
        cost_per_s=float(cost_per_s @ part),
        class_price=price[:count],
        rack_price=price[count : count + racks],
        cell_price=float(price[-1]),
    )


def highest_load(classes: FluidClasses, capacity: float) -> float:
    """The largest factor by which all rates can be multiplied so that the cell can do the work.

    Args, Raises: As cheapest_plan. Some work must arrive.
    """
    program = _Program(classes, capacity)
    cost = np.zeros(len(program.set) + 1)
    cost[-1] = -1.0
    result = program.solve(cost, extra=True)
    _check(result)
    return max(0.0, float(result.x[-1]))


def _check(result: Any) -> None:
    if result.status != 0:
        raise ArithmeticError(f"the fluid problem's linear program: {result.message}")
