"""The fluid bound of a workload's load phases (schedulers/prices/fluid.py): the best preferred
share and the lowest mean cost that any scheduler could reach if the load stayed as it is.

Generated workloads have the arrival rates and run times that their options say. For all others the
rates are those that came true: tasks of a set that are submitted in the part of a phase that the
figures count, over the length of that part, with their run times as far as they fall into it, if
each task starts when it is submitted. Tasks that came before hold slots for what they have left, on
their machines where these are known, and machines count for the time that they are up.

Where machines have several resources, a slot is the mean request, in the dimension that is
tightest on the machine. The result is an estimate then: a scheduler may choose small tasks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.fluid_bound_model import PhaseBound
from experiments.workload_config import WorkloadConfig
from experiments.workloads.registry import ExpectedRates
from parsync.workload.workload import Workload
from schedulers.objective import placement_cost
from schedulers.prices.fluid import (
    FluidObjective,
    FluidOptimum,
    FluidProblem,
    NoSteadyState,
    random_share,
    solve_fluid,
)
from shared_state.tasks import Int32, Int64

Float64 = NDArray[np.float64]
_FOREVER_US = 1 << 62


def phase_bounds(
    config: WorkloadConfig, workload: Workload, settle_us: int
) -> list[PhaseBound | None]:
    """The bound of each phase; None where no task prefers any machine, or no task arrives.

    Args:
        config: What the workload was made from.
        workload: What was made.
        settle_us: What the figures leave out at the start of each phase.

    Raises:
        AgoraError: The kind of workload is not installed any more.
    """
    expected = config.expected_rates()
    if not np.diff(workload.catalog.machine_offsets).any():
        return [None] * len(workload.phases)
    return [
        _bound(phase_problem(workload, number, expected, settle_us), workload, expected is not None)
        for number in range(len(workload.phases))
    ]


def phase_problem(
    workload: Workload, phase: int, expected: ExpectedRates | None, settle_us: int
) -> FluidProblem:
    """The fluid problem of a phase.

    Args:
        workload: The cell and its tasks.
        phase: The number of the phase.
        expected: The rates that the options say; None: those that came true.
        settle_us: What the figures leave out at the start of the phase.
    """
    request = _mean_request(workload)
    limit = workload.cell.limit / request
    slots: Float64 = limit.min(axis=1)
    if expected is not None:
        length_us = np.full(workload.catalog.sets, expected.mean_us)
        return FluidProblem(
            catalog=workload.catalog,
            rack=workload.cell.rack,
            slots=slots,
            rate_per_s=expected.per_s[phase],
            preferred_us=length_us * (workload.preferred_permille / 1000),
            elsewhere_us=length_us,
        )
    whole = workload.phases[phase]
    start_us = min(whole.start_us + settle_us, whole.end_us - 1)
    return _Window(workload, start_us, whole.end_us, slots, request).problem()


def _bound(problem: FluidProblem, workload: Workload, expected: bool) -> PhaseBound | None:
    by_chance = random_share(problem)
    if by_chance is None:
        return None
    try:
        share = solve_fluid(problem, FluidObjective.PREFERRED_SHARE)
        cost = solve_fluid(problem, FluidObjective.COST)
    except ArithmeticError:
        return None
    return PhaseBound(
        rates="expected" if expected else "realised",
        is_estimate=len(workload.cell.dimensions) > 1,
        random_share=by_chance,
        preferred_share=share.preferred_share if isinstance(share, FluidOptimum) else None,
        cost_mean=cost.cost_mean if isinstance(cost, FluidOptimum) else None,
        occupancy=share.occupancy if isinstance(share, FluidOptimum) else None,
        highest_load=share.highest_load if isinstance(share, NoSteadyState) else None,
    )


def _mean_request(workload: Workload) -> Float64:
    """What an arriving task requests on average: float64[R]."""
    request = workload.tasks.request[workload.arrival_rows]
    if not len(request):
        return np.ones(len(workload.cell.dimensions))
    mean: Float64 = np.maximum(request.mean(axis=0, dtype=np.float64), 1e-9)
    return mean


class _Window:
    """What came true from start_us to end_us."""

    def __init__(
        self,
        workload: Workload,
        start_us: int,
        end_us: int,
        slots: Float64,
        mean_request: Float64,
    ) -> None:
        self._workload = workload
        self._start_us, self._end_us = start_us, end_us
        self._length_us = end_us - start_us
        self._slots = slots
        self._mean_request = mean_request
        self._preferred = workload.preferred_permille / 1000

    def problem(self) -> FluidProblem:
        """The fluid problem with the rates and run times of this time."""
        workload = self._workload
        rows = workload.arrival_rows
        at_us = np.repeat(workload.arrival_us, np.diff(workload.arrival_offsets))
        sets = workload.tasks.preference[rows]
        duration_us = _ending(workload.duration_us[rows])
        inside = (at_us >= self._start_us) & (at_us < self._end_us)
        before = at_us < self._start_us
        left_us = (self._end_us - at_us[inside]).astype(np.float64)
        its, duration_inside_us = sets[inside], duration_us[inside]
        count = np.bincount(its, minlength=workload.catalog.sets)
        prefers = np.diff(workload.catalog.machine_offsets) > 0
        shortest = np.where(prefers[sets[before]], self._preferred, 1.0)
        held = self._held(at_us[before], duration_us[before] * shortest)
        return FluidProblem(
            catalog=workload.catalog,
            rack=workload.cell.rack,
            slots=self._free_slots(),
            rate_per_s=count.astype(np.float64) * (1e6 / self._length_us),
            preferred_us=_means(
                its, np.minimum(duration_inside_us * self._preferred, left_us), count
            ),
            elsewhere_us=_means(its, np.minimum(duration_inside_us, left_us), count),
            held_slots=float(held @ self._sizes(rows[before])),
        )

    def _free_slots(self) -> Float64:
        """float64[M]: slots of each machine, for the part of the time in which it is up, less what
        tasks that run at time 0 hold of them."""
        workload = self._workload
        rows, machine = workload.initial.task, workload.initial.machine
        _, preferred = placement_cost(
            workload.catalog, workload.cell.rack, workload.tasks.preference[rows], machine
        )
        duration_us = _ending(workload.duration_us[rows]) * np.where(
            preferred, self._preferred, 1.0
        )
        held = self._held(np.zeros(len(rows), np.int64), duration_us) * self._sizes(rows)
        free = self._slots * self._part_up()
        free -= np.bincount(machine, held, minlength=len(free))
        return np.maximum(free, 0.0)

    def _held(self, start_us: Int64, duration_us: Float64) -> Float64:
        """The part of the time in which each task runs."""
        start, end = self._start_us, self._end_us
        runs_us = np.minimum(start_us + duration_us, end) - np.maximum(start_us, start)
        part: Float64 = np.maximum(runs_us, 0.0) / self._length_us
        return part

    def _sizes(self, rows: Int64) -> Float64:
        """The slots of each task."""
        size: Float64 = (self._workload.tasks.request[rows] / self._mean_request).max(axis=1)
        return size

    def _part_up(self) -> Float64:
        """float64[M]: the part of the time in which each machine is up."""
        events, start, end = self._workload.machine_events, self._start_us, self._end_us
        # each event changes the state from its time to the end
        remaining = np.clip(end - np.maximum(events.at_us, start), 0, None) / self._length_us
        part = np.ones(len(self._slots))
        np.add.at(part, events.machine, np.where(events.up, remaining, -remaining))
        return np.clip(part, 0.0, 1.0)


def _ending(duration_us: Int64) -> Float64:
    """Run times, of tasks that never end a very long one."""
    return np.where(duration_us < 0, _FOREVER_US, duration_us).astype(np.float64)


def _means(sets: Int32, values: Float64, count: Int64) -> Float64:
    """The mean of the values of each set, 0 where it has none."""
    sums = np.bincount(sets, values, minlength=len(count))
    return np.divide(sums, count, out=np.zeros(len(count)), where=count > 0)
