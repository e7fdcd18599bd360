"""The decision rounds of agents that drive a scheduler: what a round is, what its scheduler does
with the tasks that it is offered, and how long that takes.

A placer of this repository that needs nothing of Python is called in native code
(parsync/protocols/native/round_planner.hpp). Other schedulers are called here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsync.core.queued_tasks import NO_TASKS, QueuedTasks
from parsync.metrics.record import round_figures
from parsync.protocols import _native
from parsync.protocols.agent_view import AgentView
from parsync.protocols.spec import AgentEnvironment
from schedulers.decision_clock import ModelledByClass, native_clock
from schedulers.greedy.scheduler import claimed_plan
from schedulers.interface import (
    PartitionQuality,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
)
from shared_state.random import WORD, stream_key
from shared_state.tasks import NO_GANG, Int64, TaskClass
from shared_state.transaction import CommitMode, ConflictCheck, Transaction


class Activity(IntEnum):
    """What an agent is doing; as in scheduler_agent.hpp."""

    IDLE = 0  # nothing to decide
    STARTING = 1  # a round begins at the end of this instant
    SYNCING = 2  # waiting for the state of the cell that the next round needs
    DECIDING = 3
    COMMITTING = 4
    BLOCKED_ON_CAPACITY = 5  # nothing in the view fits the queued tasks: waiting for a change
    WAITING_FOR_GRANT = 6  # somebody else says when the next round may begin


class ClaimUnit(IntEnum):
    """Which claims of a transaction stand or fall together: none, those of a gang, or of a job."""

    CLAIM = 0
    GANG = 1
    JOB = 2


@dataclass(slots=True)
class Round:
    """One decision round.

    Attributes:
        synced_us, seqnum: int64[k] and uint32[k], as of the plan; they go into the transaction.
        batch_size: The size of its batch when that was begun: the unit of the delay average.
        blocked: The view had no room for some of its tasks.
        claimed: The tasks that the plan claims, once the queue no longer has them.
        holds: int64[h], the holds of the cell that the claims rest on; None if they rest on none.
        in_full: Known to claim all offered tasks in their order.
        since_us: Since when its tasks had lacked room before; -1: they had not.
        left: What its plan left waiting, if that is to be requeued with the losers.
    """

    number: int
    start_us: int
    ranking: PartitionRanking
    offered: QueuedTasks
    batch_size: int
    plan: Plan | None = None
    ticket: int = -1
    synced_us: Int64 | None = None
    seqnum: np.ndarray | None = None
    decision_us: int = 0
    blocked: bool = False
    since_us: int = -1
    left: QueuedTasks = field(default_factory=lambda: NO_TASKS)
    in_full: bool = False
    claimed: QueuedTasks = field(default_factory=lambda: NO_TASKS)
    holds: Int64 | None = None

    @property
    def tasks(self) -> Int64:
        """The tasks that the round is about once it is planned, int64[n]: those that the scheduler
        was offered, and those that it had kept and claims now."""
        plan = self.plan
        assert plan is not None, "a round is about what it plans"
        offered, claimed = self.offered.task, plan.task
        if self.in_full or claimed is offered or not len(claimed):
            return offered
        return np.union1d(offered, claimed)

    def transaction(self, scheduler: int, sequence: int, unit: Int64 | None) -> Transaction:
        """What an agent asks of the cell, once the round is planned.

        Args:
            scheduler: The agent.
            sequence: The number of the transaction.
            unit: int64[k], what stands or falls together with each claim; None: each by itself.
        """
        plan = self.plan
        assert plan is not None and self.synced_us is not None, "plans come before transactions"
        return Transaction(
            scheduler=scheduler,
            sequence=sequence,
            task=plan.task,
            machine=plan.machine,
            request=plan.request,
            synced_us=self.synced_us,
            commit_mode=CommitMode.INCREMENTAL if unit is None else CommitMode.ALL_OR_NOTHING,
            conflict_check=(
                ConflictCheck.RESOURCE_FIT if self.seqnum is None else ConflictCheck.SEQUENCE_NUMBER
            ),
            gang=unit,
            seqnum=self.seqnum,
            evict=plan.evict if len(plan.evict) else None,
            holds=self.holds,
        )


def gangs_or_alone(gang: Int64) -> Int64:
    """What stands or falls together: gangs, int64[k], and every task without one by itself. (To the
    cell, claims without a gang are one group.)"""
    alone = NO_GANG - 1 - np.arange(len(gang), dtype=np.int64)
    return np.where(gang == NO_GANG, alone, gang)


def native_planner(
    environment: AgentEnvironment, view: AgentView, quality: PartitionQuality
) -> _native.RoundPlanner | None:
    """The planner of an agent's rounds in native code, if its scheduler and its clock are this
    repository's; else None.

    Args:
        environment: The agent's, with a scheduler.
        view: The agent's view.
        quality: Which partition the scheduler is told is the best.
    """
    clock, scheduler = native_clock(environment.clock), environment.scheduler
    assert scheduler is not None, "ProtocolCapability.RUNS_SCHEDULERS is declared"
    if scheduler.planner is None or view.preemptible is not None or clock is None:
        return None
    units = scheduler.unplaceable
    return _native.RoundPlanner(
        environment.shared.seed & WORD,
        environment.name,
        int(quality),
        view.with_seqnum,
        clock,
        environment.clock.charges_kept,
        scheduler.planner,
        environment.shared.table.task_class,
        None if units is None else units.native,
    )


def make_rounds(
    environment: AgentEnvironment, view: AgentView, quality: PartitionQuality
) -> NativeRounds | ScheduledRounds:
    """What plans the rounds of an agent in Python: in native code where native_planner() can."""
    native = native_planner(environment, view, quality)
    if native is None:
        return ScheduledRounds(environment, view, quality)
    return NativeRounds(native, view)


class PlannedRound(NamedTuple):
    """A plan whose claims have been taken out of the view.

    Attributes:
        plan: The plan.
        synced_us, ticket, in_full: As in ClaimedPlan.
        seqnum: uint32[k], the sequence numbers of its machines in the view; None if the transaction
            needs none.
        figures: Those of a flow scheduler's round, in the order of the table `rounds`; None for
            other kinds.
    """

    plan: Plan
    synced_us: Int64
    ticket: int
    in_full: bool
    seqnum: NDArray[np.uint32] | None
    figures: list[int] | None


class NativeRounds:
    """Plans the rounds of one agent on its view by a planner in native code.

    Args:
        planner: The planner, by native_planner().
        view: The agent's view.
    """

    def __init__(self, planner: _native.RoundPlanner, view: AgentView) -> None:
        self._planner = planner
        self._view = view

    def plan(self, task: Int64, number: int, ranking: int, now_us: int) -> PlannedRound:
        """As ScheduledRounds.plan()."""
        view = self._view
        found = self._planner.plan(view.cell, task, number, now_us, ranking, view.order)
        seqnum = self._planner.seqnum if view.with_seqnum else None
        return PlannedRound(*claimed_plan(found, task), seqnum, None)

    def decision_us(self, elapsed_ns: int) -> int:
        """As ScheduledRounds.decision_us()."""
        return self._planner.decision_us(elapsed_ns)


class ScheduledRounds:
    """Plans the rounds of one agent on its view by calls of its scheduler.

    Args:
        environment, view, quality: As for native_planner().
    """

    def __init__(
        self, environment: AgentEnvironment, view: AgentView, quality: PartitionQuality
    ) -> None:
        assert environment.scheduler is not None, "ProtocolCapability.RUNS_SCHEDULERS is declared"
        self._scheduler = environment.scheduler
        self._view = view
        self._quality = quality
        self._clock = environment.clock
        self._task_class = environment.shared.table.task_class
        self._name = environment.name
        self._seed = environment.shared.seed
        self._offered: Int64 = np.zeros(0, np.int64)
        self._planned: PlannedRound | None = None  # the last round

    def tasks_within(self, window_us: int, partitions_per_task: int) -> int | None:
        """As DecisionClock.tasks_within."""
        return self._clock.tasks_within(window_us, partitions_per_task)

    def plan(self, task: Int64, number: int, ranking: int, now_us: int) -> PlannedRound:
        """Plan a round on the view as it stands, and take its claims out of the view.

        Args:
            task: int64[n], the tasks that the scheduler is offered.
            number: The number of the round.
            ranking: A PartitionRanking.
            now_us: The agent's time.
        """
        view, preemptible = self._view.cell, self._view.preemptible
        context = PlanContext(
            now_us,
            stream_key(self._seed, self._name, number),
            PartitionRanking(ranking),
            self._view.order,
            None if preemptible is None else preemptible.running,
            self._quality,
        )
        plan, synced_us, ticket, in_full = self._scheduler.plan_and_claim(task, view, context)
        if preemptible is not None:
            preemptible.on_planned(plan)
        self._offered = task
        seqnum = view.seqnum[plan.machine] if self._view.with_seqnum else None
        self._planned = PlannedRound(plan, synced_us, ticket, in_full, seqnum, round_figures(plan))
        return self._planned

    def decision_us(self, elapsed_ns: int) -> int:
        """How long the round just planned takes to decide.

        Args:
            elapsed_ns: The wall time of plan(), used by Measured clocks only.
        """
        assert self._planned is not None, "a round is planned before it is timed"
        plan, in_full = self._planned.plan, self._planned.in_full
        assert plan.partitions_scanned is not None, "CheckedScheduler counts where a plan does not"
        if self._clock.charges_kept:
            tasks = self._scheduler.tasks_considered(plan)
        else:
            tasks = len(self._offered)
            if len(plan.pending):  # those too large for every machine the scheduler never saw
                tasks -= int(np.count_nonzero(plan.pending_reason == PendingReason.TOO_LARGE))
        if isinstance(self._clock, ModelledByClass):
            about = self._offered if in_full else np.union1d(self._offered, plan.task)
            services = self._task_class[about] == TaskClass.SERVICE
            service_tasks = min(tasks, int(np.count_nonzero(services)))
            return self._clock.by_class_us(
                tasks - service_tasks,
                service_tasks,
                int(plan.partitions_scanned),
                int(plan.priced_machines),
            )
        return self._clock.duration_us(
            tasks,
            int(plan.partitions_scanned),
            int(plan.operations),
            elapsed_ns,
            int(plan.priced_machines),
        )
