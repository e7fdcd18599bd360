"""The table of the greedy kinds: which of the rows that fit a task gets (below, a line each), how
their options turn into a scheduler, and the kind that preempts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.entry_points import NoOptions
from schedulers.greedy.scheduler import (
    DECISION,
    WEIGHTS_PS,
    GreedyOptions,
    GreedyScheduler,
    PatienceByPrice,
    PatientScheduler,
    PlacementKind,
)
from schedulers.interface import (
    Capability,
    Plan,
    PlanContext,
    Scheduler,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.prices import registry
from schedulers.registry import SchedulerSpec
from schedulers.running_tasks import RunningTasks
from shared_state.tasks import NO_GANG, Int64, TaskBatch, fits
from shared_state.view import ClusterView


def greedy_spec(
    name: str,
    kind: PlacementKind,
    *,
    preferred_first: bool = False,
    options: type[GreedyOptions] = GreedyOptions,
) -> SchedulerSpec:
    """The spec of a greedy kind.

    Args:
        name: Of the kind.
        kind: Which row of a pool a task gets.
        preferred_first: Whether a round takes the whole queue, and every task that can have a
            preferred machine gets one before the others are placed.
        options: The model of its options.
    """

    def build(options: GreedyOptions, environment: SchedulerEnvironment) -> Scheduler:
        greedy = GreedyScheduler(kind, environment, preferred_first)
        estimator = options.estimator(environment)
        if estimator is not None:
            greedy.place_by(options, estimator, estimator.shared_demand)
        if options.patience_by_price:
            patience = PatienceByPrice(options, environment.catalog, options.patience_us)
            return PatientScheduler(greedy, environment, patience)
        if options.patience_us:
            return PatientScheduler(greedy, environment, options.patience_us)
        return greedy

    def further(options: GreedyOptions) -> frozenset[Capability]:
        keeps = options.patience_us > 0 or options.patience_by_price
        memory = Capability.KEEPS_PENDING if keeps else Capability.IGNORES_CHANGES
        return frozenset({memory, *options.further_capabilities})

    return SchedulerSpec(
        name,
        options,
        build,
        default_decision=DECISION,
        capabilities=frozenset({Capability.PLANS_WHOLE_QUEUE} if preferred_first else ()),
        further_capabilities=further,
    )


# Uniformly random among the rows that fit.
RANDOM = greedy_spec("random", PlacementKind.RANDOM)

# Omega's randomised first fit (Schwarzkopf et al., EuroSys 2013; its simulator's placement loop).
# Draw among the remaining candidates: a machine that fits is taken and stays a candidate, another
# is set aside for the rest of the attempt. An attempt is a run of tasks of one request, as the
# tasks of an Omega job are.
RANDOMIZED_FIRST_FIT = greedy_spec("randomized_first_fit", PlacementKind.RANDOMIZED_FIRST_FIT)

# The lowest row that fits. Schedulers that share a view all choose the same rows: the extreme of
# contention.
FIRST_FIT = greedy_spec("first_fit", PlacementKind.FIRST_FIT)

# The row that fits with the least room left, summed over dimensions as shares of the largest
# machine; ties to the lowest row.
BEST_FIT = greedy_spec("best_fit", PlacementKind.BEST_FIT)

# The row that fits with the most room, summed over dimensions as shares of the largest machine:
# also among preferred machines of equal cost, where the other kinds draw. Ties are broken at
# random, anew in each plan, so that schedulers that share a view do not all choose the same rows.
LOAD_SPREADING = greedy_spec("load_spreading", PlacementKind.LOAD_SPREADING)

# Preferred machines first, over the whole queue: in each round every task that can have one of its
# preferred machines gets one, in the order of the queue. Then the others get any. Of equally good
# machines a task gets the one with the most room, as of load_spreading.
PREFERRED_FIRST = greedy_spec("preferred_first", PlacementKind.LOAD_SPREADING, preferred_first=True)


class WeightedSamplingOptions(GreedyOptions):
    """Options as of the other kinds, but without prices: the slot score alone decides."""

    @field_validator("prices", mode="before")
    @classmethod
    def _knows_none(cls, kind: object) -> object:
        if kind != registry.NONE:
            raise ValueError(
                f"expected {registry.NONE!r}, got {kind!r}: weighted_sampling draws by slot score"
            )
        return kind


# Each row that fits with probability proportional to its slot score: exact weighted sampling
# without replacement (ParSync section 4.3).
WEIGHTED_SAMPLING = greedy_spec(
    "weighted_sampling", PlacementKind.WEIGHTED_SAMPLING, options=WeightedSamplingOptions
)


# Beyond the priorities of tasks, which are int32.
_ABOVE_ALL, _BELOW_ALL = 1 << 31, -(1 << 31) - 1


class PreemptingScheduler:
    """Uniformly random among the rows that fit; where none does, tasks of lower priority make room.

    A task that finds no room takes a machine where ending tasks of lower priority, of whatever
    scheduler, makes enough of it (ParSync, supplement B: schedulers "can preempt less important
    jobs to acquire resources"). Tasks end in one order: lowest priority first, among these the one
    submitted last, among these the one of the highest id. The machine is that of the first task in
    this order whose machine can make enough room; there tasks end in this order until the claim
    fits, but for those that hold nothing of what it lacks.

    Tasks of a gang, and tasks with preferences that are constraints, wait for room instead.

    Args:
        environment: Where the scheduler lives.
    """

    def __init__(self, environment: SchedulerEnvironment) -> None:
        self._greedy = GreedyScheduler(PlacementKind.RANDOM, environment)
        self._constrained = environment.catalog.has_constraints

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        plan = self._greedy.plan(tasks, view, context)
        running = context.running
        if running is None or self._constrained or not len(plan.pending) or not len(running):
            return plan
        placed = np.isin(tasks.task, plan.task)
        machine = np.full(len(tasks), -1, np.int32)
        machine[placed] = plan.machine  # plans keep the order of the tasks
        room = np.where(view.up[:, None], view.free, -1)
        np.subtract.at(room, plan.machine, plan.request)
        lowest = np.full(len(room), _ABOVE_ALL, np.int64)
        np.minimum.at(lowest, plan.machine, tasks.priority[placed])
        victims = _Victims(running.take(running.priority < lowest[running.machine]), room)
        waiting = np.flatnonzero(~placed & (tasks.gang == NO_GANG))
        urgency = tasks.priority[waiting].astype(np.int64)
        for row in waiting[np.argsort(-urgency, kind="stable")].tolist():
            machine[row] = victims.make_room(tasks.request[row], int(tasks.priority[row]))
        preempting = Plan.from_machines(
            tasks,
            machine,
            operations=plan.operations + victims.looked_at * WEIGHTS_PS[2] // PS_PER_OPERATION,
            partitions_scanned=plan.partitions_scanned,
            evict=victims.ended,
        )
        return replace(preempting, stats=plan.stats)

    def observe(self, changes: TaskChanges) -> None:
        """Ignore the changes: every plan starts from the view (Capability.IGNORES_CHANGES)."""


class _Victims:
    """The running tasks that may end for the tasks of one plan.

    Args:
        running: Those that are known, of lower priority than all claims on their machines.
        room: int64[M, R], what is free beside the claims of the plan; negative: machines that are
            down, or whose room is spoken for. It is kept up to date.
    """

    def __init__(self, running: RunningTasks, room: Int64) -> None:
        order = np.lexsort((-running.task, -running.submit_us, running.priority))
        self._running = running.take(order)
        self._room = room
        self._runs: NDArray[np.bool_] = np.ones(len(order), np.bool_)
        # by machine: the highest priority of those that end
        self._highest = np.full(len(room), _BELOW_ALL, np.int64)
        self._failed: set[tuple[int, ...]] = set()  # priority and request; room only shrinks
        self.looked_at = 0

    @property
    def ended(self) -> Int64:
        """The allocations that are to end, int64[e]."""
        return np.ascontiguousarray(self._running.allocation[~self._runs])

    def make_room(self, request: Int64, priority: int) -> int:
        """The machine that has room for a request once tasks of lower priority end; -1: none.
        Claims come by falling priority: a victim is of lower priority than all that rely on it."""
        key = (priority, *request.tolist())
        if key in self._failed:
            return -1
        running = self._running
        # in order of priority, so that these come first
        last = int(np.searchsorted(running.priority, priority))
        lower = np.flatnonzero(self._runs[:last])
        self.looked_at += len(lower)
        possible = self._room.copy()
        np.add.at(possible, running.machine[lower], running.request[lower])
        fit = fits(request, possible) & (self._highest < priority)
        fit &= np.all((self._room >= 0) | (request == 0), axis=1)
        found = np.flatnonzero(fit[running.machine[lower]])
        if not len(found):
            self._failed.add(key)
            return -1
        machine = int(running.machine[lower[found[0]]])
        there = lower[running.machine[lower] == machine]
        short = ~fits(request[:, None], self._room[machine][:, None])  # by resource
        if short.any():  # what holds none of it makes no room
            there = there[running.request[there][:, short].any(axis=1)]
        freed = self._room[machine] + np.cumsum(running.request[there], axis=0)
        needed = int(np.count_nonzero(~fits(request, freed))) + 1
        self._runs[there[:needed]] = False
        self._highest[machine] = max(self._highest[machine], running.priority[there[:needed]].max())
        self._room[machine] = freed[needed - 1] - request
        return machine


PREEMPTING = SchedulerSpec(
    "preempting",
    NoOptions,
    lambda options, environment: PreemptingScheduler(environment),
    default_decision=DECISION,
    # tasks that wait do not keep those behind them from making room
    capabilities=frozenset(
        {Capability.PREEMPTS, Capability.IGNORES_CHANGES, Capability.PLANS_WHOLE_QUEUE}
    ),
)
