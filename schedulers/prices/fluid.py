"""The fluid problem: how far placements can be improved in steady state, and what a slot is worth.

Tasks of each preference set arrive at a constant rate. A plan says which part of each set's tasks
runs where. It is feasible if, on every machine, arrivals per second times run time is at most its
number of slots (Little's law: that is the mean number of busy slots). The best feasible plan bounds
what any scheduler reaches in steady state, for its long-run averages are such a plan too. Waiting
is free here, so a scheduler that places tasks without delay need not reach the bound.

    minimise    sum of cost[s, p] * x[s, p]      (or maximise x on preferred machines)
    subject to  sum over places p of x[s, p] = rate[s]                      for every set s
                sum over sets s of x[s, m] * duration[s, m] <= slots[m]     for every machine m

A place p of a set is one of the machines that it lists (the preferred ones), one of the racks that
it lists, or elsewhere. The duration is shorter on a preferred machine. A task that is placed in a
rack may take any machine of the rack, and one placed elsewhere any machine: machines, racks and the
cell are nested, so one constraint for each machine, rack and the cell says the same as variables
for every machine would.

This is a bound for schedulers that neither know run times nor move running tasks, in cells with
slots. Where a set stands for tasks of one known run time, it is a bound for all schedulers that do
not move running tasks. Where machines have several resources, `slots` counts tasks of typical size,
and the result is an estimate.

The dual value of a machine's constraint is its slot price: by how much the objective would improve
for each slot more.

Where preferred machines cost the same, all other places cost the same and all sets have the same
durations, the problem is a maximum flow, and it is solved in integers (fluid_flow.py). Otherwise it
is a linear program for HiGHS (fluid_program.py). Both take machines of equal lists as one
(fluid_classes.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from schedulers.prices.fluid_classes import Float64, compress
from schedulers.prices.fluid_flow import highest_flow_load, preferred_flow
from schedulers.prices.fluid_program import cheapest_plan, highest_load
from shared_state.tasks import Int32, PreferenceCatalog

US_PER_S = 1e6
_TOLERANCE = 1e-9  # of the cell's slots


class FluidObjective(Enum):
    """What a plan is to be best at."""

    PREFERRED_SHARE = "preferred_share"  # the part of tasks with preferred machines that gets one
    COST = "cost"  # the mean placement cost of all tasks


@dataclass(frozen=True, slots=True, eq=False)
class FluidProblem:
    """Constant arrivals at a cell.

    Attributes:
        catalog: K preference sets.
        rack: int32[M], of each machine.
        slots: float64[M], tasks that each machine holds at once, 0 or more.
        rate_per_s: float64[K], arrivals of each set, 0 or more.
        preferred_us: float64[K], mean run time of a set's tasks on its preferred machines.
        elsewhere_us: float64[K], on any other machine; no less than preferred_us.
        held_slots: Slots that other tasks hold, on machines that are not known.
    """

    catalog: PreferenceCatalog
    rack: Int32
    slots: Float64
    rate_per_s: Float64
    preferred_us: Float64
    elsewhere_us: Float64
    held_slots: float = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError naming the field that is wrong."""
        machines, sets = len(self.rack), self.catalog.sets
        for name, column, length in (
            ("slots", self.slots, machines),
            ("rate_per_s", self.rate_per_s, sets),
            ("preferred_us", self.preferred_us, sets),
            ("elsewhere_us", self.elsewhere_us, sets),
        ):
            if column.shape != (length,):
                raise ValueError(f"{name}: expected {length} numbers, got shape {column.shape}")
            wrong = np.flatnonzero(~(np.isfinite(column) & (column >= 0)))
            if len(wrong):
                raise ValueError(
                    f"{name}[{wrong[0]}]: expected a finite number of at least 0, got "
                    f"{column[wrong[0]]}"
                )
        longer = np.flatnonzero(self.preferred_us > self.elsewhere_us)
        if len(longer):
            raise ValueError(
                f"preferred_us[{longer[0]}]: expected at most elsewhere_us, "
                f"{self.elsewhere_us[longer[0]]}, got {self.preferred_us[longer[0]]}"
            )
        if not (np.isfinite(self.held_slots) and self.held_slots >= 0):
            raise ValueError(
                f"held_slots: expected a finite number of at least 0, got {self.held_slots}"
            )

    @property
    def prefers(self) -> NDArray[np.bool_]:
        """Whether each set lists a machine: bool[K]."""
        lists: NDArray[np.bool_] = np.diff(self.catalog.machine_offsets) > 0
        return lists


@dataclass(frozen=True, slots=True, eq=False)
class FluidOptimum:
    """The best plan of a fluid problem.

    Attributes:
        preferred_share: Of the tasks whose sets list machines, the part on these; None if there are
            no such tasks. The bound, if that is the objective.
        cost_mean: The mean placement cost of all tasks, in the catalog's unit; None if no task
            arrives. The bound, if that is the objective; else None.
        busy_slots: Slots that tasks hold on average, those of other tasks included.
        preferred_per_s: float64[K], tasks of each set that get a preferred machine.
        slot_price: float64[M], the dual values: by how much the objective would improve with one
            more slot of each machine. In units of cost per slot and second, or in preferred tasks
            per slot and second.
    """

    preferred_share: float | None
    cost_mean: float | None
    busy_slots: float
    preferred_per_s: Float64
    slot_price: Float64


@dataclass(frozen=True, slots=True)
class NoSteadyState:
    """More work arrives than the cell can do, however it is placed.

    Attributes:
        highest_load: The largest factor by which all rates could be multiplied; below 1.
    """

    highest_load: float


def solve_fluid(problem: FluidProblem, objective: FluidObjective) -> FluidOptimum | NoSteadyState:
    """Find the best plan of a fluid problem.

    Raises:
        ArithmeticError: The linear program could not be solved to the end.
    """
    by_cost = objective is FluidObjective.COST
    classes = compress(problem, by_cost)
    capacity = float(problem.slots.sum()) - problem.held_slots
    if classes.one_saving is not None:
        found = preferred_flow(classes, classes.one_saving)
        fits = found.busy_slots <= capacity + _TOLERANCE * float(problem.slots.sum())
        plan = found if fits else None
    else:
        plan = cheapest_plan(classes, capacity)
    if plan is None:
        return NoSteadyState(_highest_load(problem, capacity))
    preferred_per_s = classes.by_set(plan.preferred_per_s, problem.rate_per_s)
    asked = float(problem.rate_per_s[problem.prefers].sum())
    arriving = float(problem.rate_per_s.sum())
    return FluidOptimum(
        preferred_share=min(1.0, float(preferred_per_s.sum()) / asked) if asked else None,
        cost_mean=plan.cost_per_s / arriving if by_cost and arriving else None,
        busy_slots=plan.busy_slots + problem.held_slots,
        preferred_per_s=preferred_per_s,
        slot_price=classes.by_machine(plan),
    )


def _highest_load(problem: FluidProblem, capacity: float) -> float:
    classes = compress(problem, by_cost=False)
    if classes.one_saving is not None:
        return highest_flow_load(classes, capacity)
    return highest_load(classes, capacity)


def random_share(problem: FluidProblem) -> float | None:
    """The part of tasks with preferred machines that would get one if each took a slot at random,
    any slot of the cell being as likely to be free: the share of the cell's slots that its set
    lists, on average over the tasks. None if there are no such tasks, or no slots."""
    catalog, slots = problem.catalog, problem.slots
    asked, total = float(problem.rate_per_s[problem.prefers].sum()), float(slots.sum())
    if not asked or not total:
        return None
    sums = np.concatenate([[0.0], np.cumsum(slots[catalog.machine])])
    listed = sums[catalog.machine_offsets[1:]] - sums[catalog.machine_offsets[:-1]]
    return float(problem.rate_per_s @ listed) / (asked * total)
