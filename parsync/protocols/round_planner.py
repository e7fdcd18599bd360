"""The planning of a decision round: what the scheduler does with the tasks that it is offered, and
how long that takes.

A greedy placer of this repository that places without prices is called in native code
(parsync/protocols/native/round_planner.hpp). Other schedulers are called here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.agent_log import round_figures
from parsync.protocols import _native
from parsync.protocols.agent_view import AgentView
from parsync.protocols.spec import AgentEnvironment
from schedulers.decision_time import ModelledByClass, native_clock
from schedulers.greedy.scheduler import claimed_plan
from schedulers.interface import (
    PartitionQuality,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
)
from shared_state.random import WORD, stream_key
from shared_state.tasks import Int64, TaskClass


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
    if scheduler.greedy is None or view.preemptible is not None or clock is None:
        return None
    units = scheduler.unplaceable
    return _native.RoundPlanner(
        environment.shared.seed & WORD,
        environment.name,
        int(quality),
        view.with_seqnum,
        clock,
        environment.clock.charges_kept,
        scheduler.greedy,
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
