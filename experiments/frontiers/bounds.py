"""The fluid bound of every condition of a frontier, under its first seed."""

from __future__ import annotations

from experiments.cell_watch import settle_us
from experiments.fluid_bound import phase_bounds
from experiments.fluid_bound_model import PhaseBound, bound_over
from experiments.frontiers.grid import Grid
from experiments.running import make_workload
from parsync.workload.workload import Workload


def condition_bounds(grid: Grid, workload: Workload) -> list[PhaseBound | None]:
    """The bound over all phases of each condition, each phase counting by the tasks that are
    submitted in it while figures count. None where there is none.

    Args:
        grid: The conditions.
        workload: Of the first seed, under the first condition.
    """
    by_load: dict[int | None, PhaseBound | None] = {}
    for condition in grid.conditions:
        if condition.load_percent not in by_load:
            is_first = condition is grid.conditions[0]
            its = workload if is_first else make_workload(condition.config, grid.seeds[0])
            settled_us = settle_us(condition.config)
            bounds = phase_bounds(condition.config.workload, its, settled_us)
            by_load[condition.load_percent] = bound_over(bounds, _counted_tasks(its, settled_us))
    return [by_load[condition.load_percent] for condition in grid.conditions]


def _counted_tasks(workload: Workload, settled_us: int) -> list[int]:
    """How many tasks are submitted in each phase while figures count."""
    counted = []
    for phase in workload.phases:
        counting_us = [phase.start_us + settled_us, phase.end_us]
        first, end = workload.arrival_us.searchsorted(counting_us)
        counted.append(int(workload.arrival_offsets[end] - workload.arrival_offsets[first]))
    return counted
