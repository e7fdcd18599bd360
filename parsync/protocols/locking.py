"""The locking protocol: pessimistic concurrency, as a control beside optimistic protocols.

ParSync (section 5) names locks as a way to schedule without conflicts, which "can block the actions
of other schedulers and increase scheduling delay due to reduced concurrent processing". Here a
scheduler locks the partitions that it looks at, from before it learns their state until its claims
on them are committed. So no other scheduler of the protocol can take what it sees as free.

One decision round: ask for locks on some partitions; once they are granted, synchronise just these;
let the scheduler plan one batch on them, or as much of it as hold_s allows; wait for the decision
time; commit; release the locks when the answer has come. Tasks that found no room come first in the
next round, which locks other partitions if some are free.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

import numpy as np
from pydantic import Field

from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event, Priority, static_frozen
from parsync.core.events import SyncReply
from parsync.core.queued_tasks import (
    DEFAULT_S,
    HEAD_OF_LINE,
    NO_TASKS,
    HeadOfLineSeconds,
    QueuedTasks,
    SkippedUnits,
    UnitSizes,
    head_of_line_us,
    split_batch,
)
from parsync.metrics.tables import NOBODY, Waiting
from parsync.protocols.agent_view import AgentView
from parsync.protocols.base import BaseCellSide
from parsync.protocols.pending_queue import NO_EXITS, QueueExits, WaitingPart
from parsync.protocols.rounds import Activity, Round
from parsync.protocols.scheduler_agent import SchedulerAgent
from parsync.protocols.spec import (
    AgentEnvironment,
    Environment,
    GroupReach,
    Member,
    ProtocolCapability,
    ProtocolSpec,
)
from parsync.strict_model import LONGEST_S, Strict
from schedulers.interface import Capability, PartitionRanking, PendingReason
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.tasks import NO_GANG, Int32, Int64


class LockingOptions(Strict):
    """The options of a group, as they stand in a configuration."""

    locked_partitions: int | None = Field(
        None,
        ge=1,
        description="how many partitions a scheduler locks, and looks at, in a decision round;"
        " unset: all, so that schedulers decide one after the other",
    )
    hold_s: float | None = Field(
        None,
        ge=1e-6,
        le=LONGEST_S,
        description="about how many seconds a round may take to decide, so that locks are not held"
        " for longer: a batch that takes longer is divided; without effect where the decision time"
        " is not known beforehand (counted, measured), and for kinds that plan the whole queue;"
        " unset: a round has a whole batch",
    )
    round_tasks: int | None = Field(
        None,
        ge=1,
        description="the largest number of tasks in a round; a gang is never divided; 1: locks are"
        " taken for each task; not for kinds that plan the whole queue; unset: a whole batch, or"
        " the part of it that hold_s allows",
    )
    head_of_line_s: HeadOfLineSeconds = Field(
        DEFAULT_S,
        description=HEAD_OF_LINE + "; no effect for kinds that plan the whole queue",
    )
    retry_s: float = Field(
        0.1,
        ge=1e-6,
        le=LONGEST_S,
        description="how many seconds a scheduler pauses once it has placed nothing in as many"
        " partitions as there are",
    )


KIND = "locking"


class LockingEvent(Event):
    """Base class of these events."""

    __slots__ = ()
    kind: ClassVar[str] = KIND


@static_frozen
class LockRequest(LockingEvent):
    """Agent -> lock table: lock some partitions, whichever are free first.

    Attributes:
        agent: Who asks. It holds no lock, and waits for none.
        epoch: Of the agent's Started; the answer repeats it.
        count: How many partitions.
    """

    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.DECIDE
    agent: int
    epoch: int
    count: int


@static_frozen
class LocksGranted(LockingEvent):
    """Lock table -> agent: no other agent has a lock on these partitions, int32[k] ascending."""

    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.DECIDE
    epoch: int
    partition: Int32


@static_frozen
class LocksReleased(LockingEvent):
    """Agent -> lock table: the agent gives back all that it holds, and asks for nothing."""

    number: ClassVar[int] = 3
    priority: ClassVar[Priority] = Priority.COMMIT
    agent: int
    epoch: int


@static_frozen
class RetryDue(LockingEvent):
    """Timer of an agent: the pause after round `round` is over."""

    number: ClassVar[int] = 4
    priority: ClassVar[Priority] = Priority.DECIDE
    round: int


EVENTS: tuple[type[Event], ...] = (LockRequest, LocksGranted, LocksReleased, RetryDue)


FREE = -1


class LockTable(BaseCellSide):
    """The locks on all partitions: who may decide on which. It lives beside the master.

    A partition has at most one holder. Requests are served in the order in which they come: the
    first waits until as many partitions are free as it asks for, and all others wait behind it, so
    none waits forever. It is granted the partitions that were released longest ago: their tasks
    have had the most time to end.

    After the restart of a scheduler host, a new agent begins with LocksReleased in its new epoch.
    What the agent before it held or asked for is forgotten then.

    Its state is (releases so far; of each partition: its holder int32[P], or FREE, and the number
    of its last release int64[P]; the epoch of each agent int64[A]; the requests that wait, in their
    order: agent and count int64[w, 2]).
    """

    state: tuple[int, Int32, Int64, Int64, Int64]

    def __init__(self, environment: Environment, cell: Cell) -> None:
        super().__init__(environment, cell)
        partitions = environment.partitioning.count
        agents = max(member.first_agent + member.count for member in environment.members)
        self.state = (
            0,
            np.full(partitions, FREE, np.int32),
            np.zeros(partitions, np.int64),
            np.zeros(agents, np.int64),
            np.zeros((0, 2), np.int64),
        )

    @property
    def holder(self) -> Int32:
        """Who holds each partition, int32[P]; FREE: nobody."""
        return self.state[1]

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Take in a request or a release, and grant what can be granted."""
        match event:
            case LockRequest(agent, epoch, count):
                if self._is_current(agent, epoch):
                    self._wait(agent, count)
            case LocksReleased(agent, epoch):
                if self._is_current(agent, epoch):
                    self._release(agent)
            case _:
                raise TypeError(f"lock table cannot handle {type(event).__name__}")
        return self._grant()

    def _is_current(self, agent: int, epoch: int) -> bool:
        """Whether a message is of the agent that is alive. Forgets what an earlier one had."""
        epochs = self.state[3]
        if epoch > epochs[agent]:
            self._release(agent)
            epochs[agent] = epoch
        return bool(epoch == epochs[agent])

    def _wait(self, agent: int, count: int) -> None:
        releases, holder, released, epochs, waiting = self.state
        assert not (holder == agent).any(), "an agent that holds locks asks for none"
        assert not (waiting[:, 0] == agent).any(), "an agent asks once at a time"
        waiting = np.vstack([waiting, np.array([[agent, count]], np.int64)])
        self.state = (releases, holder, released, epochs, waiting)

    def _release(self, agent: int) -> None:
        releases, holder, released, epochs, waiting = self.state
        held = holder == agent
        holder[held] = FREE
        released[held] = releases + 1
        self.state = (releases + 1, holder, released, epochs, waiting[waiting[:, 0] != agent])

    def _grant(self) -> list[Effect]:
        releases, holder, released, epochs, waiting = self.state
        effects: list[Effect] = []
        while len(waiting):
            agent, count = waiting[0].tolist()
            free = np.flatnonzero(holder == FREE)
            if len(free) < count:
                break
            longest = np.argsort(released[free], kind="stable")[:count]
            partition = np.sort(free[longest]).astype(np.int32)
            holder[partition] = agent
            waiting = waiting[1:]
            effects.append(Send(agent, LocksGranted(int(epochs[agent]), partition)))
        self.state = (releases, holder, released, epochs, waiting)
        return effects


class LockingQueue:
    """The tasks of a locking agent that wait: a PendingQueue whose rounds each see other
    partitions, or a later state.

    Tasks that were not placed come first in the next round, with the rest of their batch. Where
    others go ahead of those without room, these take turns with the batches (SkippedUnits).

    Args:
        gang: The gang of each task id, int64[tasks]; None if no task has one.
        whole_queue: A round is about everything (Capability.PLANS_WHOLE_QUEUE).
        skipped: Keeps what found no room, where others go ahead; None: it holds them up.
    """

    def __init__(self, gang: Int64 | None, whole_queue: bool, skipped: SkippedUnits | None) -> None:
        self._gang, self._whole_queue, self._skipped = gang, whole_queue, skipped
        self._batches: deque[QueuedTasks] = deque()
        self._left = NO_TASKS  # what the rounds before have left of a batch
        self._place: int | None = None  # among those skipped, of the next round's tasks
        self._without_room: Int64 = NO_TASKS.task  # in the last round
        # what waits with a round for the outcome of its claims
        self._unplaced = NO_TASKS

    def turns(self, now_us: int) -> int:
        """After how many rounds without success everything that may be tried has been."""
        if self._skipped is None or self._skipped.holds(now_us):
            return 1
        return len(self._skipped) + len(self._batches) + 1

    def has_new(self, now_us: int) -> bool:
        return self._skipped is not None and not self._skipped.holds(now_us)

    @property
    def has_waiting(self) -> bool:
        return False  # each round may find room

    def has_next(self, now_us: int, view_changed: bool) -> bool:
        return self._has_batch or bool(self._skipped)

    @property
    def _has_batch(self) -> bool:
        """Whether there is a batch to begin, or the rest of one."""
        return len(self._batches) > 0 or len(self._left) > 0

    def add(self, work: QueuedTasks) -> None:
        self._batches.append(work)

    def next_batch(self, now_us: int, view_changed: bool) -> int | None:
        self._place = None
        if self._whole_queue:
            self._left = QueuedTasks.join([self._left, *self._batches])
            self._batches.clear()
            return len(self._left)
        if self._skipped is not None:
            self._skipped.on_view_changed()
            self._place = self._skipped.due(now_us, self._has_batch)
            if self._place is not None:
                return 0
            self._skipped.pass_on()
        if len(self._left):
            return 0
        self._left = self._batches.popleft()
        return len(self._left)

    def take(self, limit: int | None) -> QueuedTasks:
        if self._place is not None:
            assert self._skipped is not None, "places are among those skipped"
            return self._skipped.take(self._place, limit)
        tasks, self._left = split_batch(self._left, limit, self._gang)
        return tasks

    def holder(self, now_us: int) -> Int64:
        return self._without_room if self._skipped is None else self._skipped.holder(now_us)

    def waiting(self, now_us: int) -> list[WaitingPart]:
        why, ahead = Waiting.NOT_TRIED, NOBODY
        lacks = self._without_room if self._skipped is None else self._skipped.all_tasks()
        holder = self.holder(now_us)
        if len(holder):
            why, ahead = Waiting.BEHIND, int(holder[0])
        left = self._left.task[~np.isin(self._left.task, lacks)]
        return [
            WaitingPart(lacks, Waiting.NO_ROOM),
            WaitingPart(left, why, ahead),
            *(WaitingPart(work.task, why, ahead) for work in self._batches),
        ]

    def claimed_tasks(self, round_: Round) -> QueuedTasks:
        assert round_.plan is not None
        by_task = np.argsort(round_.offered.task, kind="stable")
        row = np.searchsorted(round_.offered.task, round_.plan.task, sorter=by_task)
        return round_.offered.take(by_task[row])

    def on_planned(self, round_: Round) -> QueueExits:
        plan = round_.plan
        assert plan is not None
        too_large = plan.pending[plan.pending_reason == PendingReason.TOO_LARGE]
        is_left = np.isin(round_.offered.task, plan.pending)
        is_left &= ~np.isin(round_.offered.task, too_large)
        left = round_.offered.take(is_left)
        self._without_room = left.task
        round_.blocked = len(left) > 0
        self._unplaced = left
        if self._skipped is not None and round_.blocked:
            self._skipped.on_no_room(round_.start_us, left)
            self._unplaced = NO_TASKS
        return QueueExits(too_large) if len(too_large) else NO_EXITS

    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits:
        unplaced = QueuedTasks.join([self._unplaced, losers])
        if len(losers):  # in the order in which they were offered
            by_task = np.argsort(round_.offered.task, kind="stable")
            row = np.searchsorted(round_.offered.task, unplaced.task, sorter=by_task)
            unplaced = unplaced.take(np.argsort(by_task[row], kind="stable"))
        self._left = QueuedTasks.join([unplaced, self._left])
        return NO_EXITS

    def on_adopted(self, task: Int64) -> None:
        """Nothing waits for tasks that run."""

    def on_finished(self, task: Int64) -> bool:
        return False


class LockingAgent(SchedulerAgent):
    """Drives one scheduler: an Agent (parsync.core.participant)."""

    def __init__(self, environment: AgentEnvironment) -> None:
        shared, options = environment.shared, environment.member.options
        self._clock = environment.clock
        self._partitions = shared.partitioning.count
        self._wanted = options.locked_partitions or self._partitions
        self._retry_us = round(options.retry_s * 1e6)
        limits = [options.round_tasks]
        if options.hold_s is not None:
            hold_us = round(options.hold_s * 1e6)
            limits.append(self._clock.tasks_within(hold_us, self._wanted))
        self._round_tasks = min((limit for limit in limits if limit is not None), default=None)
        gang = None if (shared.table.gang == NO_GANG).all() else shared.table.gang
        whole_queue = Capability.PLANS_WHOLE_QUEUE in environment.member.capabilities
        sizes = UnitSizes(shared.table, shared.catalog)
        hold_queue_us = head_of_line_us(options.head_of_line_s)
        skipped: SkippedUnits | None = None
        if hold_queue_us != 0 and not whole_queue and not sizes.are_alike:
            skipped = SkippedUnits(sizes, hold_queue_us, gang)
        self._waits = LockingQueue(gang, whole_queue, skipped)
        super().__init__(environment, AgentView(environment), self._waits)
        self.activity = Activity.IDLE
        self._in_vain = 0  # partitions looked at since a task was placed

    def on_started(self, now_us: int) -> list[Effect]:
        return [self._release()]

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case LocksGranted():
                return self._granted_locks(event)
            case RetryDue(number):
                blocked = self.activity is Activity.BLOCKED_ON_CAPACITY and number == self.rounds
                return self.next(now_us) if blocked else []
        return super().on_event(now_us, event)

    def start_round(self, now_us: int) -> list[Effect]:
        """Ask for locks."""
        self.activity = Activity.WAITING_FOR_GRANT
        return [Send(self.cell_side, LockRequest(self.index, self.epoch, self._wanted))]

    def _granted_locks(self, event: LocksGranted) -> list[Effect]:
        """Ask the master for the state of the locked partitions. What is known of others is
        forgotten, so that the scheduler sees these only."""
        if event.epoch != self.epoch:
            return []  # meant for the agent before this host was restarted
        self.activity = Activity.SYNCING
        self.view.forget()
        return self.view.request(event.partition)

    def on_synced(self, now_us: int, reply: SyncReply) -> list[Effect]:
        return self.open_round(now_us)

    def compose(self, now_us: int, begins: bool) -> tuple[PartitionRanking, int | None]:
        return PartitionRanking.OPTIMISTIC, self._round_tasks

    def decision_us(self, elapsed_ns: int) -> int:
        """How long the round just planned takes to decide. Only locked partitions are looked at.

        Args:
            elapsed_ns: Wall time of decide(), used by Measured clocks only.
        """
        round_ = self.round
        assert round_ is not None and round_.plan is not None, "decide() comes first"
        plan = round_.plan
        too_large = np.count_nonzero(plan.pending_reason == PendingReason.TOO_LARGE)
        tasks = len(round_.offered) - int(too_large)
        round_.decision_us = self._clock.duration_us(
            tasks, tasks * self._wanted, plan.operations, elapsed_ns, plan.priced_machines
        )
        return round_.decision_us

    def on_decided(self, now_us: int, round_: Round) -> None:
        """Nothing is known before the outcome."""

    def transaction_number(self, round_: Round) -> int:
        """That of the round."""
        return round_.number

    def on_round_over(self, now_us: int, round_: Round, placed: int, lost: int) -> list[Effect]:
        """Release the locks and go on; after a pause if no partition has room."""
        self.record_holder(now_us)
        is_in_vain = not placed and (round_.blocked or lost > 0)
        self._in_vain = self._in_vain + self._wanted if is_in_vain else 0
        if self._in_vain < self._partitions * self._waits.turns(now_us):
            return [self._release(), *self.next(now_us)]
        self._in_vain = 0
        self.activity = Activity.BLOCKED_ON_CAPACITY
        return [self._release(), SetTimer(now_us + self._retry_us, RetryDue(self.rounds))]

    def _release(self) -> Send:
        """Give back all that it holds."""
        return Send(self.cell_side, LocksReleased(self.index, self.epoch))


_REFUSED = {
    Capability.KEEPS_PENDING: "keeps the tasks that wait",
    Capability.EVICTS: "ends running tasks",
}


def check(members: tuple[Member, ...], partitions: int) -> None:
    """Raise AgoraError if a group locks more partitions than there are, or has schedulers that this
    protocol cannot drive."""
    for member in members:
        locked = member.options.locked_partitions
        if locked is not None and locked > partitions:
            raise AgoraError(
                f"group '{member.name}': locked_partitions: expected at most {partitions}, the "
                f"partitions of the arm, got {locked}"
            )
        whole_queue = Capability.PLANS_WHOLE_QUEUE in member.capabilities
        if member.options.round_tasks is not None and whole_queue:
            raise AgoraError(
                f"group '{member.name}': round_tasks: not for a kind of scheduler that plans its "
                "whole queue in each round"
            )
        for capability, what in _REFUSED.items():
            if capability in member.capabilities:
                raise AgoraError(
                    f"group '{member.name}': protocol '{KIND}' cannot drive a scheduler that {what}"
                )


def reach(options: LockingOptions) -> GroupReach:
    """What a scheduler of a group may use: in a round, what it locks."""
    return GroupReach(partitions_at_once=options.locked_partitions)


SPEC = ProtocolSpec(
    KIND,
    LockingOptions,
    LockingAgent,
    cell_side=LockTable,
    events=EVENTS,
    capabilities=frozenset({ProtocolCapability.RUNS_SCHEDULERS, ProtocolCapability.SYNCHRONISES}),
    check=check,
    reach=reach,
)
