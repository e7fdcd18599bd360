"""The decision rounds of agents that drive a scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from parsync.core.queued_tasks import NO_TASKS, QueuedTasks
from schedulers.interface import PartitionRanking, Plan
from shared_state.tasks import NO_GANG, Int64
from shared_state.transaction import CommitMode, ConflictCheck, Transaction


class Activity(IntEnum):
    """What an agent is doing; the first six as in optimistic_agent.hpp."""

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
        )


def gangs_or_alone(gang: Int64) -> Int64:
    """What stands or falls together: gangs, int64[k], and every task without one by itself. (To the
    cell, claims without a gang are one group.)"""
    alone = NO_GANG - 1 - np.arange(len(gang), dtype=np.int64)
    return np.where(gang == NO_GANG, alone, gang)
