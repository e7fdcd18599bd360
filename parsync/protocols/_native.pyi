from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.core._native import NativeParticipant, QueuedTasks, QuotaAccount, SkippedUnits
from parsync.core.event import Event, static_frozen
from parsync.core.events import SyncReply
from parsync.metrics.record import AgentLog, Measurements
from parsync.protocols.agent_view import Preemptible
from parsync.protocols.offers.delay import DelayScheduling
from parsync.protocols.optimistic.shared_demand import DemandExchange
from parsync.protocols.optimistic.sync import SyncContext, SyncFeedback
from parsync.protocols.optimistic.sync import SyncPolicy as AnySyncPolicy
from parsync.protocols.rounds import Round
from parsync.protocols.scheduler_agent import TaskObserver
from shared_state.tasks import Int32, Int64
from shared_state.view import ClusterView

class OptimisticEvent(Event):
    kind: ClassVar[str]

@static_frozen
class SyncDue(OptimisticEvent):
    k: int

@static_frozen
class RequeueDue(OptimisticEvent):
    key: int

@static_frozen
class RetryDue(OptimisticEvent):
    round: int

@static_frozen
class RoundDue(OptimisticEvent): ...

@static_frozen
class DemandReport(OptimisticEvent):
    task: Int64

@static_frozen
class DemandRequest(OptimisticEvent):
    agent: int
    version: int

@static_frozen
class DemandReply(OptimisticEvent):
    version: int
    waiting: int
    preference: Int32
    tasks: Int64
    squares: Int64

class OffersEvent(Event):
    kind: ClassVar[str]

@static_frozen
class Subscribe(OffersEvent):
    agent: int
    epoch: int
    suppressed: bool

@static_frozen
class Suppress(OffersEvent):
    agent: int
    epoch: int

@static_frozen
class Revive(OffersEvent):
    agent: int
    epoch: int

@static_frozen
class Offers(OffersEvent):
    epoch: int
    made_us: int
    offer: Int64
    machine: Int32
    amount: Int64

@static_frozen
class OffersAnswered(OffersEvent):
    agent: int
    epoch: int
    accepted: Int64
    accepted_amount: Int64
    declined: Int64

@static_frozen
class OffersRescinded(OffersEvent):
    epoch: int
    offer: Int64

@static_frozen
class TasksWanted(OffersEvent):
    agent: int
    epoch: int
    request: Int64
    tasks: Int64

@static_frozen
class IntervalDue(OffersEvent): ...

@static_frozen
class AllocationDue(OffersEvent): ...

@static_frozen
class ExpiryDue(OffersEvent): ...

class ProbingEvent(Event):
    kind: ClassVar[str]

@static_frozen
class Probes(ProbingEvent):
    agent: int
    epoch: int
    due_us: int
    bound: bool
    request: Int64
    probe: Int32
    machine: Int32
    task: Int64

@static_frozen
class TaskRequests(ProbingEvent):
    epoch: int
    sent_us: int
    due_us: int
    queued_us: int
    head_us: int
    request: Int64
    probe: Int32
    hold: Int64
    behind_long: Int32

@static_frozen
class TaskAnswers(ProbingEvent):
    agent: int
    epoch: int
    due_us: int
    hold: Int64
    task: Int64

@static_frozen
class ProbesCancelled(ProbingEvent):
    agent: int
    epoch: int
    due_us: int
    request: Int64
    probe: Int32
    machine: Int32

@static_frozen
class ProbesLost(ProbingEvent):
    epoch: int
    due_us: int
    request: Int64
    probe: Int32
    task: Int64

@static_frozen
class AgentRestarted(ProbingEvent):
    agent: int
    epoch: int

@static_frozen
class LengthRequests(ProbingEvent):
    agent: int
    epoch: int
    due_us: int
    request: Int64
    machine: Int32

@static_frozen
class LengthAnswers(ProbingEvent):
    epoch: int
    due_us: int
    request: Int64
    machine: Int32
    length: Int64

@static_frozen
class DecisionDue(ProbingEvent): ...

@static_frozen
class ReprobeDue(ProbingEvent): ...

class QueueExits:
    def __init__(self, too_large: Int64) -> None: ...
    @property
    def too_large(self) -> Int64: ...
    @property
    def abandoned(self) -> Int64: ...
    @property
    def retry(self) -> int: ...

NO_EXITS: QueueExits

class PendingQueue:
    def limit_jobs(self, job: Int64, jobs_max: int) -> None: ...
    def has_new(self, now_us: int) -> bool: ...
    @property
    def has_waiting(self) -> bool: ...
    def has_next(self, now_us: int, view_changed: bool) -> bool: ...
    def add(self, work: QueuedTasks) -> None: ...
    def next_batch(self, now_us: int, view_changed: bool) -> int | None: ...
    def current(self) -> QueuedTasks: ...
    def take(self, limit: int | None) -> QueuedTasks: ...
    def holder(self, now_us: int) -> Int64: ...
    def waiting_tasks(self, now_us: int) -> list[tuple[Int64, int, int]]: ...
    def claimed_tasks(self, round_: Round) -> QueuedTasks: ...
    def on_planned(self, round_: Round) -> QueueExits: ...
    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits: ...
    def on_requeue_due(self, key: int) -> None: ...
    def on_adopted(self, task: Int64) -> None: ...
    def on_finished(self, task: Int64) -> bool: ...

class AgentQueue(PendingQueue):
    def __init__(
        self,
        requeues: bool,
        attempts_max: int,
        attempts_max_unplaced: int,
        gang: Int64 | None,
        whole_queue: bool,
        skipped: SkippedUnits | None,
        account: QuotaAccount | None,
        priority: Int32 | None,
        is_own_limit: bool,
    ) -> None: ...
    def give_up_jobs(self, job: Int64, most: int, most_unplaced: int) -> None: ...

class SchedulerQueue(PendingQueue):
    def __init__(self, whole_queue: bool, gang: Int64 | None) -> None: ...

class Strategy:
    @staticmethod
    def fixed(ranking: int) -> Strategy: ...
    @staticmethod
    def adaptive(tau_us: int) -> Strategy: ...
    def ranking(self, delay_average_us: int) -> int: ...

class RoundRankings:
    def __init__(
        self, strategy: Strategy, long_strategy: Strategy | None, task_class: NDArray[np.int8]
    ) -> None: ...
    def begin_batch(self, delay_average_us: int) -> None: ...
    def of(self, task: Int64) -> tuple[int, int]: ...
    @property
    def ranking(self) -> int: ...
    @property
    def tells_lengths(self) -> bool: ...

class DelayAverage:
    def __init__(self, coefficient_permille: int) -> None: ...
    def add(self, delay_sum_us: int, committed: int, batch_size: int) -> None: ...
    @property
    def us(self) -> int: ...

class SyncPolicy:
    @property
    def at_every_attempt(self) -> bool: ...
    @property
    def retry_us(self) -> int | None: ...
    @property
    def wants_feedback(self) -> bool: ...
    def due_us(self, k: int) -> int | None: ...
    def partitions(self, k: int) -> Int32: ...
    def latest(self, now_us: int) -> int | None: ...
    def observe(self, feedback: SyncFeedback) -> None: ...

class StateSync(SyncPolicy):
    def __init__(self, context: SyncContext, staggered: bool) -> None: ...

class BlockSync(SyncPolicy):
    def __init__(self, context: SyncContext, same_block: bool) -> None: ...

class SinglePartitionSync(SyncPolicy):
    def __init__(self, context: SyncContext) -> None: ...

class EveryAttemptSync(SyncPolicy):
    def __init__(self, context: SyncContext) -> None: ...

class SyncSchedule:
    def __init__(self, policy: AnySyncPolicy, partitions: int) -> None: ...
    @property
    def next_us(self) -> int | None: ...
    @property
    def rows_changed(self) -> Int64: ...
    def start(self, now_us: int) -> tuple[int, int] | None: ...
    def on_due(
        self, now_us: int, k: int, delay_us: int, queued: int, load: Callable[[], Int64]
    ) -> tuple[Int32, tuple[int, int] | None]: ...
    def on_committed(self, partition: Int32, conflict: NDArray[np.bool_]) -> None: ...

class AgentView:
    def __init__(self, cell: ClusterView, visible: list[int], first_turn: int) -> None: ...
    def start(self, now_us: int) -> None: ...
    def forget(self) -> None: ...
    def on_reply(
        self, now_us: int, reply: SyncReply, rounds: int, log: AgentLog, rows_changed: Int64
    ) -> bool: ...
    def staleness_us(self, now_us: int) -> int: ...
    def used_permille(self) -> Int64: ...
    @property
    def order(self) -> Int32: ...
    changed: bool

class RoundPlanner:
    def __init__(
        self,
        seed: int,
        name: str,
        quality: int,
        checks_seqnum: bool,
        clock: Any | None,
        charges_kept: bool,
        planner: Any,
        task_class: NDArray[np.int8],
        units: Any | None,
    ) -> None: ...
    def plan(
        self,
        view: ClusterView,
        task: Int64,
        round: int,
        now_us: int,
        ranking: int,
        partition_order: Int32,
    ) -> Any: ...
    @property
    def seqnum(self) -> NDArray[np.uint32]: ...
    def decision_us(self, elapsed_ns: int) -> int: ...

class SortingOut:
    def __init__(
        self, units: Any | None, reason: NDArray[np.int8] | None, log: AgentLog
    ) -> None: ...
    def placeable(self, now_us: int, work: QueuedTasks) -> QueuedTasks: ...
    def record(self, now_us: int, task: Int64) -> None: ...

class QueueHolds:
    def __init__(self, log: AgentLog) -> None: ...
    def see(self, now_us: int, holder: Int64, queued: int) -> None: ...
    def end(self, now_us: int, queued: int) -> None: ...

class SchedulerAgent(NativeParticipant):
    def decide(self, decision: int, now_us: int) -> None: ...
    def decision_us(self, elapsed_ns: int) -> int: ...
    def log_end(self, now_us: int) -> None: ...
    @property
    def queued(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def activity(self) -> int: ...

class OptimisticAgent(SchedulerAgent):
    def __init__(
        self,
        records: Measurements,
        settings: Any,
        view: AgentView,
        queue: Any,
        log: AgentLog,
        sorting_out: SortingOut,
        rankings: RoundRankings,
        sync: AnySyncPolicy,
        planner: Any,
        observer: TaskObserver | None,
        quota: Any | None,
        demand: DemandExchange | None,
        preemptible: Preemptible | None,
    ) -> None: ...

class OffersAgent(SchedulerAgent):
    def __init__(
        self,
        records: Measurements,
        settings: Any,
        view: AgentView,
        queue: Any,
        log: AgentLog,
        sorting_out: SortingOut,
        planner: Any,
        observer: TaskObserver | None,
        clock: Any | None,
        delay: DelayScheduling | None,
    ) -> None: ...

class ProbingAgent(NativeParticipant):
    def __init__(
        self,
        records: Measurements,
        settings: Any,
        log: AgentLog,
        sorting_out: SortingOut,
        clock: Any,
        machines: Any,
    ) -> None: ...
    def decide(self, decision: int, now_us: int) -> None: ...
    def decision_us(self, elapsed_ns: int) -> int: ...
    def log_end(self, now_us: int) -> None: ...
    @property
    def queued(self) -> int: ...
    @property
    def decisions(self) -> int: ...
    @property
    def requests(self) -> int: ...

class NodeQueues(NativeParticipant):
    def __init__(self, settings: object) -> None: ...
    def queued_at(self, machine: int) -> int: ...
    @property
    def holds(self) -> int: ...

class OfferAllocator:
    """Decides what is offered to whom (native/offer_allocator.hpp). M machines, R resources.

    Integers only; the same calls give the same offers. A call raises ValueError that names the
    field, and TypeError for a value that is no integer.

    Args:
        seed, name: of the random streams.
        capacity: int64[M, R], what claims may fill each machine to.
        role: paths such as "service/web". Roles that are not named have weight 1 and no quota.
        weight_permille: int64[roles], at least 1.
        guarantee: int64[roles, R], 0 for none. Only roles of the first level have quotas.
        limit: int64[roles, R], -1 for none.
        smallest: int64[R]. An offer has at least so much of one of the resources whose entry is
            not 0; if all are 0, it has more than nothing. Task-sized grants ignore it.
        random: roles and frameworks are shuffled by weight, instead of ordered by share.
        task_sized: an offer is made of the tasks that frameworks want, one at a time.
        machines_per_turn: so many machines go to one framework before shares are compared again:
            1 in Mesos, M for the whole cell. Task-sized grants ignore it.
        rivals_role: the role that is charged with what rivals use; None: that leaves the total.
    """

    def __init__(
        self,
        *,
        seed: int,
        name: str,
        capacity: Int64,
        role: list[str],
        weight_permille: Int64,
        guarantee: Int64,
        limit: Int64,
        smallest: Int64,
        random: bool,
        task_sized: bool,
        machines_per_turn: int,
        rivals_role: str | None,
    ) -> None: ...
    def add_framework(self, framework: int, name: str, role: str) -> None:
        """Add an active framework under a number of the caller's, such as its agent's address."""

    def activate(self, framework: int) -> None: ...
    def deactivate(self, framework: int) -> None:
        """Make no more offers to it; end its filters, its suppression and what it wanted. Its
        charges stay until they are reported as ended."""

    def suppress(self, framework: int) -> None: ...
    def revive(self, framework: int) -> None:
        """End its suppression and all its filters."""

    def want(self, framework: int, amount: Int64, tasks: Int64) -> None:
        """Set what task-sized grants are for: so many tasks, int64[k], of each of these sizes,
        int64[k, R]. The first size that a machine has room for is granted first, and each grant
        takes one off; the framework says anew what it wants after it declines."""

    def refuse(self, framework: int, machine: Int32, amount: Int64, until_us: int) -> None:
        """Add a filter for each of int32[k] machines: up to and including `until_us`, no offer
        that is contained in the refused amount, int64[k, R]."""

    def on_offers_ended(self, framework: Int32, amount: Int64) -> None:
        """Un-charge offers that ended in any way: int32[k], int64[k, R] as offered."""

    def on_allocated(self, framework: Int32, amount: Int64) -> None:
        """Charge what the tasks of frameworks int32[k] use from now on, int64[k, R]."""

    def on_freed(self, framework: Int32, amount: Int64) -> None:
        """Un-charge what the tasks of frameworks int32[k] use no more, int64[k, R]."""

    def set_rivals_use(self, amount: Int64) -> None:
        """Set what all that are no frameworks use together: int64[R]."""

    def on_machines_changed(self, machine: Int32, up: NDArray[np.bool_]) -> None:
        """End the filters of int32[k] machines. Those that are down leave the total."""

    def allocate(self, now_us: int, candidates: Int32, free: Int64) -> tuple[Int32, Int32, Int64]:
        """Run once over the candidates, in any order.

        Args:
            free: int64[M, R] of all machines, what is neither used nor held; below 0 counts as 0.

        Returns:
            framework int32[n], machine int32[n] and amount int64[n, R] of the offers, charged
            already. No pair of framework and machine stands twice.
        """

    def offered(self, framework: int) -> Int64: ...  # int64[R]
    def allocated(self, framework: int) -> Int64: ...  # int64[R]
    def shares(self) -> tuple[Int32, Int64]:
        """Return the frameworks, int32[n], and the dominant share of each in millionths."""

    @property
    def filters(self) -> int: ...
    def state(self) -> tuple[Any, ...]:
        """Return what a checkpoint keeps, integers and arrays."""

    def restore(self, state: tuple[Any, ...]) -> None:
        """Continue from a state; same arguments and frameworks, and no call so far."""

# The other classes have Python modules, which carry the types.
# (preference int32[T], task int64[n], tasks and squares int64[sets], changed in place)
def add_tasks(preference: Int32, task: Int64, tasks: Int64, squares: Int64) -> None: ...

# The same, with a bit of each task reported, uint8[ceil(T / 8)], and the version of each sum,
# int64[sets] -> the last version.
def add_report(
    preference: Int32,
    task: Int64,
    reported: NDArray[np.uint8],
    tasks: Int64,
    squares: Int64,
    version: Int64,
    last: int,
) -> int: ...
def __getattr__(name: str) -> Any: ...

class OffersCellSide(NativeParticipant):
    def __init__(
        self, records: Measurements, settings: object, allocator: OfferAllocator, cell: Any
    ) -> None: ...
    def record(self, now_us: int) -> None: ...
    def state(self) -> tuple[Any, ...]: ...
    def load_state(self, state: tuple[Any, ...]) -> None: ...
