"""The contract between a scheduler and the agent that drives it.

A scheduler holds placement logic only: no clock, no I/O, no messages. The agent
(parsync.core.agent) owns the view, the queue, commits and retries. Expected outcomes are values;
exceptions are for bugs and bad input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shared_state.errors import AgoraError
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView


class ContractBroken(AgoraError):
    """A scheduler broke its contract. The run's arm ends; what was measured before is kept.

    scheduler: its name, e.g. last_fit-3; kind: its kind; round: how often plan() was called; rule:
    what it did, as `field: what is wrong`.
    """

    def __init__(self, scheduler: str, kind: str, round: int, rule: str) -> None:
        super().__init__(scheduler, kind, round, rule)  # all of them, so that it can be pickled
        self.scheduler = scheduler
        self.kind = kind
        self.round = round
        self.rule = rule

    def __str__(self) -> str:
        when = f"round {self.round}" if self.round else "before its first round"
        return f"scheduler '{self.scheduler}' of kind '{self.kind}', {when}: {self.rule}"


class PartitionRanking(IntEnum):
    """In which order a placer turns to partitions (ParSync section 5.2). Adaptive is decided by the
    agent and arrives as one of these."""

    OPTIMISTIC = 0  # the whole view is one pool
    # preferred machines wherever they are, then the partition of the best remaining
    QUALITY_FIRST = 1
    # the freshest partition first: preferred machines there, then any there, then the next freshest
    LATENCY_FIRST = 2


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What a plan may rest on besides tasks and view.

    now_us: the agent's time. stream: uint64 key of this decision's random stream (seed, scheduler
    name, decision number).
    ranking: how to rank partitions. partition_order: int32[P], freshest first (ties: highest index
    of the last sync round first).
    """

    now_us: int
    stream: int
    ranking: PartitionRanking
    partition_order: Int32


class PendingReason(IntEnum):
    """Why a task was left waiting."""

    NO_ROOM = 0  # nothing in the view fits it
    TOO_LARGE = 1  # larger than every machine of the cell: it can never be placed
    PRICED_OUT = 2  # waiting is cheaper than any place (flow schedulers)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scheduler decided.

    task: int64[k], machine: int32[k], request: int64[k, R], gang: int64[k]: the claims. A task
    appears at most once. evict: int64[e] ids of own allocations to end first, of kinds that say
    that they evict (SchedulerSpec.evicts).
    pending: int64[p] tasks of this call that stay waiting, pending_reason: int8[p] (PendingReason).
    operations: counted work, in units of the scheduler's choice (this repository's:
    decision_time.PS_PER_OPERATION). partitions_scanned: partitions looked at, summed over tasks.
    All arrays are contiguous, counts are integers of at least 0.
    stats: figures of the round for the report, e.g. the columns of the "rounds" table of a flow
    scheduler (graph_us, solve_us, extract_us, arcs_scanned, nodes, arcs); never decided upon.
    """

    task: Int64
    machine: Int32
    request: Int64
    gang: Int64
    evict: Int64
    pending: Int64
    pending_reason: NDArray[np.int8]
    operations: int
    partitions_scanned: int
    stats: Mapping[str, int] = field(default_factory=dict)


class ChangeKind(IntEnum):
    """What became of a task, as its scheduler is told."""

    ADOPTED = 0  # running before the scheduler existed, or taken over from a lost one
    COMMITTED = 1
    REJECTED = 2  # offered again to plan() unless the scheduler retains pending tasks
    FINISHED = 3
    EVICTED = 4  # ended by somebody's eviction; offered again
    LOST = 5  # its machine failed; offered again


@dataclass(frozen=True, slots=True)
class TaskChanges:
    """n changes of one kind: task int64[n], machine int32[n], allocation int64[n] (-1 where there
    is none)."""

    kind: ChangeKind
    at_us: int
    task: Int64
    machine: Int32
    allocation: Int64


@dataclass(frozen=True, slots=True)
class SchedulerEnvironment:
    """What a scheduler may know about the world when it is made. It never sees true durations.
    Arrays are read-only: all schedulers share them."""

    name: str
    cell: CellSpec
    partition_offsets: Int64  # int64[P+1]: partition p is machine rows [offsets[p], offsets[p+1])
    catalog: PreferenceCatalog


class Scheduler(Protocol):
    """Who places what. See tests/unit/test_scheduler_conformance.py for what every kind must
    hold."""

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        """Decide on `tasks` (not yet offered, or rejected) given what the view shows.

        Must leave the view as it found it (the agent takes the claims out of it), and does not
        write to the arrays that it is given; those that others rest on are read-only. The arrays of
        the plan become read-only; those that are part of a larger one are copied. Must claim each
        task at most once, with its own request and gang, and only what fits view.free beside its
        other claims and after its evictions. Accounts for every task of the call as claimed or
        pending; if its spec says that it retains pending tasks, claims may also name tasks that
        were left waiting in earlier calls. Claims all waiting tasks of a gang, or none. Evicts only
        allocations that it was told of and whose end it was not told.

        Every plan is checked (schedulers.plan_check). A plan that breaks a rule, an exception, and
        a call that does not return within the run's plan_limit_s end the arm with a
        ContractBroken. That the view is out of date, so that the cell rejects a claim, is an
        ordinary conflict.
        """
        ...

    def observe(self, changes: TaskChanges) -> None:
        """Learn what became of tasks of this scheduler. Never fails on a task it does not know."""
        ...
