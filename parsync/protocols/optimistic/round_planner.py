"""The planning of a decision round: what the scheduler does with the tasks that it is offered, and
how long that takes.

A greedy placer of this repository that places without prices is called in native code
(parsync/protocols/native/round_planner.hpp). Other schedulers are called here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.agent_log import round_figures
from parsync.protocols import _native
from parsync.protocols.optimistic.agent_view import AgentView
from parsync.protocols.optimistic.options import AgentPolicy
from parsync.protocols.spec import AgentEnvironment
from schedulers.checked import CheckedScheduler
from schedulers.decision_time import ModelledByClass, native_clock
from schedulers.interface import PartitionRanking, PendingReason, Plan, PlanContext
from shared_state.random import WORD, stream_key
from shared_state.tasks import Int64, TaskClass
from shared_state.transaction import ConflictCheck


def native_planner(
    environment: AgentEnvironment,
    scheduler: CheckedScheduler,
    view: AgentView,
    policy: AgentPolicy,
) -> Any:
    """The planner of an agent's rounds in native code, if it and its clock are this repository's;
    else None."""
    clock = native_clock(environment.clock)
    if scheduler.greedy is None or view.preemptible is not None or clock is None:
        return None
    units = scheduler.unplaceable
    return _native.RoundPlanner(
        environment.shared.seed & WORD,
        environment.name,
        int(policy.quality),
        policy.conflict_check is ConflictCheck.SEQUENCE_NUMBER,
        clock,
        environment.clock.charges_kept,
        scheduler.greedy,
        environment.shared.table.task_class,
        None if units is None else units.native,
    )


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


class ScheduledRounds:
    """Plans the rounds of one agent on its view by calls of its scheduler.

    Args:
        environment: The agent's environment.
        scheduler: The agent's scheduler.
        view: The agent's view.
        policy: How the agent behaves.
    """

    def __init__(
        self,
        environment: AgentEnvironment,
        scheduler: CheckedScheduler,
        view: AgentView,
        policy: AgentPolicy,
    ) -> None:
        self._scheduler = scheduler
        self._view = view
        self._checks_seqnum = policy.conflict_check is ConflictCheck.SEQUENCE_NUMBER
        self._quality = policy.quality
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
        seqnum = view.seqnum[plan.machine] if self._checks_seqnum else None
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
