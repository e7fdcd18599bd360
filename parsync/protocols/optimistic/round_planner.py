"""The planning of a decision round: what the scheduler does with the tasks that it is offered, and
how long that takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsync.protocols import _native
from parsync.protocols.optimistic.agent_view import AgentView
from parsync.protocols.optimistic.options import AgentPolicy
from parsync.protocols.optimistic.rounds import Round
from parsync.protocols.spec import AgentEnvironment
from schedulers.checked import CheckedScheduler
from schedulers.decision_time import ModelledByClass, native_clock
from schedulers.greedy.base import claimed_plan
from schedulers.interface import PartitionRanking, PendingReason, PlanContext
from shared_state.random import WORD, stream_key
from shared_state.tasks import TaskClass
from shared_state.transaction import ConflictCheck


class RoundPlanner:
    """Plans the rounds of one agent on its view: in native code
    (parsync/protocols/native/round_planner.hpp) if its scheduler is a greedy placer of this
    repository that places without prices, else by calls of the scheduler.

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
        self._greedy: Any = None
        clock = native_clock(self._clock)
        if scheduler.greedy is not None and view.preemptible is None and clock is not None:
            units = scheduler.unplaceable
            self._greedy = _native.RoundPlanner(
                self._seed & WORD,
                self._name,
                int(self._quality),
                self._checks_seqnum,
                clock,
                self._clock.charges_kept,
                scheduler.greedy,
                self._task_class,
                None if units is None else units.native,
            )

    def most_tasks(self, now_us: int, end_us: int | None, ranking: PartitionRanking) -> int | None:
        """The most tasks that a round may be about that begins now; None: any number, or the
        decision time is not known beforehand.

        Args:
            end_us: By when the decision on the last task has to begin; None: no limit.
        """
        partitions = len(self._view.order)
        window = _native.round_window(now_us, end_us, self._longest_us, int(ranking), partitions)
        return None if window is None else self._clock.tasks_within(*window)

    def plan(self, round_: Round, now_us: int) -> None:
        """Plan the round on the view as it stands, and take its claims out of the view."""
        if self._greedy is not None:
            self._plan_natively(round_, now_us)
            return
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

    def _plan_natively(self, round_: Round, now_us: int) -> None:
        task = round_.offered.task
        ranking, order = int(round_.ranking), self._view.order
        found = self._scheduler.claim_by(
            self._greedy.plan, self._view.cell, task, round_.number, now_us, ranking, order
        )
        round_.plan, round_.synced_us, round_.ticket, round_.in_full = claimed_plan(found, task)
        if self._checks_seqnum:
            round_.seqnum = self._greedy.seqnum

    def decision_us(self, round_: Round, elapsed_ns: int) -> int:
        """How long the round takes to decide, once it is planned.

        Args:
            elapsed_ns: The wall time of plan(), used by Measured clocks only.
        """
        if self._greedy is not None:
            round_.decision_us = self._greedy.decision_us(elapsed_ns)
            return round_.decision_us
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
