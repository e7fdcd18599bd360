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
from enum import IntEnum, StrEnum
from operator import mul
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.greedy.scheduler import DECISION, WEIGHTS_PS, GreedyScheduler, PlacementKind
from schedulers.interface import (
    NONE,
    Capability,
    ChangeKind,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.mapreduce.jobs import MAP, NOT_MAPREDUCE, REDUCE, MapReduceJobs, useful_workers
from schedulers.registry import SchedulerSpec
from shared_state.tasks import ENTIRE, NO_GANG, Int32, Int64, TaskBatch
from shared_state.view import ClusterView


class PolicyKind(StrEnum):
    """How many workers beyond what its user asked for a job may have (Omega section 6.1)."""

    REQUESTED = "requested"  # no worker beyond what was asked for: the baseline
    MAX_PARALLELISM = "max_parallelism"  # as many as the model finds useful
    GLOBAL_CAP = "global_cap"  # the same, but only while little of the cell is in use
    RELATIVE_JOB_SIZE = "relative_job_size"  # up to some times what was asked for


@dataclass(frozen=True, slots=True)
class WorkerPolicy:
    """A policy. What a job's user asked for, every job may have.

    Attributes:
        times_requested: The most workers of a job, as a multiple of what was asked for; None: no
            limit.
        target_permille: The share of the cell, in its most used resource, up to which extra workers
            may start.
    """

    times_requested: int | None
    target_permille: int = ENTIRE

    def workers(self, requested: Int64, useful: Int64) -> Int64:
        """How many workers each job should have if there is room: int64[j].

        Args:
            requested: int64[j], what was asked for.
            useful: int64[j], beyond which the model predicts no gain.
        """
        if self.times_requested is None:
            return useful
        return np.minimum(useful, self.times_requested * requested)

    def extra_started(self, request: Int64, used: Int64, capacity: Int64) -> int:
        """How many extra workers may start, from the first on.

        Args:
            request: int64[n, R], what each asks for.
            used: int64[R], what is in use on the cell, with what starts before them.
            capacity: int64[R], of the cell's machines that are up.
        """
        if self.target_permille == ENTIRE:
            return len(request)
        left = capacity * self.target_permille // ENTIRE - used
        within = ((np.cumsum(request, axis=0) <= left) | (request == 0)).all(axis=1)
        return int(np.count_nonzero(np.logical_and.accumulate(within)))


def _policy_kind(given: object) -> object:
    """A policy by its name."""
    names = [str(kind) for kind in PolicyKind]
    if given not in names:
        raise ValueError(f"expected one of {', '.join(names)}, got {given!r}")
    return PolicyKind(str(given))


class MapReduceOptions(BaseModel):
    """Options of the kind `mapreduce`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    policy: Annotated[PolicyKind, BeforeValidator(_policy_kind)] = Field(
        PolicyKind.MAX_PARALLELISM,
        description="which extra workers jobs get: requested (none), max_parallelism (as many as"
        " the model finds useful), global_cap (while at most target_utilization of the cell is in"
        " use) or relative_job_size (up to times_requested)",
    )
    target_utilization: float = Field(
        0.6,
        ge=0,
        le=1,
        description="global_cap: share of the cell in use, in its most used resource, above which"
        " no extra worker starts",
    )
    times_requested: int = Field(
        4,
        ge=1,
        le=1_000_000,
        description="relative_job_size: the most workers of a job, as a multiple of what its user"
        " asked for",
    )

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        for name, policy in (
            ("target_utilization", PolicyKind.GLOBAL_CAP),
            ("times_requested", PolicyKind.RELATIVE_JOB_SIZE),
        ):
            if name in self.model_fields_set and self.policy is not policy:
                raise ValueError(f"{name}: has no effect unless policy is '{policy}'")
        return self

    def worker_policy(self) -> WorkerPolicy:
        """The policy of these options."""
        match self.policy:
            case PolicyKind.REQUESTED:
                return WorkerPolicy(1)
            case PolicyKind.MAX_PARALLELISM:
                return WorkerPolicy(None)
            case PolicyKind.GLOBAL_CAP:
                return WorkerPolicy(None, round(self.target_utilization * ENTIRE))
            case PolicyKind.RELATIVE_JOB_SIZE:
                return WorkerPolicy(self.times_requested)


class ActivityState(IntEnum):
    """What the scheduler knows of an activity."""

    ABSENT = 0  # not submitted to this scheduler, or over
    WAITING = 1
    CLAIMED = 2  # claimed, or running
    RETURNING = 3  # rejected, evicted or lost: its agent will offer it again


_STATES = len(ActivityState)


class Activities:
    """The activities of the MapReduce jobs by state, as far as their scheduler knows, and which of
    them start next.

    Args:
        jobs: The workload's.
    """

    def __init__(self, jobs: MapReduceJobs) -> None:
        self._jobs = jobs
        self._state = np.zeros(int(jobs.end_task.max(initial=0)), np.int8)
        self._count = np.zeros((len(jobs), 2, _STATES), np.int64)  # by job, phase and state
        self._count[:, MAP, ActivityState.ABSENT] = jobs.maps
        self._count[:, REDUCE, ActivityState.ABSENT] = jobs.reduces

    def enter(self, task: Int64, state: ActivityState) -> None:
        """Enter the new state of activities, int64[n], each at most once."""
        job = self._jobs.of(task)
        phase = self._jobs.phase_of(task, job)
        before = self._state[task].astype(np.int64)
        np.subtract.at(self._count, (job, phase, before), 1)
        np.add.at(self._count[:, :, state], (job, phase), 1)
        self._state[task] = state

    def ready(self, policy: WorkerPolicy) -> tuple[Int64, Int64]:
        """The waiting activities that should start if there is room.

        Jobs come in the order of their first tasks. A job's reduces are ready once none of its maps
        is left. How much work a job has left counts activities that run as if they had just begun.

        Returns:
            Those that keep each job at what its user asked for, int64[n], and those of extra
            workers, int64[k].
        """
        counts = self._count
        active = np.flatnonzero(counts[:, :, ActivityState.WAITING].any(axis=1))
        if not len(active):
            return NONE, NONE
        counts = counts[active]
        left = counts.sum(axis=2) - counts[:, :, ActivityState.ABSENT]
        phase = np.where(left[:, MAP] > 0, MAP, REDUCE)
        waiting = counts[np.arange(len(active)), phase, ActivityState.WAITING]
        running = counts[:, :, ActivityState.CLAIMED].sum(axis=1)
        asked = self._jobs.workers[active]
        wanted = policy.workers(asked, useful_workers(left[:, MAP], left[:, REDUCE]))
        within = np.clip(asked - running, 0, waiting)
        extra = np.clip(wanted - running, within, waiting) - within
        requested_parts, extra_parts = [NONE], [NONE]
        for row in np.flatnonzero(within + extra).tolist():
            mine = self._waiting(int(active[row]), int(phase[row]))
            first = int(within[row])
            requested_parts.append(mine[:first])
            extra_parts.append(mine[first : first + int(extra[row])])
        return np.concatenate(requested_parts), np.concatenate(extra_parts)

    def _waiting(self, job: int, phase: int) -> Int64:
        """The waiting maps, or reduces, of a job, in order."""
        start = int(self._jobs.first_task[job])
        middle = start + int(self._jobs.maps[job])
        if phase == MAP:
            end = middle
        else:
            start, end = middle, middle + int(self._jobs.reduces[job])
        return start + np.flatnonzero(self._state[start:end] == ActivityState.WAITING)


_ENTERS = {
    ChangeKind.ADOPTED: ActivityState.CLAIMED,
    ChangeKind.COMMITTED: ActivityState.CLAIMED,
    ChangeKind.FINISHED: ActivityState.ABSENT,
    ChangeKind.REJECTED: ActivityState.RETURNING,
    ChangeKind.EVICTED: ActivityState.RETURNING,
    ChangeKind.LOST: ActivityState.RETURNING,
}


class _Tasks(NamedTuple):
    """n tasks to place, in order. Columns as in TaskBatch."""

    task: Int64
    request: Int64
    preference: Int32
    gang: Int64

    @staticmethod
    def of(tasks: TaskBatch) -> _Tasks:
        return _Tasks(tasks.task, tasks.request, tasks.preference, tasks.gang)

    def take(self, rows: NDArray[np.bool_]) -> _Tasks:
        columns: Any = (column[rows] for column in self)
        return _Tasks(*columns)

    def join(self, other: _Tasks) -> _Tasks:
        pairs: Any = zip(self, other, strict=True)
        return _Tasks(*(np.concatenate(pair) for pair in pairs))


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
