"""What an agent works on: its tasks, its rounds, and how it behaves whatever its scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from parsync.protocols.optimistic.choices import Cut, FreedVisibility, LoserPolicy, WhileCommitting
from schedulers.interface import PartitionRanking, Plan
from shared_state.tasks import NO_GANG, Int32, Int64
from shared_state.transaction import CommitMode, ConflictCheck, Transaction


class Activity(IntEnum):
    """What the agent is doing."""

    IDLE = 0  # nothing to decide
    SYNCING = 1  # waiting for the sync that precedes a round
    DECIDING = 2
    COMMITTING = 3
    STARVED = 4  # there are tasks, but nothing in the view fits them: waiting for it to change


@dataclass(frozen=True, slots=True)
class AgentPolicy:
    """How an agent behaves, whatever its scheduler. requeue_us: Omega's pause before a rejected
    task rejoins the queue.

    while_committing: GO_ON does not apply to schedulers of Capability.WAITS_FOR_OUTCOME. Under REQUEUE tasks are given up after attempts_max rounds that
    left them without a place (for lack of room in the view, too), and after attempts_max_unplaced
    if none of those that were submitted with them got one (Omega's simulator abandons jobs so).
    average_permille: weight of one batch in the delay average that adaptive switches on.
    """

    cut: Cut
    freed: FreedVisibility
    losers: LoserPolicy
    mode: CommitMode
    check: ConflictCheck
    while_committing: WhileCommitting = WhileCommitting.WAIT
    average_permille: int = 100
    requeue_us: int = 1_000_000
    attempts_max: int = 1000
    attempts_max_unplaced: int = 100
    sample_us: int = 100_000


@dataclass(slots=True)
class Work:
    """Tasks to decide on: task int64[n]; attempts int32[n], claims made so far; first int8[n], 1
    unless it ran before.

    Of tasks that are requeued, together: rounds that left them without a place, and whether any
    round placed tasks that were submitted with them.
    """

    task: Int64
    attempts: Int32
    first: np.ndarray
    rounds: int = 0
    some_placed: bool = False

    def __len__(self) -> int:
        return len(self.task)

    def take(self, rows: np.ndarray | slice) -> Work:
        return Work(
            self.task[rows], self.attempts[rows], self.first[rows], self.rounds, self.some_placed
        )

    def split(self, count: int) -> tuple[Work, Work]:
        """The first `count` tasks and the rest."""
        if count >= len(self.task):
            return self, NO_WORK
        return self.take(slice(0, count)), self.take(slice(count, None))

    @staticmethod
    def fresh(task: Int64, first: int) -> Work:
        return Work(task, np.zeros(len(task), np.int32), np.full(len(task), first, np.int8))

    @staticmethod
    def join(parts: list[Work]) -> Work:
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return NO_WORK
        return Work(
            np.concatenate([part.task for part in parts]),
            np.concatenate([part.attempts for part in parts]),
            np.concatenate([part.first for part in parts]),
        )


NO_WORK = Work.fresh(np.zeros(0, np.int64), 1)


@dataclass(slots=True)
class Round:
    """One decision round. synced_us int64[k] and seqnum are as of the plan; they go into the
    transaction.

    batch_size: of the batch it is part of, when that was begun: the unit of the delay average.
    starved: the view had no room for some of its tasks.
    claimed: the tasks that the plan claims, from the time that the backlog no longer has them.
    in_full: known to claim all offered tasks in their order. left: what its plan left waiting, if
    that is to be requeued with the losers.
    """

    number: int
    start_us: int
    ranking: PartitionRanking
    offered: Work
    batch_size: int
    plan: Plan | None = None
    ticket: int = -1
    synced_us: Int64 | None = None
    seqnum: np.ndarray | None = None
    decision_us: int = 0
    starved: bool = False
    left: Work = field(default_factory=lambda: NO_WORK)
    in_full: bool = False
    claimed: Work = field(default_factory=lambda: NO_WORK)

    def transaction(self, scheduler: int, sequence: int, policy: AgentPolicy) -> Transaction:
        """What the agent `scheduler` asks of the cell, once the round is planned."""
        plan = self.plan
        assert plan is not None and self.synced_us is not None, "plans come before transactions"
        return Transaction(
            scheduler=scheduler,
            sequence=sequence,
            task=plan.task,
            machine=plan.machine,
            request=plan.request,
            synced_us=self.synced_us,
            mode=policy.mode,
            check=policy.check,
            gang=_groups(plan.gang) if policy.mode is CommitMode.ALL_OR_NOTHING else None,
            seqnum=self.seqnum,
            evict=plan.evict if len(plan.evict) else None,
        )


def _groups(gang: Int64) -> Int64:
    """What stands or falls together: gangs, and every task without one by itself. (To the cell,
    claims without a gang are one group.)"""
    alone = NO_GANG - 1 - np.arange(len(gang), dtype=np.int64)
    return np.where(gang == NO_GANG, alone, gang)
