"""Uniformly random among the rows that fit; where none does, tasks of lower priority make room.

A task that finds no room takes a machine where ending tasks of lower priority, of whatever
scheduler, makes enough of it (ParSync, supplement B: schedulers "can preempt less important jobs to
acquire resources"). Tasks end in one order: lowest priority first, among these the one submitted
last, among these the one of the highest id. The machine is that of the first task in this order
whose machine can make enough room; there tasks end in this order until the claim fits, but for
those that hold nothing of what it lacks.

Tasks of a gang, and tasks with preferences that are constraints, wait for room instead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from schedulers.capability import Capability
from schedulers.decision_time import PS_PER_OPERATION
from schedulers.entry_points import NoOptions
from schedulers.greedy.scheduler import (
    DECISION,
    WEIGHTS_PS,
    GreedyScheduler,
    PlacementKind,
)
from schedulers.interface import Plan, PlanContext, SchedulerEnvironment, TaskChanges
from schedulers.registry import SchedulerSpec
from schedulers.running_tasks import RunningTasks
from shared_state.tasks import NO_GANG, Int64, TaskBatch, fits
from shared_state.view import ClusterView

# Beyond the priorities of tasks, which are int32.
_ABOVE_ALL, _BELOW_ALL = 1 << 31, -(1 << 31) - 1


class PreemptingScheduler:
    """Random placement, then preemption.

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


SPEC = SchedulerSpec(
    "preempting",
    NoOptions,
    lambda options, environment: PreemptingScheduler(environment),
    default_decision=DECISION,
    # tasks that wait do not keep those behind them from making room
    capabilities=frozenset(
        {Capability.PREEMPTS, Capability.IGNORES_CHANGES, Capability.PLANS_WHOLE_QUEUE}
    ),
)
