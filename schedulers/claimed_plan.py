"""A plan together with its claims in the view."""

from __future__ import annotations

from typing import NamedTuple

from schedulers.interface import Plan
from shared_state.tasks import Int64, TaskBatch
from shared_state.view import ClusterView


class ClaimedPlan(NamedTuple):
    """A plan whose claims have been taken out of the view.

    Attributes:
        plan: The plan.
        synced_us: When the partition of each claim's machine was synced, int64[k].
        ticket: Of the claims in the view (ClusterView.claim).
        in_full: Whether it is known to claim all tasks that it is about, in their order.
    """

    plan: Plan
    synced_us: Int64
    ticket: int
    in_full: bool

    @staticmethod
    def claim(plan: Plan, tasks: TaskBatch, view: ClusterView) -> ClaimedPlan:
        """Take the claims of a plan about `tasks` out of the view."""
        ticket = view.claim(plan.machine, plan.request)
        return ClaimedPlan(plan, view.synced_at(plan.machine), ticket, plan.task is tasks.task)
