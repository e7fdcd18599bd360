"""Omega's opportunistic MapReduce scheduler (Schwarzkopf et al., EuroSys 2013, section 6).

It sees the whole cell, predicts what jobs gain by more workers, and starts extra workers on idle
resources, as its policy says. Jobs first get the workers that their users asked for, in order of
submission; what is idle then goes to extra workers, in the same order. This happens in every
decision, so that a job grows while there is room, and shrinks back as its activities end while
others need the room or the policy no longer permits extra workers.

An activity is placed by randomised first fit. The paper's workers are tasks that stay, and run
activities inside. Here each activity is a task, so a worker gives its room back between two
activities, and takes a decision for each of them. Tasks of other jobs are placed as they come,
before all activities.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul

import numpy as np
from numpy.typing import NDArray

from schedulers.capability import Capability
from schedulers.decision_time import PS_PER_OPERATION
from schedulers.greedy.scheduler import DECISION, WEIGHTS_PS, GreedyScheduler, PlacementKind
from schedulers.interface import (
    NONE,
    ChangeKind,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.mapreduce.activities import Activities, ActivityState
from schedulers.mapreduce.jobs import NOT_MAPREDUCE, MapReduceJobs
from schedulers.mapreduce.policies import MapReduceOptions, WorkerPolicy
from schedulers.registry import SchedulerSpec
from shared_state.tasks import NO_GANG, Int32, Int64, TaskBatch
from shared_state.view import ClusterView

_ENTERS = {
    ChangeKind.ADOPTED: ActivityState.CLAIMED,
    ChangeKind.COMMITTED: ActivityState.CLAIMED,
    ChangeKind.FINISHED: ActivityState.ABSENT,
    ChangeKind.REJECTED: ActivityState.RETURNING,
    ChangeKind.EVICTED: ActivityState.RETURNING,
    ChangeKind.LOST: ActivityState.RETURNING,
}


@dataclass(frozen=True, slots=True)
class _Tasks:
    """n tasks to place, in order. Columns as in TaskBatch."""

    task: Int64
    request: Int64
    preference: Int32
    gang: Int64

    @staticmethod
    def of(tasks: TaskBatch) -> _Tasks:
        return _Tasks(tasks.task, tasks.request, tasks.preference, tasks.gang)

    def take(self, rows: NDArray[np.bool_]) -> _Tasks:
        return _Tasks(self.task[rows], self.request[rows], self.preference[rows], self.gang[rows])

    def join(self, other: _Tasks) -> _Tasks:
        return _Tasks(
            np.concatenate([self.task, other.task]),
            np.concatenate([self.request, other.request]),
            np.concatenate([self.preference, other.preference]),
            np.concatenate([self.gang, other.gang]),
        )


class MapReduceScheduler:
    """Places activities of MapReduce jobs, as many at a time as a policy says.

    Args:
        policy: Which extra workers jobs get.
        environment: Where the scheduler lives.
    """

    def __init__(self, policy: WorkerPolicy, environment: SchedulerEnvironment) -> None:
        dimensions = len(environment.cell.dimensions)
        jobs = environment.mapreduce
        self._jobs = MapReduceJobs(NONE, NONE, NONE, NONE, NONE, NONE) if jobs is None else jobs
        self._policy = policy
        self._limit = environment.cell.limit
        self._greedy = GreedyScheduler(PlacementKind.RANDOMIZED_FIRST_FIT, environment)
        self._activities = Activities(self._jobs)
        self._request = np.zeros((len(self._jobs), dimensions), np.int64)  # of an activity, by job
        self._preference = np.zeros(len(self._jobs), np.int32)
        self._others = _Tasks.of(TaskBatch.empty(dimensions))  # that wait, of other jobs

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        job = self._jobs.of(tasks.task)
        is_activity = job != NOT_MAPREDUCE
        self._submit(tasks.take(is_activity), job[is_activity])
        others = self._others.join(_Tasks.of(tasks.take(~is_activity)))
        tried = others.join(self._started(view))
        found = self._greedy.place(
            view,
            tried.request,
            tried.preference,
            tried.gang,
            context,
            kept=~np.isin(tried.task, tasks.task),
        )
        placed = found.machine >= 0
        claimed = tried.take(placed)
        self._others = others.take(~placed[: len(others.task)])
        self._activities.enter(
            claimed.task[np.count_nonzero(placed[: len(others.task)]) :], ActivityState.CLAIMED
        )
        left = tasks.task[~np.isin(tasks.task, claimed.task)]
        reason = np.where(
            np.isin(left, tried.task), PendingReason.NO_ROOM, PendingReason.HELD_BACK
        ).astype(np.int8)
        work = (1, found.searches, found.looked_at, found.ranked)
        return Plan(
            task=claimed.task,
            machine=found.machine[placed],
            request=claimed.request,
            gang=claimed.gang,
            evict=NONE,
            pending=left,
            pending_reason=reason,
            operations=sum(map(mul, WEIGHTS_PS, work)) // PS_PER_OPERATION,
            partitions_scanned=found.partitions_scanned,
        )

    def observe(self, changes: TaskChanges) -> None:
        """Learn which activities run, are over, or come back."""
        if changes.kind is ChangeKind.ADOPTED:
            self._others = self._others.take(~np.isin(self._others.task, changes.task))
        task = changes.task[self._jobs.of(changes.task) != NOT_MAPREDUCE]
        if len(task):
            self._activities.enter(task, _ENTERS[changes.kind])

    def _submit(self, tasks: TaskBatch, job: Int64) -> None:
        """Let activities of these jobs (int64[n]) wait."""
        self._request[job] = tasks.request
        self._preference[job] = tasks.preference
        self._activities.enter(tasks.task, ActivityState.WAITING)

    def _started(self, view: ClusterView) -> _Tasks:
        """The activities to start, if there is room, in order."""
        requested, extra = self._activities.ready(self._policy)
        if len(extra):
            free = np.maximum(view.free[view.up], 0).sum(axis=0)
            capacity = self._limit[view.up].sum(axis=0)
            used = capacity - free + self._request[self._jobs.of(requested)].sum(axis=0)
            request = self._request[self._jobs.of(extra)]
            extra = extra[: self._policy.extra_started(request, used, capacity)]
        task = np.concatenate([requested, extra])
        job = self._jobs.of(task)
        gang = np.full(len(task), NO_GANG, np.int64)
        return _Tasks(task, self._request[job], self._preference[job], gang)


def _build(options: MapReduceOptions, environment: SchedulerEnvironment) -> MapReduceScheduler:
    return MapReduceScheduler(options.worker_policy(), environment)


SPEC = SchedulerSpec(
    "mapreduce",
    MapReduceOptions,
    _build,
    default_decision=DECISION,
    capabilities=frozenset(
        {
            Capability.KEEPS_PENDING,
            Capability.WANTS_ENDS,
            Capability.ORDERS_MAPREDUCE,
        }
    ),
)
