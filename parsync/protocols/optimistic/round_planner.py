"""The planning of a decision round: what the scheduler does with the tasks that it is offered, and
how long that takes."""

from __future__ import annotations

import numpy as np

from parsync.protocols.optimistic.agent_view import AgentView
from parsync.protocols.optimistic.options import AgentPolicy
from parsync.protocols.optimistic.rounds import Round
from parsync.protocols.spec import AgentEnvironment
from schedulers.checked import CheckedScheduler
from schedulers.decision_time import ModelledByClass
from schedulers.interface import PartitionRanking, PendingReason, PlanContext
from shared_state.random import stream_key
from shared_state.tasks import TaskClass
from shared_state.transaction import ConflictCheck


class RoundPlanner:
    """Plans the rounds of one agent on its view.

    Args:
        environment: The agent's environment.
        scheduler: The agent's scheduler.
        view: The agent's view.
        policy: How the agent behaves.
        longest_us: How long after the start of a round the decision on its last task may begin;
            None: no limit.
    """

    def __init__(
        self,
        environment: AgentEnvironment,
        scheduler: CheckedScheduler,
        view: AgentView,
        policy: AgentPolicy,
        longest_us: int | None,
    ) -> None:
        self._scheduler = scheduler
        self._view = view
        self._checks_seqnum = policy.conflict_check is ConflictCheck.SEQUENCE_NUMBER
        self._quality = policy.quality
        self._longest_us = longest_us
        self._clock = environment.clock
        self._task_class = environment.shared.table.task_class
        self._name = environment.name
        self._seed = environment.shared.seed

    def most_tasks(self, now_us: int, end_us: int | None, ranking: PartitionRanking) -> int | None:
        """The most tasks that a round may be about that begins now; None: any number, or the
        decision time is not known beforehand.

        Args:
            end_us: By when the decision on the last task has to begin; None: no limit.
        """
        times_us = [] if end_us is None else [max(0, end_us - now_us)]
        if self._longest_us is not None:
            times_us.append(self._longest_us)
        if not times_us:
            return None
        few = ranking in (PartitionRanking.LATENCY_FIRST, PartitionRanking.FRESHEST_PREFERRED)
        scanned = 1 if few else len(self._view.order)
        return self._clock.tasks_within(min(times_us), scanned)

    def plan(self, round_: Round, now_us: int) -> None:
        """Plan the round on the view as it stands, and take its claims out of the view."""
        view, preemptible = self._view.cell, self._view.preemptible
        context = PlanContext(
            now_us,
            stream_key(self._seed, self._name, round_.number),
            round_.ranking,
            self._view.order,
            None if preemptible is None else preemptible.running,
            self._quality,
        )
        plan, round_.synced_us, round_.ticket, round_.in_full = self._scheduler.plan_and_claim(
            round_.offered.task, view, context
        )
        round_.plan = plan
        if preemptible is not None:
            preemptible.on_planned(plan)
        if self._checks_seqnum:
            round_.seqnum = view.seqnum[plan.machine]

    def decision_us(self, round_: Round, elapsed_ns: int) -> int:
        """How long the round takes to decide, once it is planned.

        Args:
            elapsed_ns: The wall time of plan(), used by Measured clocks only.
        """
        plan = round_.plan
        assert plan is not None, "a round is planned before it is timed"
        assert plan.partitions_scanned is not None, "CheckedScheduler counts where a plan does not"
        if self._clock.charges_kept:
            tasks = self._scheduler.tasks_considered(plan)
        else:
            tasks = len(round_.offered)
            if len(plan.pending):  # those too large for every machine the scheduler never saw
                tasks -= int(np.count_nonzero(plan.pending_reason == PendingReason.TOO_LARGE))
        if isinstance(self._clock, ModelledByClass):
            services = self._task_class[round_.tasks] == TaskClass.SERVICE
            service_tasks = min(tasks, int(np.count_nonzero(services)))
            round_.decision_us = self._clock.by_class_us(
                tasks - service_tasks,
                service_tasks,
                int(plan.partitions_scanned),
                int(plan.priced_machines),
            )
            return round_.decision_us
        round_.decision_us = self._clock.duration_us(
            tasks,
            int(plan.partitions_scanned),
            int(plan.operations),
            elapsed_ns,
            int(plan.priced_machines),
        )
        return round_.decision_us
