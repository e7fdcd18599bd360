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

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.summary_model import PhaseBound
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads.registry import ExpectedRates
from parsync.workload.workload import Workload
from schedulers.objective import placement_cost
from schedulers.prices.fluid import (
    FluidObjective,
    FluidProblem,
    NoSteadyState,
    random_share,
    solve_fluid,
)
from shared_state.errors import AgoraError
from shared_state.tasks import Int32, Int64

Float64 = NDArray[np.float64]
_FOREVER_US = 1 << 62


def phase_bounds(
    config: WorkloadConfig, workload: Workload, settle_us: int
) -> list[PhaseBound | None]:
    """The bound of each phase; None where no task prefers any machine, some may run on some
    machines only, or no task arrives.

    Args:
        config: What the workload was made from.
        workload: What was made.
        settle_us: What the figures leave out at the start of each phase.

    Raises:
        AgoraError: The kind of workload is not installed any more, or its expected rates do not go
            with its workload.
    """
    expected = expected_rates(config, workload)
    if not np.diff(workload.catalog.machine_offsets).any() or workload.catalog.has_constraints:
        return [None] * len(workload.phases)
    is_estimate = len(workload.cell.dimensions) > 1
    found: list[PhaseBound | None] = []
    known: dict[bytes, PhaseBound | None] = {}  # by expected rates: phases of a load are alike
    give_up = False
    for number in range(len(workload.phases)):
        key = b"" if expected is None else expected.per_s[number].tobytes()
        if key and key in known:
            found.append(known[key])
            continue
        problem = phase_problem(workload, number, expected, settle_us)
        one = _bound(problem, is_estimate, give_up)
        found.append(one)
        known[key] = one
        # where one phase takes too long, the others would, too
        give_up |= one is not None and not one.is_steady and one.highest_load is None
    return found


def expected_rates(config: WorkloadConfig, workload: Workload) -> ExpectedRates | None:
    """The rates that the options say; None if only the workload tells them. AgoraError as
    phase_bounds."""
    expected = config.expected_rates()
    if expected is not None:
        _check_rates(config.kind, expected, workload)
    return expected


@dataclass(frozen=True, slots=True)
class PhaseProblem:
    """The fluid problem of a phase.

    Attributes:
        fluid: Its machines have the slots that tasks known to run on them leave.
        slots: All slots of the machines that are up, on average.
        rates: Whether the rates are expected or came true.
    """

    fluid: FluidProblem
    slots: float
    rates: Literal["expected", "realised"]


def phase_problem(
    workload: Workload, phase: int, expected: ExpectedRates | None, settle_us: int
) -> PhaseProblem:
    """The fluid problem of a phase.

    Args:
        workload: The cell and its tasks.
        phase: The number of the phase.
        expected: The rates that the options say; None: those that came true.
        settle_us: What the figures leave out at the start of the phase.
    """
    request = _mean_request(workload)
    limit = workload.cell.limit / request
    slots: Float64 = limit[:, np.isfinite(request)].min(axis=1)
    if expected is not None:
        length_us = np.full(workload.catalog.sets, expected.mean_us)
        fluid = FluidProblem(
            catalog=workload.catalog,
            rack=workload.cell.rack,
            slots=slots,
            rate_per_s=expected.per_s[phase],
            preferred_us=length_us * (workload.preferred_permille / 1000),
            elsewhere_us=length_us,
        )
        return PhaseProblem(fluid, float(slots.sum()), "expected")
    whole = workload.phases[phase]
    start_us = min(whole.start_us + settle_us, whole.end_us - 1)
    return _Window(workload, start_us, whole.end_us, slots, request).problem()


def _bound(phase: PhaseProblem, is_estimate: bool, give_up: bool) -> PhaseBound | None:
    """The bound of a phase, not computed if give_up."""
    by_chance = random_share(phase.fluid)
    if by_chance is None:
        return None
    unknown = PhaseBound(
        rates=phase.rates,
        is_estimate=is_estimate,
        random_share=by_chance,
        preferred_share=None,
        cost_mean=None,
        occupancy=None,
        highest_load=None,
    )
    if give_up:
        return unknown
    try:
        share = solve_fluid(phase.fluid, FluidObjective.PREFERRED_SHARE)
        cost = solve_fluid(phase.fluid, FluidObjective.COST)
    except ArithmeticError:
        return unknown
    if isinstance(share, NoSteadyState) or isinstance(cost, NoSteadyState):
        load = share.highest_load if isinstance(share, NoSteadyState) else 1.0
        return unknown.model_copy(update={"highest_load": min(1.0, load)})
    known_busy = phase.slots - float(phase.fluid.slots.sum())
    return unknown.model_copy(
        update={
            "preferred_share": share.preferred_share,
            "cost_mean": None if cost.cost_mean is None else _cleared(cost.cost_mean),
            "occupancy": (known_busy + share.busy_slots) / phase.slots,
        }
    )


def _cleared(cost: float) -> float:
    """A cost without what rounding leaves of 0."""
    return max(0.0, round(cost, 6))


def _check_rates(kind: str, expected: ExpectedRates, workload: Workload) -> None:
    """Raise AgoraError naming what is wrong with the rates that a kind of workload gives."""
    what = f"workload kind {kind!r}: expected_rates"
    if not isinstance(expected, ExpectedRates):
        raise AgoraError(f"{what}: expected ExpectedRates, got a {type(expected).__name__}")
    per_s, shape = np.asarray(expected.per_s), (len(workload.phases), workload.catalog.sets)
    if per_s.shape != shape:
        raise AgoraError(f"{what}: per_s: expected shape {shape}, got {per_s.shape}")
    if not (np.isfinite(per_s) & (per_s >= 0)).all():
        raise AgoraError(f"{what}: per_s: expected finite numbers of at least 0")
    if not 0 < expected.mean_us < _FOREVER_US:
        raise AgoraError(f"{what}: mean_us: expected a run time above 0, got {expected.mean_us}")


def _mean_request(workload: Workload) -> Float64:
    """What an arriving task requests on average, float64[R]. Only resources that all tasks request
    limit how many a machine holds, as the others go to machines without one, too: of those it is
    infinite. Where no resource is requested by all, those that most request count."""
    request = workload.tasks.request[workload.arrival_rows]
    if not len(request):
        return np.ones(len(workload.cell.dimensions))
    wanted = np.count_nonzero(request, axis=0)
    mean: Float64 = request.mean(axis=0, dtype=np.float64)
    return np.where(wanted == wanted.max(), mean, np.inf)


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

    def problem(self) -> PhaseProblem:
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
        slots = self._slots * self._part_up()
        fluid = FluidProblem(
            catalog=workload.catalog,
            rack=workload.cell.rack,
            slots=np.maximum(slots - self._held_slots(), 0.0),
            rate_per_s=count.astype(np.float64) * (1e6 / self._length_us),
            preferred_us=_means(
                its, np.minimum(duration_inside_us * self._preferred, left_us), count
            ),
            elsewhere_us=_means(its, np.minimum(duration_inside_us, left_us), count),
            held_slots=float(held @ self._sizes(rows[before])),
        )
        return PhaseProblem(fluid, float(slots.sum()), "realised")

    def _held_slots(self) -> Float64:
        """float64[M]: what tasks that run at time 0 hold of each machine's slots."""
        workload = self._workload
        rows, machine = workload.initial.task, workload.initial.machine
        _, preferred = placement_cost(
            workload.catalog, workload.cell.rack, workload.tasks.preference[rows], machine
        )
        duration_us = _ending(workload.duration_us[rows]) * np.where(
            preferred, self._preferred, 1.0
        )
        held = self._held(np.zeros(len(rows), np.int64), duration_us) * self._sizes(rows)
        on_machine = np.bincount(machine, held, minlength=len(self._slots))
        return on_machine.astype(np.float64)

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
