"""The contract between a scheduler and the agent that drives it.

A scheduler holds placement logic only: no clock, no I/O, no messages. Its agent
(parsync.protocols.optimistic.agent) owns the view, the queue, commits and retries. Expected
outcomes are values; exceptions are for bugs and bad input.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from schedulers.mapreduce.jobs import MapReduceJobs
from schedulers.prices.interface import SharesDemand
from schedulers.running_tasks import RunningTasks
from shared_state.errors import AgoraError
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView


class Capability(StrEnum):
    """What a kind of scheduler can do or needs: agents, runtimes and checks ask for it by name.
    Each capability is declared by the kind, means one thing, and follows from no other."""

    # Remembers the tasks that it left waiting and may claim them in later plans. Its agent offers
    # each task once, and again only if its claim was rejected or the task has to run again.
    KEEPS_PENDING = "keeps_pending"

    # Plans may end running tasks of its own (Plan.evict).
    EVICTS = "evicts"

    # Plans may end running tasks of any scheduler that are of lower priority than their claims
    # (PlanContext.running). The arm's eviction policy has to permit it.
    PREEMPTS = "preempts"

    # observe() is told of tasks that have finished (ChangeKind.FINISHED): with the agent's next
    # synchronisation, if its protocol synchronises. Without it, an agent reports the ends of tasks
    # only if it needs them itself.
    WANTS_ENDS = "wants_ends"

    # Its plans rest on the view and on the tasks that they are offered, and on nothing else: its
    # observe() is never called. Without effect beside KEEPS_PENDING or EVICTS.
    IGNORES_CHANGES = "ignores_changes"

    # Its next plan needs the outcome of the last transaction: the agent commits nothing while it
    # decides.
    WAITS_FOR_OUTCOME = "waits_for_outcome"

    # A round offers it all new tasks at once, and is not cut at the agent's next sync. Without it,
    # a round is about one batch of submitted tasks, or the part that there is time for.
    PLANS_WHOLE_QUEUE = "plans_whole_queue"

    # Starts no reduce of a MapReduce job before all maps of the job have ended
    # (SchedulerEnvironment.mapreduce). Other kinds are given no MapReduce jobs.
    ORDERS_MAPREDUCE = "orders_mapreduce"

    # Its slot prices rest on the tasks of all schedulers that have this capability
    # (SharingScheduler). It needs a protocol that passes demand on.
    SHARES_DEMAND = "shares_demand"

    # What it places tasks by has consequences that runs do not model yet, such as interference
    # between tasks: an arm with it is not ranked.
    UNMODELLED = "unmodelled"

    # In a live run, schedulers that have it run in a process apart from those that do not.
    OWN_PROCESS = "own_process"

    # In a live run, its decision time is measured unless the configuration sets another.
    MEASURED_WHEN_LIVE = "measured_when_live"

    # Algorithms race in its decisions, which decides how long these take and nothing else: modelled
    # decision times are refused.
    RACES = "races"

    # What it decides depends on how long its computations take, so its runs do not repeat: runs in
    # virtual time are refused.
    DEPENDS_ON_TIMING = "depends_on_timing"


def observes_changes(capabilities: Set[Capability]) -> bool:
    """Whether the observe() of a scheduler with these capabilities is called. The plans of those
    that keep tasks or evict are checked against what it was told."""
    needed = Capability.KEEPS_PENDING in capabilities or Capability.EVICTS in capabilities
    return needed or Capability.IGNORES_CHANGES not in capabilities


class ContractBroken(AgoraError):
    """A scheduler broke its contract. Its arm ends; the measurements up to then are kept.

    Args:
        scheduler: Its name, e.g. last_fit-3.
        kind: Its kind.
        round: The number of calls of plan() so far; 0 while it is being created.
        rule: What it did, as `field: what is wrong`.
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
    """The order in which a scheduler searches partitions (ParSync section 5.2, and one of Agora's).

    The agent decides what `adaptive` is at the moment: it arrives as one of these.
    """

    OPTIMISTIC = 0  # the whole view is one pool
    # preferred machines wherever they are, then the partition of the best remaining
    QUALITY_FIRST = 1
    # the freshest partition first: preferred machines there, then any there, then the next freshest
    LATENCY_FIRST = 2
    # preferred machines wherever they are, of equal cost those in the freshest partition that has
    # one with room; then any in the freshest partition with room
    FRESHEST_PREFERRED = 3


class PartitionQuality(IntEnum):
    """What quality-first calls the best partition. A slot's weight is e**score: its slot score as
    CellSpec has it, at least 1."""

    MEAN_SCORE = 0  # the highest mean score of its open slots (ParSync section 5.2)
    MEAN_WEIGHT = 1  # the highest mean weight: few slots of a high score count for more


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What a plan may depend on besides tasks and view.

    Attributes:
        now_us: The agent's time.
        stream: uint64, the key of this decision's random stream (shared_state.random.Stream), made
            of the root seed, the scheduler's name and the decision's number.
        ranking: How to rank partitions.
        partition_order: int32[P], the freshest first; of equally fresh ones the highest index of
            the last sync round first.
        running: What is known of running tasks of lower priority than the highest, of all
            schedulers; None unless the kind has Capability.PREEMPTS.
        quality: Under QUALITY_FIRST, which partition is the best.
    """

    now_us: int
    stream: int
    ranking: PartitionRanking
    partition_order: Int32
    running: RunningTasks | None = None
    quality: PartitionQuality = PartitionQuality.MEAN_WEIGHT


class PendingReason(IntEnum):
    """Why a task was left waiting."""

    NO_ROOM = 0  # nothing in the view fits it
    # It or its gang can never be placed (schedulers.unplaceable). The platform says so: schedulers
    # are not offered such tasks.
    TOO_LARGE = 1
    PRICED_OUT = 2  # waiting is cheaper than any place
    WAITS_FOR_PREFERRED = 3  # none of its preferred machines has room, and its patience lasts
    # Some place costs less than waiting, but none does with the price of its slot.
    SLOTS_TOO_DEAR = 4
    # Not tried: its job has enough tasks running, or has to finish an earlier part, or it backs off
    # after a failed attempt.
    HELD_BACK = 5
    # The solver stopped early, at the limit of its work, before the task's flow was routed.
    NOT_ROUTED = 6


_INT32 = np.dtype(np.int32)
NONE: Int64 = np.zeros(0, np.int64)
NO_REASON: NDArray[np.int8] = np.zeros(0, np.int8)
NONE.flags.writeable = NO_REASON.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scheduler decided. Most schedulers make it with Plan.from_machines.

    Counts are integers of at least 0.

    **Partitions scanned** are the partitions looked at, summed over the tasks of the call (ParSync
    section 6.2). A scheduler that searches its whole view leaves the number to the platform, which
    counts every partition for every task of the call.

    A scheduler that searches in the order of context.ranking states the number itself:
    check_conformance holds it against this rule. For each task it is 0 if no machine of the view is
    open (up, with room of some resource). Otherwise it is P under OPTIMISTIC, where the view is one
    pool, and under QUALITY_FIRST. Under LATENCY_FIRST it is the number of partitions with an open
    machine up to the one that takes the task, or of all of them if none does; a partition that had
    no room for one task of the plan does not count again for another that asks for as much. Under
    FRESHEST_PREFERRED it is the same, but a task counts every partition with an open machine up to
    the last one looked at for it: all of them if no preferred machine has room.

    Attributes:
        task: int64[k], the claims: each task at most once.
        machine: int32[k], where each claim is placed.
        request: int64[k, R], what each claim asks for.
        gang: int64[k], the gang of each claim.
        evict: int64[e], ids of allocations to end first: the scheduler's own if the kind has
            Capability.EVICTS, those of PlanContext.running if it has PREEMPTS; else empty.
        pending: int64[p], tasks of this call that stay waiting.
        pending_reason: int8[p], a PendingReason for each.
        operations: Counted work, in units of the scheduler's choice (this repository's:
            decision_clock.PS_PER_OPERATION). More than 0 for a round that placed tasks.
        partitions_scanned: As above; None leaves it to the platform.
        stats: Figures of the round for the report, e.g. the columns of the "rounds" table of a flow
            scheduler (graph_us, solve_us, extract_us, arcs_scanned, nodes, arcs, oversubscribed,
            ...). No decision depends on them.
        retry_at_us: When the scheduler wants to be called again, later than context.now_us, even if
            its view has not changed and nothing new was submitted by then. It counts until the next
            plan. None: it need not be called before.
        priced_machines: For how many machines slot prices were made anew. Modelled decision times
            grow with it; the counted work has it already.
    """

    task: Int64
    machine: Int32
    request: Int64
    gang: Int64
    evict: Int64
    pending: Int64
    pending_reason: NDArray[np.int8]
    operations: int
    partitions_scanned: int | None = None
    stats: Mapping[str, int] = field(default_factory=dict)
    retry_at_us: int | None = None
    priced_machines: int = 0

    def having_scanned(self, partitions: int) -> Plan:
        """The same plan with that number of partitions scanned."""
        return replace(self, partitions_scanned=partitions)

    @staticmethod
    def from_machines(
        tasks: TaskBatch,
        machine: Int32,
        *,
        operations: int,
        reason: PendingReason | NDArray[np.int8] = PendingReason.NO_ROOM,
        partitions_scanned: int | None = None,
        evict: Int64 = NONE,
        stats: Mapping[str, int] | None = None,
        retry_at_us: int | None = None,
        priced_machines: int = 0,
    ) -> Plan:
        """Make the plan that places each task of a call on the machine given for it.

        Args:
            tasks: The tasks of the call.
            machine: int32[n], where each task is placed; -1 where it is left waiting.
            reason: Why tasks are left waiting: one for all, or int8[n] (read where machine is -1).
            operations, partitions_scanned, evict, stats, retry_at_us, priced_machines: As in Plan.

        Raises:
            ValueError: `machine` is not an int32 array with one entry per task.
        """
        if machine.dtype != _INT32 or machine.shape != (len(tasks),):
            raise ValueError(
                f"machine: expected int32[{len(tasks)}], got {machine.dtype}{list(machine.shape)}"
            )
        waiting = machine < 0
        if np.count_nonzero(waiting):
            placed, left = ~waiting, tasks.task[waiting]
            claims = (
                tasks.task[placed],
                machine[placed],
                tasks.request[placed],
                tasks.gang[placed],
            )
            why = (
                np.full(len(left), reason, np.int8)
                if isinstance(reason, PendingReason)
                else reason[waiting]
            )
        else:
            claims, left, why = (tasks.task, machine, tasks.request, tasks.gang), NONE, NO_REASON
        return Plan(
            *claims,
            evict,
            left,
            why,
            operations,
            partitions_scanned,
            {} if stats is None else stats,
            retry_at_us,
            priced_machines,
        )


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


class ChangeKind(IntEnum):
    """What became of a task, as reported to its scheduler."""

    ADOPTED = 0  # running before the scheduler existed, or taken over from a lost one
    COMMITTED = 1
    REJECTED = 2  # offered again to plan()
    FINISHED = 3
    EVICTED = 4  # ended by somebody's eviction; offered again
    LOST = 5  # its machine failed; offered again


@dataclass(frozen=True, slots=True)
class TaskChanges:
    """What became of n tasks, which is the same for all.

    Attributes:
        kind: What became of them.
        at_us: When.
        task: int64[n].
        machine: int32[n].
        allocation: int64[n], -1 where there is none.
        adopted: The tasks themselves, in the same order, if they were adopted: the scheduler may
            never have been offered them. Else None.
    """

    kind: ChangeKind
    at_us: int
    task: Int64
    machine: Int32
    allocation: Int64
    adopted: TaskBatch | None = None


@dataclass(frozen=True, slots=True)
class SchedulerEnvironment:
    """What a scheduler is given when it is created. It never sees true run times.

    Arrays are read-only, because all schedulers share them.

    Attributes:
        name: Of the scheduler, e.g. last_fit-3.
        cell: The machines.
        partition_offsets: int64[P+1]; partition p is machine rows [offsets[p], offsets[p+1]).
        catalog: What placements cost.
        mapreduce: The MapReduce jobs of the workload; None if it has none.
        end_us: When the workload ends; 0 where that is not known. Tasks may wait longer.
    """

    name: str
    cell: CellSpec
    partition_offsets: Int64
    catalog: PreferenceCatalog
    mapreduce: MapReduceJobs | None = None
    end_us: int = 0


class Scheduler(Protocol):
    """Decides which task is placed on which machine.

    schedulers.conformance.check_conformance tests that a kind keeps this contract.
    """

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        """Decide on `tasks` (not yet offered, or rejected) given what the view shows.

        The plan must
        - claim each task at most once, with the task's own request and gang;
        - claim only what fits view.free together with its other claims and after its evictions;
        - name every task of the call as claimed or pending. Claims may also name tasks left waiting
          in earlier calls if the kind has Capability.KEEPS_PENDING;
        - claim all waiting tasks of a gang, or none;
        - ask for another call (retry_at_us) only at a time later than context.now_us;
        - evict only allocations that were reported to the scheduler and whose end was not, or those
          of context.running on whose machines all its claims are of higher priority.

        plan() must not change the view (the agent takes the claims out of it afterwards), nor write
        to the arrays that it is given; shared ones are read-only. The arrays of the plan become
        read-only; those that are part of a larger array are copied.

        Every plan is checked (schedulers.checked), except as ClaimingScheduler says. A plan that
        breaks a rule, an exception, or a call that does not return within the run's plan_limit_s
        ends the arm with ContractBroken. It is no breach but an ordinary conflict if the cell
        rejects a claim because the view was out of date.
        """
        ...

    def observe(self, changes: TaskChanges) -> None:
        """Learn what became of tasks of this scheduler. Never fails on a task it does not know. Not
        called if the kind has Capability.IGNORES_CHANGES."""
        ...


class ClaimingScheduler(Scheduler, Protocol):
    """A scheduler that can also plan and claim in one step. Optional, and only faster.

    A class offers it by defining plan_and_claim() itself. One that it inherits is not used, because
    a subclass may plan otherwise. A kind with Capability.KEEPS_PENDING, EVICTS or PREEMPTS is
    not asked for it either.
    """

    def plan_and_claim(
        self, table: TaskBatch, task: Int64, view: ClusterView, context: PlanContext
    ) -> ClaimedPlan:
        """Plan as plan() does, and take the claims out of the view.

        A run calls this instead of plan(), except in rounds with tasks that can never be placed. It
        does not check these plans once more: check_conformance holds them against those of plan().
        It checks that the claims of one plan were taken out of the view. If the call raises an
        error, the view must be as it was.

        Args:
            table: Every task of the run (row = id); always the same object. Read-only.
            task: int64[n], the ids of the tasks to plan.
            view: As it stands.
            context: Of the plan.

        Returns:
            The plan, as ClaimedPlan.claim() makes it.
        """
        ...


@runtime_checkable
class SharingScheduler(Protocol):
    """What a scheduler has besides if its options may give it Capability.SHARES_DEMAND.

    Attributes:
        shared_demand: What learns demand in it; None unless it has that capability.
    """

    @property
    def shared_demand(self) -> SharesDemand | None: ...


def claims_in_one_step(scheduler: Scheduler) -> TypeGuard[ClaimingScheduler]:
    """Whether the scheduler's own class offers ClaimingScheduler."""
    return "plan_and_claim" in vars(type(scheduler))
